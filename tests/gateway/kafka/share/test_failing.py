"""Share groups on a full and on a failed disk, and when the wall clock jumps.

Whatever cannot be written has not happened: nothing is acquired, finished or lost, and it succeeds
when it is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.gateway.kafka.share.test_administering import alter, forget, starts
from tests.gateway.kafka.share.world import (
    ACCEPT,
    REJECT,
    RELEASE,
    Sharer,
    Shares,
    joined,
    offsets,
)

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import DiskFailed, StoreError, StoreFull

ERRORS = [StoreFull("the disk is full"), DiskFailed("a segment", OSError(5, "Input/output error"))]
DAY_MS = 86_400_000


@pytest.fixture(params=ERRORS, ids=["full", "failed"])
def error(request: pytest.FixtureRequest) -> StoreError:
    found: StoreError = request.param
    return found


@pytest.fixture
def world() -> Shares:
    world = Shares()
    world.topic("orders", 1)
    world.configure(auto_offset_reset="earliest", delivery_count_limit="2")
    return world


@contextmanager
def failing(world: Shares, error: StoreError) -> Iterator[list[int]]:
    """While nothing can be appended; the list counts what was tried."""
    tried: list[int] = []

    def fail(*_: object, **__: object) -> Any:
        tried.append(1)
        raise error

    own = vars(world.store.appender)
    before = dict(own)
    own.update(append_state=fail, append_states=fail)
    try:
        yield tried
    finally:
        own.clear()
        own.update(before)


def seen(world: Shares, partition: int = 0) -> list[tuple[int, int, int, str | None]]:
    runs = world.window(partition=partition).runs()
    return [(run.first, run.end, run.deliveries, run.holder) for run in runs]


async def test_a_group_that_cannot_begin_begins_later(world: Shares, error: StoreError) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1")
    with failing(world, error) as tried:
        answer = await a.fetch()
    assert tried
    codes = {data.error_code for topic in answer.responses for data in topic.partitions}
    assert codes == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert len(world.folds.share_state) == 0
    assert offsets(await a.take()) == [0]


@pytest.mark.row("GRP-21")
async def test_nothing_is_handed_out_that_is_not_in_the_log(
    world: Shares, error: StoreError
) -> None:
    (a,) = joined(world, "a")
    await a.take()
    world.batch(4)
    with failing(world, error):
        answer = await a.fetch()
        assert [data.error_code for topic in answer.responses for data in topic.partitions] == [
            ErrorCode.KAFKA_STORAGE_ERROR
        ]
    assert (seen(world), world.window().end) == ([], 0)
    assert [each.deliveries for each in await a.take()] == [1, 1, 1, 1]


@pytest.mark.row("GRP-24")
async def test_acknowledgements_that_cannot_be_written_are_not_taken_in_part(
    world: Shares, error: StoreError
) -> None:
    (a,) = joined(world, "a")
    world.batch(4)
    await a.take()
    before = seen(world)
    said: list[tuple[int, int, list[int]]] = [
        (0, 0, [ACCEPT]),
        (1, 1, [RELEASE]),
        (2, 2, [REJECT]),
    ]
    with failing(world, error):
        assert a.code(*said) == ErrorCode.KAFKA_STORAGE_ERROR
    assert seen(world) == before, "also what is only in memory"
    assert sum(world.records.acknowledged.values()) == 0
    assert a.code(*said) == 0
    assert seen(world) == [(1, 2, 1, None), (3, 4, 1, "a")]
    world.kill()
    assert [each[:3] for each in seen(world)] == [(1, 2, 1), (3, 4, 1)]


async def test_a_lock_that_expires_for_the_last_time_is_archived_when_it_can_be(
    world: Shares, error: StoreError
) -> None:
    world.configure("other", auto_offset_reset="earliest")
    (a,) = joined(world, "a")
    (b,) = joined(world, "b", group="other")
    world.produce(b"1")
    for _ in range(2):
        assert len(await a.take()) == 1
        await b.take()
        with failing(world, error) as tried:
            world.pass_time(31_000)
            while world.records.expire():
                pass
            a.beat()
            b.beat()
    assert tried, "the last delivery of one group is over"
    assert world.window().start == 0
    other = world.window("other")
    assert not other.is_held_by("b", [(0, 1)], world.store.clock.monotonic_ms())
    assert [run.holder for run in other.runs()] == [None], "the other group is not held up"
    world.pass_time(11_000)
    while world.records.expire():
        pass
    assert (world.window().start, len(world.window())) == (1, 0)


async def test_what_a_member_that_goes_cannot_give_back_expires(
    world: Shares, error: StoreError
) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    assert a.code((0, 0, [RELEASE])) == 0
    await a.take()
    with failing(world, error):
        world.share_sessions.close("g", "a")
    assert seen(world) == [(0, 1, 2, "a")]
    assert await b.take() == []
    world.pass_time(31_000)
    while world.records.expire():
        pass
    assert world.window().start == 1


async def test_a_member_that_cannot_be_written_is_none(world: Shares, error: StoreError) -> None:
    a = Sharer(world, "a")
    with failing(world, error), pytest.raises(StoreError):
        a.beat()
    assert world.groups.describe("g") is None
    assert a.beat().error_code == 0
    with failing(world, error), pytest.raises(StoreError):
        a.leave()
    assert world.shares.member_count("g") == 1, "it has not left"
    assert a.leave() == 0
    assert world.shares.member_count("g") == 0


async def test_administrators_learn_what_could_not_be_written(
    world: Shares, error: StoreError
) -> None:
    (a,) = joined(world, "a")
    world.batch(4)
    await a.take()
    a.leave()
    with failing(world, error):
        assert alter(world, 0, 2) == ErrorCode.KAFKA_STORAGE_ERROR
        assert forget(world) == ErrorCode.KAFKA_STORAGE_ERROR
    assert await starts(world, 0) == [(0, 0, 4)]
    assert alter(world, 0, 2) == 0
    assert forget(world) == 0


@pytest.mark.parametrize("by_ms", [DAY_MS, -DAY_MS])
async def test_a_jump_of_the_wall_clock_ends_no_lock_and_no_session(
    world: Shares, by_ms: int
) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    world.clock.step(by_ms)
    world.settle()
    while world.records.expire():
        pass
    assert await b.take() == []
    assert a.beat().error_code == 0
    assert a.code((0, 0, [ACCEPT])) == 0
    world.produce(b"2")
    assert offsets(await a.take()) == [1]
    world.pass_time(31_000)
    assert offsets(await b.take()) == [1], "it ends when its time is over"


@pytest.mark.parametrize("by_ms", [DAY_MS, -DAY_MS])
async def test_a_restart_with_another_wall_clock_gives_everything_back(
    world: Shares, by_ms: int
) -> None:
    (a,) = joined(world, "a")
    world.batch(3)
    await a.take()
    assert a.code((1, 1, [ACCEPT])) == 0
    world.clock.step(by_ms)
    world.reopen()
    a.epoch = 0
    assert a.beat().error_code == 0
    again = [(each.offset, each.deliveries) for each in await a.take()]
    assert again == [(0, 2)], "what failed at half of the limit comes alone"
    again = [(each.offset, each.deliveries) for each in await a.take()]
    assert again == [(2, 2)]
