"""Offsets without a readable record: delayed records and transaction markers.

They count in the distance between a group's committed offset and the end, but no reader ever gets
a record there, so a group's lag in records must leave them out. This is a fold, so that the lag is
known without opening a batch: the schedules of delayed records name their offsets, and the fold of
open transactions, which reads the markers anyway, reports theirs.

One bit for each such offset, in chunks of 4,096 that exist if any is set: 1,000,000 of them in a
row take 125 KB. Offsets before a partition's start are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC, SYSTEM_PREFIX
from rockgate.store.api.delay import DELAY_FORMAT, DELAY_TOPIC, DelayChangeKind, OffsetSet, decode
from rockgate.store.api.folds import Change, Measured, Roster, check_format, pack_array, sliced
from rockgate.store.api.topics import Topic, WatchedTopics
from rockgate.store.errors import StoreCorrupt

_FORMAT: Final = 1
_VERSION: Final = bytes((_FORMAT,))
_SLICE_CHUNKS: Final = 200
_ENDS: Final = tuple(
    bytes((DELAY_FORMAT, kind)) for kind in DelayChangeKind if kind is not DelayChangeKind.SCHEDULE
)
"""Prefixes of changes that leave no offset empty: skipped without decoding, as there are many."""
_OWN: Final = (SYSTEM_PREFIX, LEVELS_TOPIC)
"""Internal topics of delayed messages, which no group reads."""


class _Queue:
    """The empty offsets of one partition."""

    __slots__ = ("key", "offsets", "place")

    def __init__(self, key: tuple[bytes, int]) -> None:
        self.key = key
        self.offsets = OffsetSet()
        self.place = -1


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    topic_id: bytes
    queue_id: int
    number: int
    bits: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Saved]).decode


class EmptyOffsets:
    """The fold."""

    name: Final = "empty offsets"
    topics: Final = frozenset({DELAY_TOPIC})

    def __init__(self, topics: WatchedTopics, slice_chunks: int = _SLICE_CHUNKS) -> None:
        self._topics = topics
        self._slice_chunks = slice_chunks
        self._queues: dict[tuple[bytes, int], _Queue] = {}
        self._roster: Roster[_Queue] = Roster()
        topics.on_deleted.append(self._forget_topic)
        topics.on_log_starts.append(self._forget_before)

    def count(self, topic_id: bytes, queue_id: int, first: int, end: int) -> int:
        """Return how many offsets of a range hold no readable record."""
        queue = self._queues.get((topic_id, queue_id)) if self._queues else None
        return 0 if queue is None or first >= end else queue.offsets.count(first, end)

    # Changes

    def marked(self, key: tuple[bytes, int], offset: int) -> None:
        """A marker was appended at an offset."""
        self._queue(key).offsets.add(offset)

    def apply(self, change: Change) -> None:
        """Note which records are delayed; delivery does not fill their offsets."""
        if change.body[:2] in _ENDS:
            return
        _, items = decode(change)
        for item in items:
            topic = self._topics.find_id(item.topic_id)
            if topic is None or topic.name.startswith(_OWN):
                continue
            # A replay may contain offsets before the log start, which no longer count.
            start = topic.log_start(item.queue_id)
            offsets = [offset for offset, _ in item.waits if offset >= start]
            if offsets:
                self._queue((item.topic_id, item.queue_id)).offsets.add_all(offsets)

    def _queue(self, key: tuple[bytes, int]) -> _Queue:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(key)
            queue.place = self._roster.add(queue)
        return queue

    def _drop(self, queue: _Queue) -> None:
        self._roster.remove(queue.place)
        del self._queues[queue.key]

    def _forget_topic(self, topic: Topic) -> None:
        for queue_id in range(topic.queue_count):
            queue = self._queues.get((topic.id, queue_id))
            if queue is not None:
                self._drop(queue)

    def _forget_before(self, topic: Topic, starts: Mapping[int, int]) -> None:
        for queue_id, offset in starts.items():
            queue = self._queues.get((topic.id, queue_id)) if self._queues else None
            if queue is not None:
                queue.offsets.forget_before(offset)
                if not len(queue.offsets):
                    self._drop(queue)

    # The fold

    def snapshot(self) -> Iterator[bytes]:
        """Yield the chunks of all partitions."""
        for saved in sliced(self._encoded(), self._slice_chunks):
            yield _VERSION + pack_array(saved)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, queue in self._roster.walk():
            yield 1, 0, None
            if queue is None:
                continue
            for number in queue.offsets.numbers():
                item = _encode(_Saved(*queue.key, number, queue.offsets.chunk(number)))
                yield 1, len(item), item

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything by what the slices hold."""
        self.clear()
        what = "Snapshot of empty offsets"
        for piece in slices:
            check_format(piece[0] if piece else 0, _FORMAT, what)
            try:
                for saved in _decode(piece[1:]):
                    key = saved.topic_id, saved.queue_id
                    self._queue(key).offsets.add_chunk(saved.number, saved.bits)
            except (msgspec.MsgspecError, ValueError) as error:
                raise StoreCorrupt(what, 0, str(error)) from error

    def clear(self) -> None:
        """Forget everything."""
        self._queues.clear()
        self._roster.clear()
