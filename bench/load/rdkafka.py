"""Load through librdkafka, the client that most languages use, by confluent-kafka.

The same client with the same settings drives every contender. Results are verified: a message that
was not delivered, or not returned, ends the benchmark.
"""

import time
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

LINGER_MS = 5
LOG_LEVEL = 4
"""Warnings and worse, in syslog levels."""
SECONDS_MAX = 120.0
POLL_SECONDS = 0.01
CONSUME_COUNT = 10_000
QUEUE_BACKOFF_MS = 10
TOPIC_PARTITIONS_MAX = 1_000
CHUNK_COUNT = 1_000
MANY = "many-"
LEADERS_SECONDS_MAX = 400.0
AROUND_MAX = 20_000
AROUND_STEP = 100

PRODUCER = {
    "acks": "all",
    "linger.ms": LINGER_MS,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 512 * 1024,
    "delivery.report.only.error": True,
}
CONSUMER = {
    # With the default of a second, a server that fills the client's queue of 64 MB faster than the
    # application drains it is not polled for a second: the faster server would get the worse
    # number.
    "fetch.queue.backoff.ms": QUEUE_BACKOFF_MS,
    "group.id": "bench",
    "enable.auto.commit": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",
}


class LoadFailed(Exception):
    """The server did not do what was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The amount transferred, and the time it took."""

    count: int
    payload_bytes: int
    seconds: float

    @property
    def megabytes_per_second(self) -> float:
        """Payload, in millions of bytes."""
        return self.payload_bytes / 1e6 / self.seconds

    @property
    def per_second(self) -> float:
        """Messages per second."""
        return self.count / self.seconds


class Delivery:
    """Produces on one client and stores the first error."""

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, **PRODUCER, **settings})
        self.delivered_count = 0
        self._error: object = None

    def send(self, topic: str, value: bytes, partition: int, deadline: float) -> None:
        """Produce one message, and wait while the client's queue is full."""
        while True:
            try:
                self.producer.produce(
                    topic, value, partition=partition, on_delivery=self._delivered
                )
            except BufferError:
                self.producer.poll(POLL_SECONDS)
                self.check(deadline)
            else:
                return

    def send_many(
        self, topic: str, value: bytes, partition: int, count: int, deadline: float
    ) -> None:
        """Produce the same message many times, in as few calls as possible.

        With a call per message this process would be the bottleneck: the client takes two
        microseconds per message, and a server can accept more than 500,000 per second.
        """
        message = {"value": value}
        while count:
            chunk = [message] * min(count, CHUNK_COUNT)
            taken = self.producer.produce_batch(
                topic, chunk, partition, on_delivery=self._delivered
            )
            count -= taken
            if taken < len(chunk):
                message.pop("_error", None)
                self.producer.poll(POLL_SECONDS)
            self.check(deadline)

    def finish(self, deadline: float) -> None:
        """Wait until everything is delivered."""
        while self.producer.flush(POLL_SECONDS):
            self.check(deadline)
        self.check(deadline)

    def check(self, deadline: float) -> None:
        """Raise a delivery error, or a timeout."""
        if self._error is not None:
            raise LoadFailed(f"a message was not delivered: {self._error}")
        if time.monotonic() > deadline:
            raise LoadFailed("producing took too long")

    def _delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.delivered_count += 1
        elif self._error is None:
            self._error = error


def produce(bootstrap: str, topic: str, size: int, count: int, **settings: object) -> Load:
    """Send `count` messages of one size to partition 0 and wait until all are acknowledged.

    The first message creates the topic and is not timed.
    """
    deadline = time.monotonic() + SECONDS_MAX
    value = bytes(size)
    delivery = Delivery(bootstrap, **settings)
    delivery.send(topic, value, 0, deadline)
    delivery.finish(deadline)
    began = time.perf_counter()
    delivery.send_many(topic, value, 0, count, deadline)
    delivery.finish(deadline)
    seconds = time.perf_counter() - began
    return Load(count=count, payload_bytes=count * size, seconds=seconds)


