"""Open and aborted transactions by partition, and the last stable offset.

A fold over batch entries, as docs/internals/transactions.md describes it. It does not use
transactional ids: a batch header says that the batch belongs to a transaction of its producer, and
a marker ends that. The Produce handler and the coordinator report what they have appended; at
startup the same is read from the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from rockgate.protocol.entry import get_property
from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.control import MarkerType, read_marker
from rockgate.store.api.folds import Change, Measured, Roster, check_format, pack_array, sliced
from rockgate.store.api.topics import Topic, WatchedTopics
from rockgate.store.errors import StoreCorrupt

FIRST: Final = b"__TXN_FIRST"
"""Property of a marker's entry: the offset of its transaction's first batch in the partition."""

_FORMAT: Final = 1
_VERSION: Final = bytes((_FORMAT,))
_SLICE_COST: Final = 2_000
_last = itemgetter(1)


class Aborted(NamedTuple):
    """An aborted transaction in one partition: from its first batch to its marker."""

    first: int
    last: int
    producer_id: int


class _Queue:
    """The transactions of one partition."""

    __slots__ = ("aborted", "ending", "key", "open", "place")

    def __init__(self, key: tuple[bytes, int]) -> None:
        self.key = key
        self.open: dict[int, int] = {}
        """First offsets by producer id, the oldest first."""
        self.ending: list[tuple[int, int]] = []
        """First and last offsets of transactions whose marker is not yet visible."""
        self.aborted: list[Aborted] = []
        """In the order of their markers."""
        self.place = -1


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    topic_id: bytes
    queue_id: int
    open: list[tuple[int, int]]
    aborted: list[Aborted]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Saved]).decode


class StableOffsets:
    """The fold."""

    name: Final = "unstable"
    topics: Final[frozenset[bytes]] = frozenset()

    def __init__(self, topics: WatchedTopics, slice_cost: int = _SLICE_COST) -> None:
        self._topics = topics
        self._slice_cost = slice_cost
        self._roster: Roster[_Queue] = Roster()
        self._queues: dict[tuple[bytes, int], _Queue] = {}
        self.transactional: Collection[tuple[bytes, int]] = self._queues.keys()
        """Partitions with open or aborted transactions; others need no lookup."""
        self._by_producer: dict[int, set[tuple[bytes, int]]] = {}
        self.on_ended: list[Callable[[tuple[bytes, int], int], None]] = []
        """Called for each marker, with its partition and its offset, where there is no record."""
        topics.on_deleted.append(self._forget_topic)
        topics.on_log_starts.append(self._forget_before)

    # Queries

    def last_stable(self, topic_id: bytes, queue_id: int, high_watermark: int) -> int:
        """Return the last stable offset: every visible transaction before it has ended."""
        queue = self._queues.get((topic_id, queue_id))
        if queue is None:
            return high_watermark
        stable = high_watermark
        if queue.open:
            stable = min(stable, next(iter(queue.open.values())))
        if queue.ending:
            queue.ending = [each for each in queue.ending if each[1] >= high_watermark]
            for first, _ in queue.ending:
                stable = min(stable, first)
        return stable

    def aborted(self, topic_id: bytes, queue_id: int, offset: int, end: int) -> list[Aborted]:
        """Return the aborted transactions that overlap a range of offsets, by their marker."""
        queue = self._queues.get((topic_id, queue_id))
        if queue is None or not queue.aborted:
            return []
        start = bisect_left(queue.aborted, offset, key=_last)
        return [each for each in queue.aborted[start:] if each.first < end]

    def first_of(self, topic_id: bytes, queue_id: int, producer_id: int) -> int | None:
        """Return where a producer's open transaction began in a partition; None without one."""
        queue = self._queues.get((topic_id, queue_id)) if self._queues else None
        return None if queue is None else queue.open.get(producer_id)

    def partitions_of(self, producer_id: int) -> list[tuple[bytes, int]]:
        """Return the partitions in which a producer has an open transaction."""
        return sorted(self._by_producer.get(producer_id, ()))

    # Changes

    def wrote(self, topic_id: bytes, queue_id: int, producer_id: int, offset: int) -> None:
        """A batch of a transaction was appended."""
        key = topic_id, queue_id
        queue = self._queues.get(key)
        if queue is None:
            queue = self._add(key)
        if producer_id not in queue.open:
            queue.open[producer_id] = offset
            self._by_producer.setdefault(producer_id, set()).add(key)

    def ended(
        self,
        key: tuple[bytes, int],
        producer_id: int,
        *,
        first: int,
        offset: int,
        is_abort: bool,
        high_watermark: int,
    ) -> None:
        """A marker was appended; it counts for readers once it is visible."""
        for listener in self.on_ended:
            listener(key, offset)
        queue = self._queues.get(key)
        if queue is None:
            if not is_abort:
                return
            queue = self._add(key)
        if queue.open.get(producer_id, offset) < offset:
            queue.ending = [each for each in queue.ending if each[1] >= high_watermark]
            if offset >= high_watermark:
                queue.ending.append((queue.open[producer_id], offset))
            self._close(queue, producer_id)
        if is_abort and (not queue.aborted or queue.aborted[-1].last < offset):
            queue.aborted.append(Aborted(first, offset, producer_id))
        self._drop_if_empty(queue)

    def _close(self, queue: _Queue, producer_id: int) -> None:
        del queue.open[producer_id]
        keys = self._by_producer[producer_id]
        keys.discard(queue.key)
        if not keys:
            del self._by_producer[producer_id]

    def _add(self, key: tuple[bytes, int]) -> _Queue:
        queue = self._queues[key] = _Queue(key)
        queue.place = self._roster.add(queue)
        return queue

    def _drop_if_empty(self, queue: _Queue) -> None:
        if not (queue.open or queue.ending or queue.aborted):
            self._roster.remove(queue.place)
            del self._queues[queue.key]

    def _forget_topic(self, topic: Topic) -> None:
        for queue_id in range(topic.queue_count):
            queue = self._queues.get((topic.id, queue_id))
            if queue is not None:
                for producer_id in list(queue.open):
                    self._close(queue, producer_id)
                queue.ending, queue.aborted = [], []
                self._drop_if_empty(queue)

    def _forget_before(self, topic: Topic, starts: Mapping[int, int]) -> None:
        """Drop aborted transactions of which no records are left."""
        if not self._queues:
            return
        for queue_id, log_start in starts.items():
            queue = self._queues.get((topic.id, queue_id))
            if queue is not None and queue.aborted and queue.aborted[0].last < log_start:
                del queue.aborted[: bisect_left(queue.aborted, log_start, key=_last)]
                self._drop_if_empty(queue)

    # The fold

    def apply(self, change: Change) -> None:
        """It has no entries of its own."""

    def apply_batch(self, change: Change) -> None:
        """Apply a batch of the log to its transaction."""
        header = read_header(change.body)
        if not header.is_transactional:
            return
        topic = self._topics.owner(change.topic, change.position)
        if topic is None:
            return
        key, producer_id = (topic.id, change.queue_id), header.producer_id
        if not header.is_control:
            self.wrote(*key, producer_id, change.queue_offset)
            return
        try:
            marker = read_marker(change.body)
        except MalformedBatch as error:
            raise StoreCorrupt("Transaction marker", change.position, str(error)) from error
        if marker is not None:
            offset = change.queue_offset
            self.ended(
                key,
                producer_id,
                first=int(get_property(change.properties, FIRST) or offset),
                offset=offset,
                is_abort=marker.type is MarkerType.ABORT,
                high_watermark=offset + 1,
            )

    def snapshot(self) -> Iterator[bytes]:
        """Yield all partitions; one with many aborted transactions is several pieces."""
        for saved in sliced(self._encoded(), self._slice_cost):
            yield _VERSION + pack_array(saved)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, queue in self._roster.walk():
            yield 1, 0, None
            for piece in self._pieces(queue) if queue is not None else ():
                item = _encode(piece)
                yield 1 + len(piece.open) + len(piece.aborted), len(item), item

    def _pieces(self, queue: _Queue) -> Iterator[_Saved]:
        """First the open transactions at one moment, then the aborted ones, which only grow."""
        opened = list(queue.open.items())
        count, saved_to = self._slice_cost, -1
        for at in range(0, len(opened), count):
            yield _Saved(*queue.key, opened[at : at + count], [])
        while True:
            start = bisect_left(queue.aborted, saved_to + 1, key=_last)
            part = queue.aborted[start : start + count]
            if not part:
                return
            yield _Saved(*queue.key, [], part)
            saved_to = part[-1].last

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything by what the slices hold."""
        self.clear()
        what = "Snapshot of open transactions"
        for piece in slices:
            check_format(piece[0] if piece else 0, _FORMAT, what)
            try:
                part = _decode(piece[1:])
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(what, 0, str(error)) from error
            for saved in part:
                self._load(saved)

    def _load(self, saved: _Saved) -> None:
        key = saved.topic_id, saved.queue_id
        queue = self._queues.get(key) or self._add(key)
        known = queue.aborted[-1].last if queue.aborted else -1
        queue.aborted += [each for each in saved.aborted if each.last > known]
        for producer_id, first in saved.open:
            # Of two slices of one partition the later one is more recent.
            if queue.open.get(producer_id, -1) < first:
                queue.open.pop(producer_id, None)
                queue.open[producer_id] = first
                self._by_producer.setdefault(producer_id, set()).add(key)

    def clear(self) -> None:
        """Forget everything."""
        self._roster.clear()
        self._queues.clear()
        self._by_producer.clear()
