"""Takes a snapshot: slices on the event loop's thread, writes and fsyncs in another.

    loop     due? → begin(position) → step() once per turn, a slice each, until it says False
    thread   step(): write what was handed over; at the end sync the file, have the log synced to
             `needs`, rename into place, let the oldest go

The two share one `Handover` per snapshot: a queue that one side appends to and the other pops
from, and plain fields that have one writer each. Neither side ever waits for the other: a taker
that is too far ahead of the disk takes nothing in that turn. `Snapshotter` schedules both: some
slices in each of the store's ticks, written by a job.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed, StoreError
from rockgate.store.files.interface import Directory, File
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.state.fold import State
from rockgate.store.state.snapshotfile import SnapshotBuilder
from rockgate.store.state.snapshots import RetainedSnapshot, Snapshots
from rockgate.store.workers import Jobs

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotConfig:
    """How often snapshots are taken."""

    bytes_since: int = 32 * _MIB
    """How much new log makes one due."""

    interval_ms: int = 60_000
    """How long after the last one any new log makes one due."""

    log_bytes_per_byte: int = 1
    """How much new log each byte of the last snapshot must have seen before one is due.

    It bounds what a large state costs under load, at 1 as much as the log's own writing; and what a
    start replays, which with a million waiting messages would at 8 take most of its time.
    """

    gap_ms: int = 0
    """How long after the last one new log alone makes none due."""

    retry_ms: int = 30_000
    """How long to wait after one that failed."""

    ahead_bytes_max: int = 8 * _MIB
    """How much may be taken and not yet written."""


class Source(Protocol):
    """What a snapshot is taken of."""

    @property
    def name(self) -> str:
        """Its name in the file."""

    def snapshot(self) -> Iterator[bytes]:
        """Hand out the state slice by slice."""


class Handover:
    """One snapshot on its way from the taker to the writer."""

    __slots__ = (
        "created_ms",
        "is_abandoned",
        "is_failed",
        "is_over",
        "names",
        "needs",
        "replay_from",
        "slices",
        "taken_bytes",
        "written_bytes",
    )

    def __init__(self, replay_from: int, created_ms: int, names: Sequence[str]) -> None:
        self.replay_from = replay_from
        self.created_ms = created_ms
        self.names = names
        self.slices: deque[tuple[int, bytes]] = deque()
        # The taker writes these. `needs` is set after the last slice was appended.
        self.taken_bytes = 0
        self.needs: int | None = None
        self.is_abandoned = False
        # The writer writes these.
        self.written_bytes = 0
        self.is_failed = False
        self.is_over = False


class SnapshotWriter:
    """The thread's side. `sync_log(position)` returns when the log is on disk up to there."""

    def __init__(
        self, directory: Directory, snapshots: Snapshots, sync_log: Callable[[int], None]
    ) -> None:
        self._directory = directory
        self._snapshots = snapshots
        self._sync_log = sync_log
        self._waiting: deque[Handover] = deque()
        self._handover: Handover | None = None
        self._sequence = 0
        self._name = ""
        self._file: File | None = None
        self._builder: SnapshotBuilder | None = None
        self.finished_count = 0
        self.failed_count = 0

    def submit(self, handover: Handover) -> None:
        """Take on a snapshot; called by the taker."""
        self._waiting.append(handover)

    def step(self) -> bool:
        """Write what was handed over and return whether there was anything to do.

        An error ends this snapshot, removes what was written of it, and is raised.
        """
        handover = self._handover
        if handover is None:
            if not self._waiting:
                return False
            handover = self._handover = self._waiting.popleft()
        try:
            return self._write(handover)
        except (StoreError, OSError):
            self._discard(handover)
            raise

    def _write(self, handover: Handover) -> bool:
        if handover.is_abandoned:
            self._discard(handover)
            return True
        builder = self._builder or self._create(handover)
        # Read before the slices are drained: once it is set, no slice follows.
        needs = handover.needs
        wrote = False
        while handover.slices:
            fold_index, data = handover.slices.popleft()
            builder.add(fold_index, data)
            handover.written_bytes += len(data)
            wrote = True
        if needs is None:
            return wrote
        size = builder.finish(needs)
        self._sync_log(needs)
        self._snapshots.publish(RetainedSnapshot(handover.replay_from, self._sequence, size))
        self.finished_count += 1
        self._close(handover)
        return True

    def _create(self, handover: Handover) -> SnapshotBuilder:
        self._sequence, self._name = self._snapshots.next_name(handover.replay_from)
        self._file = self._directory.create(self._name)
        self._builder = SnapshotBuilder(
            self._file, handover.names, handover.replay_from, handover.created_ms
        )
        return self._builder

    def _discard(self, handover: Handover) -> None:
        self.failed_count += 1
        handover.is_failed = True
        self._close(handover)
        if self._name in self._directory.names():
            self._directory.remove(self._name)

    def _close(self, handover: Handover) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._builder = self._handover = None
        handover.is_over = True


