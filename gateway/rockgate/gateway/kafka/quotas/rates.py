"""Rates over the last windows, and token buckets: how far a client exceeds its quota.

Time is a parameter, in milliseconds.
"""

from __future__ import annotations

from collections import deque


class Rate:
    """The rate over the last windows, and the throttle time until it is within a limit."""

    __slots__ = ("_count", "_samples", "_window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._count = window_count
        self._window_ms = window_ms
        # For each window: its start, the time of its last event, and its total.
        self._samples: deque[list[float]] = deque()

    def record(self, value: float, now_ms: float) -> None:
        """Add to the current window."""
        samples = self._samples
        if samples and now_ms - samples[-1][0] < self._window_ms:
            last = samples[-1]
            last[1] = now_ms
            last[2] += value
        else:
            samples.append([now_ms, now_ms, value])
            if len(samples) > self._count + 1:
                samples.popleft()

    def measure(self, now_ms: float) -> tuple[float, float]:
        """The rate per second, and the milliseconds over which it was measured."""
        samples, window_ms = self._samples, self._window_ms
        while samples and now_ms - samples[0][1] >= self._count * window_ms:
            samples.popleft()
        elapsed_ms = now_ms - samples[0][0] if samples else 0.0
        missing = self._count - 1 - elapsed_ms // window_ms
        if missing > 0:
            elapsed_ms += missing * window_ms
        return sum(sample[2] for sample in samples) / elapsed_ms * 1000, elapsed_ms

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """How long until the rate is down to the limit."""
        rate, elapsed_ms = self.measure(now_ms)
        return round((rate - limit) / limit * elapsed_ms) if rate > limit else 0

    def is_idle(self, now_ms: float) -> bool:
        """Whether all windows are empty."""
        samples = self._samples
        return not samples or now_ms - samples[-1][1] >= self._count * self._window_ms


class Bucket:
    """A token bucket, refilled up to what all windows hold; it may be overdrawn."""

    __slots__ = ("_at_ms", "_seconds", "tokens")

    def __init__(self, window_count: int, window_ms: int, limit: float, now_ms: float) -> None:
        self._seconds = window_count * window_ms / 1000
        self._at_ms = now_ms
        self.tokens = self._seconds * limit

    def refill(self, limit: float, now_ms: float) -> None:
        """Refill by the time passed."""
        came = (now_ms - self._at_ms) / 1000 * limit
        self.tokens = min(self._seconds * limit, self.tokens + came)
        self._at_ms = now_ms

    def throttle_ms(self, limit: float) -> int:
        """How long until it is not overdrawn."""
        return round(-self.tokens / limit * 1000) if self.tokens < 0 else 0

    def is_full(self, limit: float, now_ms: float) -> bool:
        """Whether it is full."""
        self.refill(limit, now_ms)
        return self.tokens >= self._seconds * limit
