"""Our own Python client pulls, plainly and by polls: the same on the server and on Apache's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from behaviours.rocketmq_brokers import QUEUE_COUNT, Broker
from behaviours.sdk_suites import (
    READ_S,
    OnBroker,
    OnRocketMQ4,
    OnRocketMQ5,
    OnRockgate,
    asked,
    numbered,
    read,
    send,
    send_to_one,
)
from tests.waiting import until

from rockgate.sdk import (
    Consumer,
    LitePullConsumer,
    LitePullSettings,
    PullConsumer,
    PullStatus,
    Queue,
    Received,
    Refused,
    SdkError,
    Start,
)

pytestmark = pytest.mark.timeout(240)
SETTINGS = LitePullSettings(start=Start.BEGINNING, rebalance_s=1.0)
BY_HAND = LitePullSettings(start=Start.BEGINNING, auto_commit=False)


PLAIN = asked("plain pulls with their four statuses, and what is sent back")
LITE = asked("polls: subscribed or assigned, seek, pause, commit")


async def poll(consumer: LitePullConsumer, count: int, count_max: int = 10) -> list[Received]:
    found: list[Received] = []
    async with asyncio.timeout(READ_S):
        while len(found) < count:
            found += await consumer.poll(1.0, count_max=count_max)
    return found


def bodies(messages: Sequence[Received]) -> list[bytes]:
    return [message.body for message in messages]


class Pulling(OnBroker):
    """What a broker does for who pulls, whoever wrote it."""

    @PLAIN
    @pytest.mark.row("PC-2", "PC-7", "C-04", "CB-6")
    async def test_the_four_statuses_are_distinguished_with_where_to_continue(
        self, broker: Broker, topic: str
    ) -> None:
        queue = (await send_to_one(broker, topic, 5, tag="paid"))[0].queue
        async with PullConsumer(broker.namesrv, group=topic) as consumer:
            found = await consumer.pull(queue, 1, count_max=3)
            unmatched = await consumer.pull(queue, 0, "other")
            ended = await consumer.pull(queue, 5)
            beyond = await consumer.pull(queue, 77)
        assert (found.status, found.next_offset) == (PullStatus.FOUND, 4)
        assert (found.min_offset, found.max_offset) == (0, 5)
        assert bodies(found.messages) == [b"m1", b"m2", b"m3"]
        assert (unmatched.status, unmatched.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 5)
        assert (ended.status, ended.next_offset) == (PullStatus.NO_NEW_MESSAGE, 5)
        assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 5)
        assert unmatched.messages == ended.messages == beyond.messages == ()

    @PLAIN
    @pytest.mark.row("PC-6")
    async def test_a_pull_filters_by_tags_or_by_sql(self, broker: Broker, topic: str) -> None:
        await send_to_one(broker, topic, 3, tag="Aa")
        queue = (await send_to_one(broker, topic, 3, tag="paid"))[0].queue
        async with PullConsumer(broker.namesrv, group=topic) as consumer:
            tagged = await consumer.pull(queue, 0, "paid || c")
            # "Aa" and "BB" have one hash code in Java, which is all that brokers compare.
            alike = await consumer.pull(queue, 0, "BB", count_max=3)
            conditioned = await consumer.pull(queue, 0, sql="n > 1")
            with pytest.raises(Refused):
                await consumer.pull(queue, 0, sql="n >")
        assert [message.offset for message in tagged.messages] == [3, 4, 5]
        assert alike.status is PullStatus.NO_MATCHED_MESSAGE
        assert [message.offset for message in conditioned.messages] == [2, 5]

    @PLAIN
    @pytest.mark.row("PC-5")
    async def test_a_blocking_pull_ends_with_the_message_that_comes(
        self, broker: Broker, topic: str
    ) -> None:
        queue = (await send_to_one(broker, topic, 1))[0].queue
        async with PullConsumer(broker.namesrv, group=topic) as consumer:
            waiting = asyncio.create_task(consumer.pull(queue, 1, block=True))
            await send_to_one(broker, topic, 1)
            found = await waiting
        assert [message.offset for message in found.messages] == [1]

    @PLAIN
    @pytest.mark.row("PC-3", "PC-4")
    async def test_queues_have_bounds_and_groups_their_offsets(
        self, broker: Broker, topic: str
    ) -> None:
        before = datetime.now(UTC) - timedelta(minutes=1)
        queue = (await send_to_one(broker, topic, 3))[0].queue
        async with PullConsumer(broker.namesrv, group=topic) as consumer:
            queues = await consumer.queues(topic)
            assert queues == [Queue(topic, queue.broker, number) for number in range(QUEUE_COUNT)]
            assert (await consumer.begin(queue), await consumer.end(queue)) == (0, 3)
            assert await consumer.search(queue, before) == 0
            late = datetime.now(UTC) + timedelta(hours=1)
            assert await consumer.search(queue, late) == 3 + self.behind_all
            earliest = await consumer.earliest(queue)
            assert earliest is not None and before < earliest <= datetime.now(UTC)
            assert await consumer.earliest(queues[-1]) is None
            assert await consumer.committed(queue) == self.nothing_committed
            consumer.commit(queue, 2)
            await consumer.persist()
            assert await consumer.committed(queue, from_store=True) == 2
            consumer.commit(queue, 1)
        async with PullConsumer(broker.namesrv, group=topic) as consumer:
            assert await consumer.committed(queue) == 1

    @PLAIN
    @pytest.mark.row("PC-9")
    async def test_a_message_that_is_sent_back_comes_again_to_its_group(
        self, broker: Broker, topic: str
    ) -> None:
        queue = (await send_to_one(broker, topic, 1))[0].queue
        async with PullConsumer(broker.namesrv, group=topic, topics=[topic]) as consumer:
            (message,) = (await consumer.pull(queue, 0)).messages
            await consumer.send_back(message, timedelta(seconds=1))
            consumer.commit(queue, 1)
        async with Consumer(broker.namesrv, group=topic, topics=[topic]) as again:
            (retried,) = await read(again, 1)
        assert (retried.body, retried.tries, retried.topic) == (b"m0", 2, topic)

    @LITE
    @pytest.mark.row("LITE-1", "LITE-3")
    async def test_members_share_what_they_subscribe_and_poll_it_in_batches(
        self, broker: Broker, topic: str
    ) -> None:
        await send(broker, topic, *numbered(20))

        def member(name: str) -> LitePullConsumer:
            return LitePullConsumer(
                broker.namesrv, group=topic, topics=[topic], settings=SETTINGS, instance=name
            )

        async with member("one") as one:
            await until(lambda: len(one.assignment()) == QUEUE_COUNT, "every queue")
            batch = await one.poll(READ_S, count_max=7)
            assert 1 <= len(batch) <= 7
            first = batch + await poll(one, 20 - len(batch))
            await one.commit()
            async with member("two") as two:
                await until(lambda: len(one.assignment()) == 2 == len(two.assignment()), "halves")
                await send(broker, topic, *numbered(28, 20))
                shared = await asyncio.gather(poll(one, 4), poll(two, 4))
            await until(lambda: len(one.assignment()) == QUEUE_COUNT, "all again")
        assert sorted(bodies(first)) == numbered(20)
        assert sorted(bodies([*shared[0], *shared[1]])) == numbered(28, 20)

    @LITE
    @pytest.mark.row("LITE-1")
    async def test_topics_come_and_go_while_it_is_open(self, broker: Broker, topic: str) -> None:
        await send(broker, topic, b"a", tag="a")
        await send(broker, topic, b"b", tag="b")
        async with LitePullConsumer(broker.namesrv, group=topic, settings=SETTINGS) as consumer:
            await consumer.subscribe(topic, "b")
            assert bodies(await poll(consumer, 1)) == [b"b"]
            await consumer.unsubscribe(topic)
            assert consumer.assignment() == []
            with pytest.raises(Refused):
                await consumer.subscribe(topic, sql="n >")
            await send(broker, topic, b"c", tag="b")
            assert await consumer.poll(0.5) == []
            await consumer.subscribe(topic, sql="TAGS = 'b' AND n IS NULL")
            found: list[bytes] = []
            while b"c" not in found:
                found += bodies(await poll(consumer, 1))
            # What was polled last was not settled by another poll, so it may come again.
            assert set(found) <= {b"b", b"c"}

    @LITE
    @pytest.mark.row("LITE-2", "LITE-4")
    async def test_queues_are_assigned_sought_and_paused(self, broker: Broker, topic: str) -> None:
        queue = (await send_to_one(broker, topic, 6))[0].queue
        async with LitePullConsumer(broker.namesrv, group=topic, settings=BY_HAND) as consumer:
            await consumer.assign([queue])
            assert consumer.assignment() == [queue]
            assert bodies(await poll(consumer, 6)) == [b"m%d" % number for number in range(6)]
            await consumer.seek(queue, 4)
            assert consumer.position(queue) == 4
            assert bodies(await poll(consumer, 2)) == [b"m4", b"m5"]
            await consumer.seek_to_begin(queue)
            consumer.pause([queue])
            assert await consumer.poll(0.5) == []
            consumer.resume([queue])
            assert bodies(await poll(consumer, 1, count_max=1)) == [b"m0"]
            await consumer.seek_to_end(queue)
            assert await consumer.poll(0.2) == []
            early = datetime.now(UTC) - timedelta(hours=1)
            assert await consumer.offset_for_time(queue, early) == 0
            with pytest.raises(ValueError, match="Offset must be 0 to 6, not 7"):
                await consumer.seek(queue, 7)
            with pytest.raises(SdkError, match="assigned by hand"):
                await consumer.subscribe(topic)

    @LITE
    @pytest.mark.row("LITE-5")
    async def test_commits_by_hand_are_the_only_ones(self, broker: Broker, topic: str) -> None:
        queue = (await send_to_one(broker, topic, 5))[0].queue
        async with LitePullConsumer(broker.namesrv, group=topic, settings=BY_HAND) as consumer:
            await consumer.assign([queue])
            await poll(consumer, 5, count_max=1)
            assert await consumer.committed(queue) == self.nothing_committed
            await consumer.commit({queue: 2})
            assert await consumer.committed(queue) == 2
        async with LitePullConsumer(broker.namesrv, group=topic, settings=BY_HAND) as consumer:
            await consumer.assign([queue])
            assert bodies(await poll(consumer, 3)) == [b"m2", b"m3", b"m4"]
            await consumer.commit()
            assert await consumer.committed(queue) == 5

    @LITE
    @pytest.mark.row("LITE-5")
    async def test_a_poll_commits_what_the_one_before_it_gave(
        self, broker: Broker, topic: str
    ) -> None:
        queue = (await send_to_one(broker, topic, 5))[0].queue
        settings = LitePullSettings(start=Start.BEGINNING, auto_commit_s=1.0)
        async with LitePullConsumer(broker.namesrv, group=topic, settings=settings) as consumer:
            await consumer.assign([queue])
            await poll(consumer, 3, count_max=3)
            assert bodies(await consumer.poll(READ_S, count_max=1)) == [b"m3"]
        async with LitePullConsumer(broker.namesrv, group=topic, settings=settings) as consumer:
            await consumer.assign([queue])
            assert await consumer.committed(queue) == 3
            assert bodies(await poll(consumer, 2)) == [b"m3", b"m4"]
            async with asyncio.timeout(READ_S):
                while await consumer.committed(queue) != 5:
                    assert await consumer.poll(0.1) == []


class TestRockgate(OnRockgate, Pulling):
    pass


class TestRocketMQ5(OnRocketMQ5, Pulling):
    pass


class TestRocketMQ4(OnRocketMQ4, Pulling):
    pass
