"""Prefaults the pages of the log ahead of the writer.

The writer compares positions, no more; where there is work it wakes the allocator, which is a
thread once the store has started. What the two ways of populating cost is told in `mapped`: coarse
pages are for a writer that would overtake fine ones, which are made at 1.4 GB/s, and never for one
whose appends are waited for on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.log.segments import Segments
from rockgate.store.workers import Worker

HASTE_BYTES: Final = 100 << 20
"""Who writes so many bytes a second, and waits for no flush, is in haste."""


class Allocator:
    """Makes room for the writer."""

    def __init__(
        self,
        segments: Segments,
        clock: Clock,
        *,
        end: Callable[[], int],
        awaited_count: Callable[[], int],
    ) -> None:
        """Work for the writer, who has come to `end`; `awaited_count` appends awaited a flush."""
        self._segments = segments
        self._clock = clock
        self._end = end
        self._awaited_count = awaited_count
        self._worker: Worker | None = None
        self._last: tuple[int, int, int] | None = None
        """Of the last step: when it was, how far the writer had come, and how many had waited."""

    def start(self) -> Worker:
        """Do the work in a thread from now on."""
        self._worker = Worker("rockgate-allocate", self.step)
        return self._worker

    def wake(self) -> None:
        """The writer has come to where there is work."""
        if self._worker is None:
            self.step()
            return
        # Once is enough until the allocator has set the next place.
        self._segments.prepare_at = 1 << 62
        self._worker.wake()

    def step(self) -> None:
        """Make pages ready, and the next file."""
        now_ms, end, awaited = self._clock.monotonic_ms(), self._end(), self._awaited_count()
        is_hasty = False
        if self._last is not None:
            last_ms, last_end, last_awaited = self._last
            is_quick = (end - last_end) * 1000 >= HASTE_BYTES * (now_ms - last_ms)
            is_hasty = is_quick and awaited == last_awaited
        self._last = now_ms, end, awaited
        self._segments.prepare(end, coarsely=is_hasty)
