"""Reading: slices of the log for a queue's offsets, never beyond what may be shown.

What a reader sees ends at the high watermark: under sync flush that is what is on disk, so that
nothing is shown which a power cut could take back; under async it is the end. A queue that is
turned to sync goes on showing what it has shown.
"""

from __future__ import annotations

from typing import NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.store.errors import OffsetOutOfRange, StoreCorrupt
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.flusher import Flusher
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit


class Slice(NamedTuple):
    """One entry as it lies in the log; the view keeps its segment mapped."""

    unit: Unit
    entry: memoryview


class Reader:
    """Reads queues."""

    def __init__(self, log: CommitLog, flusher: Flusher) -> None:
        self._log = log
        self._flusher = flusher

    def high_watermark(self, queue: Queue) -> int:
        """Return the offset behind the last one that a reader may see."""
        if not queue.is_sync:
            return queue.next_offset
        return max(queue.shown_end, queue.end_before(self._flusher.flushed))

    def read(self, queue: Queue, offset: int, size_max: int) -> list[Slice]:
        """Return entries from the one that holds `offset` on, whole ones, by total size.

        At least one is returned if there is any. An entry may begin before the offset, and where
        offsets are missing it may begin behind it.
        """
        if not queue.log_start <= offset <= queue.next_offset:
            raise OffsetOutOfRange(offset, queue.log_start, queue.next_offset)
        # A moved entry may lie behind what is on disk: then its first copy is there still.
        high_watermark = self.high_watermark(queue)
        slices = []
        for unit in queue.units(offset, size_max, self._log.end):
            if unit.base >= high_watermark:
                break
            entry = self._log.slice(unit.position, unit.size)
            if entry is None or not _fits(queue, unit, entry):
                raise StoreCorrupt(
                    f"the index of queue {queue.queue_id} of {queue.topic.decode()}",
                    unit.position,
                    f"there is no entry of offset {unit.base} there; remove queueindex/ to rebuild",
                )
            slices.append(Slice(unit, entry))
        return slices


def _fits(queue: Queue, unit: Unit, entry: memoryview) -> bool:
    """Check a unit against the entry it points to: sealed units are read without a checksum."""
    if len(entry) < envelope.HEAD_SIZE_V4:
        return False
    size, _, queue_id, offset = envelope.identify(entry)
    return size == unit.size and queue_id == queue.queue_id and offset == unit.base
