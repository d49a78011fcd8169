"""Bodies: runs of entries of one kind, read for those who know what is in them.

Kafka's side reads the bodies of batch entries and nothing around them; a message entry in between
ends the run, for it is read in another way, and so does a batch of which records wait. The loop
over units is the server's hottest: it makes one slice per entry and nothing else.

Messages of one producer are often as large as each other in all their parts. A run of those is read
column by column: one unpacking each, and what they must agree in is compared for all together.

Entries that are cold are not touched. They are noted, and their sizes counted, so that whoever asks
can have them brought in and ask again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from rockgate.protocol.entry import (
    BORN_HOST_V6,
    CHECKSUM_SIZE,
    COMPRESSED,
    DELAYED,
    HEAD_SIZE_V4,
    MAGIC_BATCH,
    MAGIC_V1,
    MOVED,
    STORE_HOST_V6,
    batch_places,
    identify,
    places,
)
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.page_residency import Place, Warmth
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.read.reader import Slice

BATCHES_MAX = 4_096
MESSAGES_MAX = 500
"""Entries of one run: small ones would otherwise hold up everybody else."""

ALIKE_MIN = 8
"""Messages from which on it is worth to read them as columns."""

UNUSUAL = COMPRESSED | MOVED | BORN_HOST_V6 | STORE_HOST_V6
"""Flags of a message that is not to be handed out as it is, or has another head."""

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


class Alike(NamedTuple):
    """Messages with bodies of one size and properties of one size, none of them unusual."""

    first: Unit
    last: Unit
    offsets: Sequence[int]
    born_ms: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes]


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

    def alike(
        self, queue: Queue, offset: int, end: int, size_max: int, *, may_be_cold: bool
    ) -> Alike | None:
        """Return what `messages` does if these are many, warm and alike, and None otherwise."""
        walked = queue.walk(offset)
        units = list(islice(walked, ALIKE_MIN))
        size = units[0][2] if units else size_max + 1
        count = min(size_max // size, MESSAGES_MAX)
        if count < ALIKE_MIN or {unit[2] for unit in units} != {size}:
            return None
        units += islice(walked, count - len(units))
        if units[-1][0] >= end:
            units = [unit for unit in units if unit[0] < end]
        if len(units) < ALIKE_MIN:
            return None
        bases, positions, sizes, *_ = zip(*units, strict=True)
        start, stop = positions[0], positions[-1] + size
        segment = self._log.segment_at(start)
        if (
            sizes.count(size) < len(sizes)
            or segment is None
            or stop > segment.end
            or (may_be_cold and self._is_cold(start, stop))
        ):
            return None
        view = segment.mapping.view
        _, _, _, _, _, body_size = places(view, start - segment.start)
        topic = len(queue.topic).to_bytes(2, "big")[1:] + queue.topic
        rest = size - HEAD_SIZE_V4 - body_size - len(topic) - 2 - CHECKSUM_SIZE
        if rest < 0 or min(positions) < start or max(positions) + size > stop:
            return None
        unpack, at = _message(body_size, len(topic), rest).unpack_from, segment.start
        rows = [unpack(view, position - at) for position in positions]
        totals, magics, ids, offsets, flags, born_ms, *columns = zip(*rows, strict=True)
        body_sizes, bodies, topics, rests, properties = columns
        agreed = (set(totals), set(magics), set(ids), set(body_sizes), set(topics), set(rests))
        wanted = (size, MAGIC_V1, queue.queue_id, body_size, topic, rest + CHECKSUM_SIZE)
        if agreed != tuple({each} for each in wanted) or offsets != bases:
            return None
        if any(flag & UNUSUAL for flag in set(flags)):
            return None
        first, last = Unit._make(units[0]), Unit._make(units[-1])
        return Alike(first, last, offsets, born_ms, bodies, properties)

    def _is_cold(self, start: int, stop: int) -> bool:
        return start < self._warmth.warm_from(self._log.end) and self._warmth.is_cold(
            start, stop - start
        )

    def entry(self, queue: Queue, unit: Unit) -> Slice:
        """Return the entry of a unit; StoreCorrupt if there is another one."""
        view = self._log.slice(unit.position, unit.size)
        if view is None or len(view) < HEAD_SIZE_V4:
            raise _misplaced(queue, unit.base, unit.position)
        size, _, queue_id, offset, _, _ = places(view, 0)
        if size != unit.size or queue_id != queue.queue_id or offset != unit.base:
            raise _misplaced(queue, unit.base, unit.position)
        return Slice(unit, view)


@lru_cache(maxsize=256)
def _message(body_size: int, topic_size: int, properties_size: int) -> struct.Struct:
    """A whole message entry: what a reader compares, and what it hands out."""
    head = ">II4xi4xq8xiq36xI"
    return struct.Struct(f"{head}{body_size}s{topic_size}sH{properties_size}s{CHECKSUM_SIZE}x")


def _misplaced(queue: Queue, offset: int, position: int) -> StoreCorrupt:
    return StoreCorrupt(
        f"the index of queue {queue.queue_id} of {queue.topic.decode()}",
        position,
        f"there is no entry of offset {offset} there; remove queueindex/ to rebuild",
    )
