"""Named upkeep steps, isolated so that a failing one does not starve the others.

A step does a little and says whether there is more to do soon. One that raises is counted and
paused for a second, then for twice as long up to half a minute, while the others continue. The
first failure is logged, then one per minute, and the recovery.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.errors import DiskFailed, StoreError

_log = logging.getLogger(__name__)

Step = Callable[[], bool]

PAUSE_MS: Final = 1_000
PAUSE_MS_MAX: Final = 30_000
LOGGED_EVERY_MS: Final = 60_000


class _StepState:
    """One step and its failures."""

    __slots__ = (
        "appends",
        "failed_count",
        "logged_ms",
        "name",
        "not_before_ms",
        "pause_ms",
        "row_count",
        "run",
    )

    def __init__(self, name: str, run: Step, *, appends: bool) -> None:
        self.name = name
        self.run = run
        self.appends = appends
        self.failed_count = 0
        self.row_count = 0
        """Number of consecutive failures."""
        self.pause_ms = 0
        self.not_before_ms = 0
        self.logged_ms = 0


class Steps:
    """Runs named steps in rounds. Belongs to the thread of its owner."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_ms = clock.monotonic_ms
        self._steps: list[_StepState] = []

    def add(self, name: str, step: Step, *, appends: bool = False) -> None:
        """Add a step; logs and metrics use its name.

        One that appends to the log is skipped in rounds that must not append.
        """
        assert all(name != each.name for each in self._steps), f"two steps are called {name}"
        self._steps.append(_StepState(name, step, appends=appends))

    def run(self, *, may_append: bool = True) -> bool:
        """Run each step once, except paused ones; say whether any has more to do."""
        has_more = False
        for step in self._steps:
            if step.appends and not may_append:
                continue
            if step.row_count and self._monotonic_ms() < step.not_before_ms:
                continue
            try:
                has_more |= step.run()
            except Exception as error:  # noqa: BLE001  # a supervisor: counted, logged, retried
                self._failed(step, error)
                continue
            if step.row_count:
                _log.info("upkeep recovered step=%s failures=%d", step.name, step.row_count)
                step.row_count = step.pause_ms = 0
        return has_more

    def failures(self) -> Iterator[tuple[str, int]]:
        """Return every step's name and its number of failures."""
        return ((step.name, step.failed_count) for step in self._steps)

    def _failed(self, step: _StepState, error: Exception) -> None:
        now_ms = self._monotonic_ms()
        step.failed_count += 1
        step.row_count += 1
        step.pause_ms = min(PAUSE_MS_MAX, 2 * step.pause_ms or PAUSE_MS)
        step.not_before_ms = now_ms + step.pause_ms
        if isinstance(error, DiskFailed):
            return  # logged once, where it happened
        if step.row_count == 1 or now_ms - step.logged_ms >= LOGGED_EVERY_MS:
            step.logged_ms = now_ms
            is_ours = not isinstance(error, (OSError, StoreError))
            _log.error(
                "upkeep failed step=%s failures=%d: %s",
                step.name,
                step.row_count,
                str(error) or type(error).__name__,
                exc_info=error if is_ours else None,
            )
