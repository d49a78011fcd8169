"""Takes checkpoints: flush the log, write the queue units, then update the checkpoint file.

The order matters: the file never refers to anything that is not on disk. Each step that touches the
disk is a job; queues are only accessed on the store's thread, between two jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed, StoreError
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.flusher import Flusher
from rockgate.store.queues.queuetable import QueueTable, Stretch
from rockgate.store.upkeep.checkpoint import CheckpointFile
from rockgate.store.workers import Done, Jobs, Work

_log = logging.getLogger(__name__)


class Checkpointer:
    """Takes a checkpoint when one is due, one at a time."""

    def __init__(
        self,
        *,
        log: CommitLog,
        flusher: Flusher,
        commit: Commit,
        queues: QueueTable,
        keys: KeyIndex | None,
        file: CheckpointFile,
        jobs: Callable[[], Jobs],
        clock: Clock,
        config: StoreConfig,
    ) -> None:
        self._log = log
        self._flusher = flusher
        self._commit = commit
        self._queues = queues
        self._keys = keys
        self._file = file
        self._jobs = jobs
        self._clock = clock
        self._config = config
        self._taken_ms = clock.monotonic_ms()
        self.failure: Exception | None = None
        """Why the last checkpoint failed."""
        self._safe = 0
        self._done: list[Callable[[], None]] = []
        self._next_done: list[Callable[[], None]] = []
        self.is_running = False
        self.taken_count = 0

    @property
    def position(self) -> int:
        """Everything before this position is on disk and covered by the newest checkpoint."""
        return self._file.newest.flushed

    def is_due(self) -> bool:
        """Say whether enough log, or time, has passed since the last one."""
        behind = self._log.end - self._file.newest.flushed
        if self.is_running or behind <= 0:
            return False
        waited_ms = self._clock.monotonic_ms() - self._taken_ms
        # After a failure only time makes it due, or a full disk would be tried continuously. Under
        # load there is a pause, because each checkpoint costs fsyncs however little is new; a start
        # scans entries as fast as they were appended, so the pause does not prolong it.
        if behind >= self._config.checkpoint_bytes and self.failure is None:
            return waited_ms >= min(self._config.upkeep_gap_ms, self._config.checkpoint_interval_ms)
        return waited_ms >= self._config.checkpoint_interval_ms

    def take(self, done: Callable[[], None] | None = None) -> None:
        """Take a checkpoint; `done` is called after one that began after this call.

        While one is in progress, another one follows only if there is a waiter for it.
        """
        if done is not None:
            self._next_done.append(done)
        if not self.is_running:
            self.is_running = True
            self._done, self._next_done = self._next_done, []
            self._submit(self._flush, self._flushed)

    def _submit(self, work: Work, done: Done) -> None:
        """Submit a job; whatever its callback does, this checkpoint comes to an end."""

        def contained(failure: Exception | None) -> None:
            try:
                done(failure)
            except Exception as error:  # noqa: BLE001  # a supervisor: the next one must not block
                self._finish(error)

        self._jobs().submit(work, contained)

    def _flush(self) -> None:
        self._flusher.step()
        if self._flusher.failure is not None:
            raise self._flusher.failure

    def _flushed(self, failure: Exception | None) -> None:
        self._flusher.settle()
        # Later flushes belong to the next checkpoint: the log may grow as fast as it is indexed.
        self._safe = self._flusher.flushed
        self._index(failure)

    def _index(self, failure: Exception | None) -> None:
        if failure is not None:
            self._finish(failure)
            return
        # What is indexed is visible: `Queue.end_before` takes it to be committed.
        stretch = self._queues.plan(min(self._safe, self._commit.position))
        if stretch is None:
            safe = (self._safe, self._queues.indexed, self._log.last_store_ms)
            if self._keys is not None:
                self._keys.reached(self._safe)
            self._submit(lambda: self._write(*safe), self._finish)
            return
        self._submit(partial(self._queues.write, stretch), partial(self._adopt, stretch))

    def _adopt(self, stretch: Stretch, failure: Exception | None) -> None:
        # Not a closure that refers to itself: that cycle would keep the queues, even deleted ones,
        # until the garbage collector runs, or forever if they are frozen before.
        if failure is not None:
            self._queues.give_back(stretch)
            self._finish(failure)
        elif self._queues.adopt(stretch):
            # Some queues at a time, with other work of the store's thread in between.
            self._submit(lambda: None, partial(self._adopt, stretch))
        else:
            self._index(None)

    def _write(self, flushed: int, indexed: int, last_store_ms: int) -> None:
        if self._keys is not None:
            self._keys.prepare()
            self._keys.flush()
        self._file.write(flushed, indexed, last_store_ms)
        self._queues.clean()

    def _finish(self, failure: Exception | None) -> None:
        self.is_running = False
        self.failure = failure
        self._taken_ms = self._clock.monotonic_ms()
        if failure is None:
            self.taken_count += 1
        elif not isinstance(failure, DiskFailed):
            # The previous checkpoint remains valid; a start would scan a little more.
            is_ours = not isinstance(failure, (OSError, StoreError))
            _log.error(
                "Checkpoint failed and will be retried: %s",
                failure,
                exc_info=failure if is_ours else None,
            )
        done, self._done = self._done, []
        for each in done:
            each()
        if self._next_done:
            self.take()
