"""Bodies: runs of entries of one kind, read for those who know what is in them.

Kafka's side reads the bodies of batch entries and nothing around them; a message entry in between
ends the run, for it is read in another way, and so does a batch of which records wait. The loop
over units is the server's hottest: it makes one slice per entry and nothing else.

Entries that are cold are not touched. They are noted, and their sizes counted, so that whoever asks
can have them brought in and ask again.
"""

from __future__ import annotations

from typing import NamedTuple

from rockgate.protocol.entry import (
    DELAYED,
    HEAD_SIZE_V4,
    MAGIC_BATCH,
    batch_places,
    identify,
    places,
)
from rockgate.store.commitlog import CommitLog
from rockgate.store.consumequeue import Queue
from rockgate.store.errors import StoreCorrupt
from rockgate.store.queueindex import Unit
from rockgate.store.reading import Slice
from rockgate.store.warmth import Place, Warmth

BATCHES_MAX = 4_096
MESSAGES_MAX = 500
"""Entries of one run: small ones would otherwise hold up everybody else."""

_new = tuple.__new__  # what NamedTuple._make calls, without its own call in between


class Batches(NamedTuple):
    """A run of batch entries."""

    bodies: list[memoryview]
    size: int
    next_offset: int
    """The offset behind the run."""
    is_at_message: bool
    """Whether a message entry ended it."""
    is_at_delayed: bool = False
    """Whether a batch ended it that is not to be shown as it is."""


class Bodies:
    """Reads runs of entries."""

    def __init__(self, log: CommitLog, warmth: Warmth) -> None:
        self._log = log
        self._warmth = warmth

    def batches(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        *,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> Batches:
        """Return the bodies of batch entries from the one that holds `offset` on.

        Whole ones, of at most `size_max` bytes together and before the offset `end`; with
        `at_least_one` the first may be larger. Cold ones are added to `cold` instead, unless that
        is None.
        """
        bodies: list[memoryview] = []
        size, next_offset, is_at_message, is_at_delayed = 0, offset, False, False
        warm_from = 0 if cold is None else self._warmth.warm_from(self._log.end)
        start = stop = 0
        view = memoryview(b"")
        queue_id = queue.queue_id
        for base, position, entry_size, count, _, _, _ in queue.walk(offset):
            if base >= end:
                break
            if position < warm_from and self._warmth.is_cold(position, entry_size):
                assert cold is not None
                if size + entry_size > size_max and not (at_least_one and size == 0):
                    break
                cold.append((position, entry_size))
                size += entry_size
                next_offset = base + count
                continue
            if not start <= position < stop:
                segment = self._log.segment_at(position)
                if segment is None:
                    raise _misplaced(queue, base, position)
                start, stop, view = segment.start, segment.end, segment.mapping.view
            at = position - start
            if entry_size < HEAD_SIZE_V4 or position + entry_size > stop:
                raise _misplaced(queue, base, position)
            total, magic, its_queue, its_offset, flags, body_at, body_size = batch_places(view, at)
            if total != entry_size or its_offset != base or its_queue != queue_id:
                raise _misplaced(queue, base, position)
            if magic != MAGIC_BATCH:
                is_at_message = True
                break
            if flags & DELAYED:
                is_at_delayed = True
                break
            if size + body_size > size_max and (size or not at_least_one):
                break
            bodies.append(view[body_at : body_at + body_size])
            size += body_size
            next_offset = base + count
            if len(bodies) >= BATCHES_MAX:
                break
        return Batches(bodies, size, next_offset, is_at_message, is_at_delayed)

    def messages(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        *,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> list[Slice]:
        """Return message entries from the one at `offset` on, up to a batch entry; as `batches`.

        Their own sizes are counted, envelopes included.
        """
        found: list[Slice] = []
        size = 0
        warm_from = 0 if cold is None else self._warmth.warm_from(self._log.end)
        start = stop = 0
        view = memoryview(b"")
        queue_id = queue.queue_id
        for fields in queue.walk(offset):
            base, position, entry_size, *_ = fields
            size += entry_size
            if base >= end or len(found) >= MESSAGES_MAX:
                break
            if size > size_max and (size > entry_size or not at_least_one):
                break
            if position < warm_from and self._warmth.is_cold(position, entry_size):
                assert cold is not None
                cold.append((position, entry_size))
                continue
            if not start <= position < stop:
                segment = self._log.segment_at(position)
                if segment is None:
                    raise _misplaced(queue, base, position)
                start, stop, view = segment.start, segment.end, segment.mapping.view
            at = position - start
            if entry_size < HEAD_SIZE_V4 or position + entry_size > stop:
                raise _misplaced(queue, base, position)
            total, magic, its_queue, its_offset = identify(view, at)
            if total != entry_size or its_offset != base or its_queue != queue_id:
                raise _misplaced(queue, base, position)
            if magic == MAGIC_BATCH:
                break
            found.append(_new(Slice, (_new(Unit, fields), view[at : at + entry_size])))
        return found

    def entry(self, queue: Queue, unit: Unit) -> Slice:
        """Return the entry of a unit; StoreCorrupt if there is another one."""
        view = self._log.slice(unit.position, unit.size)
        if view is None or len(view) < HEAD_SIZE_V4:
            raise _misplaced(queue, unit.base, unit.position)
        size, _, queue_id, offset, _, _ = places(view, 0)
        if size != unit.size or queue_id != queue.queue_id or offset != unit.base:
            raise _misplaced(queue, unit.base, unit.position)
        return Slice(unit, view)


def _misplaced(queue: Queue, offset: int, position: int) -> StoreCorrupt:
    return StoreCorrupt(
        f"the index of queue {queue.queue_id} of {queue.topic.decode()}",
        position,
        f"there is no entry of offset {offset} there; remove queueindex/ to rebuild",
    )
