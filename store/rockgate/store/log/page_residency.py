"""Page residency: which parts of the log are loaded from disk before they are read.

Touching a page that is not in memory stops the interpreter until the disk has answered. What was
written since the start and not long ago is in memory. The rest is cold: who wants to read it lets a
thread `fault_in` its chunks first, and those that follow if it reads one after the other, so that
most reads of a consumer that catches up find their chunks in memory.

That a chunk is resident is a guess which holds for some seconds; the kernel may know better. A
wrong guess costs a stall and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from rockgate.store.clock import Clock
from rockgate.store.log.segments import Segment

CHUNK_BYTES = 1 << 20
AHEAD_CHUNKS = 8
"""Chunks brought in behind those that were asked for, for a reader that leaves little out."""
CHUNKS_MAX = 256
RESIDENT_MS = 10_000
_DENSE = 4
"""A reader that takes a quarter of the bytes it passes is one that reads on."""

Place = tuple[int, int]
"""Position and size of an entry."""


class Rows(Protocol):
    """The segments, as far as they are needed here; any thread may ask."""

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments that hold any byte of a range."""


class PageResidency:
    """Remembers what was brought in lately."""

    def __init__(self, segments: Rows, clock: Clock, *, cold_bytes: int, run_start: int) -> None:
        self._segments = segments
        self._clock = clock
        self._cold_bytes = cold_bytes
        self._run_start = run_start
        self._resident: dict[int, int] = {}

    # The store's thread

    def resident_from(self, log_end: int) -> int:
        """Return the position from which on nothing is cold."""
        return max(self._run_start, log_end - self._cold_bytes)

    def is_cold(self, position: int, size: int) -> bool:
        """Whether an entry before `resident_from` must be brought in first."""
        resident = self._resident
        oldest_ms = self._clock.monotonic_ms() - RESIDENT_MS
        return any(
            resident.get(chunk, -RESIDENT_MS) <= oldest_ms for chunk in _chunks(position, size)
        )

    def plan(self, places: Sequence[Place], log_end: int) -> list[int]:
        """Return the chunks to bring in for these entries, and perhaps for the next."""
        chunks = {chunk: None for place in places for chunk in _chunks(*place)}
        start = min(position for position, _ in places)
        end = max(position + size for position, size in places)
        if sum(size for _, size in places) * _DENSE >= end - start:
            behind = (end - 1) // CHUNK_BYTES + 1
            last = (log_end - 1) // CHUNK_BYTES
            chunks.update(dict.fromkeys(range(behind, min(behind + AHEAD_CHUNKS, last + 1))))
        return list(chunks)

    def note(self, chunks: Iterable[int]) -> None:
        """Remember that chunks were brought in just now."""
        now_ms = self._clock.monotonic_ms()
        for chunk in chunks:
            self._resident.pop(chunk, None)
            self._resident[chunk] = now_ms
        while len(self._resident) > CHUNKS_MAX:
            del self._resident[next(iter(self._resident))]

    # Any thread

    def fault_in(self, chunks: Iterable[int]) -> None:
        """Bring chunks in from disk, without the interpreter lock; what is gone is left out."""
        for chunk in chunks:
            start = chunk * CHUNK_BYTES
            end = start + CHUNK_BYTES
            for segment in self._segments.between(start, end):
                first = max(start, segment.start)
                segment.mapping.prefetch(first - segment.start, min(end, segment.end) - first)


def _chunks(position: int, size: int) -> range:
    return range(position // CHUNK_BYTES, (position + size - 1) // CHUNK_BYTES + 1)