def consume(bootstrap: str, topic: str, size: int, count: int, **settings: object) -> Load:
    """Read `count` messages from the beginning of partition 0."""
    deadline = time.monotonic() + SECONDS_MAX
    consumer = Consumer({"bootstrap.servers": bootstrap, **CONSUMER, **settings})
    received = 0
    try:
        consumer.list_topics(topic, timeout=SECONDS_MAX)
        began = time.perf_counter()
        consumer.assign([TopicPartition(topic, 0, 0)])
        while received < count:
            # Never more than there are: the client would wait for its timeout.
            messages = consumer.consume(min(CONSUME_COUNT, count - received), timeout=1.0)
            if messages:
                _check(messages[-1], size)
            received += len(messages)
            if time.monotonic() > deadline:
                raise LoadFailed(f"{received} of {count} messages came back in time")
        seconds = time.perf_counter() - began
    finally:
        consumer.close()
    return Load(count=received, payload_bytes=received * size, seconds=seconds)


def _check(message: Any, size: int) -> None:
    if message.error() is not None:
        raise LoadFailed(f"a message did not come back: {message.error()}")
    if len(message.value()) != size:
        raise LoadFailed(f"a message of {size} bytes came back with {len(message.value())}")


def create_topic(bootstrap: str, topic: str, partitions: int, **settings: object) -> None:
    """Create a topic with one replica."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **settings})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(SECONDS_MAX)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic, so that its log does not fill the disk."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": LOG_LEVEL})
    for future in admin.delete_topics([topic], operation_timeout=SECONDS_MAX).values():
        try:
            future.result(SECONDS_MAX)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNSUPPORTED_FEATURE:
                raise


def create_partitions(bootstrap: str, count: int) -> list[tuple[str, int]]:
    """Create topics with this many partitions in total; returns every (topic, partition).

    Waits until each has a leader: a server may respond long before.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": LOG_LEVEL})
    found = []
    for index in range(0, count, TOPIC_PARTITIONS_MAX):
        partitions = min(TOPIC_PARTITIONS_MAX, count - index)
        topic = f"{MANY}{index}"
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
        for future in admin.create_topics([new], request_timeout=SECONDS_MAX).values():
            future.result(SECONDS_MAX)
        found += [(topic, partition) for partition in range(partitions)]
    deadline = time.monotonic() + LEADERS_SECONDS_MAX
    while (led := _led_count(admin)) < count:
        if time.monotonic() > deadline:
            raise LoadFailed(f"{led} of {count} partitions have a leader in time")
        time.sleep(POLL_SECONDS)
    return found


def _led_count(admin: AdminClient) -> int:
    topics = admin.list_topics(timeout=SECONDS_MAX).topics
    return sum(
        place.leader >= 0
        for name, topic in topics.items()
        if name.startswith(MANY)
        for place in topic.partitions.values()
    )


def produce_around(
    bootstrap: str, places: list[tuple[str, int]], size: int, seconds: float
) -> Load:
    """Send messages to all partitions in turn for a time, and wait until all are acknowledged.

    At most AROUND_MAX are in flight: a server with many partitions could take many times as long
    for what a client has queued during the benchmark.
    """
    deadline = time.monotonic() + seconds + SECONDS_MAX
    delivery = Delivery(bootstrap, **{"delivery.report.only.error": False})
    value = bytes(size)
    # One untimed round, in which the client learns every leader.
    for topic, partition in places:
        delivery.send(topic, value, partition, deadline)
    delivery.finish(deadline)
    first = delivery.delivered_count
    began = time.perf_counter()
    end = began + seconds
    index = 0
    while time.perf_counter() < end:
        topic, partition = places[index % len(places)]
        delivery.send(topic, value, partition, deadline)
        index += 1
        if index % AROUND_STEP == 0:
            delivery.producer.poll(0)
            while index + first - delivery.delivered_count > AROUND_MAX:
                delivery.producer.poll(POLL_SECONDS)
                delivery.check(deadline)
    delivery.finish(deadline)
    elapsed = time.perf_counter() - began
    count = delivery.delivered_count - first
    return Load(count=count, payload_bytes=count * size, seconds=elapsed)
