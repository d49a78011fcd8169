"""When snapshots are taken: a slice a tick on the store's thread, the bytes written beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rockgate.store.background import Jobs
from rockgate.store.clock import Clock
from rockgate.store.commitlog import CommitLog
from rockgate.store.snapshotter import SnapshotTaker, SnapshotWriter

_log = logging.getLogger(__name__)


class Snapshotting:
    """Takes one snapshot after the other, as they become due."""

    def __init__(
        self,
        *,
        taker: SnapshotTaker,
        writer: SnapshotWriter,
        log: CommitLog,
        clock: Clock,
        jobs: Callable[[], Jobs],
        taken_at: int,
    ) -> None:
        self.taker = taker
        self.writer = writer
        self._log = log
        self._clock = clock
        self._jobs = jobs
        self._taken_at = taken_at
        """Where the last one begins to replay: what lies behind it is in none."""

    def tick(self, *, is_wanted: bool) -> bool:
        """Begin one that is due, or take the next slice; say whether there is more to take."""
        taker = self.taker
        if not taker.is_busy:
            since = self._log.end - self._taken_at
            if not taker.due(self._clock.monotonic_ms(), since, is_wanted=is_wanted):
                return False
            self._taken_at = self._log.end
            taker.begin(self._log.end)
        more = taker.step()
        self._jobs().submit(self._write, self._told)
        return more

    def _write(self) -> None:
        while self.writer.step():
            pass

    @staticmethod
    def _told(failure: Exception | None) -> None:
        if failure is not None:
            _log.error("no snapshot was taken: %s", failure)

    def take_last(self) -> None:
        """Give up what is under way, and take a whole one if there is anything new: a stop does."""
        self.taker.abandon()
        self._write()
        if self._log.end > self._taken_at:
            self.taker.begin(self._log.end)
            while self.taker.step():
                self._write()
            self._write()
