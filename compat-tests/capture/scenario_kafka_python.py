"""The calls of kafka-python for the recording: configured for an older broker, it uses old APIs."""

import warnings
from collections.abc import Callable
from typing import Any

from steps import Report, step


def kafka_python(address: str, report: Report, api_version: tuple[int, ...] | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition
        from kafka.admin import KafkaAdminClient, NewTopic

    mark = "x".join(map(str, api_version)) if api_version else "newest"
    topic, group = f"golden-{mark}", f"golden-group-{mark}"
    common = {"bootstrap_servers": address, "api_version": api_version}
    with step(report, "admin"):
        admin = KafkaAdminClient(**common)
        with step(report, "create_topics"):
            admin.create_topics([NewTopic(topic, 2, 1)])
        _kafka_python_data(
            common, topic, group, KafkaProducer, KafkaConsumer, TopicPartition, report
        )
        _kafka_python_admin(admin, topic, group, report)
        admin.close()


def _kafka_python_data(
    common: dict[str, Any],
    topic: str,
    group: str,
    producer_type: Any,
    consumer_type: Any,
    partition_type: Any,
    report: Report,
) -> None:
    for acks in (0, 1, "all"):
        with step(report, f"produce acks={acks}"):
            producer = producer_type(**common, acks=acks, enable_idempotence=acks == "all")
            for number in range(3):
                producer.send(topic, key=b"k%d" % number, value=b"value", headers=[("h", b"x")])
            producer.flush()
            producer.close()
    with step(report, "transaction"):
        producer = producer_type(**common, transactional_id=f"tx-{topic}")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"in a transaction").get(10)
        with step(report, "send_offsets_to_transaction"):
            from kafka.structs import OffsetAndMetadata

            offsets = {partition_type(topic, 0): OffsetAndMetadata(1, "", -1)}
            producer.send_offsets_to_transaction(offsets, f"{group}-tx")
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"to be aborted").get(10)
        producer.abort_transaction()
        producer.close()
    with step(report, "consume"):
        consumer = consumer_type(
            topic,
            **common,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=4000,
            heartbeat_interval_ms=300,
            session_timeout_ms=6000,
            fetch_max_wait_ms=100,
        )
        for _, _message in zip(range(5), consumer, strict=False):
            pass
        consumer.commit()
        consumer.poll(700)
        consumer.committed(partition_type(topic, 0))
        consumer.beginning_offsets([partition_type(topic, 0)])
        consumer.offsets_for_times({partition_type(topic, 0): 0})
        consumer.close()


def _kafka_python_admin(admin: Any, topic: str, group: str, report: Report) -> None:
    from kafka import TopicPartition
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        ConfigResource,
        ConfigResourceType,
        NewPartitions,
        ResourcePattern,
        ResourcePatternFilter,
        ResourceType,
    )

    acl = ACL(
        "User:alice",
        "*",
        ACLOperation.READ,
        ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TOPIC, topic),
    )
    all_acls = ACLFilter(
        None,
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.ANY),
    )
    partition = TopicPartition(topic, 0)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000000"})
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("describe_cluster", admin.describe_cluster),
        ("list_topics", admin.list_topics),
        ("describe_topics", lambda: admin.describe_topics([topic])),
        ("describe_topic_partitions", lambda: admin.describe_topic_partitions([topic])),
        ("create_partitions", lambda: admin.create_partitions({topic: NewPartitions(3)})),
        ("alter_configs", lambda: admin.alter_configs([resource])),
        ("reset_configs", lambda: admin.reset_configs([resource])),
        (
            "describe_configs",
            lambda: admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})]
            ),
        ),
        ("list_config_resources", admin.list_config_resources),
        ("create_acls", lambda: admin.create_acls([acl])),
        ("describe_acls", lambda: admin.describe_acls(all_acls)),
        ("delete_acls", lambda: admin.delete_acls([all_acls])),
        ("list_groups", admin.list_groups),
        ("describe_groups", lambda: admin.describe_groups([group])),
        ("list_group_offsets", lambda: admin.list_group_offsets(group)),
        ("delete_group_offsets", lambda: admin.delete_group_offsets(group, [partition])),
        ("list_partition_offsets", lambda: admin.list_partition_offsets({partition: -1})),
        ("describe_producers", lambda: admin.describe_producers([partition])),
        ("list_transactions", admin.list_transactions),
        ("describe_transactions", lambda: admin.describe_transactions([f"tx-{topic}"])),
        ("describe_features", admin.describe_features),
        ("describe_metadata_quorum", admin.describe_metadata_quorum),
        ("list_partition_reassignments", admin.list_partition_reassignments),
        ("describe_user_scram_credentials", admin.describe_user_scram_credentials),
        ("elect_leaders", lambda: admin.elect_leaders(0, [partition])),
        ("delete_records", lambda: admin.delete_records({partition: 1})),
        ("delete_groups", lambda: admin.delete_groups([group])),
        ("delete_topics", lambda: admin.delete_topics([topic])),
    ]
    for name, call in steps:
        with step(report, name):
            call()


def kafka_python_sasl(address: str, report: Report) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka.admin import KafkaAdminClient
    with step(report, "sasl"):
        KafkaAdminClient(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="alice",
            sasl_plain_password="alice-secret",
        ).close()
