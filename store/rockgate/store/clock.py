"""Clocks: the system's, a manual one for tests, and one that steps do not carry away.

docs/internals/delay.md has the rule of the steady clock. A step is a difference of a minute or
more, ahead or back, that no time has passed for. There are three answers to what time it is:

    now_ms      the wall clock's; a step is believed when it has lasted for five minutes
    day_ms      the same, but never ahead of what the wall clock says now
    passed_ms   counted from the start by time that passes; no step is ever believed
"""

from __future__ import annotations

from time import monotonic_ns, time_ns
from typing import Final, NamedTuple, Protocol


class Clock(Protocol):
    """What the store asks of time."""

    def now_ms(self) -> int:
        """Return wall time in milliseconds since 1970; it may step in either direction."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that only ever grow, for measuring waits."""


class SystemClock:
    """The machine's own clock."""

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
        """Return how much time was let pass."""
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        assert milliseconds >= 0, "time that passes is never negative; use step"
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def step(self, milliseconds: int) -> None:
        """Set the wall clock forward or back without any time passing."""
        self._now_ms += milliseconds


STEP_MS: Final = 60_000
LASTS_MS: Final = 300_000
_new = tuple.__new__  # what NamedTuple._make calls: one is read for every item that is scheduled


class Times(NamedTuple):
    """What time it is."""

    now_ms: int
    day_ms: int
    passed_ms: int


class SteadyClock:
    """Wall time without its steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = clock.now_ms() - clock.monotonic_ms()
        """How far what is believed is ahead of the monotonic time."""
        self._doubted_since: int | None = None
        self._doubted_ms = 0
        self._seen_ms = self._ahead_ms
        """How far the wall clock was ahead when it was last looked at."""
        self._drift_ms = self._ahead_ms
        """That, but for its steps."""

    def now_ms(self) -> int:
        """Return the time that is believed."""
        return self._look() + self._ahead_ms

    def day_ms(self) -> int:
        """Return the time of day, by which nothing is early."""
        return self._look() + min(self._ahead_ms, self._seen_ms)

    def read(self) -> Times:
        """Return all of them, as they are at one moment."""
        elapsed_ms = self._look()
        day_ms = elapsed_ms + min(self._ahead_ms, self._seen_ms)
        return _new(Times, (elapsed_ms + self._ahead_ms, day_ms, elapsed_ms + self._drift_ms))

    def _look(self) -> int:
        """Look at the wall clock, and return the monotonic time."""
        elapsed_ms = self._clock.monotonic_ms()
        ahead_ms = self._clock.now_ms() - elapsed_ms
        if ahead_ms == self._seen_ms == self._ahead_ms:
            # As at the last look, and nothing was in doubt then: so it is nearly always.
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
