from __future__ import annotations

import pytest

from rockgate.store.clock import ManualClock
from rockgate.store.log.page_residency import AHEAD_CHUNKS, CHUNK_BYTES, CHUNKS_MAX, WARM_MS, Warmth
from rockgate.store.log.segments import Segment, Segments
from rockgate.store.testing.memory_files import MemoryDisk

MIB = CHUNK_BYTES
END = 100 * MIB


def warmth_of(*, cold_bytes: int = 10 * MIB, run_start: int = 0) -> tuple[Warmth, ManualClock]:
    clock = ManualClock()
    segments = Segments(MemoryDisk().root(), MIB, MIB)
    return Warmth(segments, clock, cold_bytes=cold_bytes, run_start=run_start), clock


@pytest.mark.parametrize(
    ("run_start", "warm_from"),
    [(0, END - 10 * MIB), (END - 5 * MIB, END - 5 * MIB), (END, END)],
)
@pytest.mark.row("R-06")
def test_cold_is_what_lies_far_behind_the_end_or_was_written_before_the_start(
    run_start: int, warm_from: int
) -> None:
    assert warmth_of(run_start=run_start)[0].warm_from(END) == warm_from


def test_a_small_log_that_was_written_since_the_start_has_nothing_cold() -> None:
    assert warmth_of()[0].warm_from(MIB) == 0


def test_an_entry_is_warm_for_some_seconds_after_all_its_chunks_were_brought_in() -> None:
    warmth, clock = warmth_of()
    across = (3 * MIB - 10, 20)
    assert warmth.is_cold(*across)
    warmth.note([2])
    assert warmth.is_cold(*across) and not warmth.is_cold(3 * MIB - 10, 10)
    warmth.note([3])
    assert not warmth.is_cold(*across)
    clock.advance(WARM_MS)
    assert warmth.is_cold(*across)


def test_no_more_than_so_many_chunks_are_remembered_the_newest_ones() -> None:
    warmth, _ = warmth_of()
    warmth.note(range(CHUNKS_MAX))
    warmth.note([0, CHUNKS_MAX])
    assert not warmth.is_cold(0, 1) and not warmth.is_cold(CHUNKS_MAX * MIB, 1)
    assert warmth.is_cold(MIB, 1)


def test_one_who_reads_on_gets_the_next_chunks_too() -> None:
    warmth, _ = warmth_of()
    places = [(at, 1000) for at in range(MIB - 2000, MIB + 2000, 1000)]
    assert warmth.plan(places, END) == list(range(2 + AHEAD_CHUNKS))


def test_one_who_reads_here_and_there_gets_what_was_asked_for_and_no_more() -> None:
    warmth, _ = warmth_of()
    assert warmth.plan([(0, 1000), (5 * MIB, 1000), (9 * MIB, 1000)], END) == [0, 5, 9]


def test_nothing_behind_the_end_of_the_log_is_asked_for() -> None:
    warmth, _ = warmth_of()
    assert warmth.plan([(MIB, 1000)], 3 * MIB) == [1, 2]


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


def test_chunks_are_brought_in_segment_by_segment_and_what_is_gone_is_left_out() -> None:
    mappings = [Recording(MIB // 2 + 4096) for _ in range(3)]
    starts = [MIB + index * mappings[0].size for index in range(3)]
    row = Row([Segment(start, mapping) for start, mapping in zip(starts, mappings, strict=True)])  # type: ignore[arg-type]  # only prefetch is asked for
    warmth = Warmth(row, ManualClock(), cold_bytes=0, run_start=0)
    warmth.fault_in([0, 1])
    size = mappings[0].size
    assert [mapping.asked for mapping in mappings] == [[(0, size)], [(0, MIB - size)], []]
