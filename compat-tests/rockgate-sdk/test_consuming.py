"""Our own Python client reads, from the server and from Apache RocketMQ: one suite for all.

Apache RocketMQ 5.5.0 and 4.9.7 are asked in the long run.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from behaviours.rocketmq_brokers import Broker
from behaviours.sdk_suites import (
    BEGINNING,
    READ_S,
    SEND_S,
    Listening,
    OnBroker,
    OnRocketMQ4,
    OnRocketMQ5,
    OnRockgate,
    asked,
    numbered,
    read,
    send,
)
from tests.waiting import until

from rockgate.sdk import (
    Admin,
    Consumer,
    ConsumerSettings,
    DeadLetter,
    Message,
    Producer,
    Received,
    Refused,
    Retry,
    Start,
)

pytestmark = pytest.mark.timeout(240)


PLAIN = asked("messages with all that they carry; a group continues where it was")
FILTERS = asked("filters by tag and by SQL")
RETRIES = asked("retries with a level, and dead letters")
SHARING = asked("members share queues and take over")
STARTS = asked("start at the beginning, the end or a time")
LIVE = asked("pause, resume, subscribe and unsubscribe while it runs")


class Consuming(OnBroker):
    """What a broker does for a consumer, whoever wrote it."""

    has_times = True
    """Whether it knows delivery times."""

    @PLAIN
    async def test_a_message_carries_what_its_producer_set(self, broker: Broker) -> None:
        large = b"0123456789" * 1000
        async with Producer(broker.namesrv, group="shop", timeout_s=SEND_S) as producer:
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

    @PLAIN
    @pytest.mark.row("C-09")
    async def test_a_group_continues_where_it_was(self, broker: Broker) -> None:
        await send(broker, "resume", *numbered(20))
        found: list[bytes] = []
        for count in (12, 8):
            async with Consumer(
                broker.namesrv, group="resume", topics=["resume"], settings=BEGINNING
            ) as consumer:
                found += [message.body for message in await read(consumer, count)]
        assert sorted(found) == numbered(20)

    @FILTERS
    @pytest.mark.row("SUB-1", "SUB-7")
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

    @RETRIES
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

    @SHARING
    @pytest.mark.row("MODEL-1")
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

    @FILTERS
    @pytest.mark.row("SUB-1", "SUB-3")
    async def test_sql_is_the_brokers(self, broker: Broker, topic: str) -> None:
        await send(broker, topic, b"cheap", price=5)
        await send(broker, topic, b"dear", price=50)
        await send(broker, topic, b"unknown")
        listening = Listening(broker, topic)
        listening.consumer.on(topic, sql="price > 10 AND price BETWEEN 20 AND 60")(listening.listen)
        async with listening:
            await listening.expect(b"dear")
            await send(broker, topic, b"dear too", price=60)
            await listening.expect(b"dear too")
        assert listening.bodies == [b"dear", b"dear too"]

    @FILTERS
    @pytest.mark.row("SUB-3")
    async def test_a_condition_that_is_not_understood_is_refused_at_the_start(
        self, broker: Broker, topic: str
    ) -> None:
        await send(broker, topic, b"x")
        listening = Listening(broker, topic)
        listening.consumer.on(topic, sql="price >")(listening.listen)
        with pytest.raises(Refused):
            await listening.consumer.open()

    @RETRIES
    async def test_a_retry_waits_for_its_level(self, broker: Broker, topic: str) -> None:
        """All levels of these brokers are a second: it is the level that is looked at."""
        await send(broker, topic, b"x")
        seen: list[Received] = []
        consumer = Consumer(broker.namesrv, group=topic, settings=BEGINNING)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            seen.append(message)
            if len(seen) == 1:
                await message.retry(after=timedelta(seconds=5))
            if len(seen) == 2:
                raise Retry(after=timedelta(seconds=10))

        async with consumer:
            await until(lambda: len(seen) == 3, "two retries", READ_S)
        assert [message.tries for message in seen] == [1, 2, 3]
        assert {message.topic for message in seen} == {topic}
        assert {message.message_id for message in seen} == {seen[0].message_id}
        waits = [after.stored_at - before.stored_at for before, after in pairwise(seen)]
        assert all(wait >= timedelta(seconds=0.9) for wait in waits), waits

    @RETRIES
    async def test_a_group_that_may_not_retry_has_dead_letters_at_once(
        self, broker: Broker, topic: str
    ) -> None:
        await send(broker, topic, b"bad")
        seen: list[int] = []
        settings = replace(BEGINNING, tries_max=0)
        consumer = Consumer(broker.namesrv, group=topic, settings=settings)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            seen.append(message.tries)
            raise ZeroDivisionError

        async with consumer:
            dead = await broker.when(f"%DLQ%{topic}", 1, READ_S)
        assert seen == [1]
        assert [message.body for message in dead] == [b"bad"]
        async with Consumer(
            broker.namesrv, group=f"{topic}-dead", topics=[f"%DLQ%{topic}"], settings=BEGINNING
        ) as undertaker:
            (message,) = await read(undertaker, 1)
        assert (message.body, message.origin_topic) == (b"bad", topic)

    @STARTS
    @pytest.mark.row("CFW-2", "CFW-3", "CFW-4", "PROP-3")
    async def test_a_new_group_begins_where_it_is_told_to(self, broker: Broker, topic: str) -> None:
        await send(broker, topic, *numbered(8))
        await broker.when(topic, 8)
        # Beyond what the clocks of two machines may differ by, and what a broker rounds to.
        loop = asyncio.get_running_loop()
        later_s = loop.time() + 1.5
        await until(lambda: loop.time() > later_s, "some time")
        then = datetime.now(UTC)
        await send(broker, topic, *numbered(12, 8))
        await broker.when(topic, 12)
        starts = {
            "first": Start.BEGINNING,
            "time": then - timedelta(seconds=0.5),
            "last": Start.END,
        }
        group = {
            name: Listening(
                broker,
                f"{topic}-{name}",
                topic,
                settings=ConsumerSettings(start=start, rebalance_s=1.0),
            )
            for name, start in starts.items()
        }
        async with group["first"], group["time"], group["last"]:
            await group["first"].expect(*numbered(12))
            await group["time"].expect(*numbered(12, 8))
            members = [each.consumer for each in group.values()]
            of_topic = [[q for q in each.queues if q.topic == topic] for each in members]
            assert [len(queues) for queues in of_topic] == [4, 4, 4]
            if self.nothing_committed == 0:
                # It says of every new group that it has read nothing yet, whatever that wants.
                for each in group.values():
                    await each.expect(*numbered(12))
                return
            await send(broker, topic, b"last")
            for each in group.values():
                await each.expect(b"last")
        assert sorted(group["first"].bodies) == [b"last", *numbered(12)]
        assert sorted(group["time"].bodies) == [b"last", *numbered(12, 8)]
        assert group["last"].bodies == [b"last"]

    @LIVE
    @pytest.mark.row("START-15")
    async def test_a_paused_topic_is_not_pulled_until_it_is_resumed(
        self, broker: Broker, topic: str
    ) -> None:
        other = f"{topic}-other"
        await send(broker, topic, b"a0")
        await send(broker, other, b"b0")
        async with Listening(broker, topic, topic, other) as listening:
            await listening.expect(b"a0", b"b0")
            listening.consumer.pause(topic)
            # A pull that is under way may still bring one message for each queue; no more.
            await send(broker, topic, *numbered(4))
            await listening.expect(*numbered(4))
            await send(broker, topic, *numbered(8, 4))
            await send(broker, other, b"b1")
            await listening.expect(b"b1")
            assert not set(numbered(8, 4)) & set(listening.bodies)
            listening.consumer.resume(topic)
            await listening.expect(*numbered(8, 4))

    @LIVE
    @pytest.mark.row("C-07", "START-13", "START-14")
    async def test_topics_come_and_go_while_it_runs(self, broker: Broker, topic: str) -> None:
        other = f"{topic}-other"
        await send(broker, topic, b"a0")
        await send(broker, other, b"b0")
        async with Listening(broker, topic, topic) as listening:
            await listening.expect(b"a0")
            await listening.consumer.subscribe(other, "paid", listener=listening.listen)
            await send(broker, other, b"b1", tag="paid")
            await listening.expect(b"b1")
            await listening.consumer.unsubscribe(topic)
            await until(lambda: topic in {q.topic for q in listening.revoked}, "it is given up")
            await send(broker, topic, b"a1")
            await send(broker, other, b"b2", tag="paid")
            await listening.expect(b"b2")
            assert listening.bodies == [b"a0", b"b1", b"b2"]
            await listening.consumer.subscribe(topic)
            await listening.expect(b"a1")

    @PLAIN
    async def test_a_delayed_message_says_since_when(self, broker: Broker) -> None:
        async with Producer(broker.namesrv, group="shop", timeout_s=SEND_S) as producer:
            await producer.send(Message("waits", b"now"))
            await producer.send(Message("waits", b"level", delay=1))
            if self.has_times:
                await producer.send(Message("waits", b"time", delay=timedelta(seconds=1)))
        found: dict[tuple[bytes, int], Received] = {}
        async with (
            Consumer(
                broker.namesrv, group="waits", topics=["waits"], settings=BEGINNING
            ) as consumer,
            asyncio.timeout(READ_S),
        ):
            async for message in consumer:
                found[message.body, message.tries] = message
                if message.tries == 1:
                    await message.retry()
                if len(found) == (6 if self.has_times else 4):
                    break
        for (body, tries), message in found.items():
            if body == b"now" or tries == 2:
                assert message.delayed_from is None
            else:
                assert message.delayed_from is not None
                assert message.stored_at - message.delayed_from >= timedelta(seconds=0.9)

    @RETRIES
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
        broker.wait_for_route("%DLQ%hopeless")
        async with Admin(broker.namesrv) as admin:
            (range_,) = await admin.topics.bounds("%DLQ%hopeless")
        assert (tries, range_.max_offset) == ([1], 1)


class TestRockgate(OnRockgate, Consuming):
    pass


class TestRocketMQ5(OnRocketMQ5, Consuming):
    pass


class TestRocketMQ4(OnRocketMQ4, Consuming):
    has_times = False
