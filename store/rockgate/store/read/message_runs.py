"""Message runs: message entries as they lie in the log, in as few slices as possible.

RocketMQ's side is handed the bytes of the log. Entries of a queue that follow each other there
become one slice; a batch entry ends the run, for it is read in another way. A filter sees the tag
code that the queue has, and then, if it wants, the entry itself.

How many units one call looks at is bounded, however few of them a filter wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rockgate.protocol.entry import HEAD_SIZE_V4, MAGIC_BATCH, places
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.page_residency import Place, Warmth
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.read.bodies import Bodies
from rockgate.store.read.reader import Slice

UNITS_MAX = 1_024
"""Units that one call looks at."""

AcceptsCode = Callable[[int], bool]
AcceptsEntry = Callable[[memoryview], bool | None]
"""Whether an entry is wanted; None ends the run before it: enough was looked at."""


class Run(NamedTuple):
    """Message entries of one queue."""

    buffers: list[memoryview]
    size: int
    message_count: int
    next_offset: int
    """The offset to go on at, behind everything that was looked at."""
    batch: Slice | None
    """The batch entry that ended the run."""


class MessageRuns:
    """Reads message entries for those who hand them out."""

    def __init__(self, log: CommitLog, warmth: Warmth, bodies: Bodies) -> None:
        self._log = log
        self._warmth = warmth
        self._bodies = bodies

    def read(
        self,
        queue: Queue,
        offset: int,
        end: int,
        *,
        count_max: int,
        size_max: int,
        accepts_code: AcceptsCode | None = None,
        accepts: AcceptsEntry | None = None,
        cold: list[Place] | None = None,
    ) -> Run:
        """Return entries from `offset` on and before `end`; the first may be larger than asked.

        Cold ones are added to `cold` instead, unless that is None, and end the run.
        """
        buffers: list[memoryview] = []
        size = count = looked = start = stop = 0
        following = offset
        warm_from = 0 if cold is None else self._warmth.warm_from(self._log.end)
        view = memoryview(b"")
        run_at = run_end = -1
        batch = None
        queue_id = queue.queue_id
        for fields in queue.walk(offset):
            base, position, entry_size, taken, _, _, code = fields
            if base >= end or count >= count_max or looked >= UNITS_MAX:
                break
            looked += 1
            if taken == 1 and accepts_code is not None and not accepts_code(code):  # noqa: SIM102
                # What the queue can tell is not read; only a batch of one has no code there.
                if code or not self._is_batch(queue, fields):
                    following = base + 1
                    continue
            if size and size + entry_size > size_max:
                break
            if position < warm_from and self._warmth.is_cold(position, entry_size):
                assert cold is not None
                cold.append((position, entry_size))
                break
            if not start <= position < stop:
                segment = self._log.segment_at(position)
                if segment is None:
                    raise _misplaced(queue, base, position)
                start, stop, view = segment.start, segment.end, segment.mapping.view
                run_end = -1
            at = position - start
            if entry_size < HEAD_SIZE_V4 or position + entry_size > stop:
                raise _misplaced(queue, base, position)
            total, magic, its_queue, its_offset, _, _ = places(view, at)
            if total != entry_size or its_offset != base or its_queue != queue_id:
                raise _misplaced(queue, base, position)
            if magic == MAGIC_BATCH:
                batch = self._bodies.entry(queue, Unit._make(fields))
                break
            if accepts is not None and not (is_wanted := accepts(view[at : at + total])):
                if is_wanted is None:
                    break
                following = base + taken
                continue
            following = base + taken
            if at == run_end:
                buffers[-1] = view[run_at : at + total]
            else:
                run_at = at
                buffers.append(view[at : at + total])
            run_end = at + total
            size += total
            count += 1
        return Run(buffers, size, count, following, batch)

    def _is_batch(self, queue: Queue, fields: tuple[int, int, int, int, int, int, int]) -> bool:
        return places(self._bodies.entry(queue, Unit._make(fields)).entry, 0)[1] == MAGIC_BATCH


def _misplaced(queue: Queue, offset: int, position: int) -> StoreCorrupt:
    return StoreCorrupt(
        f"the index of queue {queue.queue_id} of {queue.topic.decode()}",
        position,
        f"there is no entry of offset {offset} there; remove queueindex/ to rebuild",
    )
