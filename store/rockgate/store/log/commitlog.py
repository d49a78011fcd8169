"""The commit log: every entry of every topic, in the order it was accepted.

An append copies the body once, from the caller's buffer into the mapped segment, lets the caller
stamp it there, and writes the envelope and checksums around it. A small entry is assembled first
and written in one piece, which is cheaper than several writes. An entry never spans two segments:
the rest of a full segment becomes a blank filler. All appends come from one thread.

The log assigns positions. Offsets, queues and the meaning of an entry belong to the layers above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    BLANK_SIZE,
    CONTINUES,
    HEAD_SIZE_V4,
    MESSAGE_SIZE_V4,
    TOPIC_SIZE_V1_MAX,
    BatchFrame,
    Buffer,
    Contents,
    Entry,
    EntryError,
    enclose_batch,
    pack_message,
)
from rockgate.store.clock import Clock
from rockgate.store.errors import EntryTooLarge
from rockgate.store.log.draft import (
    MOVED_SIZE,
    NO_HOST,
    ORDINARY,
    PROPERTIES_SIZE_MAX,
    Draft,
    Shape,
    Stamp,
    Written,
    enclosed,
    message_sizes,
    pack_group,
    shape_of,
)
from rockgate.store.log.segments import Segments
from rockgate.store.log.walk import Walk

_SMALL_BODY_SIZE = 4096
_SMALL_SIZE = 2 * _SMALL_BODY_SIZE
_UNUSUAL = envelope.BORN_HOST_V6 | envelope.STORE_HOST_V6 | CONTINUES | envelope.MOVED
_new = tuple.__new__  # skips the call of NamedTuple._make

__all__ = ["MOVED_SIZE", "NO_HOST", "PROPERTIES_SIZE_MAX", "CommitLog", "Draft", "Stamp", "Written"]


_MARGIN = BLANK_SIZE + MOVED_SIZE
"""Free bytes required after an entry: a blank filler, and growth when it is relocated."""


class CommitLog:
    """The log, from `start` to `end`."""

    def __init__(
        self,
        segments: Segments,
        clock: Clock,
        *,
        store_host: bytes = NO_HOST,
        wake_allocator: Callable[[], None] = lambda: None,
        end: int | None = None,
        last_store_ms: int = 0,
    ) -> None:
        """Open the log in these segments; recovery found that it ends at `end`."""
        self.segments = segments
        self.segment_at = segments.find
        """Returns the segment that holds a position; None if it was deleted."""
        self.using_reserve = segments.using_reserve
        self._clock_ms = clock.now_ms
        self._store_host = store_host
        self._host_flag = envelope.STORE_HOST_V6 if len(store_host) > 8 else 0
        self._wake_allocator = wake_allocator
        self.end = segments.start if end is None else end
        """The position at which the next entry will start."""
        self.last_store_ms = last_store_ms

    @property
    def start(self) -> int:
        """The first position that is still in the log."""
        return self.segments.start

    # Appending

    def append(self, draft: Draft) -> Written:
        """Append one entry; StoreFull and EntryTooLarge leave the log unchanged."""
        topic, queue_id, offset, body, properties, batch_count = draft[:6]
        born_ms, born_host, flag, sys_flag, reconsume_times, prepared_offset = draft[6:12]
        size = MESSAGE_SIZE_V4 + len(topic) + len(body) + len(properties)
        segment = self.segments.active
        view = segment.mapping.bare
        at = self.end - segment.start
        if (
            view is None
            or batch_count
            or (sys_flag | self._host_flag) & _UNUSUAL
            or draft.stamp is not None
            or draft.store_host
            or size > _SMALL_SIZE
            or len(topic) > TOPIC_SIZE_V1_MAX
            or at + size + _MARGIN > segment.size
        ):
            return self._append(draft)
        position, store_ms = self.end, draft.store_ms or self._now_ms()
        # One write; the bytes are the same as those of `_append`.
        view[at : at + size] = pack_message(
            *(size, topic, queue_id, offset, body, properties, born_ms, born_host, flag, sys_flag),
            *(reconsume_times, prepared_offset, position, store_ms, self._store_host),
        )
        self._advance(position + size)
        return _new(Written, (position, size, store_ms))

    def _append(self, draft: Draft) -> Written:
        """Append an entry of any kind."""
        shape = shape_of(draft, self._host_flag, self.segments.segment_size)
        self._make_room(shape[0])
        try:
            written = self._write(draft, shape, self.end, 0)
        except Exception:
            self._wipe(shape[0])
            raise
        self._advance(self.end + shape[0])
        return written

    def append_batch(
        self,
        frame: BatchFrame,
        topic: bytes,
        queue_id: int,
        offset: int,
        body: Buffer,
        count: int,
        born_ms: int,
        stamp: Stamp,
    ) -> tuple[int, int, int]:
        """Append a batch without properties of its own: a fast path of `append`.

        `frame` belongs to the topic and this offset. Bytes and return values are those of `append`.
        Unusual cases are left to `append`, and so is a disk whose writes are observed: both write
        the body, the tail and the head, in that order.
        """
        tail, size, _ = frame
        body_size = len(body)
        size += body_size
        segments = self.segments
        segment = segments.active
        view = segment.mapping.bare
        position = self.end
        at = position - segment.start
        if view is None or self._host_flag or at + size + _MARGIN > segment.size:
            draft = Draft(topic, queue_id, offset, body, b"", count, born_ms, stamp=stamp)
            return self.append(draft)
        body_at = at + HEAD_SIZE_V4
        try:
            stored = view[body_at : body_at + body_size]
            stored[:] = body
            stamp(stored, offset)
            store_ms = self._clock_ms()
            if store_ms < self.last_store_ms:
                store_ms = self.last_store_ms
            else:
                self.last_store_ms = store_ms
            enclose_batch(
                view,
                at,
                at + size,
                stored,
                tail,
                queue_id,
                offset,
                count,
                position,
                born_ms,
                store_ms,
                self._store_host,
            )
        except Exception:
            self._wipe(size)
            raise
        self.end = end = position + size
        if end >= segments.prepare_at:
            self._wake_allocator()
        return position, size, store_ms

    def append_group(self, drafts: list[Draft]) -> list[Written]:
        """Append entries atomically: recovery retains all of them or none. They share a segment."""
        assert drafts, "a group has entries"
        host_flag, segment_size = self._host_flag, self.segments.segment_size
        shapes = [shape_of(draft, host_flag, segment_size) for draft in drafts]
        size = sum(shape[0] for shape in shapes)
        self._make_room(size)
        try:
            if any(draft.stamp is not None for draft in drafts):
                written = self._write_each(drafts, shapes)
            else:
                written = self._write_all(drafts, shapes)
        except Exception:
            self._wipe(size)
            raise
        # The end advances once, so a concurrent flush never covers half a group.
        self._advance(self.end + size)
        return written

    def append_pair(self, draft: Draft, change: Draft) -> tuple[Written, Written]:
        """Append a message and a change of a fold: a fast path of `append_group`."""
        topic, queue_id, offset, body, properties, batch_count = draft[:6]
        born_ms, born_host, flag, sys_flag, reconsume_times, prepared_offset = draft[6:12]
        state, content = change.topic, change.body
        size = MESSAGE_SIZE_V4 + len(topic) + len(body) + len(properties)
        state_size = MESSAGE_SIZE_V4 + len(state) + len(content)
        segment = self.segments.active
        view = segment.mapping.bare
        at = self.end - segment.start
        end = at + size + state_size
        if (
            view is None
            or batch_count
            or (sys_flag | self._host_flag) & _UNUSUAL
            or draft[12:] != ORDINARY
            or end - at > _SMALL_SIZE
            or len(topic) > TOPIC_SIZE_V1_MAX
            or end + _MARGIN > segment.size
        ):
            written, changed = self.append_group([draft, change])
            return written, changed
        position, store_ms, host = self.end, self._now_ms(), self._store_host
        after, flags = position + size, sys_flag | CONTINUES
        view[at:end] = pack_message(
            *(size, topic, queue_id, offset, body, properties, born_ms, born_host, flag, flags),
            *(reconsume_times, prepared_offset, position, store_ms, host),
        ) + pack_message(
            *(state_size, state, 0, -1, content, b"", 0, NO_HOST, 0, 0, 0, 0),
            *(after, store_ms, host),
        )
        self._advance(after + state_size)
        first, second = (position, size, store_ms), (after, state_size, store_ms)
        return _new(Written, first), _new(Written, second)

    def _write_each(self, drafts: Sequence[Draft], shapes: Sequence[Shape]) -> list[Written]:
        """Write a group in which some entries are stamped in place."""
        written = []
        position, last = self.end, len(drafts) - 1
        for index, (draft, shape) in enumerate(zip(drafts, shapes, strict=True)):
            continues = CONTINUES if index < last else 0
            written.append(self._write(draft, shape, position, continues))
            position += shape[0]
        return written

    def _write_all(self, drafts: Sequence[Draft], shapes: Sequence[Shape]) -> list[Written]:
        """Write a group in one piece; the bytes are the same as those of `_write_each`."""
        packed, written = pack_group(drafts, shapes, self.end, self._now_ms(), self._store_host)
        segment = self.segments.active
        segment.mapping.write(self.end - segment.start, packed)
        return written

    def append_messages(
        self,
        topic: bytes,
        queue_id: int,
        offset: int,
        contents: Contents,
        *,
        sys_flag: int,
        born_ms: int,
        born_host: bytes,
    ) -> tuple[list[int], list[int], int]:
        """Append similar messages of one queue as a group: a fast path of `append_group`.

        The bytes are the same. Returns their positions followed by the end of the last one, their
        sizes, and their store time.
        """
        flags = sys_flag & ~CONTINUES | self._host_flag
        sizes = message_sizes(topic, contents, flags, self.segments.segment_size)
        size = sum(sizes)
        self._make_room(size)
        segment = self.segments.active
        position = self.end
        ends = list(accumulate(sizes, initial=position))
        store_ms = self._now_ms()
        packed = envelope.pack_messages(
            contents,
            sizes,
            ends,
            topic=topic,
            queue_id=queue_id,
            offset=offset,
            sys_flag=flags,
            born_ms=born_ms,
            born_host=born_host,
            store_ms=store_ms,
            store_host=self._store_host,
        )
        try:
            segment.mapping.write(position - segment.start, packed)
        except Exception:
            self._wipe(size)
            raise
        self._advance(position + size)
        return ends, sizes, store_ms

    def _wipe(self, size: int) -> None:
        """Zero the bytes of a failed append, or recovery might find them after a shorter one."""
        segment = self.segments.active
        segment.mapping.write(self.end - segment.start, bytes(size))

    def _advance(self, end: int) -> None:
        self.end = end
        if end >= self.segments.prepare_at:
            self._wake_allocator()

    def _make_room(self, size: int) -> None:
        segments = self.segments
        segment = segments.active
        if size + BLANK_SIZE > segment.size:
            raise EntryTooLarge("Entry group", size, segment.size - BLANK_SIZE)
        left = segment.end - self.end
        if size + BLANK_SIZE > left:
            segments.roll()
            if left:
                segment.mapping.write(segment.size - left, envelope.pack_blank(left))
            self.end = segment.end

    def _write(self, draft: Draft, shape: Shape, position: int, continues: int) -> Written:
        segment = self.segments.active
        at = position - segment.start
        mapping = segment.mapping
        body = draft.body
        body_size = len(body)
        body_at = at + envelope.head_size(shape[3])
        is_small = body_size <= _SMALL_BODY_SIZE and draft.stamp is None
        if not is_small:
            mapping.write(body_at, body)
            body = mapping.view[body_at : body_at + body_size]
            if draft.stamp is not None:
                draft.stamp(body, draft.offset)
        store_ms = draft.store_ms or self._now_ms()
        head, tail = enclosed(draft, shape, body, position, continues, store_ms, self._store_host)
        if is_small:
            mapping.write(at, b"".join((head, body, tail)))
        else:
            mapping.write(body_at + body_size, tail)
            mapping.write(at, head)
        return _new(Written, (position, shape[0], store_ms))

    def _now_ms(self) -> int:
        """Return the current time, but never before the store time of the previous entry."""
        now_ms = self._clock_ms()
        if now_ms < self.last_store_ms:
            return self.last_store_ms
        self.last_store_ms = now_ms
        return now_ms

    # Reading

    def slice(self, position: int, size: int) -> memoryview | None:
        """Return an entry's bytes without copying; None if its segment was deleted."""
        segment = self.segments.find(position)
        if segment is None:
            return None
        at = position - segment.start
        return segment.mapping.view[at : at + size]

    def read(self, position: int) -> tuple[memoryview, Entry] | None:
        """Return the segment's bytes and the envelope of the entry at a position.

        None if the position is not in the log; EntryError if no entry starts there.
        """
        segment = self.segments.find(position)
        if segment is None or position >= self.end:
            return None
        view = segment.mapping.view
        entry = envelope.read(
            view, position - segment.start, min(segment.size, self.end - segment.start)
        )
        if entry.position != position:
            raise EntryError(f"entry claims position {entry.position}")
        return view, entry

    def walk(
        self,
        start: int,
        end: int | None = None,
        *,
        batches: bool = True,
        messages: bool = True,
        checks: bool = False,
    ) -> Walk:
        """Return the entries of a range in order; see `Walk`."""
        limit = self.end if end is None else end
        return Walk(self.segments, start, limit, batches=batches, messages=messages, checks=checks)
