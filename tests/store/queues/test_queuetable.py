"""The table of queues: which units get into which index file, and what a start finds."""

from __future__ import annotations

import errno
from functools import partial
from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded

from rockgate.protocol.entry import MAGIC_V1, Entry
from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import Directory
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit, index_name
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.testing.memory_files import MemoryDisk, Operation, PowerCut

SEGMENT = 10_000
TOPIC = b"orders"
ID = b"orders".ljust(16, b"\x01")
EVERYTHING = 1 << 40


def table_of(directory: Directory, queue_count: int = 4) -> QueueTable:
    table = QueueTable(directory, SEGMENT)
    table.create(TOPIC, ID, queue_count)
    return table


def add(table: QueueTable, queue_id: int, position: int, *, count: int = 1) -> None:
    """Feed a queue as the appender does."""
    queue = table.of(ID)[queue_id]
    queue.add(position, 100, count, 1_000 + position, 2_000 + position)
    if not queue.is_dirty:
        table.note(queue)


def index(table: QueueTable, log_end: int) -> None:
    """Write all index files that are due, as a checkpoint does."""
    while (stretch := table.plan(log_end)) is not None:
        table.write(stretch)
        while table.adopt(stretch):
            pass
    table.clean()


def positions(queue: Queue) -> list[int]:
    return [unit.position for unit in units(queue)]


def units(queue: Queue) -> list[Unit]:
    return queue.units(0, EVERYTHING, EVERYTHING)


def reloaded(disk: MemoryDisk, flushed: int, *, start: int = 0) -> tuple[QueueTable, int]:
    table = table_of(disk.killed().root())
    return table, table.load(start, flushed)


def filled(disk: MemoryDisk, unit_count: int) -> QueueTable:
    """A table with a unit every hundred bytes of the log, all indexed."""
    table = table_of(disk.root())
    for number in range(unit_count):
        add(table, number % 4, number * 100)
    index(table, unit_count * 100)
    return table


# What gets into an index file


def test_a_unit_behind_the_flushed_position_gets_into_the_next_index() -> None:
    """The queue may never get another unit that would bring it to mind."""
    disk = MemoryDisk()
    table = table_of(disk.root())
    add(table, 0, 0)
    add(table, 0, 100)
    index(table, 100)
    index(table, 200)
    table, scan_from = reloaded(disk, 200)
    assert scan_from == 200
    assert positions(table.of(ID)[0]) == [0, 100]


def test_a_unit_behind_a_sealed_segment_gets_into_the_next_index() -> None:
    disk = MemoryDisk()
    table = table_of(disk.root())
    add(table, 0, 0)
    add(table, 0, SEGMENT)
    index(table, SEGMENT + 100)
    table, scan_from = reloaded(disk, SEGMENT + 100)
    assert scan_from == SEGMENT + 100
    assert positions(table.of(ID)[0]) == [0, SEGMENT]
    assert table.of(ID)[0].next_offset == 2


@pytest.mark.parametrize("flushed_behind", [0, 100, 350, 1_000])
def test_whatever_is_flushed_when_every_unit_is_found_again(flushed_behind: int) -> None:
    disk = MemoryDisk()
    table = table_of(disk.root())
    for number in range(400):
        add(table, number * 7 % 4, number * 100)
        if number % 9 == 0:
            index(table, max(0, (number + 1) * 100 - flushed_behind))
    index(table, 40_000)
    before = [units(queue) for queue in table]
    table, scan_from = reloaded(disk, 40_000)
    assert scan_from == 40_000
    assert [units(queue) for queue in table] == before
    assert sum(map(len, before)) == 400


def test_a_queue_that_got_nothing_new_is_not_looked_at() -> None:
    table = table_of(MemoryDisk().root())
    add(table, 0, 0)
    index(table, 100)
    add(table, 1, 100)
    stretch = table.plan(200)
    assert stretch is not None
    assert stretch.queues == [table.of(ID)[1]]


def test_nothing_is_due_twice() -> None:
    table = filled(MemoryDisk(), 150)
    assert table.plan(15_000) is None
    assert table.indexed == 15_000
    assert table.sealed == SEGMENT


def test_a_queue_is_remembered_once_however_often_it_is_indexed() -> None:
    table = table_of(MemoryDisk().root())
    for number in range(90):
        add(table, 0, number * 100)
        index(table, (number + 1) * 100)
    assert len(table._recent) == 1
    assert len(table._dirty) <= 1


