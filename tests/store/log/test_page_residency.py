from __future__ import annotations

import pytest

from rockgate.store.clock import ManualClock
from rockgate.store.log.page_residency import (
    AHEAD_CHUNKS,
    CHUNK_BYTES,
    CHUNKS_MAX,
    RESIDENT_MS,
    PageResidency,
)
from rockgate.store.log.segments import Segment, Segments
from rockgate.store.testing.memory_files import MemoryDisk

MIB = CHUNK_BYTES
END = 100 * MIB


def residency_of(
    *, cold_bytes: int = 10 * MIB, run_start: int = 0
) -> tuple[PageResidency, ManualClock]:
    clock = ManualClock()
    segments = Segments(MemoryDisk().root(), MIB, MIB)
    return PageResidency(segments, clock, cold_bytes=cold_bytes, run_start=run_start), clock


@pytest.mark.parametrize(
    ("run_start", "resident_from"),
    [(0, END - 10 * MIB), (END - 5 * MIB, END - 5 * MIB), (END, END)],
)
@pytest.mark.row("R-06")
def test_cold_is_what_lies_far_behind_the_end_or_was_written_before_the_start(
    run_start: int, resident_from: int
) -> None:
    assert residency_of(run_start=run_start)[0].resident_from(END) == resident_from


def test_a_small_log_that_was_written_since_the_start_has_nothing_cold() -> None:
    assert residency_of()[0].resident_from(MIB) == 0


def test_an_entry_is_resident_for_some_seconds_after_all_its_chunks_were_loaded() -> None:
    residency, clock = residency_of()
    across = (3 * MIB - 10, 20)
    assert residency.is_cold(*across)
    residency.note([2])
    assert residency.is_cold(*across) and not residency.is_cold(3 * MIB - 10, 10)
    residency.note([3])
    assert not residency.is_cold(*across)
    clock.advance(RESIDENT_MS)
    assert residency.is_cold(*across)


def test_no_more_than_so_many_chunks_are_remembered_the_newest_ones() -> None:
    residency, _ = residency_of()
    residency.note(range(CHUNKS_MAX))
    residency.note([0, CHUNKS_MAX])
    assert not residency.is_cold(0, 1) and not residency.is_cold(CHUNKS_MAX * MIB, 1)
    assert residency.is_cold(MIB, 1)


def test_one_who_reads_on_gets_the_next_chunks_too() -> None:
    residency, _ = residency_of()
    places = [(at, 1000) for at in range(MIB - 2000, MIB + 2000, 1000)]
    assert residency.plan(places, END) == list(range(2 + AHEAD_CHUNKS))


def test_one_who_reads_here_and_there_gets_what_was_asked_for_and_no_more() -> None:
    residency, _ = residency_of()
    assert residency.plan([(0, 1000), (5 * MIB, 1000), (9 * MIB, 1000)], END) == [0, 5, 9]


def test_nothing_behind_the_end_of_the_log_is_asked_for() -> None:
    residency, _ = residency_of()
    assert residency.plan([(MIB, 1000)], 3 * MIB) == [1, 2]


class Recording:
    """A mapping that says what was asked of it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.asked: list[tuple[int, int]] = []

    def prefetch(self, at: int, size: int) -> None:
        self.asked.append((at, size))


class Row:
    def __init__(self, segments: list[Segment]) -> None:
        self.segments = segments

    def between(self, start: int, end: int) -> list[Segment]:
        return [s for s in self.segments if s.start < end and s.end > start]


def test_chunks_are_loaded_segment_by_segment_and_what_is_gone_is_left_out() -> None:
    mappings = [Recording(MIB // 2 + 4096) for _ in range(3)]
    starts = [MIB + index * mappings[0].size for index in range(3)]
    row = Row([Segment(start, mapping) for start, mapping in zip(starts, mappings, strict=True)])  # type: ignore[arg-type]  # only prefetch is asked for
    residency = PageResidency(row, ManualClock(), cold_bytes=0, run_start=0)
    residency.fault_in([0, 1])
    size = mappings[0].size
    assert [mapping.asked for mapping in mappings] == [[(0, size)], [(0, MIB - size)], []]
