"""Our own Python client reads, from the server and from Apache RocketMQ: one suite for all.

Apache RocketMQ 5.5.0 and 4.9.7 are asked in the long run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker
from bench.peers import jars, rocketmq
from tests.waiting import until

from rockgate.sdk import Admin, DeadLetter, Message, Producer
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received

pytestmark = pytest.mark.timeout(240)
BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=1.0)
LEVELS = "1s 1s 1s 1s 1s"


async def send(broker: Broker, topic: str, *bodies: bytes, tag: str | None = None) -> None:
    # A real broker takes a while for its first messages.
    async with Producer(broker.namesrv, group="shop", timeout_s=15) as producer:
        for body in bodies:
            await producer.send(Message(topic, body, tag=tag))


async def read(consumer: Consumer, count: int, seconds: float = 60) -> list[Received]:
    found: list[Received] = []
    async with asyncio.timeout(seconds):
        async for message in consumer:
            found.append(message)
            if len(found) == count:
                await message.ack()
                break
    return found


def numbered(count: int) -> list[bytes]:
    return [b"m%03d" % number for number in range(count)]


class Consuming:
    """What a broker does for a consumer, whoever wrote it."""

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with cls.run(tmp_path_factory) as found:
            yield found

    async def test_a_message_carries_what_its_producer_set(self, broker: Broker) -> None:
        large = b"0123456789" * 1000
        async with Producer(broker.namesrv, group="shop", timeout_s=15) as producer:
            result = await producer.send(
                Message("whole", large, tag="T", keys=["a", "b"], properties={"c": "d"}, flag=3)
            )
        async with Consumer(
            broker.namesrv, group="whole", topics=["whole"], settings=BEGINNING
        ) as consumer:
            (message,) = await read(consumer, 1)
        assert (message.topic, message.body, message.flag) == ("whole", large, 3)
        assert (message.tag, message.keys, message.properties["c"]) == ("T", ("a", "b"), "d")
        assert message.message_id == result.message_id
        assert message.offset_message_id == result.offset_message_id
        assert (message.queue, message.offset, message.tries) == (result.queue, result.offset, 1)

    async def test_a_group_goes_on_where_it_was(self, broker: Broker) -> None:
        await send(broker, "resume", *numbered(20))
        found: list[bytes] = []
        for count in (12, 8):
            async with Consumer(
                broker.namesrv, group="resume", topics=["resume"], settings=BEGINNING
            ) as consumer:
                found += [message.body for message in await read(consumer, count)]
        assert sorted(found) == numbered(20)

    async def test_only_wanted_tags_come(self, broker: Broker) -> None:
        await send(broker, "tags", b"no", tag="BBBB")
        await send(broker, "tags", b"yes", tag="AaAa")
        await send(broker, "tags", b"no", tag="other")
        await send(broker, "tags", b"yes too", tag="paid")
        async with Consumer(
            broker.namesrv, group="tags", topics={"tags": "AaAa || paid"}, settings=BEGINNING
        ) as consumer:
            found = await read(consumer, 2)
        assert sorted(message.body for message in found) == [b"yes", b"yes too"]

    async def test_what_fails_comes_again_and_is_a_dead_letter_in_the_end(
        self, broker: Broker
    ) -> None:
        await send(broker, "fails", b"good", b"bad")
        seen: list[tuple[bytes, int]] = []
        settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=1.0, tries_max=2)
        consumer = Consumer(broker.namesrv, group="fails", settings=settings)

        @consumer.on("fails")
        async def listen(message: Received) -> None:
            seen.append((message.body, message.tries))
            if message.body == b"bad":
                raise ZeroDivisionError

        async with consumer:
            await until(lambda: len(seen) >= 4, "three tries", 90)
            dead = await broker.when("%DLQ%fails", 1, 60)
        assert sorted(seen) == [(b"bad", 1), (b"bad", 2), (b"bad", 3), (b"good", 1)]
        assert [message.body for message in dead] == [b"bad"]

    async def test_members_share_queues_and_take_over(self, broker: Broker) -> None:
        await send(broker, "share", b"first")
        seen: dict[str, list[bytes]] = {"one": [], "two": []}

        def member(name: str) -> Consumer:
            consumer = Consumer(broker.namesrv, group="share", settings=BEGINNING, instance=name)

            @consumer.on("share")
            async def listen(message: Received) -> None:
                seen[name].append(message.body)

            return consumer

        sent = [b"first"]
        async with member("one"):
            async with member("two"):
                while not all(len(found) >= 3 for found in seen.values()):
                    more = [b"m%04d" % number for number in range(len(sent), len(sent) + 8)]
                    await send(broker, "share", *more)
                    sent += more
                    assert len(sent) < 2000
                await until(lambda: set(sent) <= {*seen["one"], *seen["two"]}, "all of it")
            count = len(seen["two"])
            last = [b"z%d" % number for number in range(8)]
            await send(broker, "share", *last)
            await until(lambda: set(last) <= set(seen["one"]), "the rest at one", 60)
        assert len(seen["two"]) == count
        assert {*seen["one"], *seen["two"]} == {*sent, *last}

    async def test_a_delayed_message_says_since_when(self, broker: Broker) -> None:
        async with Producer(broker.namesrv, group="shop", timeout_s=15) as producer:
            await producer.send(Message("waits", b"now"))
            await producer.send(Message("waits", b"later", delay=1))
        async with Consumer(
            broker.namesrv, group="waits", topics=["waits"], settings=BEGINNING
        ) as consumer:
            found = {each.body: each for each in await read(consumer, 2)}
        began = found[b"later"].delayed_from
        assert found[b"now"].delayed_from is None
        assert began is not None
        assert found[b"later"].stored_at - began >= timedelta(seconds=0.9)

    async def test_a_listener_gives_a_message_up_at_once(self, broker: Broker) -> None:
        await send(broker, "hopeless", b"never")
        consumer = Consumer(broker.namesrv, group="hopeless", settings=BEGINNING)
        tries: list[int] = []

        @consumer.on("hopeless")
        async def listen(message: Received) -> None:
            tries.append(message.tries)
            raise DeadLetter

        async with consumer:
            await until(
                lambda: tries and not consumer.statistics.cached_count, "it was given up", 60
            )
        async with Admin(broker.namesrv) as admin:
            (range_,) = await admin.topics.bounds("%DLQ%hopeless")
        assert (tries, range_.max_offset) == ([1], 1)


class TestRockgate(Consuming):
    client = "rockgate-sdk with rockgate"

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        folder = tmp_path_factory.mktemp("consuming")
        with rockgate_broker(folder, f"remoting.delay_levels={LEVELS}") as found:
            yield found


class Apache(Consuming):
    """Apache RocketMQ itself."""

    line = ""

    @classmethod
    @contextmanager
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with apache_broker(cls.line, messageDelayLevel=LEVELS) as found:
            yield found


@pytest.mark.long
@pytest.mark.java
class TestRocketMQ5(Apache):
    line = rocketmq.NAME
    client = f"rockgate-sdk with RocketMQ {jars.version(rocketmq.NAME)}"


@pytest.mark.long
@pytest.mark.java
class TestRocketMQ4(Apache):
    line = rocketmq.OLD
    client = f"rockgate-sdk with RocketMQ {jars.version(rocketmq.OLD)}"
