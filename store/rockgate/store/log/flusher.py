"""Group commit: the waiters for each position, and the shared fsync.

`step` is the flushing thread's: it syncs everything appended so far and remembers up to where.
`settle` runs on the store's thread afterwards and notifies the waiters. Under load the next fsync
covers whatever was appended during the one before: that is the whole of group commit.

An fsync that fails is final, whoever's it is: see `files.sync`, which decides that and has `fail`
called. What was flushed before stays flushed, and the position never moves again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed
from rockgate.store.files.interface import PAGE_SIZE
from rockgate.store.workers import Worker

Told = Callable[[Exception | None], None]
"""Called once the position is on disk, or with the error that means it may never be."""


class Flusher:
    """Holds the flushed position and its waiters."""

    def __init__(
        self,
        *,
        sync: Callable[[int, int], None],
        end: Callable[[], int],
        clock: Clock,
        config: StoreConfig,
        flushed: int,
    ) -> None:
        self._sync = sync
        self._end = end
        self._clock = clock
        self._config = config
        self._worker: Worker | None = None
        self._waiting: deque[tuple[int, Told]] = deque()
        self._thorough_ms = clock.monotonic_ms()
        self.flushed = flushed
        """Everything before this position is on disk."""
        self.failure: Exception | None = None
        """Why no more is flushed; present and later waiters are notified."""
        self.fsync_count = 0
        self.awaited_count = 0
        """How many waited for a flush, ever."""
        self.on_synced: Callable[[float], None] = lambda seconds: None
        """Notified of the duration of each fsync, by the thread that waited for it."""
        self._stepping = threading.Lock()

    # The store's thread

    def when_flushed(self, position: int, told: Told) -> None:
        """Call `told` once everything before a position is on disk."""
        if position <= self.flushed:
            told(None)
            return
        if self.failure is not None:
            told(self.failure)
            return
        # Positions are asked for in the order of appends, so the queue is sorted.
        self._waiting.append((position, told))
        self.awaited_count += 1
        if self._worker is not None:
            self._worker.wake()

    def settle(self) -> None:
        """Notify waiters whose position has been reached, and the others if it never will be."""
        waiting = self._waiting
        # A failure is never followed by more that is flushed, so it is read first.
        failure, flushed = self.failure, self.flushed
        while waiting and (failure is not None or waiting[0][0] <= flushed):
            position, told = waiting.popleft()
            told(None if position <= flushed else failure)

    def fail(self, failure: Exception) -> None:
        """Flush no more; any thread may say so. `settle` notifies the waiters."""
        if self.failure is None:
            self.failure = failure

    @property
    def waiting_count(self) -> int:
        """How many wait."""
        return len(self._waiting)

    # The flushing thread

    def start(self, on_flushed: Callable[[], None]) -> Worker:
        """Flush in a thread from now on, which says so after each flush."""

        def step() -> None:
            if (self._waiting or self.is_due()) and self.step():
                on_flushed()

        self._worker = Worker("rockgate-flush", step, self._config.flush_interval_ms)
        return self._worker

    def is_due(self) -> bool:
        """Say whether to flush without being asked: enough dirty pages, or long enough ago."""
        dirty = self._end() - self.flushed
        if dirty <= 0:
            return False
        if dirty >= self._config.flush_pages_min * PAGE_SIZE:
            return True
        return self._clock.monotonic_ms() - self._thorough_ms >= self._config.flush_thorough_ms

    def step(self) -> bool:
        """Sync all that was appended before the call; say whether there was anything."""
        # A checkpoint flushes too, from its own thread.
        with self._stepping:
            end = self._end()
            start = self.flushed
            if end <= start or self.failure is not None:
                return False
            began = perf_counter()
            try:
                self._sync(start, end)
            except (OSError, DiskFailed) as error:
                self.fail(error)
                return True
            if self.failure is not None:
                return True  # another's failed meanwhile
            self.fsync_count += 1
            self.on_synced(perf_counter() - began)
            self._thorough_ms = self._clock.monotonic_ms()
            self.flushed = end
            return True
