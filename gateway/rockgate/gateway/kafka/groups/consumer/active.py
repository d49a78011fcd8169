"""A group with members whose server assigns: its machine, and its two timers on the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from rockgate.gateway.kafka.groups.classic.join_window import NEVER_MS
from rockgate.gateway.net.clock import Clock, Timer


class Woken(Protocol):
    """A machine that says when it wants to be woken."""

    wake_ms: int


M = TypeVar("M", bound=Woken)


class Active(Generic[M]):
    """One group."""

    __slots__ = ("_at_ms", "_timer", "_working", "machine")

    def __init__(self, machine: M) -> None:
        self.machine = machine
        self._timer: Timer | None = None
        self._at_ms = NEVER_MS
        self._working: Timer | None = None

    def arm(self, clock: Clock, now_ms: int, wake: Callable[[], None]) -> None:
        """Wake the machine when it wants to be, unless it is woken before."""
        at_ms = self.machine.wake_ms
        if self._timer is not None:
            if self._at_ms <= at_ms:
                return
            self._timer.cancel()
            self._timer = None
        self._at_ms = at_ms
        if at_ms != NEVER_MS:
            # The next millisecond, because a timer may fire slightly early.
            seconds = max(0, at_ms + 1 - now_ms) / 1000
            self._timer = clock.call_later(seconds, wake)

    def ring(self) -> None:
        """The time has come."""
        self._timer, self._at_ms = None, NEVER_MS

    def resume_later(self, clock: Clock, resume: Callable[[], None]) -> None:
        """Continue with what is computed, after other requests."""
        if self._working is None:
            self._working = clock.call_later(0, resume)

    def resumed(self) -> None:
        """It continues."""
        self._working = None

    def stop(self) -> None:
        """Cancel both timers."""
        for timer in (self._timer, self._working):
            if timer is not None:
                timer.cancel()
        self._timer = self._working = None
