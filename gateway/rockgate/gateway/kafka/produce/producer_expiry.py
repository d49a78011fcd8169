"""Expires idempotent producers that wrote nothing for long, periodically and a few at a time.

An expired producer may be restored from the log at the next start, and then expires again: a
producer that is not known may begin anywhere, so neither changes what a client sees. A clock that
jumps ahead is not trusted at once: producers that expire too early may write twice.

The number of known producers is bounded, too: beyond it those expire that have been silent longest,
as if the expiry time were shorter, but none that wrote within the last minute.
"""

from __future__ import annotations

from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.store.api.clock import Clock, TrustedTime

LOOK_EVERY_MS = 60_000
LOOK_SOON_MS = 1_000
"""Interval of scans while there are too many."""
PLACES_PER_STEP = 1_000
SILENT_MS_MIN = 60_000
"""Producers that wrote more recently are retained, however many there are: they may be retrying."""


class ProducerExpiry:
    """Scans all producers once a minute, some at a time."""

    def __init__(
        self, producers: Producers, clock: Clock, *, expiry_ms: int, count_max: int
    ) -> None:
        self._producers = producers
        self._clock = clock
        self._trusted_time = TrustedTime(clock)
        self._expiry_ms = expiry_ms
        self._count_max = count_max
        self._allowed_ms = expiry_ms
        """How long producers are retained now; less than the setting while there are too many."""
        self._place = 0
        self._next_ms = clock.monotonic_ms() + LOOK_EVERY_MS

    def configure(self, expiry_ms: int) -> None:
        """Retain producers for another time, from the next scan on."""
        self._expiry_ms = self._allowed_ms = expiry_ms

    def step(self) -> bool:
        """Scan the next producers if a scan is due; return whether there are more."""
        now_ms = self._clock.monotonic_ms()
        if not self._place and now_ms < self._next_ms:
            return False
        if not self._place:
            self._allowed_ms = self._next_allowed_ms()
        older_than_ms = self._trusted_time.now_ms() - self._allowed_ms
        self._place = self._producers.expire(older_than_ms, self._place, PLACES_PER_STEP)
        if not self._place:
            is_full = len(self._producers) > self._count_max
            self._next_ms = now_ms + (LOOK_SOON_MS if is_full else LOOK_EVERY_MS)
        return self._place > 0

    def _next_allowed_ms(self) -> int:
        """Halve the expiry time while there are too many; double it below half the bound."""
        if len(self._producers) > self._count_max:
            return min(self._expiry_ms, max(SILENT_MS_MIN, self._allowed_ms // 2))
        if len(self._producers) <= self._count_max // 2:
            return min(self._expiry_ms, self._allowed_ms * 2)
        return self._allowed_ms
