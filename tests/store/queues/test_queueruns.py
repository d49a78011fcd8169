"""Sealed runs and the merging of rows of units."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.store.queues.queueindex import (
    UNIT,
    IndexFile,
    PackedRun,
    Unit,
    index_name,
    write_index,
)
from rockgate.store.queues.queueruns import (
    MAX_MS,
    STORE_MS,
    Indexes,
    Runs,
    first_behind,
    first_reaching,
    merge,
)
from rockgate.store.testing.memory_files import MemoryDisk

ID = b"a topic's own id"
SEGMENT = 1_000


class Row:
    """A row of units in a list."""

    def __init__(self, units: list[Unit]) -> None:
        self.units = sorted(units)
        self.looked: list[int] = []

    @property
    def first(self) -> int:
        return self.units[0].base

    @property
    def unit_count(self) -> int:
        return len(self.units)

    def unit(self, index: int) -> Unit:
        self.looked.append(index)
        return self.units[index]


def unit(base: int, position: int, count: int = 1) -> Unit:
    return Unit(base, position, 100, count, 10 * base, 20 * base, 0)


def runs_of(*runs: list[Unit]) -> tuple[Runs, Indexes]:
    """Runs of one segment each."""
    root = MemoryDisk().root()
    indexes = Indexes()
    made = Runs(indexes)
    for number, units in enumerate(runs):
        start = number * SEGMENT
        packed = b"".join(UNIT.pack(*each) for each in units)
        write_index(root, start, start + SEGMENT, [PackedRun(ID, 0, False, packed)])
        indexes[start] = IndexFile(root, index_name(start, start + SEGMENT), whole=False)
        for run in indexes[start].runs():
            made.add(start, run)
    return made, indexes


def firsts(runs: Runs, offset: int) -> list[int]:
    return [run.first for run in runs.behind(offset)]


# Runs


def test_runs_that_follow_each_other_do_not_overlap() -> None:
    runs, _ = runs_of([unit(0, 0), unit(1, 100)], [unit(2, 1_000, 5)], [unit(7, 2_000)])
    assert not runs.is_overlapping
    assert firsts(runs, 0) == [0, 2, 7]
    assert firsts(runs, 1) == [0, 2, 7]
    assert firsts(runs, 2) == firsts(runs, 6) == [2, 7]
    assert firsts(runs, 7) == [7]
    assert firsts(runs, 8) == []


def test_a_run_of_moved_units_is_read_in_its_place() -> None:
    runs, indexes = runs_of([unit(0, 0), unit(1, 100)], [unit(2, 1_000)], [unit(0, 2_000)])
    assert runs.is_overlapping
    indexes.pop(0)
    indexes.gone_before = SEGMENT
    assert firsts(runs, 0) == [0, 2]
    assert not runs.is_overlapping


def test_a_run_inside_another_overlaps_it() -> None:
    runs, _ = runs_of([unit(0, 0, 100)], [unit(100, 1_000)], [unit(5, 2_000)])
    assert runs.is_overlapping
    assert firsts(runs, 50) == [0, 100]


def test_runs_of_segments_that_are_gone_are_forgotten_at_the_next_look() -> None:
    runs, indexes = runs_of([unit(0, 0)], [unit(1, 1_000)], [unit(2, 2_000)])
    assert len(runs) == 3
    del indexes[0], indexes[SEGMENT]
    indexes.gone_before = 2 * SEGMENT
    assert firsts(runs, 0) == [2]
    assert len(runs) == 1


def test_the_first_run_that_reaches_a_time_is_found() -> None:
    runs, _ = runs_of([unit(0, 0), unit(1, 100)], [unit(2, 1_000)], [unit(7, 2_000)])
    for field, factor in ((STORE_MS, 10), (MAX_MS, 20)):
        for wanted, first in {0: 0, 1: 0, 2: 2, 3: 7, 7: 7}.items():
            found = runs.reaching(field, wanted * factor)
            assert found is not None
            assert found.first == first
        assert runs.reaching(field, 7 * factor + 1) is None


# Searching a row


def test_the_first_unit_that_ends_behind_an_offset_is_found() -> None:
    row = Row([unit(0, 0, 3), unit(3, 1), unit(10, 2, 5)])
    found = [first_behind(row, offset) for offset in range(16)]
    assert found == [0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3]


def test_the_first_unit_that_reaches_a_value_is_found() -> None:
    row = Row([unit(0, 0), unit(1, 1), unit(5, 2)])
    assert [first_reaching(row, STORE_MS, wanted) for wanted in (0, 1, 10, 11, 50, 51)] == [
        *(0, 1, 1, 2, 2, 3)
    ]


# Merging


def test_of_two_units_with_one_offset_the_one_further_back_in_the_log_counts() -> None:
    old = Row([unit(0, 0), unit(1, 100), unit(2, 200)])
    new = Row([unit(1, 900)])
    assert list(merge([old, new], 0)) == [unit(0, 0), unit(1, 900), unit(2, 200)]
    assert list(merge([new, old], 1)) == [unit(1, 900), unit(2, 200)]


def test_a_row_is_not_opened_before_it_is_needed() -> None:
    near, far = Row([unit(base, base) for base in range(10)]), Row([unit(50, 50)])
    units = merge([near, far], 0)
    assert [next(units)[0] for _ in range(9)] == list(range(9))
    assert far.looked == []


def test_merging_starts_by_searching_not_by_walking() -> None:
    row = Row([unit(base, base) for base in range(100_000)])
    assert next(merge([row], 99_990))[0] == 99_990
    assert len(row.looked) < 40


@settings(deadline=None, max_examples=budget("property_examples"))
@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=30),
    copies=st.lists(st.tuples(st.integers(0, 29), st.integers(0, 4)), max_size=40),
    gone=st.sets(st.integers(0, 29)),
    offset=st.integers(0, 100),
)
def test_merged_rows_are_the_newest_unit_of_every_offset(
    counts: list[int], copies: list[tuple[int, int]], gone: set[int], offset: int
) -> None:
    rows: list[dict[int, Unit]] = [{} for _ in range(5)]
    newest: dict[int, Unit] = {}
    base = 0
    originals = []
    for index, count in enumerate(counts):
        originals.append(unit(base, index, count))
        base += count
    for original in originals:
        if original.position not in gone:
            rows[0][original.base] = newest[original.base] = original
    for position, (index, number) in enumerate(copies, start=100):
        if index < len(originals):
            copy = originals[index]._replace(position=position)
            rows[number][copy.base] = newest[copy.base] = copy
    sources = [Row(list(row.values())) for row in rows if row]
    expected = [u for u in sorted(newest.values()) if u.base + u.offset_count > offset]
    assert list(merge(sources, offset)) == expected
