"""Takes a snapshot: slices on the event loop's thread, writes and fsyncs in another.

    loop     due? → begin(position) → step() once per iteration, a slice each, until it says False
    thread   step(): write the slices handed over; at the end sync the file, have the log synced to
             `needs`, rename the file into place, remove the oldest

The two share one `Handover` per snapshot: a queue that one side appends to and the other pops from,
and plain fields with one writer each. Neither side ever waits for the other: a taker that is too
far ahead of the disk skips its turn. `Snapshotter` schedules both: some slices in each of the
store's ticks, written by a job.
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
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.state.fold import State
from rockgate.store.state.snapshotfile import SnapshotBuilder
from rockgate.store.state.snapshots import RetainedSnapshot, Snapshots
from rockgate.store.workers import Jobs

_MIB = 1 << 20
_EVERYTHING: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotConfig:
    """How often snapshots are taken."""

    bytes_since: int = 32 * _MIB
    """Log growth that makes a snapshot due."""

    interval_ms: int = 60_000
    """Time since the last snapshot after which any log growth makes one due."""

    log_bytes_per_byte: int = 1
    """Log growth per byte of the last snapshot before the next one is due.

    It limits the cost of a large state under load, at 1 to that of writing the log itself; and the
    amount that a start replays, which at 8 would dominate it with a million delayed messages.
    """

    gap_ms: int = 0
    """Minimum time between snapshots triggered by log growth."""

    retry_ms: int = 30_000
    """Time to wait after a failed snapshot."""

    ahead_bytes_max: int = 8 * _MIB
    """Maximum number of bytes taken but not yet written."""


class Source(Protocol):
    """What a snapshot is taken of."""

    @property
    def name(self) -> str:
        """Its name in the file."""

    def snapshot(self) -> Iterator[bytes]:
        """Yield the state slice by slice."""


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
        # Written by the taker. `needs` is set after the last slice was appended.
        self.taken_bytes = 0
        self.needs: int | None = None
        self.is_abandoned = False
        # Written by the writer.
        self.written_bytes = 0
        self.is_failed = False
        self.is_over = False


class SnapshotWriter:
    """The thread's side. `sync_log(position)` returns when the log is on disk up to there.

    A snapshot gets its name once everything it needs is committed: a log that is cut back below
    that could not use it, and the older one may need what was removed meanwhile.
    """

    def __init__(
        self,
        directory: Directory,
        snapshots: Snapshots,
        sync_log: Callable[[int], None],
        committed: Callable[[], int] = lambda: _EVERYTHING,
    ) -> None:
        self._directory = directory
        self._snapshots = snapshots
        self._sync_log = sync_log
        self._committed = committed
        self._waiting: deque[Handover] = deque()
        self._handover: Handover | None = None
        self._sequence = 0
        self._name = ""
        self._file: File | None = None
        self._builder: SnapshotBuilder | None = None
        self._size: int | None = None
        self.finished_count = 0
        self.failed_count = 0

    def submit(self, handover: Handover) -> None:
        """Queue a snapshot; called by the taker."""
        self._waiting.append(handover)

    def step(self) -> bool:
        """Write the slices handed over, and say whether there was anything to do.

        An error ends this snapshot, removes its file, and is raised.
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
        if self._size is None:
            self._size = builder.finish(needs)
            self._sync_log(needs)
        if self._committed() < needs:
            return False  # asked again with the next tick
        snapshot = RetainedSnapshot(handover.replay_from, self._sequence, self._size)
        self._snapshots.publish(snapshot)
        self.finished_count += 1
        self._close(handover)
        return True

    def drop(self) -> None:
        """At shutdown: remove a snapshot that is complete, but not committed."""
        if self._handover is not None:
            self._discard(self._handover)

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
        self._file = self._builder = self._handover = self._size = None
        handover.is_over = True


class SnapshotTaker:
    """The loop's side. `log_end()` is the end of what the folds have applied."""

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
        """Say whether a snapshot is due, at a monotonic time and after this much log growth.

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
        """Begin a snapshot from which a replay starts at `position`, the current log end."""
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
        """Hand over one slice, and say whether there are more."""
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
        """Abandon the current snapshot; the writer removes its file."""
        if self._handover is not None and self._slices is not None:
            self._slices = None
            self._handover.is_abandoned = True


_log = logging.getLogger(__name__)

SHARE_MS: Final = 10
"""One slice, of about a millisecond, is taken per this time since the last tick: a tenth of it.

Under load one iteration of the loop handles many requests. With one slice in each, a million
delayed messages would take minutes, and a start would replay everything appended meanwhile.
"""
SLICES_MAX: Final = 10
SLICES_MS_MAX: Final = 3
"""Maximum number of slices per tick, and of milliseconds, so that requests are not delayed."""


def make_snapshotter(
    *,
    directory: Directory,
    state: State,
    snapshots: Snapshots,
    sync_log: Callable[[int], None],
    commit: Commit,
    log: CommitLog,
    clock: Clock,
    jobs: Callable[[], Jobs],
    config: StoreConfig,
    taken_at: int,
) -> Snapshotter:
    """Create the taker and the writer of a store's snapshots."""
    writer = SnapshotWriter(directory, snapshots, sync_log, lambda: commit.position)
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
    """Takes snapshots as they become due."""

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
        """Where the last one starts to replay: it does not cover what follows."""
        self._ticked_ms = 0

    def tick(self, *, is_wanted: bool) -> bool:
        """Begin a snapshot that is due, or take the next slices; say whether there are more."""
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
        self._jobs().submit(self._write, self._written)
        return more

    def _write(self) -> None:
        while self.writer.step():
            pass

    @staticmethod
    def _written(failure: Exception | None) -> None:
        if failure is not None and not isinstance(failure, DiskFailed):
            _log.error("Snapshot failed and will be retried: %s", failure)

    def take_last(self) -> None:
        """At shutdown: abandon the current snapshot, and take a complete one if anything is new."""
        self.taker.abandon()
        self._write()
        self.writer.drop()
        if self._log.end > self._taken_at:
            self.taker.begin(self._log.end)
            while self.taker.step():
                self._write()
            self._write()
            self.writer.drop()
