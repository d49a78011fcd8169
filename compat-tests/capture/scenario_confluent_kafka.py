"""The calls of confluent-kafka (librdkafka) for the recording."""

import time
from collections.abc import Callable
from typing import Any

from steps import Report, step


def confluent_kafka(address: str, report: Report) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    topic, group = "golden-confluent", "golden-group-confluent"
    common = {"bootstrap.servers": address, "broker.address.family": "v4"}
    admin = AdminClient(common)
    with step(report, "create_topics"):
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(10)
    for settings in (
        {"acks": 0},
        {"acks": 1, "compression.type": "lz4"},
        {"enable.idempotence": True, "compression.type": "snappy"},
    ):
        with step(report, f"produce {settings}"):
            producer = Producer(common | settings | {"linger.ms": 20})
            for number in range(3):
                producer.produce(topic, b"value" * 20, b"k%d" % number, headers=[("h", b"x")])
            producer.flush(10)
    with step(report, "transaction"):
        producer = Producer(common | {"transactional.id": "tx-confluent"})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(topic, b"in a transaction")
        consumer = Consumer(common | {"group.id": f"{group}-tx"})
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, 1)], consumer.consumer_group_metadata()
        )
        producer.commit_transaction(10)
        producer.begin_transaction()
        producer.produce(topic, b"to be aborted")
        producer.flush(10)
        producer.abort_transaction(10)
        consumer.close()
    for protocol in ("classic", "consumer"):
        with step(report, f"consume {protocol}"):
            _confluent_consume(common, topic, f"{group}-{protocol}", protocol)
    _confluent_admin(admin, topic, group, report)


def _confluent_consume(common: dict[str, Any], topic: str, group: str, protocol: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"group.id": group, "auto.offset.reset": "earliest", "group.protocol": protocol}
    if protocol == "classic":
        settings |= {"heartbeat.interval.ms": 300, "session.timeout.ms": 6000}
    consumer = Consumer(common | settings)
    consumer.subscribe([topic])
    deadline, seen = time.monotonic() + 15, 0
    while seen < 5 and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        seen += message is not None and message.error() is None
    consumer.commit(asynchronous=False)
    consumer.poll(1)
    consumer.committed([TopicPartition(topic, 0)], 10)
    consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
    consumer.offsets_for_times([TopicPartition(topic, 0, 1)], 10)
    consumer.close()


def _confluent_admin(admin: Any, topic: str, group: str, report: Report) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewPartitions,
        OffsetSpec,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    def all_of(futures: Any) -> None:
        for future in futures.values():
            future.result(10)

    pattern = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*")
    acl = AclBinding(*pattern, AclOperation.READ, AclPermissionType.ALLOW)
    acl_filter = AclBindingFilter(*pattern, AclOperation.ANY, AclPermissionType.ANY)
    classic = f"{group}-classic"
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    partition = TopicPartition(topic, 0)
    committed = ConsumerGroupTopicPartitions(classic, [TopicPartition(topic, 0, 1)])
    scram = UserScramCredentialUpsertion(
        "bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret", b"salt"
    )
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("list_topics", lambda: admin.list_topics(timeout=10)),
        ("describe_cluster", lambda: admin.describe_cluster().result(10)),
        ("create_partitions", lambda: all_of(admin.create_partitions([NewPartitions(topic, 3)]))),
        (
            "describe_configs",
            lambda: all_of(
                admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])
            ),
        ),
        ("incremental_alter_configs", lambda: all_of(admin.incremental_alter_configs([resource]))),
        ("create_acls", lambda: all_of(admin.create_acls([acl]))),
        ("describe_acls", lambda: admin.describe_acls(acl_filter).result(10)),
        ("delete_acls", lambda: all_of(admin.delete_acls([acl_filter]))),
        ("list_consumer_groups", lambda: admin.list_consumer_groups().result(10)),
        (
            "describe_consumer_groups",
            lambda: all_of(admin.describe_consumer_groups([classic, f"{group}-consumer"])),
        ),
        (
            "list_consumer_group_offsets",
            lambda: all_of(
                admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(classic)])
            ),
        ),
        (
            "alter_consumer_group_offsets",
            lambda: all_of(admin.alter_consumer_group_offsets([committed])),
        ),
        ("list_offsets", lambda: all_of(admin.list_offsets({partition: OffsetSpec.latest()}))),
        ("delete_records", lambda: all_of(admin.delete_records([TopicPartition(topic, 0, 1)]))),
        (
            "alter_user_scram_credentials",
            lambda: all_of(admin.alter_user_scram_credentials([scram])),
        ),
        (
            "describe_user_scram_credentials",
            lambda: all_of(admin.describe_user_scram_credentials(["bob"])),
        ),
        ("elect_leaders", lambda: _elect(admin, partition)),
        ("delete_consumer_groups", lambda: all_of(admin.delete_consumer_groups([classic]))),
        ("delete_topics", lambda: all_of(admin.delete_topics([topic]))),
    ]
    for name, call in steps:
        with step(report, name):
            call()


def _elect(admin: Any, partition: Any) -> None:
    from confluent_kafka import ElectionType

    admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(10)


def confluent_kafka_sasl(address: str, report: Report) -> None:
    from confluent_kafka.admin import AdminClient

    with step(report, "sasl"):
        AdminClient(
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanisms": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "alice-secret",
            }
        ).list_topics(timeout=10)
