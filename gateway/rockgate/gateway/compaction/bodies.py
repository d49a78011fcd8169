"""Opens entries for compaction: the keys of their records, and their bodies without some of them.

docs/internals/compaction.md specifies what goes. The key of a message entry is that of the record a
Kafka consumer gets, so a topic that both wires write to has one set of keys. Bodies are opened
within the widest bounds; a batch that cannot be opened stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from rockgate.gateway.delay.headers import open_batch
from rockgate.gateway.transcode.dictionary import record_key
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import DELAYED, Buffer, Entry
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader, read_header
from rockgate.protocol.kafka.records.bounds import LIGHT, WIDEST, is_heavy
from rockgate.protocol.kafka.records.compacting import Compacting, empty_batch, has_room_for
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.control import MarkerType, read_marker
from rockgate.protocol.kafka.records.record import open_records
from rockgate.protocol.kafka.records.skimming import Keyed, skim_keyed
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import (
    EXPIRED,
    PINNED,
    EntryReader,
    Reading,
    Rewritten,
    Steps,
    Survey,
    Terms,
)

STEP_RECORDS: Final = 250
_RANGE: Final = 4_096
_LIGHT_BYTES: Final = 32 << 10
"""What is compressed at once; more is left to a thread."""


class PartitionTransactions(Protocol):
    """The transactions in partitions."""

    def last_stable(self, topic_id: bytes, queue_id: int, high_watermark: int) -> int:
        """Return the last stable offset."""

    def aborted(
        self, topic_id: bytes, queue_id: int, offset: int, end: int
    ) -> Sequence[tuple[int, int, int]]:
        """Return first offset, marker offset and producer id of those that overlap a range."""


class EntryBodies:
    """Knows the bodies of both wires. One for the whole server."""

    def __init__(self, reader: EntryReader, transactions: PartitionTransactions) -> None:
        self._reader = reader
        self._transactions = transactions

    def stable_end(self, queue: Queue) -> int:
        """Return the last stable offset: what is behind it supersedes nothing yet."""
        end = self._reader.high_watermark(queue)
        return self._transactions.last_stable(queue.topic_id, queue.queue_id, end)

    def reading(self, queue: Queue, terms: Terms) -> Reading:
        """Begin to read a queue."""
        return EntryReading(queue, terms, self._transactions)

    def hole(self, base: int, count: int, epoch: int) -> Buffer:
        """Return a batch without records."""
        return empty_batch(base, count, epoch)


class EntryReading:
    """Reads one queue for one cleaning."""

    def __init__(self, queue: Queue, terms: Terms, transactions: PartitionTransactions) -> None:
        self._place = queue.topic_id, queue.queue_id
        self._terms = terms
        self._transactions = transactions
        self._seen: set[int] = set()
        """Producers with data of a transaction whose marker is still to come."""

    # Surveying

    def survey(
        self, view: memoryview, entry: Entry, survey: Survey, is_pinned: bool
    ) -> Steps[None]:
        """Note the keys of an entry's records."""
        if not entry.is_batch:
            self._message(view, entry, survey, is_pinned)
            return
        body = view[entry.body_at : entry.body_at + entry.body_size]
        try:
            header = read_header(body)._replace(base_offset=entry.queue_offset)
            if not header.record_count:
                if not header.has_producer_id:
                    survey.hole(header.base_offset)
            elif header.is_control:
                self._control(body, header, survey, is_pinned)
            elif header.is_transactional and self._is_aborted(header):
                if not is_pinned:
                    yield from _drop_all(header, survey)
            else:
                if header.is_transactional:
                    self._seen.add(header.producer_id)
                yield from self._batch(body, header, entry, survey, is_pinned)
        except MalformedBatch:
            return

    def _batch(
        self,
        body: memoryview,
        header: BatchHeader,
        entry: Entry,
        survey: Survey,
        is_pinned: bool,
    ) -> Steps[None]:
        data = yield from _opened(body, header)
        waiting: frozenset[int] = frozenset()
        if entry.sys_flag & DELAYED:
            waiting = yield from _waiting(body)
        yield from self._records(data, header, waiting, survey, is_pinned)
        if waiting and not is_pinned:
            survey.revisit(header.base_offset)

    def _message(self, view: memoryview, entry: Entry, survey: Survey, is_pinned: bool) -> None:
        if entry.sys_flag & DELAYED:
            return
        offset, terms = entry.queue_offset, self._terms
        key = record_key(envelope.properties_of(view, entry))
        if key is None:
            if not is_pinned:
                survey.drop(offset)
            return
        flags = PINNED if is_pinned else 0
        # A message has no place for a horizon. It goes by its own time, but never in the cleaning
        # that drops what it supersedes.
        if (
            not entry.body_size
            and offset < terms.cleaned_to
            and entry.store_ms + terms.delete_retention_ms <= terms.now_ms
        ):
            flags |= EXPIRED
        survey.key(key, offset, flags)

    def _control(
        self, body: memoryview, header: BatchHeader, survey: Survey, is_pinned: bool
    ) -> None:
        """A marker may go once all data of its transaction has gone, and its horizon has come."""
        try:
            marker = read_marker(body)
        except MalformedBatch:
            return
        # Aborted transactions are listed to consumers until they find the marker, so it stays.
        if marker is None or marker.type is not MarkerType.COMMIT:
            return
        if header.producer_id in self._seen:
            self._seen.discard(header.producer_id)
        elif not is_pinned and self._is_over(header):
            survey.drop(header.base_offset)
        elif not is_pinned and header.delete_horizon_ms is None:
            survey.revisit(header.base_offset)

    def _is_over(self, header: BatchHeader) -> bool:
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is not None and horizon_ms <= self._terms.now_ms

    def _is_aborted(self, header: BatchHeader) -> bool:
        base = header.base_offset
        found = self._transactions.aborted(*self._place, base, base + 1)
        return any(producer_id == header.producer_id for _, _, producer_id in found)

    def _records(
        self,
        data: Plain,
        header: BatchHeader,
        waiting: frozenset[int],
        survey: Survey,
        is_pinned: bool,
    ) -> Steps[None]:
        base, index = header.base_offset, 0
        flags = PINNED if is_pinned else 0
        deletes = flags | EXPIRED if self._is_over(header) else flags
        has_deletes = False
        for records in _in_steps(skim_keyed(data, header)):
            for delta, _, key, is_null, _, _ in records:
                if index in waiting:
                    # It is delivered, or recalled: no reader ever gets it here.
                    if not is_pinned:
                        survey.drop(base + delta)
                elif key is not None:
                    has_deletes = has_deletes or is_null
                    survey.key(key, base + delta, deletes if is_null else flags)
                elif not is_pinned:
                    survey.drop(base + delta)
                index += 1
            yield None
        if has_deletes and not is_pinned and header.delete_horizon_ms is None:
            survey.revisit(base)

    # Rewriting

    def rewrite(
        self, view: memoryview, entry: Entry, is_dropped: Callable[[int], bool], is_revisited: bool
    ) -> Steps[Rewritten | bool]:
        """Return an entry's body without what is dropped."""
        if not entry.is_batch:
            return is_dropped(entry.queue_offset)
        body = view[entry.body_at : entry.body_at + entry.body_size]
        header = read_header(body)._replace(base_offset=entry.queue_offset)
        try:
            data = yield from _opened(body, header)
            return (yield from self._rewritten(data, header, entry, is_dropped, is_revisited))
        except MalformedBatch:
            return False

    def _rewritten(
        self,
        data: Plain,
        header: BatchHeader,
        entry: Entry,
        is_dropped: Callable[[int], bool],
        is_revisited: bool,
    ) -> Steps[Rewritten | bool]:
        base = header.base_offset
        left: list[Keyed] = []
        has_deletes = header.is_control
        for records in _in_steps(skim_keyed(data, header)):
            for record in records:
                if not is_dropped(base + record.delta):
                    left.append(record)
                    has_deletes = has_deletes or record.is_null
            yield None
        if not left:
            return True
        horizon_ms = None
        if is_revisited and has_deletes and not header.has_delete_horizon:
            horizon_ms = self._terms.now_ms + self._terms.delete_retention_ms
            if not has_room_for(header, horizon_ms):
                horizon_ms = None
        cleared = entry.sys_flag & DELAYED
        if len(left) == header.record_count and horizon_ms is None and not cleared:
            return False
        made = Compacting(data, header, horizon_ms)
        for records in _in_steps(iter(left)):
            for record in records:
                made.keep(record)
            yield None
        built: list[bytearray] = []
        if made.size > _LIGHT_BYTES:
            yield lambda: built.append(made.build())
        else:
            built.append(made.build())
        return Rewritten(built[0], made.max_ms, cleared)


