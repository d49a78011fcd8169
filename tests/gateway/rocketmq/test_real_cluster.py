"""Kafka clients over a real Apache RocketMQ cluster of two masters, beside RocketMQ's clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from kafka import KafkaConsumer, KafkaProducer
from tests.gateway.rocketmq.cluster import TwoMasters, gateway, two_masters
from tests.waiting import wait_until

from rockgate.sdk import Message
from rockgate.sdk import Producer as SdkProducer
from rockgate.sdk.admin.admin import Admin
from rockgate.sdk.results import Queue

pytestmark = [pytest.mark.java, pytest.mark.long]
SECONDS_MAX = 30


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with two_masters() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kafka(masters: TwoMasters) -> Iterator[str]:
    with gateway(masters.name_server) as address:
        yield address


def create(kafka: str, name: str, partitions: int = 4) -> None:
    # It has to outlive its answers.
    admin = AdminClient({"bootstrap.servers": kafka})
    [created] = admin.create_topics([NewTopic(name, partitions)]).values()
    created.result(SECONDS_MAX)


def consumed(kafka: str, topic: str, count: int, **settings: str) -> list[tuple[object, ...]]:
    """`count` records of a topic: partition, offset, key, value, headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": f"read-{topic}",
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[object, ...]] = []
    until = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < until:
        for message in consumer.consume(count - len(found), 1.0):
            assert not message.error(), message.error()
            place = (message.partition(), message.offset())
            found.append((*place, message.key(), message.value(), message.headers()))
    consumer.close()
    return found


def test_two_kinds_of_producers_and_of_consumers_share_a_topic(
    masters: TwoMasters, kafka: str
) -> None:
    create(kafka, "shared.orders")
    plain = KafkaProducer(bootstrap_servers=kafka, acks="all")
    for at in range(500):
        plain.send("shared.orders", key=b"p%d" % at, value=b"plain-%d" % at)
    idempotent = Producer({"bootstrap.servers": kafka, "enable.idempotence": True})
    failures: list[object] = []
    for at in range(2000):
        idempotent.produce(
            "shared.orders",
            b"idempotent-%d" % at,
            key=b"i%d" % at,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )

    async def send() -> None:
        async with SdkProducer(masters.name_server, group="sdk") as producer:
            for at in range(100):
                await producer.send(Message("shared|orders", b"sdk-%d" % at, keys=[f"s{at}"]))

    asyncio.run(send())
    assert idempotent.flush(SECONDS_MAX) == 0
    plain.close(SECONDS_MAX)
    assert not failures
    expected = {
        *(b"plain-%d" % at for at in range(500)),
        *(b"idempotent-%d" % at for at in range(2000)),
        *(b"sdk-%d" % at for at in range(100)),
    }
    found = consumed(kafka, "shared.orders", 2600)
    assert len(found) == 2600
    assert {value for _, _, _, value, _ in found} == expected
    places = {(partition, offset): value for partition, offset, _, value, _ in found}
    assert len(places) == 2600
    # Another client sees the same value at each place.
    consumer = KafkaConsumer(
        "shared.orders",
        bootstrap_servers=kafka,
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS_MAX * 1000,
    )
    seen = {}
    for record in consumer:
        seen[record.partition, record.offset] = record.value
        if len(seen) == 2600:
            break
    consumer.close()
    assert seen == places


def test_null_and_empty_values_keys_headers_and_times_come_back(kafka: str) -> None:
    create(kafka, "shapes", 1)
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 50})
    sent = [
        (b"k", None, []),
        (None, b"", [("h", b"1"), ("h", None)]),
        (b"", b"v", [("TAGS", b"t"), ("KEYS", b"x y")]),
        (b"\x00\xff", bytes(3000), [("", b"\x01")]),
    ]
    for at, (key, value, headers) in enumerate(sent):
        producer.produce(
            "shapes", value, key=key, headers=headers, timestamp=1_600_000_000_000 + at
        )
    producer.flush(SECONDS_MAX)
    found = consumed(kafka, "shapes", len(sent))
    assert [(key, value, headers or []) for _, _, key, value, headers in found] == sent


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read_back(kafka: str, codec: str) -> None:
    name = f"compressed-{codec}"
    create(kafka, name, 1)
    producer = Producer({"bootstrap.servers": kafka, "compression.type": codec, "linger.ms": 50})
    for at in range(3000):
        producer.produce(name, b"value-%d" % at)
    producer.flush(SECONDS_MAX)
    found = consumed(kafka, name, 3000)
    assert [value for _, _, _, value, _ in found] == [b"value-%d" % at for at in range(3000)]


