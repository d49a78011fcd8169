"""Steps shared by the behaviours."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence

from behaviours.driver import SECONDS_MAX, Consumer, Driver, Message, Place, Received, Sending
from tests.waiting import wait_until

_numbers = itertools.count()


def new_topic(what: str) -> str:
    """A name that no other test uses; the first use creates the topic."""
    return f"{what}-{next(_numbers)}"


def send_all(
    driver: Driver, bootstrap: str, topic: str, messages: Sequence[Message], sending: Sending
) -> list[Place]:
    """Send everything with one producer and wait for every response."""
    producer = driver.producer(bootstrap, sending)
    try:
        promises = [producer.send(topic, message) for message in messages]
        producer.flush()
        return [promise.result() for promise in promises]
    finally:
        producer.close()


@contextlib.contextmanager
def reading(
    driver: Driver, bootstrap: str, *, wait_ms_max: int = 500, bytes_max: int = 1 << 20
) -> Iterator[Consumer]:
    """A consumer that is closed at the end."""
    consumer = driver.consumer(bootstrap, wait_ms_max=wait_ms_max, bytes_max=bytes_max)
    try:
        yield consumer
    finally:
        consumer.close()


def read_until(
    consumer: Consumer, enough: Callable[[list[Received]], bool], what: str
) -> list[Received]:
    """Poll until enough was read."""
    found: list[Received] = []

    def read_on() -> bool:
        found.extend(consumer.poll(0.2))
        return enough(found)

    wait_until(read_on, what, SECONDS_MAX)
    return found


def read_all(driver: Driver, bootstrap: str, topic: str) -> list[Received]:
    """Everything in a topic, from the first offset to the last of each partition."""
    with reading(driver, bootstrap) as consumer:
        partitions = consumer.partitions(topic)
        ends = {each: consumer.end(topic, each) for each in partitions}
        consumer.assign(topic, partitions)
        count = sum(ends.values()) - sum(consumer.beginning(topic, each) for each in partitions)
        found = read_until(consumer, lambda got: len(got) >= count, f"{topic} is read to its end")
    assert len(found) == count
    return sorted(found, key=lambda each: (each.partition, each.offset))
