"""Moves the deadlines of messages in flight along with a clock that is set back.

docs/internals/pop.md specifies it. A step is noticed by whoever reads the clock here next, so
nothing is delivered by the new clock before that. From then on a window follows before it is used,
and the others follow in upkeep, some at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from rockgate.store.api.append import StateAppender
from rockgate.store.api.clock import Clock
from rockgate.store.api.inflight import INFLIGHT_TOPIC, MessagesInFlight, Shift, Window, encode

log = logging.getLogger(__name__)

STEP_MS: Final = 60_000
"""A difference between the clocks that is no drift: the clock was set."""
STEPS_MAX: Final = 4
"""Steps of which handles that were made before are still understood."""
WINDOWS_AT_ONCE: Final = 500
MESSAGES_AT_ONCE: Final = 20_000


class ClockSteps:
    """Reads the clock for pops, and lets windows follow it."""

    def __init__(
        self, *, in_flight: MessagesInFlight, journal: StateAppender, clock: Clock
    ) -> None:
        self._in_flight = in_flight
        self._journal = journal
        self._clock = clock
        self._ahead_ms = clock.now_ms() - clock.monotonic_ms()
        """By how much the clock is ahead of the time that has passed."""
        self._is_behind = False
        """Whether there may be windows that have not followed yet."""
        self._walk: Iterator[Window | None] | None = None
        self._recent: list[int] = []

    def now_ms(self) -> int:
        """Return the time, after noticing whether it was set."""
        now_ms = self._clock.now_ms()
        step = now_ms - self._clock.monotonic_ms() - self._ahead_ms
        if not -STEP_MS < step < STEP_MS:
            self._stepped(step)
        return now_ms

    def _stepped(self, step: int) -> None:
        self._ahead_ms += step
        if step > 0:
            return
        log.warning("the clock was set back; deadlines of messages in flight follow ms=%d", -step)
        self._in_flight.clock_ms += step
        self._recent = [step, *(earlier + step for earlier in self._recent)][:STEPS_MAX]
        self._is_behind = True
        self._walk = None

    def settle(self, window: Window) -> None:
        """Let a window follow, if it has not; when this returns, that is in the log."""
        by_ms = self._in_flight.clock_ms - window.followed_ms
        if not by_ms:
            return
        if len(window):
            self._journal.append_state(INFLIGHT_TOPIC, encode(Shift(*window.key, by_ms)))
        window.followed_ms += by_ms

    def holds(self, window: Window, offset: int, deadline_ms: int) -> bool:
        """Say whether a handle with this deadline, maybe of a time before a step, is current."""
        if window.holds(offset, deadline_ms):
            return True
        return any(window.holds(offset, deadline_ms + by_ms) for by_ms in self._recent)

    def follow(self) -> bool:
        """Let some windows follow; return whether there are more."""
        self.now_ms()
        if not self._is_behind:
            return False
        walk, self._walk = self._walk or self._in_flight.walk(), None
        messages = 0
        for _ in range(WINDOWS_AT_ONCE):
            try:
                window = next(walk)
            except StopIteration:
                self._is_behind = False
                return False
            if window is not None:
                messages += len(window)
                # If this fails, the next call begins again; what has followed is passed over.
                self.settle(window)
                if messages >= MESSAGES_AT_ONCE:
                    break
        self._walk = walk
        return True
