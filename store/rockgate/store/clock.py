"""Clocks: the system's, and a manual one for tests."""

from __future__ import annotations

from time import monotonic_ns, time_ns
from typing import Protocol


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
    """A clock that stands still until it is told otherwise."""

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
