"""Our own Python client reads in order, and broadcasts: the same on the server and on Apache's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from behaviours.rocketmq_brokers import QUEUE_COUNT, Broker
from behaviours.sdk_suites import (
    BEGINNING,
    READ_S,
    Listening,
    OnBroker,
    OnRocketMQ4,
    OnRocketMQ5,
    OnRockgate,
    asked,
    numbered,
    send,
    send_to_each,
)
from tests.waiting import until

from rockgate.sdk import (
    Client,
    Consumer,
    ConsumerSettings,
    Model,
    Queue,
    Received,
)
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.offsets.local import LocalOffsets

pytestmark = pytest.mark.timeout(240)
ORDERLY = replace(BEGINNING, is_orderly=True, suspend_s=0.02, lock_renew_s=1.0)


IN_ORDER = asked("in order: locks, failures in place, hand-over, dead letters")
BROADCASTING = asked("broadcasting, with offsets in a file")


class Seen:
    """Numbers that listeners were given, by queue, in order."""

    def __init__(self) -> None:
        self.by_queue: dict[Queue, list[int]] = {}

    def add(self, message: Received) -> None:
        self.by_queue.setdefault(message.queue, []).append(int(message.body))

    def has(self, count: int) -> bool:
        wanted = set(range(count))
        found = self.by_queue.values()
        return len(found) == QUEUE_COUNT and all(wanted <= set(each) for each in found)

    def check(self, repeats_max: int = 0) -> None:
        """A number follows the one before it; a hand-over may go back to what was not committed."""
        for found in self.by_queue.values():
            backs = 0
            for before, after in pairwise(found):
                assert after <= before + 1, found
                backs += after <= before
            assert backs <= repeats_max, found


class InOrder(OnBroker):
    """What a broker does for order, whoever wrote it."""

    @IN_ORDER
    @pytest.mark.row("C-40")
    async def test_a_failure_is_tried_again_in_place(self, broker: Broker, topic: str) -> None:
        broker.make_topic(topic, QUEUE_COUNT)
        await send_to_each(broker, topic, 10)
        seen = Seen()
        failed: dict[Queue, int] = {}
        consumer = Consumer(broker.namesrv, group=topic, settings=ORDERLY)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            if message.body == b"4" and message.tries < 3:
                failed[message.queue] = failed.get(message.queue, 0) + 1
                raise ZeroDivisionError
            seen.add(message)

        async with consumer:
            await until(lambda: seen.has(10), "everything", READ_S)
        seen.check()
        assert list(failed.values()) == [2] * QUEUE_COUNT

    @IN_ORDER
    @pytest.mark.row("C-21")
    async def test_queues_are_locked_for_one_member_and_free_when_it_leaves(
        self, broker: Broker, topic: str
    ) -> None:
        broker.make_topic(topic, QUEUE_COUNT)
        await send_to_each(broker, topic, 1)
        seen = Seen()
        consumer = Consumer(broker.namesrv, group=topic, settings=ORDERLY)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            seen.add(message)

        async with Client(broker.namesrv, instance="rival") as rival:
            calls = BrokerCalls(rival, topic)
            queues = (await rival.routes.readable(topic)).readable
            held, free = queues[:1], queues[1:]
            assert await calls.lock(held) == set(held)
            async with consumer:
                await until(lambda: set(seen.by_queue) >= set(free), "the free queues", READ_S)
                assert not set(seen.by_queue) & set(held)
                assert await calls.lock(free) == set()
                await calls.unlock(held)
                await until(lambda: seen.has(1), "everything", READ_S)
                assert await calls.lock(queues) == set()
            # An unlock has no response.
            async with asyncio.timeout(READ_S):
                while await calls.lock(queues) != set(queues):
                    pass

    @IN_ORDER
    @pytest.mark.row("C-26")
    async def test_order_holds_when_members_come_and_go(self, broker: Broker, topic: str) -> None:
        broker.make_topic(topic, QUEUE_COUNT)
        seen = Seen()
        counts = {"one": 0, "two": 0}

        def member(name: str) -> Consumer:
            consumer = Consumer(broker.namesrv, group=topic, settings=ORDERLY, instance=name)

            @consumer.on(topic)
            async def listen(message: Received) -> None:
                seen.add(message)
                counts[name] += 1
                await asyncio.sleep(0)

            return consumer

        await send_to_each(broker, topic, 1)
        async with member("one"):
            await until(lambda: seen.has(1), "the first of each queue", READ_S)
            sent = 1
            async with member("two"):
                async with asyncio.timeout(READ_S):
                    while counts["two"] < 20:
                        await send_to_each(broker, topic, 10, sent)
                        sent += 10
            await send_to_each(broker, topic, 20, sent)
            sent += 20
            await until(lambda: seen.has(sent), "everything", READ_S)
        # What was consumed is committed before a lock is free. A real broker may do that before it
        # processes an earlier pull, which says less: then the next member goes back once.
        seen.check(repeats_max=2 if self.line else 0)

    @IN_ORDER
    async def test_what_always_fails_is_a_dead_letter_and_the_queue_continues(
        self, broker: Broker, topic: str
    ) -> None:
        broker.make_topic(topic, QUEUE_COUNT)
        await send_to_each(broker, topic, 2)
        tries: dict[Queue, list[int]] = {}
        seen: list[Queue] = []
        settings = replace(ORDERLY, tries_max=2)
        consumer = Consumer(broker.namesrv, group=topic, settings=settings)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            if message.body == b"0":
                tries.setdefault(message.queue, []).append(message.tries)
                raise ZeroDivisionError
            seen.append(message.queue)

        async with consumer:
            await until(lambda: len(seen) == QUEUE_COUNT, "what follows, in each queue", READ_S)
            dead = await broker.when(f"%DLQ%{topic}", QUEUE_COUNT)
        assert list(tries.values()) == [[1, 2, 3]] * QUEUE_COUNT
        assert [message.body for message in dead] == [b"0"] * QUEUE_COUNT

    @IN_ORDER
    @pytest.mark.row("C-41")
    async def test_by_hand_messages_are_committed_or_rolled_back_together(
        self, broker: Broker, topic: str
    ) -> None:
        broker.make_topic(topic, 1)
        await send_to_each(broker, topic, 6)
        seen: list[int] = []
        settings = replace(ORDERLY, auto_commit=False)
        consumer = Consumer(broker.namesrv, group=topic, settings=settings)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            number = int(message.body)
            seen.append(number)
            if number == 2:
                await message.ack()
            if number == 5 and seen.count(5) == 1:
                await message.retry()

        async with consumer:
            await until(lambda: seen.count(5) == 2, "the second half again", READ_S)
        assert seen == [0, 1, 2, 3, 4, 5, 3, 4, 5]
        async with Client(broker.namesrv, instance="asker") as client:
            (queue,) = (await client.routes.readable(topic)).readable
            assert await BrokerCalls(client, topic).committed(queue) == 3

    @BROADCASTING
    @pytest.mark.row("C-03", "C-14")
    async def test_every_member_gets_everything_and_no_retry(
        self, broker: Broker, topic: str, tmp_path: Path
    ) -> None:
        await send(broker, topic, *numbered(4))
        members = {
            name: Listening(
                broker, topic, topic, settings=broadcasting(tmp_path / name), instance=name
            )
            for name in ("one", "two")
        }
        failing = Listening(
            broker, topic, settings=broadcasting(tmp_path / "three"), instance="three"
        )

        @failing.consumer.on(topic)
        async def fail(message: Received) -> None:
            await failing.listen(message)
            raise ZeroDivisionError

        async with members["one"], members["two"], failing:
            await send(broker, topic, *numbered(12, 4))
            for each in (*members.values(), failing):
                await each.expect(*numbered(12))
        for each in (*members.values(), failing):
            assert sorted(each.bodies) == numbered(12)

    @BROADCASTING
    @pytest.mark.row("C-09")
    async def test_a_member_continues_where_its_file_says(
        self, broker: Broker, topic: str, tmp_path: Path
    ) -> None:
        await send(broker, topic, *numbered(10))
        found: list[bytes] = []
        for count in (6, 4):
            settings = broadcasting(tmp_path)
            async with Consumer(
                broker.namesrv, group=topic, topics=[topic], settings=settings
            ) as consumer:
                async with asyncio.timeout(READ_S):
                    for _ in range(count):
                        message = await anext(consumer)
                        found.append(message.body)
                        await message.ack()
        assert sorted(found) == numbered(10)
        saved = LocalOffsets(tmp_path).load()
        assert sum(saved.values()) == 10
        async with Client(broker.namesrv, instance="asker") as client:
            calls = BrokerCalls(client, topic)
            assert {await calls.committed(queue) for queue in saved} == {self.nothing_committed}

    @BROADCASTING
    async def test_in_order_every_member_sees_every_queue_in_order(
        self, broker: Broker, topic: str, tmp_path: Path
    ) -> None:
        broker.make_topic(topic, QUEUE_COUNT)
        seen = {"one": Seen(), "two": Seen()}

        def member(name: str) -> Consumer:
            settings = replace(broadcasting(tmp_path / name), is_orderly=True)
            consumer = Consumer(broker.namesrv, group=topic, settings=settings, instance=name)

            @consumer.on(topic)
            async def listen(message: Received) -> None:
                seen[name].add(message)

            return consumer

        async with member("one"), member("two"):
            await send_to_each(broker, topic, 10)
            await until(lambda: all(each.has(10) for each in seen.values()), "all", READ_S)
        for each in seen.values():
            each.check()


def broadcasting(folder: Path) -> ConsumerSettings:
    return replace(BEGINNING, model=Model.BROADCASTING, offsets_folder=folder)


class TestRockgate(OnRockgate, InOrder):
    pass


class TestRocketMQ5(OnRocketMQ5, InOrder):
    pass


class TestRocketMQ4(OnRocketMQ4, InOrder):
    pass
