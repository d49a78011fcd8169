"""What tests of gateways do as Kafka clients: topics, single batches, and reading."""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.gateway.kafka.raw import RawClient

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

SECONDS_MAX = 60
PRODUCE = 9


@dataclass(frozen=True)
class At:
    """A listener of a process that this test did not start."""

    text: str

    def address(self, listener: str) -> tuple[str, int]:
        host, _, port = self.text.rpartition(":")
        return host, int(port)


def create(kafka: str, name: str, partitions: int, **config: str) -> None:
    # It has to outlive its answers.
    admin = AdminClient({"bootstrap.servers": kafka})
    new = NewTopic(name, partitions, config={k.replace("_", "."): v for k, v in config.items()})
    [created] = admin.create_topics([new]).values()
    created.result(SECONDS_MAX)


def send_batch(
    raw: RawClient, topic: str, sequence: int, *, producer: int = 7, count: int = 1
) -> None:
    """Send one batch of a producer to partition 0, and do not wait."""
    now_ms = time.time_ns() // 1_000_000
    records = [Record(at, now_ms, None, b"%d" % (sequence + at), ()) for at in range(count)]
    batch = build_batch(
        records, base_offset=0, producer_id=producer, producer_epoch=0, base_sequence=sequence
    )
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=0, records=bytes(batch))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    raw.send(ApiKey.PRODUCE, PRODUCE, request)


def answer_of(raw: RawClient) -> PartitionProduceResponse:
    """The answer to one batch."""
    [topic] = raw.receive(ProduceResponse, PRODUCE).responses
    [partition] = topic.partition_responses
    return partition


def produce(kafka: str, topic: str, values: list[bytes], **settings: object) -> list[object]:
    """Send values to partition 0; the errors of those that failed."""
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 20, **settings})
    failed: list[object] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failed.append(error)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    producer.flush(SECONDS_MAX)
    return failed


def values_of(kafka: str, topic: str, count: int, partition: int = 0) -> list[bytes | None]:
    """The first values of a partition."""
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": f"all-{topic}", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[bytes | None] = []
    until = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < until:
        for message in consumer.consume(count - len(found), 1.0):
            if message.error() is None:
                value = message.value()
                found.append(None if value is None else bytes(value))
    consumer.close()
    return found


def end_of(kafka: str, topic: str, partition: int = 0) -> int:
    """Where a partition ends."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "ends"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=SECONDS_MAX)
    consumer.close()
    return int(end)
