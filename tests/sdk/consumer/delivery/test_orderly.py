"""Listeners in order: one at a time for each queue, whatever comes and whoever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.sdk.consumer.delivery.test_settlement import QUEUE, HeldQueue
from tests.waiting import until

from rockgate.sdk.consumer.delivery.inbox import Inbox
from rockgate.sdk.consumer.delivery.order import Ruling, Verdict
from rockgate.sdk.consumer.delivery.orderly import OrderlyDispatch, verdict_of
from rockgate.sdk.consumer.delivery.redelivery import DEAD_LETTER, Retry
from rockgate.sdk.consumer.settings import ConsumerSettings
from rockgate.sdk.received import Received

QUICK = ConsumerSettings(is_orderly=True, suspend_s=0.01)
DONE = Verdict(Ruling.DONE)


class Ordered(HeldQueue):
    """A queue whose lock is held."""

    def __init__(self, *offsets: int, settings: ConsumerSettings = QUICK) -> None:
        super().__init__(*offsets, settings=settings)
        self.cached.locked_at_s = asyncio.get_running_loop().time()
        self.lock_count = 0

    async def lock(self, queues: Sequence[object]) -> set[object]:
        self.lock_count += 1
        return set(queues)

    def submit(self, dispatch: OrderlyDispatch) -> None:
        dispatch.submit(self.cached, self.settlement, self.messages)


async def test_messages_come_one_after_the_other_and_a_failure_holds_up_the_rest() -> None:
    world = Ordered(*range(6))
    seen: list[tuple[int, int]] = []
    running = 0

    async def listen(messages: Sequence[Received]) -> int | None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        running -= 1
        seen.append((messages[0].offset, messages[0].tries))
        if messages[0].offset == 2 and messages[0].tries < 3:
            raise ZeroDivisionError
        return None

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    for _ in range(3):
        world.submit(dispatch)
    await until(lambda: world.offsets.get(QUEUE) == 6, "all of them")
    assert seen == [(0, 1), (1, 1), (2, 1), (2, 2), (2, 3), (3, 1), (4, 1), (5, 1)]
    assert await dispatch.close(1.0) == 0


@pytest.mark.row("ORD-2", "PQ-6", "C-38")
async def test_one_task_for_each_queue_however_often_messages_arrive() -> None:
    world = Ordered(1, 2, 3)
    before = len(asyncio.all_tasks())
    dispatch = OrderlyDispatch(verdict_of(_forever), world.settings)
    for _ in range(5):
        world.submit(dispatch)
    assert len(asyncio.all_tasks()) == before + 1
    await dispatch.close(0.0)


@pytest.mark.row("ORD-9")
async def test_a_listener_that_raises_suspends_its_queue_and_commits_nothing() -> None:
    world = Ordered(1, 2)
    tries: list[int] = []

    async def listen(messages: Sequence[Received]) -> None:
        tries.append(messages[0].tries)
        raise ZeroDivisionError

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await until(lambda: len(tries) >= 5, "five tries")
    assert tries[:5] == [1, 2, 3, 4, 5]
    assert world.offsets.get(QUEUE) is None
    await dispatch.close(1.0)


@pytest.mark.row("ORD-8")
async def test_a_message_that_had_its_last_try_is_a_dead_letter_and_the_queue_continues() -> None:
    world = Ordered(1, 2, settings=ConsumerSettings(is_orderly=True, suspend_s=0.01, tries_max=2))

    async def listen(messages: Sequence[Received]) -> int | None:
        return 0 if messages[0].offset == 1 else None

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await until(lambda: world.offsets.get(QUEUE) == 3, "the second")
    assert world.sent_back == [(1, DEAD_LETTER, 2)]
    await dispatch.close(1.0)


@pytest.mark.row("ORD-8")
async def test_what_cannot_be_sent_away_suspends_the_queue_until_it_can() -> None:
    world = Ordered(1, 2, settings=ConsumerSettings(is_orderly=True, suspend_s=0.01, tries_max=0))
    world.takes_back = world.takes_new = False
    tries: list[int] = []

    async def listen(messages: Sequence[Received]) -> int | None:
        tries.append(messages[0].offset)
        return 0

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await until(lambda: len(tries) >= 3, "some tries")
    assert set(tries) == {1}
    assert world.offsets.get(QUEUE) is None
    world.takes_back = True
    await until(lambda: world.offsets.get(QUEUE) == 3, "both sent away")
    await dispatch.close(1.0)


@pytest.mark.row("ORD-10", "C-42")
async def test_a_commit_may_set_the_offset_back_but_not_of_a_queue_that_was_lost() -> None:
    world = Ordered(1)
    world.offsets.update(QUEUE, 100, increase_only=False)
    dispatch = OrderlyDispatch(verdict_of(_nothing), world.settings)
    world.submit(dispatch)
    await until(lambda: world.offsets.get(QUEUE) == 2, "the commit")
    await dispatch.close(1.0)

    lost = Ordered(1)

    async def lose(messages: Sequence[Received]) -> None:
        lost.cached.is_dropped = lost.cached.is_lost = True

    dispatch = OrderlyDispatch(verdict_of(lose), lost.settings)
    lost.submit(dispatch)
    order = lost.settlement.order
    assert order is not None
    await until(lambda: lost.cached.is_dropped, "it was lost")
    assert await order.is_at_rest(1.0)
    assert lost.offsets.get(QUEUE) is None


@pytest.mark.row("REB-15")
@pytest.mark.parametrize(("fails", "offset"), [(False, 2), (True, None)])
async def test_a_listener_that_ends_while_its_queue_is_given_up_still_counts(
    fails: bool, offset: int | None
) -> None:
    world = Ordered(1, 2)

    async def listen(messages: Sequence[Received]) -> None:
        world.cached.is_dropped = True
        if fails:
            raise ZeroDivisionError

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await until(lambda: world.cached.is_dropped, "it is given up")
    order = world.settlement.order
    assert order is not None
    assert await order.is_at_rest(1.0)
    assert world.offsets.get(QUEUE) == offset


async def test_what_ends_after_its_lock_has_expired_is_not_committed_for_a_queue_that_moves() -> (
    None
):
    world = Ordered(1)

    async def listen(messages: Sequence[Received]) -> None:
        world.cached.is_dropped = True
        world.cached.lock_s_max = -1.0

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await until(lambda: world.cached.is_dropped, "it is given up")
    order = world.settlement.order
    assert order is not None
    assert await order.is_at_rest(1.0)
    assert world.offsets.get(QUEUE) is None


@pytest.mark.row("ORD-3")
async def test_a_stale_lock_is_asked_for_again_before_a_listener_runs() -> None:
    world = Ordered(1)
    world.cached.locked_at_s = None
    dispatch = OrderlyDispatch(verdict_of(_nothing), world.settings)
    world.submit(dispatch)
    await until(lambda: world.offsets.get(QUEUE) == 2, "the message")
    assert world.lock_count == 1
    await dispatch.close(1.0)


@pytest.mark.row("ORD-6")
async def test_with_manual_commit_an_ack_commits_and_a_retry_rolls_back() -> None:
    settings = ConsumerSettings(is_orderly=True, suspend_s=0.01, auto_commit=False)
    world = Ordered(1, 2, 3, settings=settings)
    seen: list[int] = []

    async def listen(messages: Sequence[Received]) -> None:
        (message,) = messages
        seen.append(message.offset)
        if message.offset == 3 and len(seen) == 3:
            assert world.offsets.get(QUEUE) is None
            await message.retry(after=timedelta(milliseconds=20))
        elif message.offset == 3:
            await message.ack()

    dispatch = OrderlyDispatch(verdict_of(listen), settings)
    world.submit(dispatch)
    await until(lambda: world.offsets.get(QUEUE) == 4, "the commit")
    assert seen == [1, 2, 3, 1, 2, 3]
    await dispatch.close(1.0)


@pytest.mark.row("ORD-7")
async def test_a_wish_to_retry_is_how_long_the_queue_rests() -> None:
    (message,) = Ordered(1).messages

    async def listen(messages: Sequence[Received]) -> None:
        raise Retry(after=timedelta(seconds=7))

    verdict = await verdict_of(listen)([message])
    assert verdict == Verdict(Ruling.AGAIN, done_count=0, suspend_s=7.0)


@pytest.mark.row("PROP-9")
async def test_no_more_queues_are_consumed_at_once_than_there_are_workers() -> None:
    settings = ConsumerSettings(is_orderly=True, workers=2)
    worlds = [Ordered(1, 2, settings=settings) for _ in range(5)]
    running = most = 0

    async def listen(messages: Sequence[Received]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    dispatch = OrderlyDispatch(verdict_of(listen), settings)
    for world in worlds:
        world.submit(dispatch)
    await until(lambda: all(w.offsets.get(QUEUE) == 3 for w in worlds), "all of them")
    assert most == 2
    await dispatch.close(1.0)


@pytest.mark.row("REB-15")
async def test_a_queue_is_at_rest_when_its_listener_has_ended() -> None:
    world = Ordered(1)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def listen(messages: Sequence[Received]) -> None:
        begun.set()
        await may_end.wait()

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await begun.wait()
    order = world.settlement.order
    assert order is not None
    assert not await order.is_at_rest(0.01)
    may_end.set()
    assert await order.is_at_rest(1.0)
    await dispatch.close(1.0)


async def test_closing_waits_for_a_listener_and_counts_what_it_did() -> None:
    world = Ordered(1, 2)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def listen(messages: Sequence[Received]) -> None:
        begun.set()
        await may_end.wait()

    dispatch = OrderlyDispatch(verdict_of(listen), world.settings)
    world.submit(dispatch)
    await begun.wait()
    closing = asyncio.create_task(dispatch.close(5.0))
    await asyncio.sleep(0)
    may_end.set()
    assert await closing == 0
    assert world.offsets.get(QUEUE) == 2


# Asked for one by one


async def test_the_next_message_of_a_queue_is_offered_when_the_one_before_it_is_settled() -> None:
    world = Ordered(1, 2)
    inbox = Inbox()
    dispatch = OrderlyDispatch(inbox, world.settings)
    world.submit(dispatch)
    first = await inbox.get()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(inbox.get(), 0.05)
    await first.retry()
    again = await inbox.get()
    assert (again.offset, again.tries) == (1, 2)
    await again.ack()
    assert world.offsets.get(QUEUE) == 2
    second = await inbox.get()
    assert second.offset == 2
    assert await dispatch.close(5.0) == 0
    assert world.offsets.get(QUEUE) == 2


async def test_a_message_that_no_one_asked_for_is_withdrawn_when_its_queue_is_given_up() -> None:
    world = Ordered(1)
    inbox = Inbox()
    dispatch = OrderlyDispatch(inbox, world.settings)
    world.submit(dispatch)
    order = world.settlement.order
    assert order is not None
    await asyncio.sleep(0)
    world.cached.is_dropped = True
    assert await order.is_at_rest(5.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(inbox.get(), 0.05)


async def _nothing(messages: Sequence[Received]) -> None:
    """A listener that wants nothing."""


async def _forever(messages: Sequence[Received]) -> None:
    await asyncio.Event().wait()
