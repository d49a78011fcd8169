"""What becomes of a message: it is sent back before it is finished, and no offset passes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import pytest
from tests.sdk.memorynet import now, pass_time, run
from tests.waiting import until

from rockgate.protocol import entry
from rockgate.protocol.remoting.message import encode
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.delivery.concurrent import ConcurrentDispatch, Listener
from rockgate.sdk.consumer.delivery.settlement import (
    QueueSettlement,
    SettleContext,
    SettleCounts,
)
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.errors import SdkError, TimedOut
from rockgate.sdk.received import Received, split
from rockgate.sdk.results import Queue

QUEUE = Queue("orders", "a", 0)


class HeldQueue:
    """One queue, its settlement, and brokers that take messages back or do not."""

    def __init__(self, *offsets: int, settings: ConsumerSettings | None = None) -> None:
        self.settings = settings or ConsumerSettings(local_retry_s=0.01)
        self.offsets = OffsetTable()
        self.counts = SettleCounts()
        self.takes_back = True
        self.takes_new = True
        self.sent_back: list[tuple[int, int, int]] = []
        self.sent_anew: list[int] = []
        self.cached: ProcessQueue[Received] = ProcessQueue(0.0)
        self.room_count = 0
        self.known: int | None = None
        """What the broker has of the group's progress."""
        context = SettleContext(
            calls=cast("BrokerCalls", self),
            settings=self.settings,
            offsets=self.offsets,
            counts=self.counts,
            resend=self.resend,
        )
        self.settlement = QueueSettlement(context, QUEUE, self.cached, self.made_room)
        self.messages = split(b"".join(map(packed, offsets)), QUEUE, self.settlement)
        self.cached.put(self.messages)

    async def send_back(self, message: Received, level: int, retry_count_max: int) -> None:
        if not self.takes_back:
            raise TimedOut("no broker")
        assert (self.offsets.get(QUEUE) or 0) <= message.offset
        self.sent_back.append((message.offset, level, retry_count_max))

    async def resend(self, message: Received, level: int, retry_count_max: int) -> None:
        if not self.takes_new:
            raise TimedOut("no broker at all")
        self.sent_anew.append(message.offset)

    async def committed(self, queue: Queue) -> int | None:
        return self.known

    def made_room(self) -> None:
        self.room_count += 1

    async def consume(self, listener: Listener, until_offset: int) -> None:
        """Run a listener until the group is so far."""
        dispatch = ConcurrentDispatch(listener, self.settings)
        dispatch.start()
        dispatch.submit(self.cached, self.settlement, self.messages)
        await until(lambda: self.offsets.get(QUEUE) == until_offset, f"offset {until_offset}")
        assert await dispatch.close(1.0) == 0


def packed(offset: int) -> bytes:
    return encode(
        topic=b"orders",
        body=b"body",
        properties=b"",
        queue_id=0,
        queue_offset=offset,
        position=offset * 100,
        born_ms=0,
        born_host=entry.pack_host(b"\x7f\0\0\1", 1),
        store_ms=0,
        store_host=entry.pack_host(b"\x7f\0\0\1", 2),
    )


@pytest.mark.row("CON-11")
async def test_a_message_that_is_finished_moves_the_offset() -> None:
    world = HeldQueue(5, 6)
    await world.messages[0].ack()
    assert world.offsets.get(QUEUE) == 6
    await world.messages[0].ack()
    assert world.offsets.get(QUEUE) == 6
    assert world.room_count == 1


async def test_a_retry_is_sent_back_with_its_level_and_then_finished() -> None:
    world = HeldQueue(5)
    await world.messages[0].retry(after=timedelta(seconds=31))
    assert world.sent_back == [(5, 5, 16)]
    assert world.offsets.get(QUEUE) == 6


async def test_without_a_wish_the_broker_chooses_the_level() -> None:
    world = HeldQueue(5)
    await world.messages[0].retry()
    assert world.sent_back == [(5, 0, 16)]


async def test_a_message_that_is_not_taken_back_is_sent_to_the_retry_topic() -> None:
    world = HeldQueue(5)
    world.takes_back = False
    await world.messages[0].retry()
    assert world.sent_anew == [5]
    assert world.offsets.get(QUEUE) == 6


async def test_a_retry_that_no_one_takes_is_an_error_and_finishes_nothing() -> None:
    world = HeldQueue(5)
    world.takes_back = world.takes_new = False
    with pytest.raises(SdkError, match="could not be sent back"):
        await world.messages[0].retry()
    assert world.offsets.get(QUEUE) is None
    assert world.cached.count == 1


@pytest.mark.row("CON-7")
async def test_what_a_dropped_queue_finishes_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    world = HeldQueue(5)
    world.cached.is_dropped = True
    await world.messages[0].ack()
    assert "1 messages were finished of a queue that has moved" in caplog.text
    assert world.offsets.get(QUEUE) is None
    assert world.counts.finished == 0


async def test_broadcasting_drops_what_failed() -> None:
    world = HeldQueue(5, 6, settings=ConsumerSettings(model=Model.BROADCASTING))
    assert await world.settlement.failed(world.messages, 0) == []
    assert (world.counts.dropped, world.sent_back) == (2, [])
    assert world.offsets.get(QUEUE) == 7


@pytest.mark.parametrize("is_dead", [False, True])
async def test_broadcasting_takes_no_message_back(is_dead: bool) -> None:
    world = HeldQueue(5, 6, settings=ConsumerSettings(model=Model.BROADCASTING))
    message = world.messages[0]
    await (message.dead_letter() if is_dead else message.retry())
    assert (world.sent_back, world.sent_anew, world.counts.dropped) == ([], [], 1)
    assert world.offsets.get(QUEUE) == 6


