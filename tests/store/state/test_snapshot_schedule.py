"""When slices are taken: a tenth of the time, however rarely it is called."""

from collections.abc import Iterator
from typing import Any

import pytest

from rockgate.store.clock import ManualClock
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.snapshotter import (
    SHARE_MS,
    SLICES_MAX,
    SnapshotConfig,
    SnapshotTaker,
    Snapshotter,
    SnapshotWriter,
)
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.workers import InlineJobs


class Log:
    end = 1_000


class Slices:
    """A source that counts how many slices were asked for."""

    name = "slices"
    taken = 0

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.each_ms = 0

    def snapshot(self) -> Iterator[bytes]:
        for _ in range(100):
            self.taken += 1
            self._clock.advance(self.each_ms)
            yield b"slice"


class Setup:
    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.source = Slices(self.clock)
        directory = MemoryDisk().root().child("snapshots")
        snapshots = Snapshots(directory)
        writer = SnapshotWriter(directory, snapshots, lambda position: None)
        taker = SnapshotTaker(
            lambda: [self.source],
            writer,
            snapshots,
            self.clock,
            lambda: Log.end,
            SnapshotConfig(bytes_since=1),
        )
        log: Any = Log()
        self.snapshotter = Snapshotter(
            taker=taker, writer=writer, log=log, clock=self.clock, jobs=InlineJobs, taken_at=0
        )

    def tick(self, after_ms: int) -> int:
        """Return how many slices a tick takes."""
        self.clock.advance(after_ms)
        before = self.source.taken
        assert self.snapshotter.tick(is_wanted=False)
        return self.source.taken - before


def test_a_tick_takes_a_slice_however_soon_it_comes() -> None:
    setup = Setup()
    assert [setup.tick(after_ms) for after_ms in (0, 1, 1, SHARE_MS - 1)] == [1, 1, 1, 1]


@pytest.mark.parametrize("count", [2, SLICES_MAX - 1, SLICES_MAX])
def test_ticks_that_come_seldom_take_as_many_as_their_share_of_the_time(count: int) -> None:
    setup = Setup()
    setup.tick(0)
    assert [setup.tick(count * SHARE_MS) for _ in range(3)] == [count] * 3


def test_a_tick_takes_no_more_than_a_turn_may_have() -> None:
    setup = Setup()
    setup.tick(0)
    assert setup.tick(3_600_000) == SLICES_MAX


@pytest.mark.parametrize(("each_ms", "count"), [(1, 3), (2, 2), (3, 1), (50, 1)])
def test_a_tick_whose_slices_take_long_is_over_after_three_milliseconds(
    each_ms: int, count: int
) -> None:
    setup = Setup()
    setup.tick(0)
    setup.source.each_ms = each_ms
    assert setup.tick(3_600_000) == count


def test_a_snapshot_that_begins_after_a_long_rest_begins_with_one_slice() -> None:
    setup = Setup()
    assert setup.tick(60_000) == 1