def _in_steps(records: Iterator[Keyed]) -> Iterator[list[Keyed]]:
    while part := list(islice(records, STEP_RECORDS)):
        yield part


def _drop_all(header: BatchHeader, survey: Survey) -> Steps[None]:
    end = header.next_offset
    for first in range(header.base_offset, end, _RANGE):
        survey.drop_range(first, min(first + _RANGE, end))
        yield None


def _opened(body: memoryview, header: BatchHeader) -> Steps[Plain]:
    """Decompress a batch, in a thread if that takes long."""
    if not is_heavy(body):
        try:
            return open_records(body, header, bounds=LIGHT)
        except BatchTooLarge:
            pass
    found: list[Plain | MalformedBatch] = []

    def work() -> None:
        try:
            found.append(open_records(body, header, bounds=WIDEST))
        except MalformedBatch as damage:
            found.append(damage.with_traceback(None))

    yield work
    if isinstance(found[0], MalformedBatch):
        raise found[0]
    return found[0]


def _waiting(body: memoryview) -> Steps[frozenset[int]]:
    """Return the indexes of the records of a batch that were delayed."""
    found: list[frozenset[int] | MalformedBatch] = []

    def work() -> None:
        try:
            found.append(frozenset(open_batch(body, bounds=WIDEST).indexes))
        except MalformedBatch as damage:
            found.append(damage.with_traceback(None))

    yield work
    if isinstance(found[0], MalformedBatch):
        raise found[0]
    return found[0]
