"""Reads the entries of a queue, never beyond what is visible.

Visibility ends at the high watermark: with sync flush that is the committed position, which for a
node by itself is the flushed one, so that nothing is visible which a power failure could undo; with
async flush it is the end. Where the log is replicated, every queue is like one with sync flush. A
queue that is switched to sync keeps visible what was visible. Every read is clamped to it, whatever
end is requested, and there is no other way to read an entry from outside the store.

Kafka's side reads the bodies of batch entries only; RocketMQ's side gets message entries without
copying, in as few slices as possible. An entry of the other kind ends a run, because it is read
differently, and so does a batch with delayed records. The loops over units are the hottest of the
server: they create one slice per entry and nothing else.

Cold entries are not touched. They are collected, and their sizes counted, so that the caller can
have them loaded and read again.
"""

from __future__ import annotations

from collections.abc import Callable

from rockgate.protocol.entry import (
    DELAYED,
    HEAD_SIZE_V4,
    HOST_FLAGS,
    MAGIC_BATCH,
    identify,
    identify_body,
    places,
)
from rockgate.store.errors import OffsetOutOfRange, StoreCorrupt
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.page_residency import PageResidency, Place
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit, UnitFields
from rockgate.store.queues.view import QueueView
from rockgate.store.read.alike import MESSAGES_MAX, read_alike
from rockgate.store.read.slices import Alike, Batches, MessageRun, Slice

BATCHES_MAX = 4_096
"""Maximum number of batches per run, so that small ones do not delay other requests."""

UNITS_MAX = 1_024
"""Maximum number of units that one run of messages visits, however few match its filter."""

AcceptsCode = Callable[[int], bool]
AcceptsEntry = Callable[[memoryview], bool | None]
"""Whether an entry is accepted; None ends the run before it, because enough was examined."""

_new = tuple.__new__  # skips the call of NamedTuple._make


