"""What clients can make of share groups at the worst holds the loop for milliseconds only.

A member that acquires ten thousand records of each of many partitions, and gives back every second
one, leaves as many runs as there can be; then everything goes through them.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any

import pytest
from tests.gateway.kafka.share.world import ACCEPT, RELEASE, Sharer, Shares, got, joined

PARTITIONS = 4
COUNT = 10_000
SECONDS_MAX = 0.05
TURNS_MAX = 1_000
Said = tuple[int, int, list[int]]
"""An acknowledgement: first and last offset, types."""


@contextmanager
def uncollected() -> Iterator[None]:
    """A server's heap is frozen, and that of the tests is large."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    with uncollected():
        began = thread_time()
        found = work()
        return thread_time() - began, found


async def torn() -> tuple[Shares, Sharer, Sharer]:
    """Two members; the first holds every second record of all partitions, and none the others."""
    world = Shares()
    world.topic("orders", PARTITIONS)
    world.configure(
        auto_offset_reset="earliest",
        partition_max_record_locks=str(COUNT),
        delivery_count_limit="10",
    )
    a, b = joined(world, "a", "b")
    a.wanted = b.wanted = a.wanted | b.wanted
    for partition in range(PARTITIONS):
        world.batch(COUNT, partition=partition)
    while await a.take(max_records=PARTITIONS * COUNT):
        pass
    every_second: list[Said] = [(offset, offset, [RELEASE]) for offset in range(0, COUNT, 2)]
    for partition in range(PARTITIONS):
        assert a.code(*every_second, partition=partition) == 0
        assert world.window(partition=partition).run_count == COUNT
    return world, a, b


async def turns(response: Any) -> tuple[float, Any]:
    """Await a response; the longest that the loop was held, and what was answered."""
    longest, waiting = 0.0, asyncio.ensure_future(response)
    with uncollected():
        for _ in range(TURNS_MAX):
            if waiting.done():
                break
            began = thread_time()
            await asyncio.sleep(0)
            longest = max(longest, thread_time() - began)
    assert waiting.done(), "it waits for something else"
    return longest, waiting.result()


@pytest.mark.row("GRP-27")
async def test_a_fetch_of_everything_goes_through_a_part_at_a_time() -> None:
    world, _, b = await torn()
    spent, response = seconds(lambda: b.send(max_records=PARTITIONS * COUNT))
    assert spent < SECONDS_MAX
    answer = await b.answer(response)
    ranges = sum(
        len(data.acquired_records) for topic in answer.responses for data in topic.partitions
    )
    assert 0 < ranges <= 2_000
    # What is left comes with the next fetches, and nothing is passed over.
    taken = sum(
        each.last_offset - each.first_offset + 1
        for topic in answer.responses
        for data in topic.partitions
        for each in data.acquired_records
    )
    while (more := len(await b.take(max_records=PARTITIONS * COUNT))) > 0:
        taken += more
    assert taken == PARTITIONS * COUNT // 2
    assert world.folds.share_state.count == PARTITIONS * COUNT


async def test_a_fetch_that_finds_nothing_at_first_looks_at_the_rest() -> None:
    world, a, b = await torn()
    while await b.take(max_records=PARTITIONS * COUNT):
        pass
    assert a.code((1, 1, [RELEASE]), partition=0) == 0
    for first in range(PARTITIONS):
        # Wherever it begins, it comes to the partition that has something.
        c = Sharer(world, f"c{first}")
        c.beat()
        c.wanted = b.wanted
        order = [(each[0], (each[1] + first) % PARTITIONS) for each in sorted(b.wanted)]
        response = c.send(wanted=order, max_wait_ms=1_000)
        if asyncio.iscoroutine(response):
            spent, response = await turns(response)
            assert spent < SECONDS_MAX
        found = got(await c.answer(response))
        assert [(each.partition, each.offset) for each in found] == [(0, 1)]
        assert c.code((1, 1, [RELEASE]), partition=0) == 0


@pytest.mark.row("GRP-27")
async def test_a_member_that_leaves_gives_back_a_part_at_a_time() -> None:
    world, a, b = await torn()
    spent, code = seconds(a.leave)
    assert (spent < SECONDS_MAX, code) == (True, 0)
    spent, _ = seconds(world.end_left_sessions)
    assert spent < SECONDS_MAX
    steps = 0
    while True:
        spent, is_more = seconds(world.records.expire)
        assert spent < SECONDS_MAX
        steps += 1
        if not is_more:
            break
    assert steps > 1, "it was not done at once"
    held = [run for at in range(PARTITIONS) for run in world.window(partition=at).runs()]
    assert not any(run.is_held(0) for run in held)
    del b


@pytest.mark.row("GRP-27")
async def test_locks_that_expire_at_once_are_given_back_a_part_at_a_time() -> None:
    world, _, _ = await torn()
    world.clock.advance(31_000)
    spent = 0.0
    is_more = True
    while is_more:
        spent, is_more = seconds(world.records.expire)
        assert spent < SECONDS_MAX
    assert world.records.late_count == PARTITIONS * COUNT // 2


async def test_ten_thousand_acknowledgements_of_single_records() -> None:
    world, a, b = await torn()
    while await b.take(max_records=PARTITIONS * COUNT):
        pass
    mixed: list[Said] = [(o, o, [ACCEPT if o % 4 == 1 else RELEASE]) for o in range(1, COUNT, 2)]
    spent, code = seconds(lambda: a.code(*mixed, partition=0))
    assert (spent < SECONDS_MAX, code) == (True, 0)
    assert len(world.window(partition=0)) == COUNT - COUNT // 4


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_member_that_comes_again_holds_only_what_it_gets_now(*, is_first: bool) -> None:
    world, a, _ = await torn()
    a.leave()
    member = Sharer(world, "a")
    member.beat()
    member.wanted = a.wanted
    if is_first:
        assert len(await member.take(max_records=1, share_acquire_mode=1)) == 1
    world.end_left_sessions()
    while world.records.expire():
        pass
    held = sum(
        run.end - run.first
        for at in range(PARTITIONS)
        for run in world.window(partition=at).runs()
        if run.is_held(world.store.clock.monotonic_ms())
    )
    assert held == (1 if is_first else 0)