def test_progress_is_rocketmqs_own(masters: TwoMasters, kafka: str) -> None:
    create(kafka, "progress", 2)
    producer = Producer({"bootstrap.servers": kafka})
    for at in range(100):
        producer.produce("progress", b"%d" % at, partition=at % 2)
    producer.flush(SECONDS_MAX)
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": "team.a", "auto.offset.reset": "earliest"}
    )
    consumer.commit(
        offsets=[TopicPartition("progress", 0, 30), TopicPartition("progress", 1, 40)],
        asynchronous=False,
    )
    consumer.close()

    async def offsets() -> list[int | None]:
        async with Admin(masters.name_server) as admin:
            queues = [Queue("progress", f"broker-{each}", 0) for each in "ab"]
            return [await admin.offsets.committed("team|a", queue) for queue in queues]

    assert asyncio.run(offsets()) == [30, 40]
    found = consumed(kafka, "progress", 30, **{"group.id": "team.a"})
    first = {0: 30, 1: 40}
    for partition in (0, 1):
        offsets_read = [int(str(at)) for each, at, *_ in found if each == partition]
        assert min(offsets_read) == first[partition]


def test_a_group_shares_partitions_among_its_members(kafka: str) -> None:
    create(kafka, "members", 4)
    settings = {"bootstrap.servers": kafka, "group.id": "sharing", "auto.offset.reset": "earliest"}
    several = [Consumer(settings) for _ in range(2)]
    for each in several:
        each.subscribe(["members"])

    def is_shared() -> bool:
        for each in several:
            each.poll(0.1)
        return [len(each.assignment()) for each in several] == [2, 2]

    wait_until(is_shared, "both have two partitions", SECONDS_MAX)
    for each in several:
        each.close()


def test_partitions_are_added_at_the_end(kafka: str) -> None:
    create(kafka, "growing", 3)
    admin = AdminClient({"bootstrap.servers": kafka})
    [grown] = admin.create_partitions([NewPartitions("growing", 5)]).values()
    grown.result(SECONDS_MAX)
    producer = Producer({"bootstrap.servers": kafka})
    for partition in range(5):
        producer.produce("growing", b"%d" % partition, partition=partition)
    producer.flush(SECONDS_MAX)
    found = consumed(kafka, "growing", 5)
    assert sorted((partition, value) for partition, _, _, value, _ in found) == [
        (at, b"%d" % at) for at in range(5)
    ]


def test_a_deleted_topic_is_gone(kafka: str) -> None:
    create(kafka, "doomed", 2)
    admin = AdminClient({"bootstrap.servers": kafka})
    [deleted] = admin.delete_topics(["doomed"]).values()
    deleted.result(SECONDS_MAX)
    assert "doomed" not in admin.list_topics(timeout=SECONDS_MAX).topics


def test_transactions_fail_at_once(kafka: str) -> None:
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": "t"})
    began = time.monotonic()
    with pytest.raises(KafkaException) as raised:
        producer.init_transactions(SECONDS_MAX)
    assert raised.value.args[0].fatal()
    assert time.monotonic() - began < SECONDS_MAX / 2


def test_an_offset_behind_the_end_is_out_of_range(kafka: str) -> None:
    create(kafka, "short", 1)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce("short", b"only")
    producer.flush(SECONDS_MAX)
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": "far", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition("short", 0, 1000)])
    message = consumer.poll(SECONDS_MAX)
    assert message is not None
    assert message.value() == b"only"
    consumer.close()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batch_queues_take_whole_batches_and_rocketmqs_messages_beside(
    masters: TwoMasters, kafka: str, codec: str
) -> None:
    name = f"whole-{codec}"
    admin = AdminClient({"bootstrap.servers": kafka})
    [created] = admin.create_topics([NewTopic(name, 1, config={"queue.type": "BatchCQ"})]).values()
    created.result(SECONDS_MAX)
    settings = {"enable.idempotence": True, "compression.type": codec, "linger.ms": 50}

    def write(values: list[bytes]) -> None:
        producer = Producer({"bootstrap.servers": kafka, **settings})
        for value in values:
            producer.produce(name, value, partition=0, key=b"k", headers=[("h", b"x")])
        assert producer.flush(SECONDS_MAX) == 0

    async def send() -> None:
        async with SdkProducer(masters.name_server, group="sdk") as producer:
            await producer.send(Message(name, b"single", keys=["s"]))

    first, last = [b"first-%d" % at for at in range(3000)], [b"last-%d" % at for at in range(10)]
    write(first)
    asyncio.run(send())
    write(last)
    found = consumed(kafka, name, 3011)
    assert [value for *_, value, _ in found] == [*first, b"single", *last]
    assert [offset for _, offset, *_ in found] == list(range(3011))
    assert found[-1][4] == [("h", b"x")]
    # From the midst of a batch.
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "midst"})
    consumer.assign([TopicPartition(name, 0, 1234)])
    [message] = consumer.consume(1, SECONDS_MAX)
    assert message.value() == first[1234]
    consumer.close()


def test_a_topic_keeps_its_type_of_queues(kafka: str) -> None:
    create(kafka, "simple", 1)
    admin = AdminClient({"bootstrap.servers": kafka})
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        "simple",
        incremental_configs=[
            ConfigEntry("queue.type", "BatchCQ", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    [altered] = admin.incremental_alter_configs([resource]).values()
    with pytest.raises(KafkaException) as raised:
        altered.result(SECONDS_MAX)
    assert raised.value.args[0].code() == KafkaError.INVALID_CONFIG