class SnapshotTaker:
    """The loop's side. `log_end()` is the position behind the last entry the folds have seen."""

    def __init__(
        self,
        sources: Callable[[], Sequence[Source]],
        writer: SnapshotWriter,
        snapshots: Snapshots,
        clock: Clock,
        log_end: Callable[[], int],
        config: SnapshotConfig,
    ) -> None:
        self._sources = sources
        self._writer = writer
        self._snapshots = snapshots
        self._clock = clock
        self._log_end = log_end
        self._config = config
        self._handover: Handover | None = None
        self._slices: Iterator[tuple[int, bytes]] | None = None
        self._begun_ms = clock.monotonic_ms()

    @property
    def is_busy(self) -> bool:
        """Whether a snapshot is being taken or written."""
        return self._handover is not None and not self._handover.is_over

    def due(self, now_ms: int, bytes_since: int, *, is_wanted: bool = False) -> bool:
        """Return whether one should begin, at a monotonic time and this much log after the last.

        One that is wanted is due at once, unless one has just failed.
        """
        if self.is_busy or (bytes_since <= 0 and not is_wanted):
            return False
        waited_ms = now_ms - self._begun_ms
        if self._handover is not None and self._handover.is_failed:
            return waited_ms >= self._config.retry_ms
        if is_wanted or waited_ms >= self._config.interval_ms:
            return True
        if waited_ms < self._config.gap_ms:
            return False
        newest = self._snapshots.newest
        size = newest.size if newest is not None else 0
        return bytes_since >= max(self._config.bytes_since, size * self._config.log_bytes_per_byte)

    def begin(self, position: int) -> None:
        """Begin a snapshot from which a replay starts at `position`, the log's end now."""
        assert not self.is_busy, "one snapshot at a time"
        sources = tuple(self._sources())
        names = [source.name for source in sources]
        self._begun_ms = self._clock.monotonic_ms()
        self._handover = Handover(position, self._clock.now_ms(), names)
        self._slices = (
            (index, data) for index, source in enumerate(sources) for data in source.snapshot()
        )
        self._writer.submit(self._handover)

    def step(self) -> bool:
        """Hand over one slice, and return whether there are more to take."""
        handover = self._handover
        if handover is None or self._slices is None:
            return False
        if handover.is_over:
            self._slices = None
            return False
        if handover.taken_bytes - handover.written_bytes > self._config.ahead_bytes_max:
            return True
        try:
            taken = next(self._slices, None)
        except Exception:
            self.abandon()
            raise
        if taken is None:
            self._slices = None
            handover.needs = self._log_end()
            return False
        handover.taken_bytes += len(taken[1])
        handover.slices.append(taken)
        return True

    def abandon(self) -> None:
        """Give up a snapshot that is being taken; the writer removes what there is of it."""
        if self._handover is not None and self._slices is not None:
            self._slices = None
            self._handover.is_abandoned = True


_log = logging.getLogger(__name__)

SHARE_MS: Final = 10
"""For so long since the last tick one slice is taken, of about a millisecond: a tenth of the time.

Under load a turn of the loop is many requests long. With one slice in each, a million waiting
messages would take minutes, and a start would replay what was appended meanwhile.
"""
SLICES_MAX: Final = 10
SLICES_MS_MAX: Final = 3
"""Slices of one tick, and how long they may take: what they take must not be felt."""


def make_snapshotter(
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
) -> Snapshotter:
    """Make what takes the snapshots of a store, and what writes them."""
    writer = SnapshotWriter(directory, snapshots, sync_log)
    often = SnapshotConfig(
        bytes_since=config.snapshot_bytes,
        interval_ms=config.snapshot_interval_ms,
        gap_ms=config.upkeep_gap_ms,
    )
    taker = SnapshotTaker(lambda: state.folds, writer, snapshots, clock, lambda: log.end, often)
    return Snapshotter(
        taker=taker, writer=writer, log=log, clock=clock, jobs=jobs, taken_at=taken_at
    )


class Snapshotter:
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
            _log.error("Snapshot failed and will be retried: %s", failure)

    def take_last(self) -> None:
        """Give up what is under way, and take a whole one if there is anything new: a stop does."""
        self.taker.abandon()
        self._write()
        if self._log.end > self._taken_at:
            self.taker.begin(self._log.end)
            while self.taker.step():
                self._write()
            self._write()
