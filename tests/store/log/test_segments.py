"""The row of segment files: making, finding, removing and loading them."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded

from rockgate.store.errors import SettingChanged, StoreCorrupt, StoreFull
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.log.segments import HASTE_WINDOWS, Segments, segment_name
from rockgate.store.testing.memory_files import MemoryDisk, Operation, PowerCut

SIZE = 64 << 10
AHEAD = 8 << 10


def row_of(disk: MemoryDisk, count: int = 1, *, size: int = SIZE, ahead: int = AHEAD) -> Segments:
    segments = Segments(disk.root(), size, ahead)
    segments.load()
    if not len(segments):
        segments.start_at(0)
    while len(segments) < count:
        segments.roll()
    return segments


def starts(segments: Segments) -> list[int]:
    return [segment.start for segment in segments.row]


# Finding


def test_a_segment_is_named_by_its_start_in_twenty_digits() -> None:
    disk = MemoryDisk()
    row_of(disk, 2)
    assert disk.root().names() == ["00000000000000000000", "00000000000000065536"]


def test_a_position_is_found_in_the_segment_that_holds_it() -> None:
    segments = row_of(MemoryDisk(), 3)
    for position, start in ((0, 0), (SIZE - 1, 0), (SIZE, SIZE), (3 * SIZE - 1, 2 * SIZE)):
        found = segments.find(position)
        assert found is not None
        assert found.start == start
    assert segments.find(-1) is None
    assert segments.find(3 * SIZE) is None


def test_a_range_is_covered_by_the_segments_that_hold_a_byte_of_it() -> None:
    segments = row_of(MemoryDisk(), 4)

    def covered(start: int, end: int) -> list[int]:
        return [segment.start // SIZE for segment in segments.between(start, end)]

    assert covered(0, 4 * SIZE) == [0, 1, 2, 3]
    assert covered(SIZE - 1, SIZE) == [0]
    assert covered(SIZE - 1, SIZE + 1) == [0, 1]
    assert covered(SIZE, 2 * SIZE) == [1]
    assert covered(SIZE, SIZE) == []
    assert covered(4 * SIZE, 5 * SIZE) == []


def test_a_row_may_begin_at_any_segment() -> None:
    segments = Segments(MemoryDisk().root(), SIZE, AHEAD)
    assert segments.start == 0
    segments.start_at(7 * SIZE)
    assert segments.start == 7 * SIZE
    assert segments.find(0) is None
    assert segments.roll().start == 8 * SIZE


# Growing


def test_a_roll_takes_the_prepared_segment_and_touches_no_disk() -> None:
    disk = MemoryDisk()
    segments = row_of(disk)
    segments.prepare(SIZE - 1)
    before = disk.operation_count
    assert segments.roll().start == SIZE
    assert disk.operation_count == before


def test_a_roll_without_a_prepared_segment_makes_one() -> None:
    segments = row_of(MemoryDisk())
    assert segments.roll().start == SIZE
    assert segments.active.start == SIZE


def test_only_one_segment_is_prepared() -> None:
    disk = MemoryDisk()
    segments = row_of(disk)
    for _ in range(3):
        segments.prepare(SIZE - 1)
    assert len(disk.root().names()) == 2
    assert starts(segments) == [0]


def test_the_next_file_is_made_when_the_last_one_is_half_full() -> None:
    """Not sooner, for it takes room; and not much later, for a roll would wait for it."""
    disk = MemoryDisk()
    segments = row_of(disk)
    segments.prepare(SIZE // 2 - 1)
    assert len(disk.root().names()) == 1
    segments.prepare(SIZE // 2)
    assert len(disk.root().names()) == 2


def test_a_writer_in_haste_has_more_pages_ready_before_a_file_is_made() -> None:
    for position, coarsely, windows in (
        (SIZE // 2, True, HASTE_WINDOWS),
        (SIZE // 2, False, 1),
        (SIZE // 4, True, 1),
    ):
        segments = row_of(MemoryDisk())
        mapping = segments.active.mapping = Recording(SIZE)
        segments.prepare(position, coarsely=coarsely)
        assert mapping.populated == [(position, position + windows * AHEAD)]


def test_the_writer_wakes_the_allocator_only_where_there_is_work() -> None:
    segments = row_of(MemoryDisk())
    position, woken = 0, 0
    while position < SIZE - AHEAD:
        if position >= segments.prepare_at:
            segments.prepare(position)
            woken += 1
            assert segments.prepare_at > position
        position += 512
    assert 2 <= woken <= 2 * SIZE // AHEAD
    assert segments.roll().start == SIZE
    assert segments.prepare_at <= SIZE


def test_pages_are_populated_in_a_window_ahead_of_the_writer() -> None:
    segments = row_of(MemoryDisk())
    segments.prepare(0)
    assert segments.active.populated == AHEAD
    segments.prepare(AHEAD)
    assert segments.active.populated == 2 * AHEAD
    segments.prepare(SIZE - 1)
    assert segments.active.populated == SIZE


class Recording:
    """A mapping that remembers what was populated and synced."""

    def __init__(self, size: int) -> None:
        self.name = segment_name(0)
        self.size = size
        self.view = memoryview(bytearray(size))
        self.bare: memoryview | None = None
        self.populated: list[tuple[int, int]] = []
        self.synced: list[tuple[int, int | None]] = []

    def write(self, at: int, data: bytes | bytearray | memoryview) -> None:
        self.view[at : at + len(data)] = data

    def sync(self, at: int = 0, size: int | None = None) -> None:
        self.synced.append((at, size))

    def populate(self, at: int, size: int, *, coarsely: bool = False) -> None:
        self.populated.append((at, at + size))

    def prefetch(self, at: int, size: int) -> None: ...

    def close(self) -> None: ...


def test_pages_behind_the_writer_are_never_populated() -> None:
    """Populating for writing dirties a page: after a start all of the segment would be fsynced."""
    segments = row_of(MemoryDisk())
    mapping = Recording(SIZE)
    segments.active.mapping = mapping
    segments.prepare(5 * 4096 + 17)
    assert mapping.populated == [(5 * 4096, 5 * 4096 + 17 + AHEAD)]


class RacingLock:
    """A lock at whose first release another thread gets in before the releasing one continues."""

    def __init__(self, rival: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._rival: Callable[[], object] | None = rival

    def acquire(self, timeout: float = -1) -> bool:
        return self._lock.acquire(timeout=timeout)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        self._lock.release()
        rival, self._rival = self._rival, None
        if rival is not None:
            rival()


def test_an_allocator_that_wakes_during_a_roll_does_not_make_the_same_file_again() -> None:
    """It would truncate the file that has just become the active one."""
    disk = MemoryDisk()
    segments = row_of(disk)
    segments.prepare(SIZE - 1)
    segments._making = RacingLock(lambda: segments.prepare(SIZE - 1))  # type: ignore[assignment]
    segment = segments.roll()
    segment.mapping.write(0, b"kept")
    assert starts(segments) == [0, SIZE]
    allocated = [o.path for o in disk.operations if o.kind == "allocate"]
    assert len(allocated) == len(set(allocated))
    segment.mapping.sync()
    assert bytes(disk.root().map(segment_name(SIZE), writable=False).view[:4]) == b"kept"


def test_a_roll_while_the_allocator_populates_is_no_error() -> None:
    segments = row_of(MemoryDisk())
    segments._making = RacingLock(segments.roll)  # type: ignore[assignment]
    segments.prepare(SIZE - 1)
    assert starts(segments) == [0, SIZE]
    assert segments.active.populated == AHEAD
    assert segments.prepare_at < SIZE + AHEAD


def test_rolls_and_allocations_from_two_threads_make_each_file_once(tmp_path: Path) -> None:
    segments = Segments(DiskDirectory(tmp_path), SIZE, SIZE)
    segments.start_at(0)
    stop = threading.Event()

    def allocate() -> None:
        while not stop.is_set():
            segments.prepare(segments.active.end - 1)

    allocator = threading.Thread(target=allocate)
    allocator.start()
    try:
        for number in range(1, 60):
            segments.roll().mapping.write(0, number.to_bytes(4, "big"))
    finally:
        stop.set()
        allocator.join()
    seen = [int.from_bytes(segment.mapping.view[:4], "big") for segment in segments.row]
    assert seen == list(range(60))
    assert starts(segments) == [number * SIZE for number in range(60)]
    segments.close()


# A full disk


def test_a_roll_on_a_full_disk_says_so_and_leaves_the_row_as_it_was() -> None:
    disk = MemoryDisk(capacity=SIZE + SIZE // 2)
    segments = row_of(disk)
    with pytest.raises(StoreFull):
        segments.roll()
    assert starts(segments) == [0]
    assert disk.root().names() == [segment_name(0)]
    disk.capacity = 3 * SIZE
    assert segments.roll().start == SIZE


def test_an_allocator_on_a_full_disk_keeps_quiet_and_tries_again_later() -> None:
    disk = MemoryDisk(capacity=SIZE + SIZE // 2)
    segments = row_of(disk)
    segments.prepare(SIZE - 2 * AHEAD)
    assert starts(segments) == [0]
    # Not at the next append: an allocation that fails may cost a disk much.
    assert SIZE - 2 * AHEAD < segments.prepare_at < SIZE
    disk.capacity = 3 * SIZE
    segments.prepare(segments.prepare_at)
    assert disk.root().names() == [segment_name(0), segment_name(SIZE)]


def test_a_disk_that_is_known_to_be_full_is_not_asked_to_reserve() -> None:
    disk = MemoryDisk(capacity=SIZE + SIZE // 2)
    segments = row_of(disk)
    before = disk.operation_count
    for _ in range(100):
        with pytest.raises(StoreFull):
            segments.roll()
    assert disk.operation_count == before


# Loading


@pytest.mark.row("S-06")
def test_files_are_loaded_in_the_order_of_their_positions() -> None:
    disk = MemoryDisk()
    row_of(disk, 12)
    assert starts(row_of(disk)) == [number * SIZE for number in range(12)]


@pytest.mark.row("S-06")
def test_an_empty_directory_is_an_empty_row() -> None:
    segments = Segments(MemoryDisk().root(), SIZE, AHEAD)
    segments.load()
    assert len(segments) == 0
    assert segments.find(0) is None


@pytest.mark.row("S-06")
def test_a_file_that_has_another_size_than_the_set_one_is_refused_by_name() -> None:
    disk = MemoryDisk()
    row_of(disk, 2)
    with pytest.raises(SettingChanged, match="with segment_bytes=65536, but the setting is 131072"):
        row_of(disk, size=2 * SIZE)
    disk.root().grow(segment_name(0), SIZE + 1)
    with pytest.raises(StoreCorrupt, match="65,537 bytes; the segment size is 65,536") as refused:
        row_of(disk)
    assert refused.value.file.endswith(segment_name(0))


@pytest.mark.parametrize("size", [0, 1, 4096, SIZE - 1])
def test_a_last_file_that_was_cut_short_gets_its_size_back(size: int) -> None:
    disk = MemoryDisk()
    row_of(disk, 3).row[-1].mapping.view[:4] = b"held"
    cut(disk, segment_name(2 * SIZE), size)
    segments = row_of(disk)
    assert starts(segments) == [0, SIZE, 2 * SIZE]
    assert segments.row[-1].size == SIZE
    assert bytes(segments.row[-1].mapping.view[:4]) == b"held"[:size].ljust(4, b"\0")


def test_a_file_that_was_cut_short_before_the_flushed_position_is_refused() -> None:
    disk = MemoryDisk()
    row_of(disk, 2)
    cut(disk, segment_name(SIZE), 100)
    segments = Segments(disk.root(), SIZE, AHEAD)
    with pytest.raises(StoreCorrupt, match="file is 100 bytes"):
        segments.load(SIZE + 101)
    segments = Segments(disk.root(), SIZE, AHEAD)
    segments.load(SIZE + 100)
    assert starts(segments) == [0, SIZE]


def cut(disk: MemoryDisk, name: str, size: int) -> None:
    content = disk.root().open(name).read(0, size)
    disk.root().create(name).write(0, content)


def test_a_row_with_a_file_missing_in_its_middle_is_refused() -> None:
    disk = MemoryDisk()
    row_of(disk, 3)
    disk.root().remove(segment_name(SIZE))
    with pytest.raises(StoreCorrupt, match="a segment is missing") as refused:
        row_of(disk)
    assert refused.value.position == SIZE, "the log can be ended there"


def test_a_file_that_is_not_at_a_multiple_of_the_size_is_refused() -> None:
    disk = MemoryDisk()
    row_of(disk)
    disk.root().rename(segment_name(0), segment_name(100))
    with pytest.raises(StoreCorrupt, match="multiple"):
        row_of(disk)


def test_other_files_are_left_alone() -> None:
    disk = MemoryDisk()
    row_of(disk)
    disk.root().create("notes.txt").close()
    assert starts(row_of(disk)) == [0]
    assert "notes.txt" in disk.root().names()


def test_a_kill_in_the_middle_of_an_allocation_leaves_a_row_that_loads() -> None:
    for crash_at in range(1, 20):
        disk = MemoryDisk()
        segments = row_of(disk, 2)
        disk.crash_at = disk.operation_count + crash_at
        try:
            segments.roll()
        except PowerCut:
            assert starts(row_of(disk.killed())) in ([0, SIZE], [0, SIZE, 2 * SIZE])
        else:
            assert crash_at > 1
            return
    raise AssertionError("a roll takes more operations than expected")


def test_a_power_cut_in_the_middle_of_an_allocation_leaves_a_row_that_loads() -> None:
    random = seeded()
    for crash_at in range(1, 20):
        for _ in range(budget("power_cuts")):
            disk = MemoryDisk()
            segments = row_of(disk, 2)
            disk.crash_at = disk.operation_count + crash_at
            try:
                segments.roll()
            except PowerCut:
                loaded = row_of(disk.power_cut(random))
                assert starts(loaded) in ([0, SIZE], [0, SIZE, 2 * SIZE])
                assert not any(loaded.active.mapping.view)
            else:
                return


def test_what_is_left_of_an_unfinished_allocation_is_removed() -> None:
    disk = MemoryDisk()
    segments = row_of(disk, 2)
    disk.crash_at = disk.operation_count + 2
    with pytest.raises(PowerCut):
        segments.roll()
    after = disk.killed()
    row_of(after)
    assert after.root().names() == [segment_name(0), segment_name(SIZE)]


def test_an_allocation_that_fails_after_the_file_was_made_can_be_tried_again() -> None:
    def fail(operation: Operation) -> OSError | None:
        if operation.kind == "sync names" and "names" in planned:
            planned.clear()
            return OSError(errno.EIO, "injected")
        return None

    planned = {"names"}
    disk = MemoryDisk()
    segments = row_of(disk)
    disk.plan = fail
    with pytest.raises(OSError, match="injected"):
        segments.roll()
    assert starts(segments) == [0]
    assert segments.roll().start == SIZE
    assert starts(row_of(disk.power_cut(Random(1), keep="none"))) == [0, SIZE]


# Shrinking


def test_removing_the_first_segment_moves_the_start_and_removes_the_file() -> None:
    disk = MemoryDisk()
    segments = row_of(disk, 3)
    removed = segments.remove_first()
    assert removed.start == 0
    assert segments.start == SIZE
    assert segments.find(0) is None
    assert segment_name(0) not in disk.power_cut(Random(1), keep="none").root().names()


def test_a_slice_of_a_removed_segment_can_still_be_read(tmp_path: Path) -> None:
    segments = Segments(DiskDirectory(tmp_path), SIZE, AHEAD)
    segments.start_at(0)
    segments.active.mapping.write(100, b"still here")
    kept = segments.active.mapping.view[100:110]
    segments.roll()
    segments.remove_first().mapping.close()
    assert bytes(kept) == b"still here"
    segments.close()


def test_removing_the_first_segment_does_not_hide_another_from_a_sync_under_way() -> None:
    """The flushing thread must not miss a segment because the row moved under its hands."""
    segments = row_of(MemoryDisk(), 4)
    row = segments._row
    segments.remove_first()
    # A thread that had looked the row up before continues with the row it saw.
    assert [segment.start for segment in row] == [0, SIZE, 2 * SIZE, 3 * SIZE]


def test_cutting_removes_what_starts_behind_a_position() -> None:
    disk = MemoryDisk()
    segments = row_of(disk, 4)
    segments.cut_after(SIZE)
    assert starts(segments) == [0, SIZE]
    assert starts(row_of(disk)) == [0, SIZE]


def test_cutting_again_after_a_power_cut_never_finds_a_gap() -> None:
    random = seeded()
    for crash_at in range(1, 12):
        for _ in range(budget("power_cuts")):
            disk = MemoryDisk()
            segments = row_of(disk, 5)
            disk.crash_at = disk.operation_count + crash_at
            try:
                segments.cut_after(SIZE)
            except PowerCut:
                found = starts(row_of(disk.power_cut(random)))
                assert found == [number * SIZE for number in range(len(found))]
                assert len(found) >= 2


def test_a_sync_takes_its_range_alone_so_that_pages_ahead_stay_ready() -> None:
    segments = row_of(MemoryDisk(), 3)
    mappings = []
    for segment in segments.row:
        segment.mapping = Recording(SIZE)
        mappings.append(segment.mapping)
    segments.sync(5, 2 * SIZE + 700)
    assert [mapping.synced for mapping in mappings] == [[(5, SIZE - 5)], [(0, SIZE)], [(0, 700)]]


def test_a_sync_reaches_every_segment_of_its_range_and_no_other() -> None:
    disk = MemoryDisk()
    segments = row_of(disk, 4)
    before = disk.operation_count
    segments.sync(SIZE + 5, 3 * SIZE)
    synced = [o.path.strip("/").removesuffix(".new") for o in disk.operations[before:]]
    assert synced == [segment_name(SIZE), segment_name(2 * SIZE)]
