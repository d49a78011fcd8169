"""An upkeep step that runs every few seconds instead of on every tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rockgate.store.api.clock import Clock

LOOK_MS: Final = 5_000
"""How often silent clients, brokers and locks are checked for expiry."""


def now_and_then(clock: Clock, look: Callable[[int], object]) -> Callable[[], bool]:
    """A step of upkeep that runs every few seconds, with the current time."""
    next_ms = 0

    def step() -> bool:
        nonlocal next_ms
        now_ms = clock.monotonic_ms()
        if now_ms >= next_ms:
            next_ms = now_ms + LOOK_MS
            look(now_ms)
        return False

    return step