class Reader:
    """Reads queues. Owned by the store, and stateless."""

    def __init__(self, log: CommitLog, commit: Commit, residency: PageResidency) -> None:
        self._log = log
        self._commit = commit
        self._residency = residency

    def high_watermark(self, queue: QueueView) -> int:
        """Return the offset after the last visible one."""
        if not queue.is_sync:
            return queue.next_offset
        visible_end = queue.visible_end
        if visible_end < queue.next_offset:
            own: Queue = queue  # type: ignore[assignment]  # each view is a Queue
            visible_end = max(visible_end, own.end_before(self._commit.position))
            own.visible_end = visible_end
        return visible_end

    def batches(
        self,
        queue: QueueView,
        offset: int,
        end: int,
        size_max: int,
        *,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> Batches:
        """Return the bodies of batch entries from the one that holds `offset` on.

        Whole batches before the offset `end`, of at most `size_max` bytes in total; with
        `at_least_one` the first one may be larger. Cold ones are added to `cold` instead, unless
        that is None.
        """
        if queue.is_sync and end > queue.visible_end:
            end = min(end, self.high_watermark(queue))
        bodies: list[memoryview] = []
        size, next_offset, is_at_message, is_at_delayed = 0, offset, False, False
        resident_from = 0 if cold is None else self._residency.resident_from(self._log.end)
        start = stop = 0
        view = memoryview(b"")
        queue_id = queue.queue_id
        for base, position, entry_size, count, _, _, _ in queue.walk(offset):
            if base >= end:
                break
            if position < resident_from and self._residency.is_cold(position, entry_size):
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
                    raise misplaced(queue, base, position)
                start, stop, view = segment.start, segment.end, segment.mapping.view
            at = position - start
            if entry_size < HEAD_SIZE_V4 or position + entry_size > stop:
                raise misplaced(queue, base, position)
            total, magic, its_queue, its_offset, flags, body_size = identify_body(view, at)
            if total != entry_size or its_offset != base or its_queue != queue_id:
                raise misplaced(queue, base, position)
            if magic != MAGIC_BATCH:
                is_at_message = True
                break
            if flags & DELAYED:
                is_at_delayed = True
                break
            body_at = at + HEAD_SIZE_V4
            if flags & HOST_FLAGS:
                *_, body_at, body_size = places(view, at)
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
        queue: QueueView,
        offset: int,
        end: int,
        size_max: int,
        *,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> list[Slice]:
        """Return message entries from `offset` on, up to a batch entry; limits as in `batches`.

        Sizes are those of whole entries, including envelopes.
        """
        if queue.is_sync and end > queue.visible_end:
            end = min(end, self.high_watermark(queue))
        found: list[Slice] = []
        size = 0
        resident_from = 0 if cold is None else self._residency.resident_from(self._log.end)
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
            if position < resident_from and self._residency.is_cold(position, entry_size):
                assert cold is not None
                cold.append((position, entry_size))
                continue
            if not start <= position < stop:
                segment = self._log.segment_at(position)
                if segment is None:
                    raise misplaced(queue, base, position)
                start, stop, view = segment.start, segment.end, segment.mapping.view
            at = position - start
            if entry_size < HEAD_SIZE_V4 or position + entry_size > stop:
                raise misplaced(queue, base, position)
            total, magic, its_queue, its_offset = identify(view, at)
            if total != entry_size or its_offset != base or its_queue != queue_id:
                raise misplaced(queue, base, position)
            if magic == MAGIC_BATCH:
                break
            found.append(_new(Slice, (_new(Unit, fields), view[at : at + entry_size])))
        return found

    def alike(
        self, queue: QueueView, offset: int, end: int, size_max: int, *, may_be_cold: bool
    ) -> Alike | None:
        """Return the same as `messages` if they are many, similar, and none is cold; else None."""
        if queue.is_sync and end > queue.visible_end:
            end = min(end, self.high_watermark(queue))
        is_cold = self._is_cold if may_be_cold else None
        return read_alike(self._log, queue, offset, end, size_max, is_cold)

    def _is_cold(self, start: int, stop: int) -> bool:
        return start < self._residency.resident_from(self._log.end) and self._residency.is_cold(
            start, stop - start
        )

    def message_run(
        self,
        queue: QueueView,
        offset: int,
        end: int,
        *,
        count_max: int,
        size_max: int,
        accepts_code: AcceptsCode | None = None,
        accepts: AcceptsEntry | None = None,
        cold: list[Place] | None = None,
    ) -> MessageRun:
        """Return entries from `offset` up to `end`; the first one may exceed `size_max`.

        Cold ones are added to `cold` instead, unless that is None, and end the run.
        """
        if queue.is_sync and end > queue.visible_end:
            end = min(end, self.high_watermark(queue))
        buffers: list[memoryview] = []
        size, count, looked, start, stop, following = 0, 0, 0, 0, 0, offset
        resident_from = 0 if cold is None else self._residency.resident_from(self._log.end)
        view, queue_id = memoryview(b""), queue.queue_id
        run_at = run_end = -1
        batch = None
        for fields in queue.walk(offset):
            base, position, entry_size, taken, _, _, code = fields
            if base >= end or count >= count_max or looked >= UNITS_MAX:
                break
            looked += 1
            if taken == 1 and accepts_code is not None and not accepts_code(code):  # noqa: SIM102
                # The tag code decides without reading the entry; only a batch of one has none.
                if code or not self._is_batch(queue, fields):
                    following = base + 1
                    continue
            if size and size + entry_size > size_max:
                break
            if position < resident_from and self._residency.is_cold(position, entry_size):
                assert cold is not None
                cold.append((position, entry_size))
                break
            if not start <= position < stop:
                segment = self._log.segment_at(position)
                if segment is None:
                    raise misplaced(queue, base, position)
                start, stop, view = segment.start, segment.end, segment.mapping.view
                run_end = -1
            at = position - start
            if entry_size < HEAD_SIZE_V4 or position + entry_size > stop:
                raise misplaced(queue, base, position)
            total, magic, its_queue, its_offset = identify(view, at)
            if total != entry_size or its_offset != base or its_queue != queue_id:
                raise misplaced(queue, base, position)
            if magic == MAGIC_BATCH:
                batch = entry_of(self._log, queue, Unit._make(fields))
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
        return MessageRun(buffers, size, count, following, batch)

    def _is_batch(self, queue: QueueView, fields: UnitFields) -> bool:
        entry = entry_of(self._log, queue, Unit._make(fields)).entry
        return places(entry, 0)[1] == MAGIC_BATCH

    def entry(self, queue: QueueView, unit: Unit) -> Slice:
        """Return the entry of a unit; OffsetOutOfRange if it is not visible yet.

        StoreCorrupt if the position holds another entry.
        """
        if queue.is_sync and unit.base >= queue.visible_end:
            visible_end = self.high_watermark(queue)
            if unit.base >= visible_end:
                raise OffsetOutOfRange(unit.base, queue.log_start, visible_end)
        return entry_of(self._log, queue, unit)


def entry_of(log: CommitLog, queue: QueueView, unit: Unit) -> Slice:
    """Return the entry of a unit, visible or not; StoreCorrupt if another entry is there.

    Sealed units are read without a checksum, so each one is compared with its entry.
    """
    view = log.slice(unit.position, unit.size)
    if view is None or len(view) < HEAD_SIZE_V4:
        raise misplaced(queue, unit.base, unit.position)
    size, _, queue_id, offset = identify(view, 0)
    if size != unit.size or queue_id != queue.queue_id or offset != unit.base:
        raise misplaced(queue, unit.base, unit.position)
    return Slice(unit, view)


def misplaced(queue: QueueView, offset: int, position: int) -> StoreCorrupt:
    """Return the error for a unit that does not point to its entry."""
    return StoreCorrupt(
        f"Index of queue {queue.queue_id} of {queue.topic.decode()}",
        position,
        f"no entry for offset {offset}; to rebuild the index, remove queueindex/ and restart",
    )