def test_a_slow_log_does_not_gather_tail_files() -> None:
    disk = MemoryDisk()
    table = table_of(disk.root())
    for number in range(99):
        add(table, number % 4, number * 100)
        index(table, (number + 1) * 100)
        assert len(disk.root().names()) <= 9
    before = [units(queue) for queue in table]
    table, scan_from = reloaded(disk, 9_900)
    assert scan_from == 9_900
    assert [units(queue) for queue in table] == before


@pytest.mark.row("S-07")
def test_ten_thousand_queues_are_one_file_and_one_fsync_of_it() -> None:
    disk = MemoryDisk()
    table = table_of(disk.root(), 10_000)
    for number in range(10_000):
        add(table, number, number)
    before = disk.operation_count
    index(table, SEGMENT)
    kinds = [operation.kind for operation in disk.operations[before:]]
    assert disk.root().names() == [index_name(0, SEGMENT)]
    assert kinds.count("sync") == 1
    assert kinds.count("sync names") == 1


def test_a_sealed_index_replaces_the_tail_files_of_its_segment() -> None:
    disk = MemoryDisk()
    table = table_of(disk.root())
    for number in range(110):
        add(table, number % 4, number * 100)
        if number % 30 == 29:
            index(table, (number + 1) * 100)
    index(table, 11_000)
    assert disk.root().names() == [index_name(0, SEGMENT), index_name(SEGMENT, 11_000)]


def test_queues_go_over_to_a_sealed_file_some_at_a_time() -> None:
    """The store's thread has other work in between, and reads them in either state."""
    table = table_of(MemoryDisk().root(), 1_000)
    for number in range(1_000):
        add(table, number, number * 10)
    stretch = table.plan(SEGMENT)
    assert stretch is not None
    table.write(stretch)
    expected = [1] * 1_000
    turns = 0
    while table.adopt(stretch):
        assert table.sealed == 0
        for queue_id in (turns, 999 - turns):
            add(table, queue_id, SEGMENT + (turns + 1) * 100)
            expected[queue_id] += 1
        assert [len(units(queue)) for queue in table] == expected
        turns += 1
    assert turns == 3
    assert table.sealed == SEGMENT
    assert [queue.tail_count for queue in table] == [count - 1 for count in expected]


def test_a_file_that_cannot_be_written_is_written_later() -> None:
    def fail(operation: Operation) -> OSError | None:
        return OSError(errno.EIO, "injected") if operation.kind == "sync" else None

    disk = MemoryDisk()
    table = table_of(disk.root())
    add(table, 0, 0)
    stretch = table.plan(100)
    assert stretch is not None
    disk.plan = fail
    with pytest.raises(OSError, match="injected"):
        table.write(stretch)
    table.give_back(stretch)
    disk.plan = None
    assert table.indexed == 0
    index(table, 100)
    assert positions(reloaded(disk, 100)[0].of(ID)[0]) == [0]


def test_topics_come_and_go_while_a_file_is_written() -> None:
    disk = MemoryDisk()
    table = table_of(disk.root())
    add(table, 0, 0)
    stretch = table.plan(100)
    assert stretch is not None
    table.remove(ID)
    table.write(stretch)
    assert table.adopt(stretch) is False
    assert list(table) == []
    assert table.of(ID) == []


def test_more_queues_of_a_topic_leave_the_first_ones_as_they_are() -> None:
    table = table_of(MemoryDisk().root(), 2)
    first = list(table.of(ID))
    assert table.create(TOPIC, ID, 5)[:2] == first
    assert [queue.queue_id for queue in table.of(ID)] == [0, 1, 2, 3, 4]
    assert len(table.create(TOPIC, ID, 3)) == 5


# Feeding by dispatch


def entry(offset: int, position: int, *, count: int = 1) -> Entry:
    head = (100, MAGIC_V1, 0, 0, 0, offset, position, 0, 50, b"", 60, b"", 0, 0, 0)
    return Entry(*head, 0, 0, TOPIC, 0, 0, count)


@pytest.mark.row("I-05")
def test_an_entry_that_is_fed_again_changes_nothing() -> None:
    table = table_of(MemoryDisk().root())
    queue = table.of(ID)[0]
    for _ in range(2):
        table.dispatch(queue, entry(0, 0, count=3), 7)
        table.dispatch(queue, entry(3, 100), 0)
    assert units(queue) == [Unit(0, 0, 100, 3, 60, 50, 7), Unit(3, 100, 100, 1, 60, 50, 0)]


