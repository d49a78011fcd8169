"""Samples the event-loop delay with a periodic timer."""

from __future__ import annotations

from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.telemetry.durations import Durations

INTERVAL_SECONDS = 0.1


class LoopWatch:
    """Measures how late its timer fires: whatever delays the loop delays the timer too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lateness = Durations()
        self.last_seconds = 0.0
        """How late it rang last."""
        self._timer: Timer | None = None
        self._arm()

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._due = self._clock.time() + INTERVAL_SECONDS
        self._timer = self._clock.call_later(INTERVAL_SECONDS, self._ring)

    def _ring(self) -> None:
        # A timer may fire slightly early.
        self.last_seconds = max(0.0, self._clock.time() - self._due)
        self.lateness.add(self.last_seconds)
        self._arm()
