"""How many bytes of the log each queue takes.

The units of a queue have their sizes, and a large queue has millions of them. So sums are cached as
a list of marks, each with the bytes up to it: the next request only adds what was appended since,
and the piece that contains the log start. Counting is done a little at a time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice, takewhile

from rockgate.store.api.queues import Queue
from rockgate.store.api.topics import Topic

PIECE_UNITS = 1_000
"""Units between two marks, counted before other requests run: about half a millisecond."""
_DEAD_MARKS_MAX = 64


class _Count:
    """Marks in a queue:

    the offsets up to which it was counted, and the bytes from the first mark.
    """

    __slots__ = ("ends", "last_units", "sizes")

    def __init__(self, start: int) -> None:
        self.ends = array("q", [start])
        self.sizes = array("q", [0])
        self.last_units = PIECE_UNITS
        """Units before the last mark: while there are few of them, that mark is moved."""


class QueueSizes:
    """Sums up queues, and remembers how far it got."""

    def __init__(self) -> None:
        self._counts: dict[bytes, dict[int, _Count]] = {}

    def forget(self, topic: Topic) -> None:
        """Drop the queues of a deleted topic."""
        self._counts.pop(topic.id, None)

    def measure(self, queue: Queue) -> Iterator[None]:
        """Add what was appended since the last call; the caller may pause at each step."""
        # Looked up at each step: another request may count the same queue, and have started over.
        while (count := self._count(queue)).ends[-1] < queue.next_offset:
            self._count_piece(queue, count)
            yield

    def _count(self, queue: Queue) -> _Count:
        counts = self._counts.setdefault(queue.topic_id, {})
        count = counts.get(queue.queue_id)
        if count is None or count.ends[-1] < queue.log_start:
            count = counts[queue.queue_id] = _Count(queue.log_start)
        return count

    def size(self, queue: Queue) -> int:
        """The bytes between the log's start and where counting stopped."""
        count = self._counts.get(queue.topic_id, {}).get(queue.queue_id)
        if count is None or count.ends[-1] <= queue.log_start:
            return 0
        ends, sizes = count.ends, count.sizes
        index = bisect_left(ends, queue.log_start)
        if index > _DEAD_MARKS_MAX:
            del ends[: index - 1], sizes[: index - 1]
            index = 1
        end, whole = ends[index], sizes[-1] - sizes[index]
        if end == queue.log_start:
            # The first mark may be within a unit, which is counted after it.
            return whole
        piece = takewhile(lambda unit: unit[0] < end, queue.walk(queue.log_start))
        return whole + sum(unit[2] for unit in piece)

    @staticmethod
    def _count_piece(queue: Queue, count: _Count) -> None:
        at = count.ends[-1]
        units = list(islice(queue.walk(at), PIECE_UNITS))
        # Units may be missing at the end of a queue whose last segment was removed.
        end = units[-1][0] + units[-1][3] if units else queue.next_offset
        size = count.sizes[-1] + sum(unit[2] for unit in units)
        if count.last_units < PIECE_UNITS and len(count.ends) > 1:
            count.ends[-1], count.sizes[-1] = end, size
            count.last_units += len(units)
        else:
            count.ends.append(end)
            count.sizes.append(size)
            count.last_units = len(units)
