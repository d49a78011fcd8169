"""Slow appends: requests that spent over half a second on appending are counted and logged.

Dispatch measures every request anyway and reports only the slow ones, so an ordinary append costs
one comparison more. Waiting for the disk counts; flushing and replication do not.
"""

from __future__ import annotations

import logging
from typing import Final

from rockgate.store.api.clock import Clock

log = logging.getLogger(__name__)

SLOW_SECONDS: Final = 0.5
LOGGED_MS: Final = 10_000
"""At most one line in this time."""


class SlowAppends:
    """Counts slow appends of both protocols. One for the server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.count = 0
        self._unlogged_count = 0
        self._logged_ms: int | None = None

    def note(self, seconds: float) -> None:
        """Count an append that took this long, if that is slow."""
        if seconds <= SLOW_SECONDS:
            return
        self.count += 1
        self._unlogged_count += 1
        now_ms = self._clock.monotonic_ms()
        if self._logged_ms is None or now_ms - self._logged_ms >= LOGGED_MS:
            log.warning("slow append seconds=%.3f count=%d", seconds, self._unlogged_count)
            self._logged_ms, self._unlogged_count = now_ms, 0
