"""Commit: how far the log can no longer be undone, and who waits for that.

A node by itself commits what is on disk: its position is the flusher's. Where the log
is replicated, others set the position (docs/internals/replication.md): the lowest that all nodes
which count have reported, or on a replica what its primary says.

Answers, readers and everything that cannot be undone go by this position: no segment is removed, no
snapshot gets its name, and nothing is compacted above it.
"""

from __future__ import annotations

from collections import deque

from rockgate.store.log.flusher import Flusher, OnFlushed


class Commit:
    """The committed position and its waiters."""

    def __init__(self, flusher: Flusher) -> None:
        """Follow a flusher, until `replicate`."""
        self._flusher = flusher
        self._waiting: deque[tuple[int, OnFlushed]] = deque()
        self.is_replicated = False
        """Whether others set the position, and not the flusher."""
        self.position = flusher.flushed
        """Everything before this position stays, whatever happens."""

    def flushed(self, position: int) -> None:
        """Record a flush, on the thread that did it."""
        if not self.is_replicated:
            self.position = position

    def replicate(self, position: int) -> None:
        """From now on only `advance` moves the position, which is this one to begin with."""
        self.is_replicated = True
        self.position = position

    def advance(self, position: int) -> bool:
        """Move on to a position, and notify who waited for it; say whether that was news."""
        assert self.is_replicated, "the position is the flusher's"
        if position <= self.position:
            return False
        self.position = position
        self.settle()
        return True

    def when_committed(self, position: int, callback: OnFlushed) -> None:
        """Call `callback` once everything before a position is committed."""
        if not self.is_replicated:
            self._flusher.when_flushed(position, callback)
        elif position <= self.position:
            callback(None)
        elif self._flusher.failure is not None:
            callback(self._flusher.failure)
        else:
            # Positions are awaited in the order of appends, so the queue is sorted.
            self._waiting.append((position, callback))

    def settle(self) -> None:
        """Notify the waiters whose position is committed, and after a failed fsync all others."""
        waiting, failure = self._waiting, self._flusher.failure
        while waiting and (failure is not None or waiting[0][0] <= self.position):
            position, callback = waiting.popleft()
            callback(None if position <= self.position else failure)

    def end(self, failure: Exception) -> None:
        """Tell all who wait that they will not learn what became of it."""
        waiting, self._waiting = self._waiting, deque()
        for _, callback in waiting:
            callback(failure)

    @property
    def waiting_count(self) -> int:
        """How many wait for it."""
        return len(self._waiting) if self.is_replicated else self._flusher.waiting_count
