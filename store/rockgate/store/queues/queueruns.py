"""The units of a queue: sealed runs in index files, combined into one sequence.

A *source* is a sequence of units sorted by base offset: a run in an index file, the tail in memory,
or the units of relocated entries. Most queues read one source after the other. While an entry and
its relocated copy both exist, their sources overlap and are merged: of two units with the same
offset, the one with the higher position is newer.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol

from rockgate.store.queues.queueindex import BLOCK_UNITS, IndexFile, Run, UnitFields

STORE_MS = 4
MAX_MS = 5
"""Fields of a unit that can be searched: their values never decrease."""

_ROW = struct.Struct("=6q")
_FIELDS = 6  # segment start, first, end, unit index in the file, unit count, max ms


class Indexes(dict[int, IndexFile]):
    """The sealed index files by segment start, shared by all queues."""

    def __init__(self) -> None:
        super().__init__()
        self.gone_before = 0
        """Segments that start before this position are deleted; queues drop their runs when read.
        """


class Source(Protocol):
    """A sequence of units, sorted by base offset."""

    @property
    def first(self) -> int:
        """The base of its first unit."""

    @property
    def unit_count(self) -> int:
        """How many units it has."""

    def unit(self, index: int) -> UnitFields:
        """Return one of its units."""


class SealedRun:
    """A queue's run in one index file."""

    __slots__ = ("_at", "_file", "end", "first", "max_ms", "unit_count")

    def __init__(
        self, file: IndexFile, first: int, end: int, at: int, unit_count: int, max_ms: int
    ) -> None:
        self._file = file
        self._at = at
        self.first = first
        self.end = end
        self.unit_count = unit_count
        self.max_ms = max_ms

    def unit(self, index: int) -> UnitFields:
        """Return one of its units."""
        return self._file.unit(self._at + index)

    def pieces(self, index: int) -> Iterator[memoryview]:
        """Yield packed units from an index on, a block at a time."""
        while index < self.unit_count:
            count = min(BLOCK_UNITS, self.unit_count - index)
            yield self._file.units(self._at + index, count)
            index += count

    def find(self, offset: int) -> int:
        """Return the index of the first unit that ends after an offset, like `first_behind`."""
        if offset <= self.first:
            return 0
        if self.end - self.first == self.unit_count:
            # Every count is 1 and there are no gaps: the index is computed, not searched.
            return min(offset - self.first, self.unit_count)
        return first_behind(self, offset)


def first_behind(source: Source, offset: int) -> int:
    """Return the index of the first unit that ends after an offset; the count if none does."""
    low, high = 0, source.unit_count
    while low < high:
        middle = (low + high) >> 1
        fields = source.unit(middle)
        if fields[0] + fields[3] > offset:
            high = middle
        else:
            low = middle + 1
    return low


def first_reaching(source: Source, field: int, wanted: int) -> int:
    """Return the index of the first unit whose field, which never decreases, reaches a value."""
    low, high = 0, source.unit_count
    while low < high:
        middle = (low + high) >> 1
        if source.unit(middle)[field] >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def merge(sources: Sequence[Source], offset: int) -> Iterator[UnitFields]:
    """Yield the units of all sources from an offset on; of units with equal bases, the newest."""
    waiting = sorted(sources, key=lambda source: source.first, reverse=True)
    heap: list[tuple[int, int, int, int]] = []
    active: list[Source] = []

    def push(number: int, index: int) -> None:
        if index < active[number].unit_count:
            fields = active[number].unit(index)
            heappush(heap, (fields[0], -fields[1], number, index))

    while heap or waiting:
        # A source is opened only when its first unit may be next.
        while waiting and (not heap or waiting[-1].first <= heap[0][0]):
            active.append(waiting.pop())
            push(len(active) - 1, first_behind(active[-1], offset))
        if not heap:
            continue
        _, _, number, index = heappop(heap)
        source = active[number]
        fields = source.unit(index)
        end = fields[0] + fields[3]
        if end > offset:
            push(number, index + 1)
            yield fields
            offset = end
        else:
            # A newer unit may cover many: all that it replaces are skipped at once.
            push(number, first_behind(source, offset))


