"""Prefaults the pages of the log ahead of the writer.

The writer only compares positions; when there is work it wakes the allocator, which is a thread
once the store has started. `mapped` explains the cost of the two ways of populating: coarse pages
are for a writer that would overtake fine ones, which are populated at 1.4 GB/s, and never for one
whose appends wait for an fsync.

**Stalls.** If the allocator is stuck, the writer reaches the end of what is ready. `look` decides
whether an append would have to wait for it: at once where only the next file is missing, since
there is no way around that; for pages only if the step has made no progress for a second, since a
writer in a hurry may overtake a healthy allocator and then takes the page faults itself. While
stalled, new messages should wait or be rejected by those that accept them; the margin before the
end of the segment is for everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.log.segments import Segments
from rockgate.store.workers import Post, Worker

HASTE_BYTES: Final = 100 << 20
"""A writer of this many bytes per second that does not wait for flushes is in a hurry."""
WAIT_SECONDS_MAX: Final = 0.05
"""How long a writer that is notified of stalls waits for a file that is being created."""
STUCK_MS: Final = 1_000
"""A step that prepares pages for longer than this is stuck."""


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
        # Set by the writer, cleared by the allocator's thread.
        self._is_working = False
        self._begun_ms = 0
        self._post: Post = lambda work: None
        self.is_stalled = False
        """Whether an append may have to wait for a file or for pages."""
        self._on_stalled: Callable[[bool], None] = lambda is_stalled: None

    def start(self, post: Post) -> Worker:
        """Work on a thread from now on; `post` runs a function on the writer's thread."""
        self._post = post
        self._worker = Worker("rockgate-allocate", self.step)
        return self._worker

    def notify(self, on_stalled: Callable[[bool], None]) -> None:
        """Call this on the writer's thread when a stall begins, and when it ends.

        From then on the writer does not wait for long either: a roll is rejected instead.
        """
        self._on_stalled = on_stalled
        self._segments.wait_seconds_max = WAIT_SECONDS_MAX

    def wake(self) -> None:
        """Called by the writer when it reaches `prepare_at`."""
        if self._worker is None:
            self.step()
        elif self._is_working:
            # The step is not done yet, and the writer is at the end of what was ready before it.
            self.look()
            if not self.is_stalled:
                self._segments.ask_again(self._end())
        else:
            self._is_working = True
            self._begun_ms = self._clock.monotonic_ms()
            self._segments.await_step()
            self._worker.wake()

    def look(self) -> None:
        """Find out whether an append has to wait; on the writer's thread, now and then."""
        is_stalled = self._is_working and self._is_overtaken()
        if is_stalled != self.is_stalled:
            self.is_stalled = is_stalled
            self._on_stalled(is_stalled)

    def _is_overtaken(self) -> bool:
        end = self._end()
        if end >= self._segments.file_limit:
            return True
        is_stuck = self._clock.monotonic_ms() - self._begun_ms >= STUCK_MS
        return is_stuck and end >= self._segments.page_limit

    def step(self) -> None:
        """Populate pages, and create the next file."""
        now_ms, end, awaited = self._clock.monotonic_ms(), self._end(), self._awaited_count()
        is_hasty = False
        if self._last is not None:
            last_ms, last_end, last_awaited = self._last
            is_quick = (end - last_end) * 1000 >= HASTE_BYTES * (now_ms - last_ms)
            is_hasty = is_quick and awaited == last_awaited
        self._last = now_ms, end, awaited
        try:
            self._segments.prepare(end, coarsely=is_hasty)
        except Exception:
            # Not repeated for every append: the roll that needs the file tries once more.
            self._segments.rest()
            raise
        finally:
            self._is_working = False
            if self.is_stalled:
                self._post(self.look)
