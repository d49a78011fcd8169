"""The timer that delivers delayed messages when they are due.

Upkeep runs ten times a second, which would make a short delay up to a tenth of a second longer.
This timer is set for the next due message, and reset when an earlier one is scheduled. While much
is due, steps follow each other with only socket events in between.

After a delivery the next one is some milliseconds away. Each wakes the waiters of its queue, so
with thousands a second, one at a time, the server would do little but wake them.
"""

import logging
from collections.abc import Iterator
from typing import Protocol

from rockgate.gateway.net.clock import Clock, Timer
from rockgate.store.errors import DiskFailed

WAIT_MS_MAX = 1_000
"""The longest the timer sleeps, so that a change of the system clock is noticed."""
FAILED_MS = 1_000
LOGGED_EVERY = 60
"""One in this many consecutive failures, a second apart, is logged."""
GATHER_MS = 4
"""Pause between two deliveries, unless more is due than one step delivers."""
log = logging.getLogger(__name__)


class Deliveries(Protocol):
    """Delivers messages that are due."""

    delivered_count: int

    def step(self) -> bool:
        """Deliver some of what is due; True if there is more to do at once."""

    def wait_ms(self) -> int:
        """Return how long nothing will be due."""

    def now_ms(self) -> int:
        """Return the time that delays are counted from."""
        ...


class Schedule(Protocol):
    """The schedule of messages that are not yet due."""

    looks_at_ms: int


class Delivering:
    """Runs delivery steps for as long as the server runs. Owned by the app."""

    def __init__(self, deliveries: Deliveries, schedule: Schedule, clock: Clock) -> None:
        self._deliveries = deliveries
        self._schedule = schedule
        self._clock = clock
        self._failures = 0
        """Consecutive failures of steps."""
        self._failed_count = 0
        self._is_stopped = False
        self._timer: Timer
        self._set(0)

    def stop(self) -> None:
        """Stop delivering."""
        self._is_stopped = True
        self._timer.cancel()

    def sooner(self) -> None:
        """Reset the timer: something was scheduled that is due before it fires."""
        if self._is_stopped or self._schedule.looks_at_ms <= self._deliveries.now_ms():
            return  # or a step is on its way
        self._timer.cancel()
        self._set(max(1, self._deliveries.wait_ms()))

    def _step(self) -> None:
        deliveries, before = self._deliveries, self._deliveries.delivered_count
        try:
            wait_ms = 0
            if not deliveries.step():
                least_ms = GATHER_MS if deliveries.delivered_count > before else 1
                wait_ms = max(least_ms, deliveries.wait_ms())
            self._failures = 0
        except Exception as error:  # noqa: BLE001  # a supervisor: logged, and tried again
            # One failed step must not be the last: a full disk may have free space again.
            self._log_failure(error)
            wait_ms = FAILED_MS
        self._set(wait_ms)

    def _log_failure(self, error: Exception) -> None:
        """Log the first of consecutive failures, and then one a minute."""
        if self._failures % LOGGED_EVERY == 0 and not isinstance(error, DiskFailed):
            log.error("delivery of delayed messages failed: %s", error, exc_info=error)
        self._failures += 1
        self._failed_count += 1

    def failures(self) -> Iterator[tuple[str, int]]:
        """Return how often a step has failed, by its name in the metrics."""
        yield "deliveries", self._failed_count

    def _set(self, wait_ms: int) -> None:
        wait_ms = min(wait_ms, WAIT_MS_MAX)
        self._schedule.looks_at_ms = self._deliveries.now_ms() + wait_ms
        self._timer = self._clock.call_later(wait_ms / 1_000, self._step)
