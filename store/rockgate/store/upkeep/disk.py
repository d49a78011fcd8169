"""Disk limits: writes are rejected above the first, everything but upkeep above the last.

The first limit is the configured usage, or the reserve if that is more; state changes are accepted
until only what upkeep needs to get below the limits is left. Reads continue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import Directory
from rockgate.store.upkeep.reserve import Reserve
from rockgate.store.workers import Jobs
from rockgate.store.write.append import Appender

_log = logging.getLogger(__name__)

LOOK_MS: Final = 1_000


class DiskWatch:
    """Checks the disk once a second. Owned by retention, and used on its thread."""

    def __init__(
        self,
        *,
        directory: Directory,
        appender: Appender,
        reserve: Reserve,
        jobs: Callable[[], Jobs],
        clock: Clock,
        config: StoreConfig,
    ) -> None:
        self._directory = directory
        self._appender = appender
        self._reserve = reserve
        self._jobs = jobs
        self._clock = clock
        self._config = config
        self._looked_ms: int | None = None
        self.is_looking = False
        self._found = (0, 0)
        self._refusal: StoreFull | None = None
        self._state_refusal: StoreFull | None = None
        self.used_percent = 0.0

    @property
    def is_over(self) -> bool:
        """Whether disk usage is above the limit."""
        return self._refusal is not None

    def step(self) -> None:
        """Check if a second has passed; a worker thread asks the file system."""
        now_ms = self._clock.monotonic_ms()
        if self.is_looking or (self._looked_ms is not None and now_ms - self._looked_ms < LOOK_MS):
            return
        self._looked_ms = now_ms
        self.look()

    def look(self) -> None:
        """Check now."""
        self.is_looking = True
        self._jobs().submit(self._ask, self._judge)

    def _ask(self) -> None:
        self._found = self._directory.space()

    def _judge(self, failure: Exception | None) -> None:
        self.is_looking = False
        if failure is not None:
            _log.error("Cannot determine disk usage: %s", failure)
            return
        free, total = self._found
        self.used_percent = 100 * (total - free) / total if total else 0.0
        limit = self._config.disk_used_percent_max
        low = self._reserve.low(total)
        if self.used_percent > limit:
            self._refuse(
                f"Disk usage of {self.used_percent:.1f} % exceeds disk_used_percent_max ({limit})"
            )
        elif free < low:
            self._refuse(f"Only {free:,} bytes are free on the disk; the reserve is {low:,}")
        elif self._refusal is not None:
            _log.info("accepting writes again disk_used_percent=%.1f", self.used_percent)
            if self._appender.refusal is self._refusal:
                self._appender.refusal = None
            self._refusal = None
        self._judge_state(free, self._reserve.least(total))

    def _refuse(self, why: str) -> None:
        if self._refusal is None:
            self._refusal = StoreFull(
                f"{why}. Free disk space, lower the retention or raise the limit; reads continue."
            )
            _log.warning("Rejecting writes: %s", self._refusal)
        if self._appender.refusal is None:
            self._appender.refusal = self._refusal

    def _judge_state(self, free: int, least: int) -> None:
        """Reject changes by clients, or accept them again."""
        if free < least:
            if self._state_refusal is None:
                self._state_refusal = StoreFull(
                    f"Only {free:,} bytes are free on the disk; the reserve is {least:,}. Free "
                    "disk space, delete topics or lower the retention; reads continue."
                )
                _log.warning("Rejecting commits and other changes: %s", self._state_refusal)
            if self._appender.state_refusal is None:
                self._appender.state_refusal = self._state_refusal
        elif self._state_refusal is not None:
            _log.info("accepting changes again disk_used_percent=%.1f", self.used_percent)
            if self._appender.state_refusal is self._state_refusal:
                self._appender.state_refusal = None
            self._state_refusal = None
