"""Clocks: the system's, a manual one for tests, and one that ignores steps of the wall clock.

docs/internals/delay.md specifies the steady clock. A step is a difference of a minute or more, in
either direction, for which no time has elapsed. There are three times:

    now_ms      wall time; a step is accepted once it has lasted for five minutes
    day_ms      the same, but never ahead of the current wall time
    passed_ms   wall time at the start plus elapsed time; steps are never accepted
"""

from __future__ import annotations

from time import monotonic_ns, time_ns
from typing import Final, NamedTuple, Protocol


class Clock(Protocol):
    """The times that the store needs."""

    def now_ms(self) -> int:
        """Return wall time in milliseconds since 1970; it may step in either direction."""

    def monotonic_ms(self) -> int:
        """Return monotonic milliseconds, for measuring durations."""


class SystemClock:
    """The operating system's clock."""

    def now_ms(self) -> int:
        """Return the wall time."""
        return time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return the monotonic time."""
        return monotonic_ns() // 1_000_000


class ManualClock:
    """A clock that stands still until it is set or advanced."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        """Return the wall time as set."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Return the elapsed time."""
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        """Let time elapse."""
        assert milliseconds >= 0, "time that passes is never negative; use step"
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def step(self, milliseconds: int) -> None:
        """Set the wall clock forward or back without any time elapsing."""
        self._now_ms += milliseconds


STEP_MS: Final = 60_000
LASTS_MS: Final = 300_000
_new = tuple.__new__  # skips NamedTuple._make: read for every item that is scheduled


class Times(NamedTuple):
    """The three times at one moment."""

    now_ms: int
    day_ms: int
    passed_ms: int


class SteadyClock:
    """Wall time without steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = clock.now_ms() - clock.monotonic_ms()
        """How far the accepted time is ahead of the monotonic time."""
        self._doubted_since: int | None = None
        self._doubted_ms = 0
        self._seen_ms = self._ahead_ms
        """How far the wall clock was ahead when it was last read."""
        self._drift_ms = self._ahead_ms
        """The same without steps."""

    def now_ms(self) -> int:
        """Return the accepted time."""
        return self._look() + self._ahead_ms

    def day_ms(self) -> int:
        """Return the time of day at which nothing is delivered early."""
        return self._look() + min(self._ahead_ms, self._seen_ms)

    def read(self) -> Times:
        """Return all three times at one moment."""
        elapsed_ms = self._look()
        day_ms = elapsed_ms + min(self._ahead_ms, self._seen_ms)
        return _new(Times, (elapsed_ms + self._ahead_ms, day_ms, elapsed_ms + self._drift_ms))

    def _look(self) -> int:
        """Read the wall clock, and return the monotonic time."""
        elapsed_ms = self._clock.monotonic_ms()
        ahead_ms = self._clock.now_ms() - elapsed_ms
        if ahead_ms == self._seen_ms == self._ahead_ms:
            # The usual case: unchanged since the last read, and no step in doubt.
            return elapsed_ms
        if abs(ahead_ms - self._seen_ms) < STEP_MS:
            self._drift_ms += ahead_ms - self._seen_ms
        self._seen_ms = ahead_ms
        if abs(ahead_ms - self._ahead_ms) < STEP_MS:
            self._ahead_ms = ahead_ms
            self._doubted_since = None
        elif self._doubted_since is None or abs(ahead_ms - self._doubted_ms) >= STEP_MS:
            self._doubted_since, self._doubted_ms = elapsed_ms, ahead_ms
        elif elapsed_ms - self._doubted_since >= LASTS_MS:
            self._ahead_ms = ahead_ms
            self._doubted_since = None
        return elapsed_ms
