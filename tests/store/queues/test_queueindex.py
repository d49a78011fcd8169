"""Index files: what is written is read back, and no damaged byte is ever taken for a unit."""

from __future__ import annotations

import struct
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.seeds import seeded
from tests.store.pages import fields, table

from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import Directory
from rockgate.store.queues import queueindex
from rockgate.store.queues.queueindex import (
    BLOCK_UNITS,
    UNIT,
    UNIT_SIZE,
    IndexDamaged,
    IndexFile,
    PackedRun,
    Unit,
    index_name,
    parse_name,
    write_index,
)
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


def unit(base: int, count: int = 1) -> Unit:
    return Unit(base, 1_000 + 100 * base, 100, count, 5_000 + base, 6_000 + base, -base)


def packed(units: list[Unit]) -> bytes:
    return b"".join(UNIT.pack(*each) for each in units)


def contents(file: IndexFile) -> list[tuple[bytes, int, bool, list[Unit]]]:
    return [
        (
            run.topic_id,
            run.queue_id,
            run.is_moved,
            [Unit._make(fields) for fields in UNIT.iter_unpack(file.units(run.at, run.unit_count))],
        )
        for run in file.runs()
    ]


def content(directory: Directory, name: str) -> bytes:
    file = directory.open(name)
    return file.read(0, file.size())


def test_a_unit_takes_forty_eight_bytes() -> None:
    assert UNIT_SIZE == 48


@pytest.mark.row("MODEL-4")
def test_the_tables_on_the_page_are_the_layouts() -> None:
    assert table("consume-queue.md", "A unit") == fields(UNIT)
    assert table("consume-queue.md", "Header") == fields(queueindex.HEADER)
    assert table("consume-queue.md", "Directory") == fields(queueindex.ENTRY)


def test_names_say_which_stretch_is_covered() -> None:
    name = index_name(0, 268_435_456)
    assert name == "00000000000000000000-00000000000268435456"
    assert parse_name(name) == (0, 268_435_456)
    for other in ("", "checkpoint", "0-1", name + ".new", name[1:], name.replace("0", "x", 1)):
        assert parse_name(other) is None


def test_runs_come_back_sorted_by_topic_queue_and_kind() -> None:
    root = MemoryDisk().root()
    first, second, third = [unit(0), unit(1)], [unit(7, 3)], [unit(2), unit(5)]
    write_index(
        root,
        0,
        10_000,
        [
            PackedRun(OTHER_ID, 0, False, packed(third)),
            PackedRun(ID, 3, False, packed(second)),
            PackedRun(ID, 3, True, packed(first)),
            PackedRun(ID, 1, False, b""),
        ],
    )
    file = IndexFile(root, index_name(0, 10_000), whole=True)
    assert contents(file) == [
        (ID, 3, False, second),
        (ID, 3, True, first),
        (OTHER_ID, 0, False, third),
    ]
    run = next(file.runs())
    assert (run.first, run.end, run.max_ms, run.at) == (7, 10, 6_007, 0)
    assert Unit._make(file.unit(2)) == unit(1)


def test_a_stretch_without_units_has_an_index_anyway() -> None:
    root = MemoryDisk().root()
    write_index(root, 0, 10_000, [])
    assert contents(IndexFile(root, index_name(0, 10_000), whole=True)) == []


@pytest.mark.parametrize("count", [1, BLOCK_UNITS - 1, BLOCK_UNITS, BLOCK_UNITS + 1, 30_000])
def test_any_number_of_units_is_read_back(count: int) -> None:
    """30,000 are more than one write takes."""
    root = MemoryDisk().root()
    units = [unit(base) for base in range(count)]
    runs = [PackedRun(ID, 0, False, packed(units)), PackedRun(ID, 1, False, packed(units[:3]))]
    write_index(root, 0, 10_000, runs)
    for whole in (True, False):
        file = IndexFile(root, index_name(0, 10_000), whole=whole)
        assert contents(file) == [(ID, 0, False, units), (ID, 1, False, units[:3])]
        assert Unit._make(file.unit(count - 1)) == units[-1]


@settings(deadline=None, max_examples=budget("property_examples"))
@given(st.dictionaries(st.tuples(st.integers(0, 2), st.booleans()), st.lists(st.integers(1, 9))))
def test_whatever_runs_are_written_are_read(shape: dict[tuple[int, bool], list[int]]) -> None:
    root = MemoryDisk().root()
    expected = []
    for (queue_id, is_moved), counts in sorted(shape.items()):
        units, base = [], 0
        for count in counts:
            units.append(unit(base, count))
            base += count
        expected.append((ID, queue_id, is_moved, units))
    write_index(root, 7, 11, [PackedRun(*run[:3], packed(run[3])) for run in reversed(expected)])
    found = contents(IndexFile(root, index_name(7, 11), whole=True))
    assert found == [run for run in expected if run[3]]


