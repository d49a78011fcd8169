"""Taking checkpoints: flush the log, write the queues' units, then say so in the checkpoint file.

The order is the whole point: the file never names what is not on disk. Each step that touches the
disk is a job; what touches queues happens on the store's thread between two jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rockgate.store.background import Jobs
from rockgate.store.checkpoint import CheckpointFile
from rockgate.store.clock import Clock
from rockgate.store.commitlog import CommitLog
from rockgate.store.config import StoreConfig
from rockgate.store.flush import Flusher
from rockgate.store.queuetable import QueueTable, Stretch

_log = logging.getLogger(__name__)


class Checkpointer:
    """Takes a checkpoint when one is due, one at a time."""

    def __init__(
        self,
        *,
        log: CommitLog,
        flusher: Flusher,
        queues: QueueTable,
        file: CheckpointFile,
        jobs: Jobs,
        clock: Clock,
        config: StoreConfig,
    ) -> None:
        self._log = log
        self._flusher = flusher
        self._queues = queues
        self._file = file
        self.jobs = jobs
        self._clock = clock
        self._config = config
        self._taken_ms = clock.monotonic_ms()
        self._done: list[Callable[[], None]] = []
        self.is_running = False
        self.taken_count = 0

    def is_due(self) -> bool:
        """Say whether enough log, or time, has passed since the last one."""
        behind = self._log.end - self._file.newest.flushed
        if self.is_running or behind <= 0:
            return False
        if behind >= self._config.checkpoint_bytes:
            return True
        return self._clock.monotonic_ms() - self._taken_ms >= self._config.checkpoint_interval_ms

    def take(self, done: Callable[[], None] | None = None) -> None:
        """Take a checkpoint, unless one is being taken; `done` is called when it is there."""
        if done is not None:
            self._done.append(done)
        if not self.is_running:
            self.is_running = True
            self.jobs.submit(self._flush, self._index)

    def _flush(self) -> None:
        self._flusher.step()
        if self._flusher.failure is not None:
            raise self._flusher.failure

    def _index(self, failure: Exception | None) -> None:
        self._flusher.settle()
        if failure is not None:
            self._finish(failure)
            return
        stretch = self._queues.plan(self._flusher.flushed)
        if stretch is None:
            safe = (self._flusher.flushed, self._queues.indexed, self._log.last_store_ms)
            self.jobs.submit(lambda: self._file.write(*safe), self._finish)
            return

        def adopt(failure: Exception | None, stretch: Stretch = stretch) -> None:
            if failure is None:
                self._queues.adopt(stretch)
            else:
                self._queues.give_back(stretch)
            self._index(failure)

        self.jobs.submit(lambda: self._queues.write(stretch), adopt)

    def _finish(self, failure: Exception | None) -> None:
        self.is_running = False
        self._taken_ms = self._clock.monotonic_ms()
        if failure is None:
            self.taken_count += 1
        else:
            # The one before still holds, and a start would scan a little more.
            _log.error("no checkpoint was taken: %s", failure)
        done, self._done = self._done, []
        for each in done:
            each()