@pytest.mark.row("I-06")
def test_a_queue_whose_first_entry_left_is_not_zero_begins_there() -> None:
    table = table_of(MemoryDisk().root())
    queue = table.of(ID)[0]
    table.dispatch(queue, entry(1_000, 0), 0)
    assert [unit.base for unit in units(queue)] == [1_000]
    assert queue.next_offset == 1_001


def test_a_moved_entry_changes_the_position_of_its_offset() -> None:
    table = table_of(MemoryDisk().root())
    queue = table.of(ID)[0]
    table.dispatch(queue, entry(0, 0), 0)
    table.dispatch(queue, entry(1, 100), 0)
    table.dispatch_moved(queue, entry(0, 200), 50, 0)
    assert positions(queue) == [200, 100]
    assert queue.next_offset == 2


def test_a_queue_of_which_only_moved_entries_are_left_continues_behind_them() -> None:
    table = table_of(MemoryDisk().root())
    queue = table.of(ID)[0]
    table.dispatch_moved(queue, entry(41, 200), 50, 0)
    assert queue.next_offset == 42


def test_moved_units_of_a_tail_come_back_as_moved_whatever_their_order() -> None:
    """Sealing goes by position: a moved unit among the others would break their order."""
    disk = MemoryDisk()
    table = table_of(disk.root())
    queue = table.of(ID)[0]
    table.dispatch(queue, entry(100, 0), 0)
    table.dispatch(queue, entry(101, 100), 0)
    table.dispatch_moved(queue, entry(7, 200), 50, 0)
    table.dispatch(queue, entry(102, 300), 0)
    index(table, 400)
    table, scan_from = reloaded(disk, 400)
    assert scan_from == 400
    assert positions(table.of(ID)[0]) == [200, 0, 100, 300]
    index(table, SEGMENT)
    assert positions(table.of(ID)[0]) == [200, 0, 100, 300]
    assert table.of(ID)[0].next_offset == 103


# Starting


@pytest.mark.row("S-07")
def test_every_unit_is_there_after_a_load() -> None:
    disk = MemoryDisk()
    before = [units(queue) for queue in filled(disk, 350)]
    table, scan_from = reloaded(disk, 35_000)
    assert scan_from == 35_000
    assert [units(queue) for queue in table] == before
    assert [queue.next_offset for queue in table] == [88, 88, 87, 87]
    assert [queue.max_ms for queue in table] == [queue.max_ms for queue in filled(disk, 350)]


@pytest.mark.row("U-09", "I-02")
def test_an_index_that_passes_the_flushed_position_is_not_believed() -> None:
    disk = MemoryDisk()
    filled(disk, 150)
    table, scan_from = reloaded(disk, 14_999)
    assert scan_from == SEGMENT
    assert [len(units(queue)) for queue in table] == [25] * 4
    table, scan_from = reloaded(disk, SEGMENT - 1)
    assert scan_from == 0
    assert [len(units(queue)) for queue in table] == [0] * 4


def test_an_index_that_is_not_believed_is_removed_for_good() -> None:
    disk = MemoryDisk()
    filled(disk, 150)
    table = table_of(disk.root())
    table.load(0, SEGMENT)
    after = disk.power_cut(Random(1), keep="none")
    assert after.root().names() == [index_name(0, SEGMENT)]


def test_files_of_others_are_left_alone() -> None:
    disk = MemoryDisk()
    filled(disk, 150)
    disk.root().create("notes.txt").close()
    reloaded(disk, 0)
    table_of(disk.root()).load(0, 0)
    assert disk.root().names() == ["notes.txt"]


def test_indexes_of_segments_that_are_gone_are_removed() -> None:
    disk = MemoryDisk()
    filled(disk, 350)
    table, scan_from = reloaded(disk, 35_000, start=2 * SEGMENT)
    assert scan_from == 35_000
    assert [len(units(queue)) for queue in table] == [38, 38, 37, 37]


def test_a_queue_or_topic_that_is_gone_has_no_units() -> None:
    disk = MemoryDisk()
    filled(disk, 150)
    table = QueueTable(disk.root(), SEGMENT)
    table.create(TOPIC, ID, 2)
    table.create(b"other", bytes(16), 4)
    assert table.load(0, 15_000) == 15_000
    assert [len(units(queue)) for queue in table] == [38, 38, 0, 0, 0, 0]


def damage(disk: MemoryDisk, name: str, at: int) -> None:
    file = disk.root().open(name)
    file.write(at, bytes([file.read(at, 1)[0] ^ 0x10]))


