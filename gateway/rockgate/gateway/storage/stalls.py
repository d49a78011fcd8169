"""Stalls of the store: periods in which appends have to wait for the disk.

The store notifies; each protocol registers here what it does about it (docs/internals/overload.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rockgate.gateway.storage.slow_appends import SlowAppends
from rockgate.store.api.clock import Clock

log = logging.getLogger(__name__)

OnStalled = Callable[[bool], None]
LOGGED_MS: Final = 10_000
"""At most one stall in this time is logged."""


class Stalls:
    """Passes the store's stalls on, counts them and logs some."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.on_stalled: list[OnStalled] = []
        self.slow_appends = SlowAppends(clock)
        self.count = 0
        """Number of stalls so far."""
        self.stalled_ms = 0
        """Duration of all stalls that have ended."""
        self._since_ms: int | None = None
        self._logged_ms: int | None = None
        self._is_logged = False

    @property
    def is_stalled(self) -> bool:
        """Whether appends currently wait."""
        return self._since_ms is not None

    def current_ms(self) -> int:
        """Return how long the current stall has lasted; 0 if there is none."""
        return 0 if self._since_ms is None else self._clock.monotonic_ms() - self._since_ms

    def stalled(self, is_stalled: bool) -> None:
        """Called by the store when a stall begins, and when it ends."""
        now_ms = self._clock.monotonic_ms()
        if is_stalled:
            self._begin(now_ms)
        elif self._since_ms is not None:
            self._end(now_ms - self._since_ms)
        for notify in self.on_stalled:
            notify(is_stalled)

    def _begin(self, now_ms: int) -> None:
        self.count += 1
        self._since_ms = now_ms
        self._is_logged = self._logged_ms is None or now_ms - self._logged_ms >= LOGGED_MS
        if self._is_logged:
            self._logged_ms = now_ms
            log.warning("appends wait for the disk stalls=%d", self.count)

    def _end(self, duration_ms: int) -> None:
        self._since_ms = None
        self.stalled_ms += duration_ms
        if self._is_logged:
            log.info("appends resumed duration_ms=%d", duration_ms)
