"""Topics and configs from the outside: unmodified admin clients, a running server, its restart."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonTopic
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer

from rockgate.gateway.kafka.configs.topic import TOPIC_CONFIGS
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataResponse

SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def admin(server: RunningServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


def done(futures: dict[Any, Future[Any]]) -> Any:
    """The one result, or the error that it is."""
    (future,) = futures.values()
    return future.result(SECONDS)


def error_of(futures: dict[Any, Future[Any]]) -> Any:
    with pytest.raises(KafkaException) as caught:
        done(futures)
    return caught.value.args[0].code()


def config_of(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found: dict[str, ConfigEntry] = done(admin.describe_configs([resource]))
    return found


def alter(admin: AdminClient, topic: str, *entries: ConfigEntry) -> dict[Any, Future[Any]]:
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=list(entries))
    found: dict[Any, Future[Any]] = admin.incremental_alter_configs([resource])
    return found


# librdkafka


def test_librdkafka_creates_describes_grows_and_deletes_a_topic(admin: AdminClient) -> None:
    new = NewTopic("life", num_partitions=3, replication_factor=3, config={"retention.ms": "5000"})
    done(admin.create_topics([new]))
    described = done(admin.describe_topics(TopicCollection(["life"])))
    assert len(described.partitions) == 3
    assert [len(each.replicas) for each in described.partitions] == [1, 1, 1]
    assert error_of(admin.create_topics([new])) == KafkaError.TOPIC_ALREADY_EXISTS
    done(admin.create_partitions([NewPartitions("life", 5)]))
    assert len(admin.list_topics("life", timeout=SECONDS).topics["life"].partitions) == 5
    assert error_of(admin.create_partitions([NewPartitions("life", 2)])) == (
        KafkaError.INVALID_PARTITIONS
    )
    done(admin.delete_topics(["life"]))
    assert error_of(admin.delete_topics(["life"])) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "life" not in admin.list_topics(timeout=SECONDS).topics


def test_librdkafka_reads_and_changes_configs(admin: AdminClient) -> None:
    done(admin.create_topics([NewTopic("tuned", 1, config={"segment.ms": "5000"})]))
    found = config_of(admin, "tuned")
    assert set(found) == set(TOPIC_CONFIGS)
    assert (found["segment.ms"].value, found["segment.ms"].is_default) == ("5000", False)
    assert (found["retention.ms"].value, found["retention.ms"].is_default) == ("604800000", True)
    done(
        alter(
            admin,
            "tuned",
            ConfigEntry("retention.ms", "77", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("segment.ms", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
        )
    )
    found = config_of(admin, "tuned")
    assert found["retention.ms"].value == "77"
    assert found["segment.ms"].is_default
    assert found["cleanup.policy"].value == "delete,compact"
    wrong = ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET)
    assert error_of(alter(admin, "tuned", wrong)) == KafkaError.INVALID_CONFIG


def test_librdkafka_reads_the_broker_s_settings_and_changes_those_that_can_change(
    admin: AdminClient, server: RunningServer
) -> None:
    (node_id,) = admin.list_topics(timeout=SECONDS).brokers
    found = done(admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node_id))]))
    assert found["num.partitions"].value == found["topics.partitions"].value == "4"
    assert found["num.partitions"].is_read_only and not found["message.max.bytes"].is_read_only

    def change(name: str, value: str | None, operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, str(node_id), incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))

    def error_of(size: int) -> KafkaError | None:
        producer = Producer({"bootstrap.servers": server.bootstrap})
        errors: list[KafkaError | None] = []
        producer.produce("sized", bytes(size), on_delivery=lambda error, _: errors.append(error))
        producer.flush(SECONDS)
        [error] = errors
        return error

    with pytest.raises(KafkaException, match=r"Set 'topics\.partitions' in the configuration"):
        change("num.partitions", "9", AlterConfigOpType.SET)
    done(admin.create_topics([NewTopic("sized", 1)]))
    assert error_of(2_000) is None
    change("message.max.bytes", "1000", AlterConfigOpType.SET)
    refused = error_of(2_000)
    assert refused is not None and refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    change("message.max.bytes", None, AlterConfigOpType.DELETE)
    assert error_of(2_000) is None


def test_a_topic_that_keeps_the_last_of_each_key_refuses_records_without_one(
    admin: AdminClient, server: RunningServer
) -> None:
    done(admin.create_topics([NewTopic("compacted", 1, config={"cleanup.policy": "compact"})]))
    producer = Producer({"bootstrap.servers": server.bootstrap})
    told: list[Any] = []
    producer.produce("compacted", b"no key", on_delivery=lambda error, _: told.append(error))
    producer.produce("compacted", b"v", b"k", on_delivery=lambda error, _: told.append(error))
    producer.flush(SECONDS)
    producer = Producer({"bootstrap.servers": server.bootstrap})
    producer.produce("compacted", b"v", b"k", on_delivery=lambda error, _: told.append(error))
    producer.flush(SECONDS)
    assert told[0] is not None and told[0].code() == KafkaError.INVALID_RECORD
    assert told[-1] is None


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_librdkafka_tells_bad_records_of_a_batch_from_those_beside_them(
    admin: AdminClient, server: RunningServer, codec: str
) -> None:
    """What its own 0011-produce_batch asks: a compacted topic, and each tenth without a key."""
    topic = f"bad-among-good-{codec}"
    done(admin.create_topics([NewTopic(topic, 1, config={"cleanup.policy": "compact"})]))
    lingering = {"linger.ms": 10_000, "batch.num.messages": 100, "compression.type": codec}
    together = refusals_of(server, topic, lingering)
    expected = [KafkaError._INVALID_DIFFERENT_RECORD] * 100
    expected[::10] = [KafkaError.INVALID_RECORD] * 10
    assert [error and error.code() for error in together] == expected
    alone = refusals_of(server, topic, {"batch.num.messages": 1, "compression.type": codec})
    assert [error and error.code() for error in alone] == [
        None if index % 10 else KafkaError.INVALID_RECORD for index in range(100)
    ]


def refusals_of(server: RunningServer, topic: str, settings: dict[str, Any]) -> list[Any]:
    """What is reported of each of a hundred records, of which each tenth has no key."""
    producer = Producer({"bootstrap.servers": server.bootstrap, **settings})
    told: dict[bytes, Any] = {}

    def note(error: Any, message: Any) -> None:
        told[message.value()] = error

    for index in range(100):
        key = b"k%d" % index if index % 10 else None
        producer.produce(topic, b"%d" % index, key, partition=0, on_delivery=note)
    assert producer.flush(SECONDS) == 0
    return [told[b"%d" % index] for index in range(100)]


def test_a_topic_made_anew_is_another_and_others_are_written_meanwhile(
    admin: AdminClient, server: RunningServer
) -> None:
    done(admin.create_topics([NewTopic("other", 1)]))
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 1})
    told: list[Any] = []
    ids = set()
    for round_ in range(5):
        done(admin.create_topics([NewTopic("phoenix", 1)]))
        ids.add(str(done(admin.describe_topics(TopicCollection(["phoenix"]))).topic_id))
        producer.produce("other", b"%d" % round_, on_delivery=lambda error, _: told.append(error))
        done(admin.delete_topics(["phoenix"]))
    producer.flush(SECONDS)
    assert told == [None] * 5
    assert len(ids) == 5


# kafka-python


def test_kafka_python_administers_topics(server: RunningServer) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server.bootstrap)
    try:
        admin.create_topics(
            [PythonTopic("python", num_partitions=2, replication_factor=1)], raise_errors=True
        )
        (described,) = admin.describe_topics(["python"])
        assert len(described["partitions"]) == 2
        assert "python" in admin.list_topics()
        admin.create_partitions({"python": 4})
        (described,) = admin.describe_topics(["python"])
        assert len(described["partitions"]) == 4
        cluster = admin.describe_cluster()
        assert len(cluster["brokers"]) == 1
        admin.delete_topics(["python"])
        assert "python" not in admin.list_topics()
    finally:
        admin.close()


# The server's own life


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_topics_and_configs_outlive_kill_9(tmp_path: Path, flush: str) -> None:
    with RunningServer(tmp_path, settings=[f"store.flush={flush}"]) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        done(admin.create_topics([NewTopic("kept", 3, config={"retention.ms": "5"})]))
        done(admin.create_topics([NewTopic("gone", 1)]))
        done(admin.delete_topics(["gone"]))
        before = done(admin.describe_topics(TopicCollection(["kept"])))
        server.kill()
        server.start()
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        after = done(admin.describe_topics(TopicCollection(["kept"])))
        assert str(after.topic_id) == str(before.topic_id)
        assert len(after.partitions) == 3
        assert config_of(admin, "kept")["retention.ms"].value == "5"
        assert "gone" not in admin.list_topics(timeout=SECONDS).topics


def test_ten_thousand_topics_are_created_and_listed(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server, RawClient(server) as client, RawClient(server) as other:
        wanted = [
            CreatableTopic(name=f"t{index}", num_partitions=1, replication_factor=1)
            for index in range(10_000)
        ]
        client.send(ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(topics=wanted))
        other.api_versions()
        created = client.receive(CreateTopicsResponse, 4)
        assert [topic.error_code for topic in created.topics] == [0] * 10_000  # type: ignore[union-attr]
        listed = client.call(ApiKey.METADATA, 9, MetadataRequest(topics=None), MetadataResponse)
        assert len(listed.topics) == 10_000