def rescan_into(table: QueueTable, scanned: list[tuple[int, int]], start: int, end: int) -> None:
    """Feed what `filled` fed, as a scan of the log would."""
    scanned.append((start, end))
    for position in range(start, end, 100):
        queue_id, offset = position // 100 % 4, position // 400
        fed = entry(offset, position)._replace(born_ms=2_000 + position, store_ms=1_000 + position)
        table.dispatch(table.of(ID)[queue_id], fed, 0)


@pytest.mark.parametrize("name_at", [0, 1, 2])
def test_the_index_of_one_segment_is_built_again_without_scanning_the_others(name_at: int) -> None:
    disk = MemoryDisk()
    before = [units(queue) for queue in filled(disk, 350)]
    damage(disk, disk.root().names()[name_at], 60)
    for expected in ([(name_at * SEGMENT, (name_at + 1) * SEGMENT)], []):
        table = table_of(disk.root())
        scanned: list[tuple[int, int]] = []
        assert table.load(0, 35_000, partial(rescan_into, table, scanned)) == 35_000
        assert [units(queue) for queue in table] == before
        assert scanned == expected


def test_without_any_index_each_segment_is_scanned_and_sealed_in_turn() -> None:
    """Memory holds one segment's units at a time, however long the log."""
    disk = MemoryDisk()
    before = [units(queue) for queue in filled(disk, 350)]
    for name in disk.root().names():
        disk.root().remove(name)
    table = table_of(disk.root())
    scanned: list[tuple[int, int]] = []
    scan_from = table.load(0, 35_000, partial(rescan_into, table, scanned))
    assert scanned == [(0, SEGMENT), (SEGMENT, 2 * SEGMENT), (2 * SEGMENT, 3 * SEGMENT)]
    assert scan_from == 3 * SEGMENT
    assert all(queue.tail_count == 0 for queue in table)
    rescan_into(table, scanned, scan_from, 35_000)
    assert [units(queue) for queue in table] == before


def test_a_damaged_tail_index_is_scanned_again() -> None:
    disk = MemoryDisk()
    filled(disk, 150)
    damage(disk, index_name(SEGMENT, 15_000), 150)
    _, scan_from = reloaded(disk, 15_000)
    assert scan_from == SEGMENT


def test_a_damaged_sealed_index_goes_when_it_is_seen_and_is_back_after_a_start() -> None:
    disk = MemoryDisk()
    before = [units(queue) for queue in filled(disk, 150)]
    name = index_name(0, SEGMENT)
    damage(disk, name, 52 + 52 * 4 + 48 * 30)
    table = table_of(disk.root())
    assert table.load(0, 15_000) == 15_000
    with pytest.raises(StoreCorrupt, match="rebuilt by the next start"):
        units(table.of(ID)[1])
    table.clean()
    table.clean()
    assert name not in disk.root().names()
    table = table_of(disk.root())
    table.load(0, 15_000, partial(rescan_into, table, []))
    assert [units(queue) for queue in table] == before


# Dropping


def test_a_dropped_segment_takes_its_units_and_its_file_with_it() -> None:
    disk = MemoryDisk()
    table = filled(disk, 350)
    table.drop_segment(0)
    assert [len(units(queue)) for queue in table] == [63, 63, 62, 62]
    table.clean()
    assert index_name(0, SEGMENT) not in disk.root().names()
    table.drop_segment(SEGMENT)
    assert [len(units(queue)) for queue in table] == [38, 38, 37, 37]


def test_a_segment_is_not_dropped_before_it_is_sealed() -> None:
    table = filled(MemoryDisk(), 99)
    with pytest.raises(AssertionError, match="sealed before it goes"):
        table.drop_segment(0)


# Cuts of power


def test_after_a_power_cut_at_any_operation_every_unit_is_indexed_or_scanned() -> None:
    random = seeded()
    expected = [units(queue) for queue in filled(MemoryDisk(), 260)]
    crash_at = 1
    finished = False
    while not finished:
        disk = MemoryDisk(crash_at=crash_at)
        try:
            table = table_of(disk.root())
            for number in range(260):
                add(table, number % 4, number * 100)
                if number % 25 == 24:
                    index(table, (number + 1) * 100)
            finished = True
        except PowerCut:
            pass
        for _ in range(max(1, budget("power_cuts") // 20)):
            table = table_of(disk.power_cut(random).root())
            scan_from = table.load(0, 26_000, partial(rescan_into, table, []))
            rescan_into(table, [], scan_from, 26_000)
            assert [units(queue) for queue in table] == expected
        crash_at += 1
    assert crash_at > 40