# Damage


def damaged(data: bytes, name: str) -> Directory:
    root = MemoryDisk().root()
    file = root.create(name)
    file.write(0, data)
    return root


def small_index() -> tuple[str, bytes, list[tuple[bytes, int, bool, list[Unit]]]]:
    root = MemoryDisk().root()
    runs = [
        PackedRun(ID, 0, False, packed([unit(0, 3), unit(3, 2)])),
        PackedRun(ID, 2, False, packed([unit(9)])),
    ]
    write_index(root, 0, 10_000, runs)
    name = index_name(0, 10_000)
    return name, content(root, name), contents(IndexFile(root, name, whole=True))


def test_a_flipped_bit_anywhere_is_found_when_the_whole_file_is_checked() -> None:
    name, data, _ = small_index()
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        with pytest.raises(IndexDamaged):
            IndexFile(damaged(flipped, name), name, whole=True)


def test_a_flipped_bit_anywhere_is_found_before_a_unit_is_used() -> None:
    name, data, expected = small_index()
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        try:
            file = IndexFile(damaged(flipped, name), name, whole=False)
        except IndexDamaged:
            continue
        with pytest.raises(StoreCorrupt) as refused:
            assert contents(file) == expected
        assert refused.value.file.endswith(name)
        assert file.is_damaged


def test_only_the_damaged_block_is_refused() -> None:
    root = MemoryDisk().root()
    units = [unit(base) for base in range(3 * BLOCK_UNITS)]
    name = index_name(0, 10_000)
    write_index(root, 0, 10_000, [PackedRun(ID, 0, False, packed(units))])
    data = bytearray(content(root, name))
    at = data.index(UNIT.pack(*units[BLOCK_UNITS]))
    data[at] ^= 1
    file = IndexFile(damaged(bytes(data), name), name, whole=False)
    assert Unit._make(file.unit(BLOCK_UNITS - 1)) == units[BLOCK_UNITS - 1]
    assert Unit._make(file.unit(2 * BLOCK_UNITS)) == units[2 * BLOCK_UNITS]
    for index in (BLOCK_UNITS, 2 * BLOCK_UNITS - 1):
        with pytest.raises(StoreCorrupt, match="units 256 to 512 are damaged"):
            file.unit(index)
    with pytest.raises(StoreCorrupt):
        file.units(0, BLOCK_UNITS + 1)


def test_a_file_cut_short_or_grown_anywhere_is_damaged() -> None:
    name, data, _ = small_index()
    for size in range(len(data)):
        with pytest.raises(IndexDamaged):
            IndexFile(damaged(data[:size], name), name, whole=False)
    with pytest.raises(IndexDamaged):
        IndexFile(damaged(data + b"\0", name), name, whole=False)


def test_an_index_of_another_stretch_under_this_name_is_damaged() -> None:
    _, data, _ = small_index()
    name = index_name(10_000, 20_000)
    with pytest.raises(IndexDamaged, match="covers 0 to 10000"):
        IndexFile(damaged(data, name), name, whole=False)


def test_a_later_version_is_not_guessed_at() -> None:
    name, data, _ = small_index()
    from zlib import crc32

    header = bytearray(data[:48])
    struct.pack_into(">I", header, 8, 2)
    changed = bytes(header) + struct.pack(">I", crc32(header)) + data[52:]
    with pytest.raises(IndexDamaged, match="version 2; the supported version is 1"):
        IndexFile(damaged(changed, name), name, whole=False)


def test_a_name_that_is_no_stretch_is_no_index() -> None:
    _, data, _ = small_index()
    with pytest.raises(IndexDamaged):
        IndexFile(damaged(data, "notes"), "notes", whole=False)


# Cuts of power


def test_a_power_cut_while_writing_leaves_the_whole_file_or_none() -> None:
    random = seeded()
    name = index_name(0, 10_000)
    runs = [PackedRun(ID, 0, False, packed([unit(base) for base in range(500)]))]
    finished = False
    crash_at = 1
    while not finished:
        for _ in range(budget("power_cuts") // 4):
            disk = MemoryDisk(crash_at=crash_at)
            try:
                write_index(disk.root(), 0, 10_000, runs)
                finished = True
            except PowerCut:
                pass
            after = disk.power_cut(Random(random.random())).root()
            if name in after.names():
                assert len(contents(IndexFile(after, name, whole=True))[0][3]) == 500
            else:
                assert not finished
        crash_at += 1
    assert crash_at > 5
