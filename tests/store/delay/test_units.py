from __future__ import annotations

import pytest

from rockgate.store.delay.units import NONE, Units
from rockgate.store.errors import StoreFull
from rockgate.store.testing.memory_files import MemoryDisk


def test_units_are_found_by_number_over_several_files() -> None:
    units = Units(MemoryDisk().root(), file_units=4)
    numbers = [units.add(n, n + 1, n + 2, 7) for n in range(10)]
    assert numbers == list(range(10))
    assert [units.read(n) for n in numbers] == [(n, n + 1, n + 2, 7, NONE) for n in numbers]
    assert [len(units.some(start, 100)) for start in (0, 3, 8)] == [4, 1, 2]


def test_a_row_is_read_from_one_unit_to_the_next() -> None:
    units = Units(MemoryDisk().root(), file_units=4)
    first, second = units.add(1, 1, 1, 0), units.add(2, 2, 2, 0)
    units.link(second, first)
    assert (units.read(second)[4], units.read(first)[4]) == (first, NONE)


def test_a_free_unit_is_used_again_and_says_that_it_is_free() -> None:
    units = Units(MemoryDisk().root(), file_units=4)
    for n in range(4):
        units.add(n, n, n, 0)
    for unit in (1, 3):
        units.free(unit)
    assert [units.read(n)[3] for n in range(4)] == [0, NONE, 0, NONE]
    assert {units.add(9, 9, 9, 5), units.add(9, 9, 9, 5)} == {1, 3}
    assert (units.used_count, len(units)) == (4, 4)
    assert units.add(9, 9, 9, 5) == 4


def test_many_are_filled_at_once_over_several_files() -> None:
    units = Units(MemoryDisk().root(), file_units=4)
    units.add(1, 1, 1, 1)
    count = range(10)
    units.fill(
        [-n for n in count], [n + 1 for n in count], [1 << 50] * 10, [n for n in count], [7] * 10
    )
    assert [units.read(n + 1) for n in count] == [(-n, n + 1, 1 << 50, n, 7) for n in count]
    assert (len(units), units.used_count) == (11, 11)
    assert units.add(3, 3, 3, 3) == 11


def test_room_is_refused_before_anything_is_done() -> None:
    disk = MemoryDisk(capacity=4096 * 3)
    units = Units(disk.root(), file_units=128)
    with pytest.raises(StoreFull):
        units.reserve(1 << 20)
    assert units.used_count == 0


def test_what_a_start_finds_is_removed() -> None:
    disk = MemoryDisk()
    Units(disk.root(), file_units=4).add(1, 1, 1, 1)
    again = Units(disk.root(), file_units=4)
    assert (disk.root().names(), len(again)) == ([], 0)
    again.add(1, 1, 1, 1)
    again.clear()
    assert (disk.root().names(), len(again), again.used_count) == ([], 0, 0)


def test_what_must_be_taken_without_room_is_kept_in_memory_and_nothing_is_left_of_it() -> None:
    disk = MemoryDisk()
    units = Units(disk.root(), file_units=4)
    units.add(1, 1, 1, 1)
    disk.capacity = disk.used
    for n in range(5):
        units.add(n, n, n, 2)
    units.fill([7] * 5, [8] * 5, [9] * 5, [3] * 5, [NONE] * 5)
    assert [units.read(n)[0] for n in range(11)] == [1, 0, 1, 2, 3, 4, 7, 7, 7, 7, 7]
    with pytest.raises(StoreFull):
        units.reserve(2)
    disk.capacity = 1 << 30
    units.reserve(2)
    assert disk.root().names() == ["00000000", "00000003"]
    units.clear()
    assert disk.root().names() == []
