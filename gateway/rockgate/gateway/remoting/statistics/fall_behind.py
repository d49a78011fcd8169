"""How far a group is behind in a queue: in bytes of the log, and in time."""

from __future__ import annotations

from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Log
from rockgate.store.api.progress import CommittedOffsets
from rockgate.store.api.queues import Queue


class FallBehind:
    """Compares what groups have committed with the log."""

    def __init__(self, progress: CommittedOffsets, log: Log, clock: Clock) -> None:
        self._progress = progress
        self._log = log
        self._clock = clock

    def size(self, group: str, queue: Queue) -> int | None:
        """Return the bytes of the log from a group's next message to its end; 0 if it has all.

        None if the group has committed nothing.
        """
        found = self._next(group, queue)
        if found is None:
            return None
        position, _ = found
        return 0 if position < 0 else max(0, self._log.end - position)

    def ms(self, group: str, queue: Queue) -> int | None:
        """Return how long ago a group's next message was stored; 0 if it has all."""
        found = self._next(group, queue)
        if found is None:
            return None
        position, store_ms = found
        return 0 if position < 0 else max(0, self._clock.now_ms() - store_ms)

    def _next(self, group: str, queue: Queue) -> tuple[int, int] | None:
        """Return position and time of a group's next message; -1 if there is none yet."""
        committed = self._progress.fetch(group, queue.topic_id, queue.queue_id)
        if committed is None:
            return None
        offset = max(committed.offset, queue.log_start)
        unit = queue.find(offset) if offset < queue.next_offset else None
        return (-1, 0) if unit is None else (unit.position, unit.store_ms)
