"""Idempotent producers: what each has written to which partition, and whether a batch is new.

A fold over the batch entries of the log: each batch of a producer id leaves its sequence numbers
and its offset, the last five for every producer and partition. The Produce handler reports the
batches that it has appended; after a restart the same is read from the batch headers.

    state of the producer here   batch                              verdict
    none                         any sequence                       new, see `firstbatches`
    same epoch                   one of the last five               duplicate, its first offset
    same epoch                   follows the last (wraps at 2³¹-1)  new
    same epoch                   anything else                      OUT_OF_ORDER_SEQUENCE_NUMBER
    older epoch in the batch     any                                INVALID_PRODUCER_EPOCH
    newer epoch in the batch     sequence 0                         new
    newer epoch in the batch     any other                          OUT_OF_ORDER_SEQUENCE_NUMBER

The marker that ends a transaction counts as well: with a newer epoch it makes older batches of its
producer fail, and the next one begins from sequence 0. With the same epoch the next one continues
from the last sequence, and a batch written before is out of order instead of a duplicate.

Producer ids come from blocks that are reserved by a state entry, so none is ever assigned twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import msgspec

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader, read_header
from rockgate.store.api.folds import Change, Journal, Measured, Roster, check_format, sliced
from rockgate.store.api.topics import Topic, WatchedTopics
from rockgate.store.errors import StoreCorrupt

TOPIC = b"rmq_sys_rockgate_producers"
WINDOW = 5
"""Batches of a producer that are tracked per partition: as many as a client has in flight."""
SEQUENCE_COUNT = 1 << 31

_FORMAT = 1
_BLOCK = 1_000
_ENDED = -1
"""In place of a first sequence: everything up to the last one belongs to an ended transaction."""
_RESERVED = struct.Struct(">BQ")
_SLICE_ITEMS = 1_000
_SAVED_SIZE_MAX = 66 + WINDOW * 20
"""Maximum size of a producer in a snapshot: its queue and numbers, and those of each batch."""


class Producer:
    """One producer in one partition."""

    __slots__ = ("batches", "epoch", "last_ms", "place", "position", "producer_id", "queue")

    def __init__(self, queue: tuple[bytes, int], producer_id: int) -> None:
        self.queue = queue
        self.producer_id = producer_id
        self.epoch = -1
        self.batches: list[tuple[int, int, int]] = []
        """First sequence, last sequence and base offset, oldest first."""
        self.last_ms = 0
        self.position = -1
        self.place = -1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 before the first."""
        return self.batches[-1][1] if self.batches else -1

    def check(self, header: BatchHeader) -> int | None:
        """Return the first offset of a duplicate batch; None for a new one."""
        first, epoch = header.base_sequence, header.producer_epoch
        if epoch == self.epoch:
            expected = (self.last_sequence + 1) % SEQUENCE_COUNT
            # A client has so few in flight that the next one cannot be one of the last.
            if first == expected:
                return None
            last = header.last_sequence
            for known_first, known_last, offset in self.batches:
                if known_first == first and known_last == last:
                    return offset
        elif epoch < self.epoch:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {header.producer_id} is at epoch {self.epoch}; the batch has "
                f"epoch {epoch}.",
            )
        else:
            expected = 0
        if first != expected:
            raise RequestError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id}: got "
                f"{first}, expected {expected}.",
            )
        return None

    def record(self, header: BatchHeader, offset: int, position: int, store_ms: int) -> None:
        """Track an appended batch; one that is older than the last is already known."""
        if position <= self.position:
            return
        self.position = position
        self.last_ms = store_ms
        batches = self.batches
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            batches.clear()
        batches.append((header.base_sequence, header.last_sequence, offset))
        if len(batches) > WINDOW:
            del batches[0]


