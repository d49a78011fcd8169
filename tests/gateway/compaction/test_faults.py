"""What fails while a queue is compacted, and what is at its limits."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.compaction.compacting import DAY_MS, Compacting

from rockgate.protocol.entry import MOVED
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.store.errors import StoreFull
from rockgate.store.log.commitlog import Draft, Written
from rockgate.store.testing.memory_files import MemoryDisk, Operation
from rockgate.store.upkeep.compaction.cleaning import HOLE_ENTRIES

CALLS_MAX = 12_000
"""Calls of functions in a slice; ten thousand small ones are about a millisecond."""


def table(disk: MemoryDisk | None = None, **config: str) -> Compacting:
    world = Compacting(disk)
    world.topic("table", 1, **({"cleanup_policy": "compact"} | config))
    return world


def write(world: Compacting, rounds: int = 12) -> None:
    """Batches of which some shrink, some go, and some stay."""
    for number in range(rounds):
        world.produce((f"k{number}", "stays"), ("a", f"{number}"))
        world.send(("b", f"{number}"))
        world.produce(("a", f"{number}."), ("c", None))
    world.roll()


class Failing:
    """Lets one of the appends of a cleaning fail."""

    def __init__(self, world: Compacting, number: int, error: Exception) -> None:
        self._append = world.store.log.append
        self._left = number
        self._error = error
        self.count = 0
        self.has_failed = False
        vars(world.store.log)["append"] = self

    def __call__(self, draft: Draft) -> Written:
        if draft.sys_flag & MOVED:
            self.count += 1
            self._left -= 1
            if self._left == 0:
                self.has_failed = True
                raise self._error
        return self._append(draft)


@pytest.mark.row("CMP-5")
@pytest.mark.parametrize(
    "error", [StoreFull("no space"), OSError(errno.EIO, "broken"), RuntimeError("a bug")]
)
def test_an_append_that_raises_at_any_moment_costs_nothing_but_time(error: Exception) -> None:
    clean = table()
    write(clean)
    count = Failing(clean, 0, error)
    clean.compact()
    wanted = clean.check()
    assert count.count > 5
    for number in range(1, count.count + 1):
        world = table()
        write(world)
        failing = Failing(world, number, error)
        world.compact()
        assert failing.has_failed
        world.check()
        if number % 3 == 0:
            world.kill()
        else:
            del vars(world.store.log)["append"]
        world.pass_time(60_000)
        world.compact()
        assert world.check() == wanted


@pytest.mark.row("CMP-5")
def test_a_cleaning_that_always_fails_starves_no_other_step() -> None:
    world = table()
    world.topic("filler", 1, retention_ms="500")
    write(world)
    world.fill("filler", 100)
    bodies: Any = world.store.cleaner.bodies

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    vars(bodies)["reading"] = fail
    removed = world.store.retention.removed_count
    for _ in range(5):
        world.pass_time(30_000)
    assert dict(world.store.steps.failures())["compaction"] >= 2
    assert world.store.retention.removed_count > removed
    del vars(bodies)["reading"]
    world.pass_time(60_000)
    world.compact()
    assert world.store.cleaner.failure is None
    assert world.store.cleaner.rewritten_count > 0
    world.check()


@pytest.mark.row("CMP-5")
@pytest.mark.parametrize("number", range(1, 9))
def test_after_a_failed_fsync_nothing_is_compacted_and_nothing_is_lost(number: int) -> None:
    disk = MemoryDisk()
    world = table(disk)
    write(world)
    left = number

    def fail(operation: Operation) -> OSError | None:
        nonlocal left
        if operation.kind == "sync" and "/commitlog/" in operation.path:
            left -= 1
        return OSError(errno.EIO, "injected") if left == 0 else None

    disk.plan = fail
    world.compact()
    disk.plan = None
    failed = world.store.flusher.failure is not None
    rewritten = world.store.cleaner.rewritten_count
    if failed:
        world.compact()
        assert world.store.cleaner.rewritten_count == rewritten
    world.check()
    world.kill()
    world.check()
    world.compact()
    world.compact()
    assert len(world.check()) == 12 + 3


@pytest.mark.row("CMP-2")
def test_a_clock_that_jumps_a_day_ahead_deletes_no_tombstone_until_that_has_lasted() -> None:
    world = table(delete_retention_ms=str(DAY_MS // 2), min_cleanable_dirty_ratio="0")
    world.produce(("a", "1"), ("b", "1"))
    world.produce(("a", None))
    world.roll()
    world.compact()
    assert (2, "a", None) in world.check()
    world.clock.step(DAY_MS)
    for number in range(2):
        world.produce(("b", f"{number}"))
        world.roll()
        world.compact()
        assert (2, "a", None) in world.check()
    world.clock.advance(2 * 3_600_000)
    world.compact()
    for number in range(2):
        world.produce(("b", f"{number}."))
        world.roll()
        world.compact()
    assert [key for _, key, _ in world.check()] == ["b"]


def test_a_clock_that_is_set_back_a_day_only_lets_tombstones_live_longer() -> None:
    world = table(delete_retention_ms="1000", min_cleanable_dirty_ratio="0")
    world.produce(("a", "1"), ("b", "1"))
    world.produce(("a", None))
    world.roll()
    world.compact()
    world.clock.step(-DAY_MS)
    for number in range(3):
        world.produce(("b", f"{number}"))
        world.roll()
        world.compact()
        assert (2, "a", None) in world.check()
    world.clock.advance(DAY_MS + 10_000)
    for number in range(2):
        world.produce(("b", f"{number}."))
        world.roll()
        world.compact()
    assert [key for _, key, _ in world.check()] == ["b"]


@pytest.mark.parametrize("compression", list(Compression))
def test_long_keys_that_differ_at_their_end_are_different_keys(compression: Compression) -> None:
    world = table()
    keys = ["k" * size + end for size in (14, 15, 16, 1_500) for end in ("", "x", "y")]
    keys = list(dict.fromkeys(keys))
    for number in range(3):
        for key in keys:
            world.produce((key, f"{number}"), compression=compression)
    world.roll()
    world.compact()
    assert [(key, value) for _, key, value in world.check()] == [(key, "2") for key in keys]


@pytest.mark.row("CMP-4")
def test_a_hole_takes_the_place_of_so_many_entries_and_the_next_cleaning_joins_holes() -> None:
    world = table(min_cleanable_dirty_ratio="0")
    count = 2 * HOLE_ENTRIES + 20
    for number in range(count):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    units = [(unit[0], unit[3]) for unit in world.queue("table").walk(0)]
    assert units == [
        (0, HOLE_ENTRIES),
        (HOLE_ENTRIES, HOLE_ENTRIES),
        (2 * HOLE_ENTRIES, 19),
        (count - 1, 1),
    ]
    world.produce(("a", "last"))
    world.roll()
    world.compact()
    units = [(unit[0], unit[3]) for unit in world.queue("table").walk(0)]
    assert units == [(0, count), (count, 1)]
    world.kill()
    assert world.check() == [(count, "a", "last")]


def _many_entries(world: Compacting) -> None:
    for number in range(1_500):
        world.produce((f"k{number % 3}", "x"))


def _large_batches(world: Compacting) -> None:
    for number in range(3):
        pairs = [(f"k{key % 700}", f"{number}") for key in range(3_000)]
        world.produce(*pairs, compression=Compression.LZ4)


def _tombstones(world: Compacting) -> None:
    for number in range(4):
        world.produce(*((f"k{key}", None) for key in range(number * 100, number * 100 + 900)))


@pytest.mark.row("CMP-4")
@pytest.mark.parametrize("fill", [_many_entries, _large_batches, _tombstones])
def test_no_slice_of_a_cleaning_is_long(fill: Callable[[Compacting], None]) -> None:
    world = Compacting(segment_bytes=1 << 18)
    world.topic("table", 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    world.ensure("filler")
    fill(world)
    cleaner = world.store.cleaner
    bodies, cleaner.bodies = cleaner.bodies, None
    for _ in range(30):
        world.message("filler", body=bytes(10_000))
    world.pass_time(5_000)
    cleaner.bodies = bodies
    world.clock.advance(2_000)
    calls, most = 0, 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for _ in range(20_000):
        calls = 0
        sys.setprofile(count)
        try:
            has_more = cleaner.step()
        finally:
            sys.setprofile(None)
        most = max(most, calls)
        if not has_more and cleaner.cleaned_count:
            break
        world.clock.advance(1)
    assert cleaner.cleaned_count and cleaner.rewritten_count
    assert 0 < most < CALLS_MAX, most
    world.check()
