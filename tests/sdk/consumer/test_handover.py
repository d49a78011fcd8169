"""How a queue passes from one member to another: who may commit, and what a lock is worth."""

from __future__ import annotations

import asyncio

import pytest
from tests.sdk.consumer.test_holding import A0, A1, Brokers, Busy
from tests.sdk.memorynet import pass_time, settle, virtual

from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.results import Queue


@virtual
async def test_a_lock_counts_from_when_it_was_asked_for() -> None:
    brokers = Brokers()
    before_s = asyncio.get_running_loop().time()
    answer = brokers.committed

    async def slowly(queue: Queue) -> int | None:
        await pass_time(10.0)
        return await answer(queue)

    brokers.committed = slowly  # type: ignore[method-assign] # a broker that takes its time
    await brokers.holding.take_up([A0, A1])
    assert [held.cached.locked_at_s for held in brokers.holding.held.values()] == [before_s] * 2
    await brokers.close()


LAPSED = ConsumerSettings(is_orderly=True, start=Start.BEGINNING, lock_renew_s=0.5, lock_s_max=1.0)


@pytest.mark.parametrize(("known", "is_lost"), [(9, False), (10, True)])
@virtual
async def test_a_lock_that_had_expired_is_worth_nothing_if_another_member_went_on(
    known: int, is_lost: bool
) -> None:
    brokers = Brokers(LAPSED)
    await brokers.holding.take_up([A0])
    cached = brokers.holding.held[A0].cached
    brokers.offsets.update(A0, 9, increase_only=True)
    await pass_time(2.0)
    brokers.progress[A0] = known
    await brokers.holding.renew_locks()
    assert cached.is_dropped is is_lost
    assert cached.is_locked(asyncio.get_running_loop().time()) is not is_lost
    assert brokers.round_count == is_lost
    assert brokers.offsets.get(A0) == (None if is_lost else 9)
    await brokers.close()


@pytest.mark.row("ORD-10")
@virtual
async def test_a_queue_without_its_lock_is_not_committed() -> None:
    brokers = Brokers(LAPSED)
    await brokers.holding.take_up([A0])
    brokers.offsets.update(A0, 9, increase_only=True)
    await pass_time(2.0)
    brokers.asked.clear()
    await brokers.holding.persist()
    brokers.holding.assignment.drop(A0)
    assert await brokers.holding.release(A0)
    assert brokers.asked == [("unlock", [A0])]


async def test_a_queue_that_is_reset_while_it_is_given_up_is_given_up_once() -> None:
    brokers = Brokers(ConsumerSettings(start=Start.BEGINNING))
    holding = brokers.holding
    await holding.take_up([A0])
    brokers.offsets.update(A0, 9, increase_only=True)
    brokers.may_answer.clear()
    holding.assignment.drop(A0)
    releasing = asyncio.create_task(holding.release(A0))
    await brokers.begun.wait()
    resetting = asyncio.create_task(holding.reset(A0, 3))
    await settle()
    brokers.may_answer.set()
    assert await releasing
    assert await holding.take_up([A0]) == [A0]
    await resetting
    assert A0 in holding.held
    assert A0 in holding.assignment
    await brokers.close()


async def test_a_queue_that_is_given_up_keeps_its_lock_while_its_listener_runs() -> None:
    brokers = Brokers()
    await brokers.holding.take_up([A0])
    held = brokers.holding.held[A0]
    held.settlement.order = busy = Busy()
    brokers.holding.assignment.drop(A0)
    assert not await brokers.holding.release(A0)
    brokers.asked.clear()
    await brokers.holding.renew_locks()
    assert brokers.asked == [("lock", [A0])]
    busy.is_free = True
    assert await brokers.holding.release(A0)
    await brokers.holding.renew_locks()
    assert brokers.asked == [("lock", [A0]), ("unlock", [A0])]