class _Saved(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A producer in a snapshot."""

    topic_id: bytes
    queue_id: int
    producer_id: int
    epoch: int
    last_ms: int
    position: int
    batches: list[tuple[int, int, int]]


class _Slice(msgspec.Struct, array_like=True, frozen=True):
    """One slice of a snapshot."""

    version: int
    reserved: int
    producers: list[_Saved]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Slice).decode


class Producers:
    """The fold."""

    name = "producers"
    topics = frozenset({TOPIC})

    def __init__(self, journal: Journal, topics: WatchedTopics) -> None:
        self._journal = journal
        self._topics = topics
        self._queues: dict[tuple[bytes, int], dict[int, Producer]] = {}
        self._roster: Roster[Producer] = Roster()
        self._reserved = 0
        self._next_id = self._ours_until = 0
        topics.on_deleted.append(self._forget_topic)

    # Producer ids

    def new_id(self) -> int:
        """Return a new producer id."""
        if self._next_id >= self._ours_until:
            # The rest of an earlier run's block may have been assigned: it is not used.
            start, end = self._reserved, self._reserved + _BLOCK
            self._journal.append_state(TOPIC, _RESERVED.pack(_FORMAT, end))
            # It is ours only once that is in the log.
            self._next_id, self._ours_until = start, end
        self._next_id += 1
        return self._next_id - 1

    # Checking and tracking batches

    def __len__(self) -> int:
        """How many are tracked; one that writes to two partitions counts twice."""
        return len(self._roster)

    def find(self, topic_id: bytes, queue_id: int, producer_id: int) -> Producer | None:
        """Return the state of a producer in a partition."""
        producers = self._queues.get((topic_id, queue_id))
        return producers.get(producer_id) if producers else None

    def check(self, topic_id: bytes, queue_id: int, header: BatchHeader) -> int | None:
        """Return the first offset of a duplicate batch; None for a new one."""
        producer = self.find(topic_id, queue_id, header.producer_id)
        return None if producer is None else producer.check(header)

    def record(
        self,
        topic_id: bytes,
        queue_id: int,
        header: BatchHeader,
        *,
        offset: int,
        position: int,
        store_ms: int,
    ) -> None:
        """Track an appended batch."""
        key = (topic_id, queue_id)
        producers = self._queues.get(key)
        if producers is None:
            producers = self._queues[key] = {}
        producer = producers.get(header.producer_id)
        if producer is None:
            producer = producers[header.producer_id] = Producer(key, header.producer_id)
            producer.place = self._roster.add(producer)
        producer.record(header, offset, position, store_ms)

    def marked(
        self,
        key: tuple[bytes, int],
        producer_id: int,
        epoch: int,
        *,
        position: int,
        store_ms: int,
    ) -> None:
        """Track the end of a transaction: a newer epoch than before begins from sequence 0.

        Its batches are no longer known as written: no client retries one once its transaction has
        ended, but librdkafka may give the sequence of a message that it dropped with an abort to
        the next one, and that one would be taken for a duplicate of the first.
        """
        producer = self._queues.setdefault(key, {}).get(producer_id)
        if producer is None:
            producer = self._queues[key][producer_id] = Producer(key, producer_id)
            producer.place = self._roster.add(producer)
        if position <= producer.position:
            return
        producer.position = position
        producer.last_ms = store_ms
        if epoch > producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
        elif producer.batches:
            producer.batches[:] = [(_ENDED, producer.last_sequence, _ENDED)]

    def knows(self, topic_id: bytes, queue_id: int, producer_id: int) -> bool:
        """Whether a producer has written to a partition, as far as is known."""
        return producer_id in self._queues.get((topic_id, queue_id), ())

    def epoch_of(self, topic_id: bytes, queue_id: int, producer_id: int) -> int:
        """Return a producer's epoch in a partition; -1 if it is unknown."""
        producer = self._queues.get((topic_id, queue_id), {}).get(producer_id)
        return -1 if producer is None else producer.epoch

    def of(self, topic_id: bytes, queue_id: int) -> list[Producer]:
        """Return the producers that are known in a partition."""
        return list(self._queues.get((topic_id, queue_id), {}).values())

    def expire(self, older_than_ms: int, place: int, count: int) -> int:
        """Expire producers that wrote nothing since a time, some at a time.

        Returns the place to continue from; 0 when all have been examined.
        """
        for at, producer in self._roster.walk(place):
            if at - place >= count:
                return at
            if producer is not None and producer.last_ms < older_than_ms:
                self._forget(producer)
        return 0

    def _forget(self, producer: Producer) -> None:
        self._roster.remove(producer.place)
        producers = self._queues[producer.queue]
        del producers[producer.producer_id]
        if not producers:
            del self._queues[producer.queue]

    def _forget_topic(self, topic: Topic) -> None:
        for queue_id in range(topic.queue_count):
            for producer in self.of(topic.id, queue_id):
                self._forget(producer)

    # The fold

    def apply(self, change: Change) -> None:
        """Apply the reservation of a block of producer ids."""
        if not change.body:
            raise StoreCorrupt("Producer id block", change.position, "it is empty")
        check_format(change.body[0], _FORMAT, "Producer id block", change.position)
        if len(change.body) != _RESERVED.size:
            reason = f"its size is {len(change.body)} bytes, expected {_RESERVED.size}"
            raise StoreCorrupt("Producer id block", change.position, reason)
        _, reserved = _RESERVED.unpack(change.body)
        self._reserved = max(self._reserved, reserved)

    def apply_batch(self, change: Change) -> None:
        """Apply a batch of the log to its producer."""
        header = read_header(change.body)
        if header.producer_id < 0:
            return
        topic = self._topics.owner(change.topic, change.position)
        if topic is None:
            return
        if header.is_control:
            self.marked(
                (topic.id, change.queue_id),
                header.producer_id,
                header.producer_epoch,
                position=change.position,
                store_ms=change.store_ms,
            )
            return
        self.record(
            topic.id,
            change.queue_id,
            header,
            offset=change.queue_offset,
            position=change.position,
            store_ms=change.store_ms,
        )

    def snapshot(self) -> Iterator[bytes]:
        """Yield all producers, some thousand to a slice."""
        for saved in sliced(self._saved(), _SLICE_ITEMS):
            yield _encode(_Slice(_FORMAT, self._reserved, saved))

    def _saved(self) -> Iterator[Measured[_Saved]]:
        for _, producer in self._roster.walk():
            if producer is None:
                yield 1, 0, None
                continue
            saved = _Saved(
                *producer.queue,
                producer.producer_id,
                producer.epoch,
                producer.last_ms,
                producer.position,
                list(producer.batches),
            )
            yield 1, _SAVED_SIZE_MAX, saved

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything by what the slices hold."""
        self.clear()
        for piece in slices:
            try:
                part = _decode(piece)
            except msgspec.MsgspecError as error:
                raise StoreCorrupt("Producer snapshot", 0, str(error)) from error
            check_format(part.version, _FORMAT, "Producer snapshot")
            self._reserved = max(self._reserved, part.reserved)
            for saved in part.producers:
                self._add(saved)

    def _add(self, saved: _Saved) -> None:
        key = (saved.topic_id, saved.queue_id)
        producer = Producer(key, saved.producer_id)
        producer.epoch = saved.epoch
        producer.last_ms = saved.last_ms
        producer.position = saved.position
        producer.batches = saved.batches
        producer.place = self._roster.add(producer)
        self._queues.setdefault(key, {})[saved.producer_id] = producer

    def clear(self) -> None:
        """Forget everything."""
        self._queues.clear()
        self._roster.clear()
        self._reserved = self._next_id = self._ours_until = 0
