"""Taking snapshots: the loop's slices, the thread's files, and when one is due."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.waiting import wait_until

from rockgate.store.clock import ManualClock
from rockgate.store.errors import StoreFull
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.snapshotter import Handover, SnapshotConfig, SnapshotTaker, SnapshotWriter
from rockgate.store.testing.memory_files import MemoryDisk


class Numbers:
    """A source of slices that counts how many were asked for."""

    def __init__(self, name: str, count: int, size: int = 10) -> None:
        self.name = name
        self.count = count
        self.size = size
        self.taken = 0

    def snapshot(self) -> Iterator[bytes]:
        for number in range(self.count):
            self.taken = number + 1
            yield bytes([number % 256]) * self.size


class Setup:
    def __init__(self, *sources: Numbers, config: SnapshotConfig | None = None) -> None:
        self.disk = MemoryDisk()
        self.directory = self.disk.root()
        self.snapshots = Snapshots(self.directory)
        self.clock = ManualClock()
        self.log_end = 1000
        self.log: list[str] = []
        self.sync_failure: OSError | None = None
        self.writer = SnapshotWriter(self.directory, self.snapshots, self.sync_log)
        self.taker = SnapshotTaker(
            lambda: sources,
            self.writer,
            self.snapshots,
            self.clock,
            lambda: self.log_end,
            config or SnapshotConfig(),
        )

    def sync_log(self, needs: int) -> None:
        if self.sync_failure is not None:
            raise self.sync_failure
        kinds = [operation.kind for operation in self.disk.operations]
        self.log.append(f"log synced to {needs} after {kinds[-1]}, renames {kinds.count('rename')}")

    def finish(self) -> None:
        while self.taker.step():
            pass
        while self.writer.step():
            pass

    def due(self, bytes_since: int) -> bool:
        return self.taker.due(self.clock.monotonic_ms(), bytes_since)


# Taking and writing


def test_a_step_takes_one_slice() -> None:
    numbers = Numbers("n", 3)
    setup = Setup(numbers)
    setup.taker.begin(1000)
    taken: list[int] = []
    for _ in range(4):
        assert setup.taker.step() == (len(taken) < 3)
        taken.append(numbers.taken)
    assert taken == [1, 2, 3, 3]
    assert not setup.taker.step()


def test_the_file_is_synced_then_the_log_and_only_then_is_it_renamed() -> None:
    setup = Setup(Numbers("n", 3))
    setup.taker.begin(1000)
    setup.log_end = 1500
    setup.finish()
    assert setup.log == ["log synced to 1500 after sync, renames 0"]
    kinds = [operation.kind for operation in setup.disk.operations]
    assert kinds[-3:] == ["sync", "rename", "sync names"]
    assert (setup.writer.finished_count, setup.taker.is_busy) == (1, False)


def test_a_snapshot_needs_the_log_as_far_as_it_was_when_its_last_slice_was_taken() -> None:
    setup = Setup(Numbers("n", 3))
    setup.taker.begin(1000)
    for _ in range(3):
        setup.log_end += 100
        setup.taker.step()
    setup.finish()
    [kept] = setup.snapshots.usable(0, 1300)
    with setup.snapshots.read(kept) as reader:
        assert (reader.header.replay_from, reader.header.needs) == (1000, 1300)


def test_sections_are_in_the_order_of_the_sources() -> None:
    setup = Setup(Numbers("b", 2), Numbers("empty", 0), Numbers("a", 1))
    setup.taker.begin(0)
    setup.finish()
    [kept] = setup.snapshots.usable(0, 1000)
    with setup.snapshots.read(kept) as reader:
        assert [(name, len(list(slices))) for name, slices in reader.sections()] == [
            ("b", 2),
            ("empty", 0),
            ("a", 1),
        ]


def test_a_taker_far_ahead_of_the_disk_takes_nothing_until_it_has_caught_up() -> None:
    numbers = Numbers("n", 100, size=1000)
    setup = Setup(numbers, config=SnapshotConfig(ahead_bytes_max=5000))
    setup.taker.begin(0)
    for _ in range(50):
        assert setup.taker.step()
    assert numbers.taken == 6
    setup.writer.step()
    setup.taker.step()
    assert numbers.taken == 7


def test_a_last_slice_that_comes_while_the_writer_looks_away_is_not_lost() -> None:
    setup = Setup()
    handover = Handover(0, 0, ["n"])

    class Interrupted(deque[tuple[int, bytes]]):
        """Whoever finds it empty is interrupted by the taker, which finishes."""

        def __bool__(self) -> bool:
            is_filled = len(self) > 0
            if not is_filled and handover.needs is None:
                self.append((0, b"last"))
                handover.needs = 1000
            return is_filled

    handover.slices = Interrupted([(0, b"first")])
    setup.writer.submit(handover)
    while setup.writer.step():
        pass
    [kept] = setup.snapshots.usable(0, 1000)
    with setup.snapshots.read(kept) as reader:
        assert [list(slices) for _, slices in reader.sections()] == [[b"first", b"last"]]


def test_the_two_sides_work_in_two_threads() -> None:
    setup = Setup(Numbers("n", 2_000, size=1000), config=SnapshotConfig(ahead_bytes_max=50_000))
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            setup.writer.step()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        setup.taker.begin(0)
        while setup.taker.step():
            pass
        wait_until(lambda: not setup.taker.is_busy, "the snapshot is in place")
    finally:
        is_over.set()
        thread.join()
    [kept] = setup.snapshots.usable(0, 1000)
    with setup.snapshots.read(kept) as reader:
        [(_, slices)] = [(name, list(slices)) for name, slices in reader.sections()]
        assert slices == list(Numbers("n", 2_000, size=1000).snapshot())


# Failing


def failing_at(kind: str) -> Callable[..., OSError | None]:
    return lambda operation: OSError(5, "the disk fails") if operation.kind == kind else None


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename"])
def test_a_disk_that_fails_ends_the_snapshot_and_leaves_no_file(kind: str) -> None:
    setup = Setup(Numbers("n", 3))
    setup.disk.plan = failing_at(kind)
    setup.taker.begin(1000)
    while setup.taker.step():
        pass
    with pytest.raises(OSError, match="the disk fails"):
        while setup.writer.step():
            pass
    assert (setup.directory.names(), setup.taker.is_busy) == ([], False)
    setup.disk.plan = None
    setup.taker.begin(1000)
    setup.finish()
    assert len(setup.snapshots.usable(0, 1000)) == 1


def test_a_log_that_cannot_be_synced_gets_no_snapshot() -> None:
    setup = Setup(Numbers("n", 3))
    setup.sync_failure = OSError(5, "the log's disk fails")
    setup.taker.begin(1000)
    with pytest.raises(OSError, match="the log's disk fails"):
        setup.finish()
    assert setup.directory.names() == []


def test_on_a_full_disk_the_taker_stops_taking() -> None:
    numbers = Numbers("n", 100, size=100_000)
    setup = Setup(numbers)
    setup.disk.capacity = 1_200_000
    setup.taker.begin(1000)
    for _ in range(30):
        setup.taker.step()
    with pytest.raises(StoreFull):
        setup.writer.step()
    assert not setup.taker.step()
    assert numbers.taken == 30


def test_a_source_that_fails_ends_the_snapshot() -> None:
    class Broken(Numbers):
        def snapshot(self) -> Iterator[bytes]:
            yield b"one"
            raise ZeroDivisionError

    setup = Setup(Broken("n", 0))
    setup.taker.begin(1000)
    assert setup.taker.step()
    with pytest.raises(ZeroDivisionError):
        setup.taker.step()
    setup.finish()
    assert (setup.directory.names(), setup.taker.is_busy) == ([], False)


def test_a_snapshot_given_up_leaves_no_file() -> None:
    setup = Setup(Numbers("n", 3))
    setup.taker.abandon()
    setup.taker.begin(1000)
    setup.taker.step()
    setup.writer.step()
    assert len(setup.directory.names()) == 1
    setup.taker.abandon()
    setup.finish()
    assert (setup.directory.names(), setup.writer.failed_count) == ([], 1)


def test_a_snapshot_that_was_taken_whole_is_not_given_up() -> None:
    setup = Setup(Numbers("n", 3))
    setup.taker.begin(1000)
    while setup.taker.step():
        pass
    setup.taker.abandon()
    setup.finish()
    assert len(setup.directory.names()) == 1


def test_one_snapshot_is_taken_at_a_time() -> None:
    setup = Setup(Numbers("n", 3))
    setup.taker.begin(1000)
    with pytest.raises(AssertionError, match="one snapshot at a time"):
        setup.taker.begin(1000)


# When


CONFIG = SnapshotConfig(bytes_since=1000, interval_ms=60_000, log_bytes_per_byte=8, retry_ms=5_000)


def test_enough_new_log_makes_a_snapshot_due() -> None:
    setup = Setup(Numbers("n", 1), config=CONFIG)
    assert [setup.due(size) for size in (0, 999, 1000)] == [False, False, True]


def test_under_load_new_log_makes_the_next_one_due_only_after_a_pause() -> None:
    setup = Setup(Numbers("n", 1), config=replace(CONFIG, gap_ms=700))
    setup.clock.advance(699)
    assert not setup.due(1 << 40)
    setup.clock.advance(1)
    assert setup.due(1 << 40)


def test_any_new_log_makes_a_snapshot_due_after_some_time() -> None:
    setup = Setup(Numbers("n", 1), config=CONFIG)
    setup.clock.advance(59_999)
    assert not setup.due(1)
    setup.clock.advance(1)
    assert (setup.due(1), setup.due(0)) == (True, False)


def test_a_large_state_waits_for_more_log_so_that_its_cost_is_bounded() -> None:
    setup = Setup(Numbers("n", 10, size=1000), config=CONFIG)
    setup.taker.begin(1000)
    setup.finish()
    assert setup.snapshots.newest is not None
    size = setup.snapshots.newest.size
    assert size > 10_000
    assert [setup.due(8 * size - 1), setup.due(8 * size)] == [False, True]


def test_none_is_due_while_one_is_taken_or_written() -> None:
    setup = Setup(Numbers("n", 1), config=CONFIG)
    setup.taker.begin(1000)
    assert not setup.due(1 << 40)
    while setup.taker.step():
        pass
    assert not setup.due(1 << 40)
    setup.finish()
    assert setup.due(1 << 40)


def test_after_one_that_failed_the_next_waits_a_while() -> None:
    setup = Setup(Numbers("n", 1), config=CONFIG)
    setup.disk.plan = failing_at("create")
    setup.taker.begin(1000)
    with pytest.raises(OSError):
        setup.finish()
    assert not setup.due(1 << 40)
    setup.clock.advance(5_000)
    assert setup.due(1)
