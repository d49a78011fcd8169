"""Schedules snapshots: one slice per tick, written by a worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed
from rockgate.store.files.interface import Directory
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.state.fold import State
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.snapshotter import SnapshotConfig, SnapshotTaker, SnapshotWriter
from rockgate.store.workers import Jobs

_log = logging.getLogger(__name__)

SHARE_MS: Final = 10
"""For so long since the last tick one slice is taken, of about a millisecond: a tenth of the time.

Under load a turn of the loop is many requests long. With one slice in each, a million waiting
messages would take minutes, and a start would replay what was appended meanwhile.
"""
SLICES_MAX: Final = 10
SLICES_MS_MAX: Final = 3
"""Slices of one tick, and how long they may take: what they take must not be felt."""


def make_snapshotting(
    *,
    directory: Directory,
    state: State,
    snapshots: Snapshots,
    sync_log: Callable[[int], None],
    log: CommitLog,
    clock: Clock,
    jobs: Callable[[], Jobs],
    config: StoreConfig,
    taken_at: int,
) -> Snapshotting:
    """Make what takes the snapshots of a store, and what writes them."""
    writer = SnapshotWriter(directory, snapshots, sync_log)
    often = SnapshotConfig(
        bytes_since=config.snapshot_bytes,
        interval_ms=config.snapshot_interval_ms,
        gap_ms=config.upkeep_gap_ms,
    )
    taker = SnapshotTaker(lambda: state.folds, writer, snapshots, clock, lambda: log.end, often)
    return Snapshotting(
        taker=taker, writer=writer, log=log, clock=clock, jobs=jobs, taken_at=taken_at
    )


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
        self._ticked_ms = 0

    def tick(self, *, is_wanted: bool) -> bool:
        """Begin one that is due, or take the next slices; say whether there is more to take."""
        taker, now_ms = self.taker, self._clock.monotonic_ms()
        if not taker.is_busy:
            since = self._log.end - self._taken_at
            if not taker.due(now_ms, since, is_wanted=is_wanted):
                return False
            self._taken_at = self._log.end
            taker.begin(self._log.end)
            self._ticked_ms = now_ms
        count = min(SLICES_MAX, max(1, (now_ms - self._ticked_ms) // SHARE_MS))
        self._ticked_ms = now_ms
        more = True
        while more and count:
            more = taker.step()
            count -= 1
            if self._clock.monotonic_ms() - now_ms >= SLICES_MS_MAX:
                break
        self._jobs().submit(self._write, self._told)
        return more

    def _write(self) -> None:
        while self.writer.step():
            pass

    @staticmethod
    def _told(failure: Exception | None) -> None:
        if failure is not None and not isinstance(failure, DiskFailed):
            _log.error("snapshot failed: %s", failure)

    def take_last(self) -> None:
        """Give up what is under way, and take a whole one if there is anything new: a stop does."""
        self.taker.abandon()
        self._write()
        if self._log.end > self._taken_at:
            self.taker.begin(self._log.end)
            while self.taker.step():
                self._write()
            self._write()
