"""Appends: from a caller's draft to a log entry and everything derived from it.

Before an append returns, the queue's unit is added, folds are applied and keys are queued for the
index, so an acknowledged entry can be read at once, and a fold's caller finds its change applied.
Recovery dispatches the same entries to the same indexes through `dispatch`; a test compares the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import INDEXED, TRANSACTION_ROLLBACK, Buffer, Contents
from rockgate.protocol.entry.tagcode import tag_code
from rockgate.store.errors import StoreError, StoreFull, StoreReadOnly
from rockgate.store.files.free_space import FreeSpace, nothing
from rockgate.store.keys.groupkeys import GroupKeys, Keys
from rockgate.store.log.commitlog import NO_HOST, CommitLog, Draft, Stamp, Written
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.queues.view import QueueView
from rockgate.store.state.fold import Change, Journal, State
from rockgate.store.write.appended import Appended, AppendedMessages, Intake

__all__ = ["Appended", "AppendedMessages", "Appender", "Intake"]

A = TypeVar("A")

_new = tuple.__new__  # skips the call of NamedTuple._make


class Appender:
    """Appends to the log and updates everything derived from it."""

    def __init__(
        self,
        *,
        log: CommitLog,
        queues: QueueTable,
        state: State,
        keys: Keys | None,
        reserved: FreeSpace = nothing,
        on_reserve_used: Callable[[], None] = lambda: None,
    ) -> None:
        """Append to this log, and update these.

        A segment created for a client's change leaves `reserved` bytes free. `on_reserve_used` is
        called when it was used, so that other writes are rejected from then on.
        """
        self._log = log
        self._queues = queues
        self._state = state
        self._keys = keys
        self.refusal: StoreError | None = None
        """Why messages are currently rejected."""
        self.state_refusal: StoreError | None = None
        """Why changes by clients are currently rejected."""
        self.failure: StoreError | None = None
        """Why everything is rejected, even upkeep."""
        self.failed_count = 0
        """Number of appends of messages that were rejected or failed."""
        self._reserved = reserved
        self._on_reserve_used = on_reserve_used
        self.upkeep: Journal = _UpkeepJournal(self)
        """Accepts changes as long as there is any space at all."""
        self.put_count = 0
        """Messages and records appended to queues since the start."""
        self.put_bytes = 0
        """Size of the entries appended to queues since the start."""
        self.on_append: Callable[[QueueView], None] = lambda queue: None
        """Called with every queue that got entries: long polls depend on it."""

    @property
    def is_read_only(self) -> bool:
        """Whether no epoch has begun, so that nothing can be appended."""
        return isinstance(self.failure, StoreReadOnly)

    def fail(self, failure: StoreError) -> None:
        """Reject all further appends."""
        # An error that is raised repeatedly accumulates tracebacks and everything they refer to,
        # hence `with_traceback(None)` below.
        self.failure = self.state_refusal = self.refusal = failure

    def batch(
        self,
        queue: QueueView,
        body: Buffer,
        *,
        count: int,
        record_ms: int,
        stamp: Stamp | None = None,
        properties: bytes = b"",
        sys_flag: int = 0,
        born_host: bytes = NO_HOST,
    ) -> Appended:
        """Append a batch entry that takes `count` offsets; `stamp` may write into its body."""
        if self.refusal is not None:
            raise self._failed(self.refusal)
        own: Queue = queue  # type: ignore[assignment]  # each view is a Queue
        offset = queue.next_offset
        if stamp is None or properties or sys_flag or born_host is not NO_HOST:
            draft = Draft(
                queue.topic,
                queue.queue_id,
                offset,
                body,
                properties,
                count,
                record_ms,
                born_host,
                0,
                sys_flag,
                stamp=stamp,
            )
            try:
                position, size, store_ms = self._log.append(draft)
            except StoreError:
                self.failed_count += 1
                raise
            if sys_flag & INDEXED and self._keys is not None:
                self._keys.put_batch(queue.topic, memoryview(body), position, store_ms)
        else:
            frame = own.frame
            if offset >= frame[2]:
                frame = own.frame = envelope.batch_frame(queue.topic, offset)
            try:
                position, size, store_ms = self._log.append_batch(
                    frame, queue.topic, queue.queue_id, offset, body, count, record_ms, stamp
                )
            except StoreError:
                self.failed_count += 1
                raise
        own.add(position, size, count, store_ms, record_ms)
        own.put_times += 1
        own.put_count += count
        own.put_bytes += size
        self.put_count += count
        self.put_bytes += size
        if not own.is_dirty:
            self._queues.note(own)
        self.on_append(queue)
        return _new(Appended, (offset, position, position + size, store_ms))

    def message(self, queue: QueueView, draft: Draft) -> Appended:
        """Append a message entry; sets the topic, queue and offset of the draft."""
        return self.placed(
            queue,
            draft._replace(topic=queue.topic, queue_id=queue.queue_id, offset=queue.next_offset),
        )

    def placed(self, queue: QueueView, draft: Draft) -> Appended:
        """Append a message entry whose draft has the queue and its next offset already."""
        if self.refusal is not None:
            raise self._failed(self.refusal)
        try:
            position, size, store_ms = written = self._log.append(draft)
        except StoreError:
            self.failed_count += 1
            raise
        self._feed(queue, draft, written)
        self.on_append(queue)
        place = (draft.offset, position, position + size, store_ms, queue.queue_id)
        return _new(Appended, place)

    def placed_with(self, queue: QueueView, draft: Draft, topic: bytes, body: bytes) -> Appended:
        """Append a placed message and a change of a fold atomically: a restart finds both or none.

        A fast path of `group` for this pair; `end` is that of the change.
        """
        if self.refusal is not None:
            raise self._failed(self.refusal)
        change = Draft(topic, 0, -1, body)
        try:
            written, changed = self._log.append_pair(draft, change)
        except StoreError:
            self.failed_count += 1
            raise
        self._feed(queue, draft, written)
        self._apply(change, changed)
        self.on_append(queue)
        end = changed.position + changed.size
        place = (draft.offset, written.position, end, written.store_ms, queue.queue_id)
        return _new(Appended, place)

    def messages(
        self,
        queue: QueueView,
        contents: Contents,
        *,
        born_ms: int,
        born_host: bytes = NO_HOST,
        sys_flag: int = 0,
    ) -> AppendedMessages:
        """Append messages to one queue atomically: a restart finds all or none.

        A fast path of `group` for many small messages that differ only in content. None of them may
        be a half message, nor end a transaction.
        """
        if self.refusal is not None:
            raise self._failed(self.refusal)
        own: Queue = queue  # type: ignore[assignment]  # each view is a Queue
        properties = contents.properties
        assert properties, "there are messages"
        assert not sys_flag & TRANSACTION_ROLLBACK, "no part of a transaction"
        topic, queue_id, offset = queue.topic, queue.queue_id, queue.next_offset
        try:
            positions, sizes, store_ms = self._log.append_messages(
                topic,
                queue_id,
                offset,
                contents,
                sys_flag=sys_flag,
                born_ms=born_ms,
                born_host=born_host,
            )
        except StoreError:
            self.failed_count += 1
            raise
        end = positions.pop()
        codes = [_code(each) for each in properties] if _has_tags(properties) else [0] * len(sizes)
        own.add_messages(positions, sizes, store_ms, born_ms, codes)
        count, size = len(sizes), sum(sizes)
        own.put_times += 1
        own.put_count += count
        own.put_bytes += size
        self.put_count += count
        self.put_bytes += size
        if not own.is_dirty:
            self._queues.note(own)
        if self._keys is not None:
            self._keys.put_messages(topic, properties, positions, store_ms)
        self.on_append(queue)
        return _new(AppendedMessages, (offset, positions, end, store_ms, queue_id))

    def group(self, intakes: Sequence[Intake], *, is_upkeep: bool = False) -> list[Appended]:
        """Append several entries atomically: a restart finds all or none.

        With `is_upkeep` (the end of something that is in the log) they are accepted like state
        changes, even while messages are rejected.
        """
        refused = self.failure if is_upkeep else self.refusal
        if refused is not None:
            raise self._failed(refused)
        next_offsets: dict[int, int] = {}
        touched: dict[int, QueueView] = {}
        drafts: list[Draft] = []
        for queue, draft in intakes:
            if queue is None:
                drafts.append(_new(Draft, (draft[0], 0, -1, *draft[3:])))
                continue
            number = id(queue)
            touched[number] = queue
            offset = next_offsets.get(number, queue.next_offset)
            next_offsets[number] = offset + (draft.batch_count or 1)
            drafts.append(_new(Draft, (queue.topic, queue.queue_id, offset, *draft[3:])))
        appended = []
        keys = GroupKeys(self._keys)
        if is_upkeep:
            done = self.within_reserve(lambda: self._log.append_group(drafts))
        else:
            done = self._grouped(drafts)
        for (queue, _), draft, written in zip(intakes, drafts, done, strict=True):
            position, size, store_ms = written
            if queue is None:
                self._apply(draft, written)
            else:
                self._enter(queue, draft, written)
                if not keys.take(draft, written):
                    self._index(draft, written)
            appended.append(
                _new(Appended, (draft[2], position, position + size, store_ms, draft[1]))
            )
        keys.flush()
        for queue in touched.values():
            self.on_append(queue)
        return appended

    def _failed(self, refusal: StoreError) -> StoreError:
        """Count an append that is rejected, and return what to raise."""
        self.failed_count += 1
        return refusal.with_traceback(None)

    def _grouped(self, drafts: list[Draft]) -> list[Written]:
        try:
            return self._log.append_group(drafts)
        except StoreError:
            self.failed_count += 1
            raise

    def _feed(self, queue: QueueView, draft: Draft, written: Written) -> None:
        self._enter(queue, draft, written)
        self._index(draft, written)

    def _enter(self, queue: QueueView, draft: Draft, written: Written) -> None:
        own: Queue = queue  # type: ignore[assignment]  # each view is a Queue
        position, size, store_ms = written
        code, count = _code(draft.properties), draft.batch_count or 1
        own.add(position, size, count, store_ms, draft.born_ms, code)
        own.put_times += 1
        own.put_count += count
        own.put_bytes += size
        self.put_count += count
        self.put_bytes += size
        if not own.is_dirty:
            self._queues.note(own)

    def _index(self, draft: Draft, written: Written) -> None:
        """Index an entry's keys, if it has any."""
        if self._keys is None:
            return
        if draft.batch_count:
            if draft.sys_flag & INDEXED:
                body = memoryview(draft.body)
                self._keys.put_batch(draft.topic, body, written.position, written.store_ms)
        elif draft.properties:
            self._keys.put_entry(
                draft.topic,
                draft.properties,
                written.position,
                written.store_ms,
                draft.sys_flag,
            )

    # State changes: the store is the folds' journal.

    def append_state(self, topic: bytes, body: bytes, *, is_upkeep: bool = False) -> int:
        """Append one change of a fold and apply it."""
        reserved = self._admit(is_upkeep)
        draft = Draft(topic, 0, -1, body)
        try:
            written = self._log.append(draft)
        except StoreFull:
            written = self.within_reserve(lambda: self._log.append(draft), reserved)
        self._apply(draft, written)
        return written.position

    def append_states(
        self, changes: Sequence[tuple[bytes, bytes]], *, is_upkeep: bool = False
    ) -> int:
        """Append changes atomically, and apply them."""
        reserved = self._admit(is_upkeep)
        drafts = [Draft(topic, 0, -1, body) for topic, body in changes]
        done = self.within_reserve(lambda: self._log.append_group(drafts), reserved)
        for draft, written in zip(drafts, done, strict=True):
            self._apply(draft, written)
        return done[-1].position

    def _admit(self, is_upkeep: bool) -> FreeSpace:
        """Raise the reason why a change is rejected, or return the space it must leave free."""
        refused = self.failure if is_upkeep else self.state_refusal
        if refused is not None:
            raise refused.with_traceback(None)
        return nothing if is_upkeep else self._reserved

    def within_reserve(self, append: Callable[[], A], reserved: FreeSpace = nothing) -> A:
        """Append to the log; if there is no space for messages, use the reserve."""
        try:
            return append()
        except StoreFull:
            with self._log.using_reserve(reserved):
                appended = append()
        self._on_reserve_used()
        return appended

    def _apply(self, draft: Draft, written: Written) -> None:
        position, _, store_ms = written
        body = memoryview(draft.body)
        fields = (position, store_ms, draft.topic, 0, -1, draft.sys_flag, draft.properties, body)
        self._state.apply(_new(Change, fields))


class _UpkeepJournal:
    """The journal of changes that free space, finish an operation, or start the server."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender

    def append_state(self, topic: bytes, body: bytes) -> int:
        return self._appender.append_state(topic, body, is_upkeep=True)

    def append_states(self, changes: Sequence[tuple[bytes, bytes]]) -> int:
        return self._appender.append_states(changes, is_upkeep=True)


def _has_tags(properties: Sequence[bytes]) -> bool:
    """Say whether any of these may contain a tag."""
    return b"TAGS\x01" in b"".join(properties)


def _code(properties: bytes) -> int:
    """Return the tag code of a message."""
    if b"TAGS\x01" not in properties:
        return 0
    tags = envelope.get_property(properties, b"TAGS")
    return tag_code(tags) if tags else 0
