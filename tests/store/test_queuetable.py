"""The table of queues: which units get into which index file, and what a start finds."""

from __future__ import annotations

import pytest

from rockgate.store.consumequeue import Queue
from rockgate.store.files import Directory
from rockgate.store.memoryfiles import MemoryDisk
from rockgate.store.queueindex import Unit
from rockgate.store.queuetable import QueueTable

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
        table.adopt(stretch)


def positions(queue: Queue) -> list[int]:
    return [unit.position for unit in queue.units(0, EVERYTHING, EVERYTHING)]


def units(queue: Queue) -> list[Unit]:
    return queue.units(0, EVERYTHING, EVERYTHING)


def reloaded(disk: MemoryDisk, flushed: int, *, start: int = 0) -> tuple[QueueTable, int]:
    table = table_of(disk.killed().root())
    return table, table.load(start, flushed)


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
