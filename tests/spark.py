"""Shared by the Spark tests: one session for a whole run, and records for it to read.

A session takes eight seconds to start and a gigabyte of memory, so there is one per process, and
`make test` runs these tests in one process (their marker is `spark`).
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import SparkSession
from tests.waiting import wait_until

from rockgate.pipeline.spark.session import open_session

_numbers = count()
MARKS = [
    pytest.mark.java,
    pytest.mark.spark,
    # PySpark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
"""The `pytestmark` of every module with Spark tests."""
# Small and fast: the tests have little to shuffle, and no one opens the UI.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    # Short runs need neither the second compiler nor a collector with threads.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


@cache
def shared_session() -> SparkSession:
    """Return the session of this process."""
    session = open_session("tests", master="local[2]", extra=SETTINGS)
    atexit.register(session.stop)
    return session


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as passed to a producer."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def new_topic(bootstrap: str, partitions: int = 1, **config: str) -> str:
    """Create a topic with a new name; `retention_ms="1"` sets the config retention.ms."""
    name = f"spark-{next(_numbers)}"
    create_topic(bootstrap, name, partitions, {k.replace("_", "."): v for k, v in config.items()})
    return name


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic of this name."""
    topic = NewTopic(name, partitions, 1, config=dict(config or {}))
    # The futures do not keep their client alive.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([topic])[name].result(60)


def grow_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Add partitions to a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(name, partitions)])[name].result(60)


def send(bootstrap: str, topic: str, records: Iterable[Record], **config: Any) -> None:
    """Send records to a topic, in order."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, **config})
    failures: list[object] = []

    def told(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    for record in records:
        extra = {} if record.timestamp is None else {"timestamp": record.timestamp}
        producer.produce(
            topic,
            record.value,
            record.key,
            record.partition,
            headers=list(record.headers) or None,
            on_delivery=told,
            **extra,
        )
        producer.poll(0)
    assert producer.flush(60) == 0, "records were not delivered in time"
    assert failures == []


def numbered(count: int, partitions: int = 1, start: int = 0) -> Iterator[Record]:
    """Records that contain their number and partition: `17` goes to partition 17 % partitions."""
    for number in range(start, start + count):
        yield Record(key=b"k%d" % number, value=b"%d" % number, partition=number % partitions)


def read_topic(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Message]:
    """Return all messages of a topic, by partition and offset; there must be `count`."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    )
    found: list[Message] = []
    ended: set[int] = set()
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

        def has_all() -> bool:
            for message in consumer.consume(1000, 0.1):
                if message.error() is None:
                    found.append(message)
                    ended.discard(message.partition())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise AssertionError(message.error())
            return len(ended) == partitions

        wait_until(has_all, f"{topic} is read to its end", 60)
    finally:
        consumer.close()
    assert len(found) == count, f"{topic} has {len(found)} records instead of {count}"
    return sorted(found, key=lambda message: (message.partition(), message.offset()))
