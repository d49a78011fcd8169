"""Page residency: which parts of the log are loaded from disk before they are read.

Touching a page that is not in memory stalls the interpreter until the disk responds. What was
written since the start, and recently, is in memory. The rest is cold: a reader first has a thread
`fault_in` its chunks, and the following ones if it reads sequentially, so that a consumer that
catches up finds most chunks in memory.

A chunk is only assumed to be resident for some seconds; the kernel may evict it earlier. A wrong
guess costs a stall and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from rockgate.store.clock import Clock
from rockgate.store.log.segments import Segment

CHUNK_BYTES = 1 << 20
AHEAD_CHUNKS = 8
"""Chunks to read ahead for a reader that skips little."""
CHUNKS_MAX = 256
RESIDENT_MS = 10_000
_DENSE = 4
"""A reader that uses a quarter of the bytes it passes is considered sequential."""

Place = tuple[int, int]
"""Position and size of an entry."""


class Rows(Protocol):
    """The segments, as far as needed here; callable from any thread."""

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments that hold any byte of a range."""


class PageResidency:
    """Tracks the chunks that were loaded recently."""

    def __init__(self, segments: Rows, clock: Clock, *, cold_bytes: int, run_start: int) -> None:
        self._segments = segments
        self._clock = clock
        self._cold_bytes = cold_bytes
        self._run_start = run_start
        self._resident: dict[int, int] = {}

    # The store's thread

    def resident_from(self, log_end: int) -> int:
        """Return the position from which on everything is resident."""
        return max(self._run_start, log_end - self._cold_bytes)

    def is_cold(self, position: int, size: int) -> bool:
        """Whether an entry before `resident_from` must be loaded first."""
        resident = self._resident
        oldest_ms = self._clock.monotonic_ms() - RESIDENT_MS
        return any(
            resident.get(chunk, -RESIDENT_MS) <= oldest_ms for chunk in _chunks(position, size)
        )

    def plan(self, places: Sequence[Place], log_end: int) -> list[int]:
        """Return the chunks to load for these entries, with read-ahead if they are dense."""
        chunks = {chunk: None for place in places for chunk in _chunks(*place)}
        start = min(position for position, _ in places)
        end = max(position + size for position, size in places)
        if sum(size for _, size in places) * _DENSE >= end - start:
            behind = (end - 1) // CHUNK_BYTES + 1
            last = (log_end - 1) // CHUNK_BYTES
            chunks.update(dict.fromkeys(range(behind, min(behind + AHEAD_CHUNKS, last + 1))))
        return list(chunks)

    def note(self, chunks: Iterable[int]) -> None:
        """Record that chunks were loaded just now."""
        now_ms = self._clock.monotonic_ms()
        for chunk in chunks:
            self._resident.pop(chunk, None)
            self._resident[chunk] = now_ms
        while len(self._resident) > CHUNKS_MAX:
            del self._resident[next(iter(self._resident))]

    # Any thread

    def fault_in(self, chunks: Iterable[int]) -> None:
        """Load chunks from disk without the interpreter lock; deleted ones are skipped."""
        for chunk in chunks:
            start = chunk * CHUNK_BYTES
            end = start + CHUNK_BYTES
            for segment in self._segments.between(start, end):
                first = max(start, segment.start)
                segment.mapping.prefetch(first - segment.start, min(end, segment.end) - first)


def _chunks(position: int, size: int) -> range:
    return range(position // CHUNK_BYTES, (position + size - 1) // CHUNK_BYTES + 1)