class Runs:
    """A queue's sealed runs, ordered by their first offset."""

    __slots__ = ("_indexes", "_rows", "_seen", "is_overlapping")

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes
        self._rows = array("q")
        self._seen = indexes.gone_before
        self.is_overlapping = False
        """Whether two runs share offsets, so that reads must merge them."""

    def add(self, segment_start: int, run: Run) -> None:
        """Add a run; its index file must be among the shared ones."""
        _, _, _, unit_count, first, end, max_ms, at = run
        rows = self._live()
        # A start adds a run for each queue of each segment, hence the packed rows.
        row = _ROW.pack(segment_start, first, end, at, unit_count, max_ms)
        if not rows or first >= rows[1 - _FIELDS]:
            if rows and first < rows[2 - _FIELDS]:
                self.is_overlapping = True
            rows.frombytes(row)
            return
        place = bisect_right(
            range(len(rows) // _FIELDS), first, key=lambda i: rows[i * _FIELDS + 1]
        )
        rows[place * _FIELDS : place * _FIELDS] = array("q", row)
        self._note_overlap()

    def _live(self) -> array[int]:
        """Return the rows without those of deleted segments."""
        gone_before = self._indexes.gone_before
        if self._seen != gone_before:
            self._seen = gone_before
            rows = self._rows
            remaining = array("q")
            for at in range(0, len(rows), _FIELDS):
                if rows[at] >= gone_before:
                    remaining += rows[at : at + _FIELDS]
            self._rows = remaining
            self._note_overlap()
        return self._rows

    def _note_overlap(self) -> None:
        # Sorted by first offset: if any two runs overlap, then two neighbours do.
        firsts, ends = self._rows[1::_FIELDS], self._rows[2::_FIELDS]
        self.is_overlapping = any(first < end for first, end in zip(firsts[1:], ends, strict=False))

    def __len__(self) -> int:
        return len(self._live()) // _FIELDS

    def _run(self, rows: array[int], number: int) -> SealedRun:
        segment_start, *fields = rows[number * _FIELDS : (number + 1) * _FIELDS]
        return SealedRun(self._indexes[segment_start], *fields)

    def overlapping(self, first: int, end: int) -> Iterator[tuple[int, SealedRun]]:
        """Yield the runs that may hold any of these offsets, each with its segment's start."""
        rows = self._live()
        for number in range(len(rows) // _FIELDS):
            at = number * _FIELDS
            if rows[at + 1] < end and rows[at + 2] > first:
                yield rows[at], self._run(rows, number)

    def behind(self, offset: int) -> Iterator[SealedRun]:
        """Yield the runs that end after an offset, in order."""
        rows = self._live()
        count = len(rows) // _FIELDS
        number = 0
        if not self.is_overlapping:
            number = bisect_right(range(count), offset, key=lambda i: rows[i * _FIELDS + 2])
        for each in range(number, count):
            if rows[each * _FIELDS + 2] > offset:
                yield self._run(rows, each)

    def reaching(self, field: int, wanted: int) -> SealedRun | None:
        """Return the first run with a unit whose field reaches a value; runs must not overlap."""
        rows = self._live()
        count = len(rows) // _FIELDS

        def falls_short(number: int) -> bool:
            if field == MAX_MS:
                return rows[number * _FIELDS + 5] < wanted
            run = self._run(rows, number)
            return run.unit(run.unit_count - 1)[field] < wanted

        number = bisect_right(range(count), 0, key=lambda i: 0 if falls_short(i) else 1)
        return self._run(rows, number) if number < count else None

    def __iter__(self) -> Iterator[SealedRun]:
        rows = self._live()
        for number in range(len(rows) // _FIELDS):
            yield self._run(rows, number)