async def test_a_message_that_is_given_up_has_no_level_and_no_tries_left() -> None:
    world = HeldQueue(5, 6)
    await world.messages[0].dead_letter()
    await world.messages[0].retry()
    assert world.sent_back == [(5, -1, 16)]
    assert world.offsets.get(QUEUE) == 6


async def test_a_dead_letter_that_no_one_takes_is_an_error_and_can_be_given_up_again() -> None:
    world = HeldQueue(5)
    world.takes_back = world.takes_new = False
    with pytest.raises(SdkError, match="could not be sent back"):
        await world.messages[0].dead_letter()
    assert world.offsets.get(QUEUE) is None
    world.takes_back = True
    await world.messages[0].dead_letter()
    assert world.offsets.get(QUEUE) == 6


async def test_a_message_without_a_group_cannot_be_settled() -> None:
    (message,) = split(packed(1), QUEUE)
    with pytest.raises(SdkError, match="Only messages of a group"):
        await message.ack()


# Listeners


async def test_a_listener_that_raises_has_its_message_sent_back() -> None:
    world = HeldQueue(1, 2, 3)

    async def listen(messages: Sequence[Received]) -> None:
        if messages[0].offset == 2:
            raise ZeroDivisionError

    await world.consume(listen, 4)
    assert world.sent_back == [(2, 0, 16)]


async def test_of_a_batch_only_what_failed_is_sent_back() -> None:
    world = HeldQueue(1, 2, 3, 4, settings=ConsumerSettings(batch_max=4))

    async def listen(messages: Sequence[Received]) -> int:
        return 2

    await world.consume(listen, 5)
    assert [offset for offset, *_ in world.sent_back] == [3, 4]


@pytest.mark.row("CON-10")
async def test_what_no_one_takes_runs_again_and_holds_the_offset() -> None:
    world = HeldQueue(1, 2)
    world.takes_back = world.takes_new = False
    tried: list[int] = []

    async def listen(messages: Sequence[Received]) -> None:
        tried.append(messages[0].offset)
        if messages[0].offset == 1 and tried.count(1) < 3:
            assert world.offsets.get(QUEUE) in (None, 1)
            raise ZeroDivisionError

    await world.consume(listen, 3)
    assert tried.count(1) == 3


@pytest.mark.row("CON-1")
async def test_as_many_listeners_run_at_once_as_there_are_workers() -> None:
    world = HeldQueue(*range(9), settings=ConsumerSettings(workers=3))
    together = asyncio.Barrier(3)
    running, most = 0, 0

    async def listen(messages: Sequence[Received]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await together.wait()
        running -= 1

    await world.consume(listen, 9)
    assert most == 3


@pytest.mark.row("CON-2")
async def test_messages_of_a_queue_that_was_lost_while_they_waited_are_not_consumed() -> None:
    world = HeldQueue(1, 2, 3, settings=ConsumerSettings(workers=1))
    seen: list[int] = []

    async def listen(messages: Sequence[Received]) -> None:
        seen.append(messages[0].offset)
        world.cached.is_dropped = True

    dispatch = ConcurrentDispatch(listen, world.settings)
    dispatch.start()
    dispatch.submit(world.cached, world.settlement, world.messages)
    await until(lambda: seen, "the first")
    assert await dispatch.close(1.0) == 0
    dispatch = ConcurrentDispatch(listen, world.settings)
    dispatch.start()
    dispatch.submit(world.cached, world.settlement, world.messages)
    other = HeldQueue(9)
    dispatch.submit(other.cached, other.settlement, other.messages)
    await until(lambda: 9 in seen, "what came after it")
    assert seen == [1, 9]
    await dispatch.close(1.0)


@pytest.mark.row("CON-4")
def test_a_message_is_stamped_when_its_listener_begins_and_not_before() -> None:
    async def scenario() -> None:
        world = HeldQueue(1, 2, settings=ConsumerSettings(workers=1))
        stamps: list[tuple[float, float | None, float | None]] = []

        async def listen(messages: Sequence[Received]) -> None:
            first, second = (each.started_at_s for each in world.messages)
            stamps.append((now(), first, second))
            await pass_time(5)

        await world.consume(listen, 3)
        (began, first, none), (again, _, second) = stamps
        assert (first, none, second) == (began, None, again)
        assert again == pytest.approx(began + 5)

    run(scenario())


@pytest.mark.row("CON-12")
async def test_nothing_to_consume_calls_no_listener_and_settles_nothing() -> None:
    world = HeldQueue()
    seen: list[Sequence[Received]] = []

    async def listen(messages: Sequence[Received]) -> None:
        seen.append(messages)

    dispatch = ConcurrentDispatch(listen, world.settings)
    dispatch.start()
    dispatch.submit(world.cached, world.settlement, [])
    world.settlement.finished([])
    assert await world.settlement.failed([], 0) == []
    assert await dispatch.close(1.0) == 0
    assert (seen, world.offsets.get(QUEUE), world.sent_back) == ([], None, [])


async def test_closing_cancels_a_listener_that_does_not_end_and_finishes_nothing() -> None:
    world = HeldQueue(1)
    begun = asyncio.Event()

    async def listen(messages: Sequence[Received]) -> None:
        begun.set()
        await asyncio.Event().wait()

    dispatch = ConcurrentDispatch(listen, world.settings)
    dispatch.start()
    dispatch.submit(world.cached, world.settlement, world.messages)
    await begun.wait()
    assert await dispatch.close(0.01) == 1
    assert world.offsets.get(QUEUE) is None


async def _nothing(messages: Sequence[Received]) -> None:
    """A listener that wants nothing."""
