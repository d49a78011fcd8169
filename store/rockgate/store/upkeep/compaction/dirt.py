"""Dirt: how much of a queue was appended since it was last compacted, and whether that is due.

The sizes of the clean and of the dirty part are counted once and continued as the queue grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from rockgate.store.policy import QueuePolicy
from rockgate.store.queues.consumequeue import Queue

_WALK_UNITS: Final = 500


class Due(NamedTuple):
    """A queue that may be cleaned."""

    queue: Queue
    end: int
    """The offset before which it may be cleaned."""
    ratio: float
    """How much of it is dirty."""
    is_overdue: bool
    """Whether a record waits for longer than its topic allows."""


class Dirt:
    """The sizes of both parts of one queue."""

    def __init__(self, queue: Queue, cleaned_to: int) -> None:
        self.queue = queue
        self._cleaned_to = cleaned_to
        self._counted_to = 0
        self._clean = self._dirty = 0

    def end(self, stable_end: int, sealed: int, policy: QueuePolicy, now_ms: int) -> int:
        """Return the offset before which the queue may be cleaned."""
        queue = self.queue
        end = min(stable_end, queue.end_before(sealed))
        if policy.compaction_lag_ms > 0:
            young = queue.first_at_store_time(now_ms - policy.compaction_lag_ms + 1)
            if young is not None:
                end = min(end, young.base)
        return end

    def measure(self, end: int) -> Iterator[bool]:
        """Count up to an offset, with a pause after every slice."""
        queue = self.queue
        self._counted_to = max(self._counted_to, queue.log_start)
        while self._counted_to < end:
            walked = 0
            for base, _, size, count, *_ in islice(queue.walk(self._counted_to), _WALK_UNITS):
                if base + count > end:
                    return
                walked += 1
                self._counted_to = base + count
                if base < self._cleaned_to:
                    self._clean += size
                else:
                    self._dirty += size
            if not walked:
                return
            yield True

    def due(self, end: int, policy: QueuePolicy, now_ms: int) -> Due | None:
        """Return whether the queue is to be cleaned up to an offset."""
        if not self._dirty or end <= self._cleaned_to:
            return None
        first = self.queue.find(max(self._cleaned_to, self.queue.log_start))
        is_overdue = first is not None and now_ms - first.store_ms > policy.compaction_lag_ms_max
        ratio = self._dirty / (self._clean + self._dirty)
        if not is_overdue and ratio <= policy.dirty_ratio:
            return None
        return Due(self.queue, end, ratio, is_overdue)
