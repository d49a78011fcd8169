"""Suites of our own Python client that run on every broker, and their shared parts.

A module writes its tests in one class and names it once for each broker:

    class Reading:
        async def test_…(self, broker: Broker) -> None: …

    class TestRockgate(OnRockgate, Reading): …
    class TestRocketMQ5(OnRocketMQ5, Reading): …
    class TestRocketMQ4(OnRocketMQ4, Reading): …

Every run includes rockgate, the long one also Apache RocketMQ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count

import pytest
from behaviours.rocketmq_brokers import QUEUE_COUNT, Broker, apache_broker, rockgate_broker
from bench.peers import jars, rocketmq
from tests.gateway.remoting.client import Client as Reader
from tests.waiting import until

from rockgate.sdk import (
    Client,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    Queue,
    Received,
    SendResult,
    Start,
)

LEVELS = "1s 1s 1s 1s 1s"
SEND_S = 15.0
"""A real broker takes a while for its first messages."""
READ_S = 60.0
BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=1.0)

TITLE = "Asked by the SDK"
"""The title of the list on the compatibility page, which has a column for each broker."""

_numbers = count()


def asked(what: str) -> pytest.MarkDecorator:
    """Mark a test with its row in that list."""
    return pytest.mark.feature(what, TITLE)


class OnBroker:
    """A suite on one broker, which runs for all of its tests."""

    line = ""
    """The Apache RocketMQ version line; empty for rockgate."""
    nothing_committed: int | None = None
    """The progress of a group without committed offset, in a queue whose start is intact."""
    behind_all = 0
    """The offset of a time after every message, relative to the end of a queue."""
    rockgate_settings: Sequence[str] = (f"remoting.delay_levels={LEVELS}",)
    apache_settings: Mapping[str, str] = {"messageDelayLevel": LEVELS}

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with cls.run(tmp_path_factory) as found:
            yield found

    @pytest.fixture
    def topic(self) -> str:
        """A topic for the test; its group may have the same name."""
        return f"asked-{next(_numbers)}"


class OnRockgate(OnBroker):
    """rockgate."""

    client = "rockgate-sdk with rockgate"

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with rockgate_broker(tmp_path_factory.mktemp("sdk"), *cls.rockgate_settings) as found:
            yield found


class OnApache(OnBroker):
    """Apache RocketMQ."""

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with apache_broker(cls.line, **cls.apache_settings) as found:
            yield found


@pytest.mark.long
@pytest.mark.java
class OnRocketMQ5(OnApache):
    """Version line 5."""

    line = rocketmq.NAME
    client = f"rockgate-sdk with RocketMQ {jars.version(rocketmq.NAME)}"


@pytest.mark.long
@pytest.mark.java
class OnRocketMQ4(OnApache):
    """Version line 4."""

    line = rocketmq.OLD
    nothing_committed = 0
    behind_all = -1
    client = f"rockgate-sdk with RocketMQ {jars.version(rocketmq.OLD)}"


# Shared steps


def numbered(end: int, begin: int = 0) -> list[bytes]:
    return [b"m%03d" % number for number in range(begin, end)]


async def send(
    broker: Broker, topic: str, *bodies: bytes, tag: str | None = None, price: int | None = None
) -> list[SendResult]:
    """Send messages, spread over the queues of a topic."""
    properties = {} if price is None else {"price": str(price)}
    async with Producer(broker.namesrv, group="shop", timeout_s=SEND_S) as producer:
        sent = [
            await producer.send(Message(topic, body, tag=tag, properties=properties))
            for body in bodies
        ]
    broker.wait_for_route(topic)
    return sent


async def send_to_each(broker: Broker, topic: str, count: int, begin: int = 0) -> None:
    """Send numbers, each to every queue of an existing topic."""
    async with Producer(broker.namesrv, group="shop", timeout_s=SEND_S) as producer:
        queues = await producer.queues(topic)
        for number in range(begin, begin + count):
            await asyncio.gather(
                *(producer.send(Message(topic, b"%d" % number), queue=each) for each in queues)
            )


async def send_to_one(
    broker: Broker, topic: str, count: int, *, tag: str | None = None, key: str | None = None
) -> list[SendResult]:
    """Send messages m0, m1, … to the first queue of a topic; their number is a property too.

    On a real broker a message can be read a few milliseconds later: waits for all of them.
    """
    async with Producer(broker.namesrv, group="shop", timeout_s=SEND_S) as producer:
        sent = [
            await producer.send(
                Message(
                    topic,
                    b"m%d" % number,
                    tag=tag,
                    keys=[key] if key else (),
                    properties={"n": str(number)},
                ),
                selector=lambda queues: min(queues),
            )
            for number in range(count)
        ]
    broker.wait_for_route(topic)
    await broker.when(topic, sent[-1].offset + 1)
    return sent


async def read(consumer: Consumer, count: int, seconds: float = READ_S) -> list[Received]:
    """Return the next messages, all of them acknowledged."""
    found: list[Received] = []
    async with asyncio.timeout(seconds):
        async for message in consumer:
            found.append(message)
            if len(found) == count:
                await message.ack()
                break
    return found


class Listening:
    """A consumer with listeners, and what they received."""

    def __init__(
        self,
        broker: Broker,
        group: str,
        *topics: str,
        settings: ConsumerSettings = BEGINNING,
        instance: str | None = None,
        client: Client | None = None,
    ) -> None:
        self.bodies: list[bytes] = []
        self.messages: list[Received] = []
        self.revoked: list[Queue] = []
        self.consumer = Consumer(
            () if client else broker.namesrv,
            group=group,
            settings=settings,
            instance=instance,
            client=client,
            on_revoked=self.revoked.extend,
        )
        for topic in topics:
            self.consumer.on(topic)(self.listen)

    async def listen(self, message: Received) -> None:
        self.messages.append(message)
        self.bodies.append(message.body)

    async def expect(self, *bodies: bytes) -> None:
        await until(lambda: set(bodies) <= set(self.bodies), f"{bodies!r} come", READ_S)

    async def __aenter__(self) -> Listening:
        await self.consumer.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.consumer.close()


def has(listening: Listening, bodies: list[bytes]) -> bool:
    """Whether exactly these have come, in whatever order."""
    return sorted(listening.bodies) == bodies


def is_committed(broker: Broker, group: str, offset: int) -> bool:
    """Whether the group is this far in every queue of the topic of its name."""
    reader = Reader(broker.address)
    try:
        asked = [
            reader.ask(
                14,
                {
                    "consumerGroup": group,
                    "topic": group,
                    "queueId": queue,
                    "setZeroIfNotFound": "false",
                },
            )
            for queue in range(QUEUE_COUNT)
        ]
    finally:
        reader.socket.close()
    return all(answer.code == 0 and answer.fields["offset"] == str(offset) for answer in asked)
