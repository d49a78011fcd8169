"""What a scan of delayed messages collects: the soonest of them, and how many are due when."""

from __future__ import annotations

from typing import Final

from rockgate.protocol.remoting.headers.admin import ScanDelaysHeader
from rockgate.store.api.delay import Listed

LIMIT_MAX: Final = 1_000
BUCKETS_MAX: Final = 400
Key = tuple[bytes, int, str | None]
"""What messages are counted by: topic id and queue where they wait, and destination."""


class Timeline:
    """How many messages are due in each bucket of time, by what they are counted by."""

    def __init__(self, asked: ScanDelaysHeader, now_ms: int) -> None:
        count = min(asked.bucket_count, BUCKETS_MAX)
        self._width_ms = asked.bucket_ms if count > 0 else 0
        if self._width_ms <= 0:
            return
        self._first = now_ms // self._width_ms
        self._end = self._first + count
        self._counts: dict[Key, dict[int, int]] = {}

    def count(self, key: Key, due_ms: int) -> None:
        """Count one; what is overdue is in the first bucket."""
        if self._width_ms <= 0:
            return
        bucket = max(self._first, due_ms // self._width_ms)
        if bucket < self._end:
            counts = self._counts.setdefault(key, {})
            counts[bucket] = counts.get(bucket, 0) + 1

    def of(self, key: Key) -> dict[int, int]:
        """The buckets of a key that have any."""
        return {} if self._width_ms <= 0 else self._counts.get(key, {})


class Soonest:
    """The first of the offered messages after the last page, in order of delivery."""

    def __init__(self, asked: ScanDelaysHeader) -> None:
        self._limit = max(0, min(asked.limit, LIMIT_MAX))
        self._after = (asked.after_due_ms, asked.after_sequence)
        self._candidates: list[Listed] = []
        self.bound_ms = 1 << 63 if self._limit else -1
        """Messages due later than this need not be offered."""

    def offer(self, each: Listed) -> None:
        """Add it if it may be among the first."""
        if each[:2] <= self._after:
            return
        self._candidates.append(each)
        if len(self._candidates) >= 2 * self._limit + 64:
            self._candidates = self.found()
            self.bound_ms = self._candidates[-1].due_ms

    def found(self) -> list[Listed]:
        """The first ones, in order."""
        return sorted(self._candidates)[: self._limit]
