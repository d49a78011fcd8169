"""Group commit: the waiters for each position, and the shared fsync.

`step` runs on the flushing thread: it syncs everything appended so far and stores that position.
`settle` runs on the store's thread afterwards and notifies the waiters. Under load each fsync
covers everything appended during the previous one, which is all there is to group commit.

A failed fsync is final, wherever it happens: `files.sync` decides that and calls `fail`. What was
flushed before stays flushed, and the position never advances again.
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

OnFlushed = Callable[[Exception | None], None]
"""Called once the position is on disk, or with the error that says it may never be."""


class Flusher:
    """The flushed position and its waiters."""

    def __init__(
        self,
        *,
        sync: Callable[[int, int], None],
        end: Callable[[], int],
        clock: Clock,
        config: StoreConfig,
        flushed: int,
        on_flushed: Callable[[int], None] = lambda position: None,
    ) -> None:
        """`on_flushed` is called with each new flushed position, on the thread that flushed."""
        self._on_flushed = on_flushed
        self._sync = sync
        self._end = end
        self._clock = clock
        self._config = config
        self._worker: Worker | None = None
        self._waiting: deque[tuple[int, OnFlushed]] = deque()
        self._thorough_ms = clock.monotonic_ms()
        self.flushed = flushed
        """Everything before this position is on disk."""
        self.failure: Exception | None = None
        """Why flushing has ended; current and later waiters get it."""
        self.fsync_count = 0
        self.awaited_count = 0
        """Total number of waits for a flush."""
        self.on_synced: Callable[[float], None] = lambda seconds: None
        """Called with the duration of each fsync, on the thread that waited for it."""
        self._stepping = threading.Lock()

    # The store's thread

    def when_flushed(self, position: int, callback: OnFlushed) -> None:
        """Call `callback` once everything before a position is on disk."""
        if position <= self.flushed:
            callback(None)
            return
        if self.failure is not None:
            callback(self.failure)
            return
        # Positions are awaited in the order of appends, so the queue is sorted.
        self._waiting.append((position, callback))
        self.awaited_count += 1
        if self._worker is not None:
            self._worker.wake()

    def settle(self) -> None:
        """Notify the waiters whose position is flushed, and after a failure all others too."""
        waiting = self._waiting
        # Nothing is flushed after a failure, so the failure is read first.
        failure, flushed = self.failure, self.flushed
        while waiting and (failure is not None or waiting[0][0] <= flushed):
            position, callback = waiting.popleft()
            callback(None if position <= flushed else failure)

    def fail(self, failure: Exception) -> None:
        """Stop flushing; any thread may call this. `settle` notifies the waiters."""
        if self.failure is None:
            self.failure = failure

    @property
    def waiting_count(self) -> int:
        """How many are waiting."""
        return len(self._waiting)

    # The flushing thread

    def start(self, on_flushed: Callable[[], None]) -> Worker:
        """Flush on a thread from now on; it calls `on_flushed` after each flush."""

        def step() -> None:
            if (self._waiting or self.is_due()) and self.step():
                on_flushed()

        self._worker = Worker("rockgate-flush", step, self._config.flush_interval_ms)
        return self._worker

    def is_due(self) -> bool:
        """Say whether a flush is due without a waiter: enough dirty pages, or enough time."""
        dirty = self._end() - self.flushed
        if dirty <= 0:
            return False
        if dirty >= self._config.flush_pages_min * PAGE_SIZE:
            return True
        return self._clock.monotonic_ms() - self._thorough_ms >= self._config.flush_thorough_ms

    def step(self) -> bool:
        """Sync everything appended before the call; say whether there was anything."""
        # Checkpoints flush too, from their own thread.
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
                return True  # an fsync elsewhere failed meanwhile
            self.fsync_count += 1
            self.on_synced(perf_counter() - began)
            self._thorough_ms = self._clock.monotonic_ms()
            self.flushed = end
            self._on_flushed(end)
            return True
