"""Forgetting idempotent producers that wrote nothing for long: a few at a time, now and then.

What was forgotten may be learned again from the log at the next start, and is then forgotten again:
a producer that is not remembered may begin anywhere, so neither changes what a client sees. A clock
that jumps ahead is not believed at once: producers that are forgotten too early may write twice.
"""

from __future__ import annotations

from rockgate.gateway.kafka.producers import Producers
from rockgate.store.clock import Clock
from rockgate.store.expiry import BelievedTime

LOOK_EVERY_MS = 60_000
PLACES_PER_STEP = 1_000


class ProducerExpiry:
    """Walks over all producers once a minute, a stretch at a time."""

    def __init__(self, producers: Producers, clock: Clock, expiry_ms: int) -> None:
        self._producers = producers
        self._clock = clock
        self._believed = BelievedTime(clock)
        self._expiry_ms = expiry_ms
        self._place = 0
        self._next_ms = clock.monotonic_ms() + LOOK_EVERY_MS

    def step(self) -> bool:
        """Look at the next stretch if a walk is due; say whether there is more of it."""
        now_ms = self._clock.monotonic_ms()
        if not self._place and now_ms < self._next_ms:
            return False
        older_than_ms = self._believed.now_ms() - self._expiry_ms
        self._place = self._producers.expire(older_than_ms, self._place, PLACES_PER_STEP)
        if not self._place:
            self._next_ms = now_ms + LOOK_EVERY_MS
        return self._place > 0
