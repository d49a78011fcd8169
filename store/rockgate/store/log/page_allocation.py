"""Prefaults the pages of the log ahead of the writer.

The writer only compares positions; when there is work it wakes the allocator, which is a thread
once the store has started. `mapped` explains the cost of the two ways of populating: coarse pages
are for a writer that would overtake fine ones, which are populated at 1.4 GB/s, and never for one
whose appends wait for an fsync.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.log.segments import Segments
from rockgate.store.workers import Worker

HASTE_BYTES: Final = 100 << 20
"""A writer of this many bytes per second that does not wait for flushes is in a hurry."""


class Allocator:
    """Prepares pages and files for the writer."""

    def __init__(
        self,
        segments: Segments,
        clock: Clock,
        *,
        end: Callable[[], int],
        awaited_count: Callable[[], int],
    ) -> None:
        """Prepare for a writer at `end`; `awaited_count` appends have waited for a flush so far."""
        self._segments = segments
        self._clock = clock
        self._end = end
        self._awaited_count = awaited_count
        self._worker: Worker | None = None
        self._last: tuple[int, int, int] | None = None
        """Of the last step: its time, the position of the writer, and the count of waits."""

    def start(self) -> Worker:
        """Work on a thread from now on."""
        self._worker = Worker("rockgate-allocate", self.step)
        return self._worker

    def wake(self) -> None:
        """Called by the writer when it reaches `prepare_at`."""
        if self._worker is None:
            self.step()
            return
        # Once is enough until the allocator has set the next position.
        self._segments.prepare_at = 1 << 62
        self._worker.wake()

    def step(self) -> None:
        """Populate pages, and create the next file."""
        now_ms, end, awaited = self._clock.monotonic_ms(), self._end(), self._awaited_count()
        is_hasty = False
        if self._last is not None:
            last_ms, last_end, last_awaited = self._last
            is_quick = (end - last_end) * 1000 >= HASTE_BYTES * (now_ms - last_ms)
            is_hasty = is_quick and awaited == last_awaited
        self._last = now_ms, end, awaited
        self._segments.prepare(end, coarsely=is_hasty)
