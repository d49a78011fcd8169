"""What a poll returns, and the group's progress that follows from it.

    cached      pulled, and not returned yet; bounded by flow control
    position    behind the last message returned: where the next poll continues
    settled     the position when the latest poll began: polling again means that everything
                returned before is done. This is what automatic commits commit

Queues take turns, so that a full one does not starve the others. A paused queue returns nothing,
and its messages stay cached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue


class Polls:
    """The queues of one lite pull consumer, as polls use them."""

    def __init__(self) -> None:
        self.positions = OffsetTable()
        self.settled = OffsetTable()
        self._cached: dict[Queue, ProcessQueue[Received]] = {}
        self._turns: deque[Queue] = deque()
        self._paused: set[Queue] = set()

    def begin(self, queue: Queue, cached: ProcessQueue[Received], offset: int) -> None:
        """A queue is read from here on."""
        if queue not in self._cached:
            self._turns.append(queue)
        self._cached[queue] = cached
        self.positions.update(queue, offset, increase_only=False)

    def end(self, queue: Queue) -> None:
        """A queue is no longer read here."""
        if self._cached.pop(queue, None) is not None:
            self._turns.remove(queue)
        self.positions.remove(queue)
        self.settled.remove(queue)
        self._paused.discard(queue)

    def settle(self) -> None:
        """Everything that polls have returned is consumed."""
        for queue, offset in self.positions.all().items():
            self.settled.update(queue, offset, increase_only=False)

    def take(self, count_max: int, now_s: float) -> list[Received]:
        """The next messages, in the order of their queues."""
        found: list[Received] = []
        for _ in range(len(self._turns)):
            queue = self._turns[0]
            self._turns.rotate(-1)
            cached = self._cached[queue]
            if cached.is_dropped or queue in self._paused:
                continue
            found += cached.take(count_max - len(found), now_s)
            offset = cached.commit()
            if offset is not None:
                self.positions.update(queue, offset, increase_only=False)
            if len(found) >= count_max:
                break
        return found

    def pause(self, queues: Iterable[Queue]) -> None:
        """Return no messages of these queues."""
        self._paused.update(queues)

    def resume(self, queues: Iterable[Queue]) -> None:
        """Return messages of them again."""
        self._paused.difference_update(queues)

    @property
    def paused(self) -> Collection[Queue]:
        """Queues of which polls return nothing."""
        return frozenset(self._paused)
