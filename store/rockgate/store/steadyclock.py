"""A clock that steps of the wall clock do not carry away. docs/delay.md has the rule.

It goes on by elapsed time and follows the wall clock where that differs by less than a minute. A
larger difference, ahead or back, is believed when it has lasted for an hour.
"""

from __future__ import annotations

from typing import Final

from rockgate.store.clock import Clock

STEP_MS: Final = 60_000
LASTS_MS: Final = 3_600_000


class SteadyClock:
    """Wall time without its steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = clock.now_ms() - clock.monotonic_ms()
        self._doubted_since: int | None = None
        self._doubted_ms = 0

    def now_ms(self) -> int:
        """Return the time."""
        elapsed_ms = self._clock.monotonic_ms()
        ahead_ms = self._clock.now_ms() - elapsed_ms
        if abs(ahead_ms - self._ahead_ms) < STEP_MS:
            self._ahead_ms = ahead_ms
            self._doubted_since = None
        elif self._doubted_since is None or abs(ahead_ms - self._doubted_ms) >= STEP_MS:
            self._doubted_since, self._doubted_ms = elapsed_ms, ahead_ms
        elif elapsed_ms - self._doubted_since >= LASTS_MS:
            self._ahead_ms = ahead_ms
            self._doubted_since = None
        return elapsed_ms + self._ahead_ms
