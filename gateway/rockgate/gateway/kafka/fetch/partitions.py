"""Reading partitions for Kafka: one of them, and those of a request within its limits.

    asked of one                                   answer
    leader epoch older than ours                   FENCED_LEADER_EPOCH
    leader epoch newer than ours                   UNKNOWN_LEADER_EPOCH
    last fetched epoch that is not known here      OFFSET_OUT_OF_RANGE
    offset before the log start, or behind its end OFFSET_OUT_OF_RANGE
    last fetched epoch ended before the offset     no records, and where it ended
    offset at or behind the last that may be seen  no records
    anything else                                  whole batches, first the one with the offset

An answer with an error says nothing else of the partition, as in Kafka. Batches are slices of the
log, except that many small ones are joined and some are converted.

A request's partitions are looked at in the order given, each with what the request's limit leaves;
the first that has records may pass it with one batch. While a request waits only those are looked
at again that have changed. What was found of the others still holds: their offsets were asked for
with this request, and their records are slices that stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from rockgate.gateway.kafka.fetch.converted_batches import ConvertedBatches
from rockgate.gateway.kafka.fetch.finder import QueueFinder, Reading
from rockgate.gateway.kafka.fetch.leader_epochs import EpochEnd, LeaderEpochs
from rockgate.gateway.kafka.fetch.session import FetchSession, Wanted, WantedTopic
from rockgate.gateway.kafka.request.errors import code_of
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.fields import Buffer
from rockgate.protocol.kafka.hot.fetch import Diverging, FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import BATCHES_MAX as RUN_MAX
from rockgate.store.api.read import Reader
from rockgate.store.errors import StoreError

Bounds = tuple[int, int, int]
"""Log start, high watermark, last stable offset."""

Read = tuple[FetchedPartition, bool, int]
"""A partition's response; whether it has more than the limits allow; its number of batches."""

SMALL_BYTES: Final = 1024
"""Batches smaller than this on average are joined: a copy costs less than sending many buffers."""

_new: Final = tuple.__new__  # as NamedTuple's own, without its call

BATCHES_MAX = RUN_MAX
"""About the most batches in one response: very many small ones would delay other clients."""

_BY_NAME = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID)
"""The error for a topic id whose name was known."""

Finding = tuple[FetchedPartition, int, int, int, bool]
"""What was found of a partition; its bytes; bytes towards `min_bytes`, which are all that the
limits allow if there are more; its batches; and whether there is no such partition."""
_IS_UNKNOWN: Final = 4
# Fields of a FetchedPartition. A session may have ten thousand partitions without news, and to ask
# a tuple by index takes half the time.
ERROR_FIELD: Final = 1
RECORDS_FIELD: Final = 5
DIVERGING_FIELD: Final = 8


# One partition


class ReadsPartitions(Protocol):
    """Reads partitions: of the store, or of a cluster's brokers."""

    def read(
        self,
        queue: Any,
        asked: FetchPartition,
        size_max: int,
        at_least_one: bool,
        is_committed: bool,
        cold: list[Place] | None,
    ) -> Read:
        """Read from the requested offset; errors are in the response."""


class PartitionReader:
    """Reads partitions. Created once; it has no state between two reads."""

    def __init__(
        self,
        *,
        reader: Reader,
        epochs: LeaderEpochs,
        converted: ConvertedBatches,
        stable_offsets: StableOffsets,
    ) -> None:
        self._converted = converted
        self._reader = reader
        self._high_watermark = reader.high_watermark
        self._epochs = epochs
        self._epoch = epochs.current
        self._stable_offsets = stable_offsets
        self._transactional = stable_offsets.transactional

    def bounds(self, queue: Queue) -> Bounds:
        """Return a partition's bounds."""
        high_watermark = self._high_watermark(queue)
        stable, log_start = high_watermark, queue.log_start
        if self._transactional:
            topic_id, queue_id = queue.topic_id, queue.queue_id
            stable = self._stable_offsets.last_stable(topic_id, queue_id, high_watermark)
        return log_start, high_watermark, stable if stable > log_start else log_start

    def read(
        self,
        queue: Queue,
        asked: FetchPartition,
        size_max: int,
        at_least_one: bool,
        is_committed: bool,
        cold: list[Place] | None,
    ) -> Read:
        """Read from the requested offset; errors are in the response.

        With `at_least_one` the first batch is returned however large it is. Under `is_committed`
        nothing is returned from the start of the oldest open transaction on. What must be loaded
        from disk first is added to `cold`, unless that is None.
        """
        epoch = asked.current_leader_epoch
        if epoch >= 0 and epoch != self._epoch:
            return _refused(asked, self._epochs.refusal(epoch))
        try:
            diverging = None
            if asked.last_fetched_epoch >= 0:
                ended = self._epochs.end(queue, asked.last_fetched_epoch)
                if ended.epoch < 0:
                    return _refused(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
                diverging = self._diverging(queue, asked, ended)
            log_start, high_watermark, last_stable = self.bounds(queue)
            offset = asked.fetch_offset
            # What is between the high watermark and the end will be visible soon: no error.
            if offset < log_start or (offset > queue.next_offset and diverging is None):
                return _refused(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
            records: Sequence[Buffer] = ()
            aborted: Sequence[tuple[int, int]] | None = () if is_committed else None
            is_cut, count = False, 0
            end = last_stable if is_committed else high_watermark
            if offset < end and diverging is None and (size_max > 0 or at_least_one):
                records, read_to = self._records(queue, offset, end, size_max, at_least_one, cold)
                is_cut, count = read_to < end, len(records)
                if is_committed:
                    aborted = self.aborted(queue, offset, read_to)
                if count > 1 and sum(map(len, records)) < count * SMALL_BYTES:
                    records = (b"".join(records),)
        except StoreError as error:
            return _refused(asked, code_of(error))
        bounds = (high_watermark, last_stable, log_start)
        fields = (asked.partition, 0, *bounds, records, aborted, -1, diverging, None)
        return _new(FetchedPartition, fields), is_cut, count

    def batches(
        self, queue: Queue, offset: int, end: int, size_max: int, cold: list[Place] | None
    ) -> tuple[Sequence[Buffer], int]:
        """Return batches from the one that holds an offset on, one at least, and where they end."""
        return self._records(queue, offset, end, size_max, True, cold)

    def aborted(self, queue: Queue, offset: int, end: int) -> Sequence[tuple[int, int]]:
        """Return the aborted transactions that a client needs to read a range."""
        found = self._stable_offsets.aborted(queue.topic_id, queue.queue_id, offset, end)
        return [(each.producer_id, each.first) for each in found]

    def _diverging(self, queue: Queue, asked: FetchPartition, ended: EpochEnd) -> Diverging | None:
        if ended.epoch == asked.last_fetched_epoch and ended.offset >= asked.fetch_offset:
            return None
        return Diverging(ended.epoch, min(ended.offset, self.bounds(queue)[1]))

    def _records(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> tuple[Sequence[Buffer], int]:
        """Return batches, and the offset after the last of them."""
        found = self._reader.batches(
            queue, offset, end, size_max, at_least_one=at_least_one, cold=cold
        )
        if not found.is_at_message and not found.is_at_delayed:
            return found.bodies, found.next_offset
        return self._converted.behind(found, queue, end, size_max, at_least_one, cold)


def _refused(asked: FetchPartition, code: ErrorCode | None) -> Read:
    code = ErrorCode.UNKNOWN_SERVER_ERROR if code is None else code
    return FetchedPartition(asked.partition, code), False, 0


# Those of a request


class Collector:
    """What one request has found so far. Created for it, and dropped with its response."""

    __slots__ = (
        "_batch_count",
        "_counted",
        "_finder",
        "_is_urgent",
        "_max_bytes",
        "_min_bytes",
        "_reader",
        "_size",
        "_unknown_count",
        "cold",
        "epoch",
        "found",
        "generation",
        "is_committed",
        "is_in_turns",
        "is_incremental",
        "is_late",
        "peer",
        "reading",
        "session",
    )

    def __init__(self, session: FetchSession, finder: QueueFinder, reader: ReadsPartitions) -> None:
        self._finder = finder
        self._reader = reader
        self.reading: Reading | None = None
        """What may be read; None where nothing is authorized. If it is set, the next two are."""
        self.peer: Peer
        """The connection whose client reads."""
        self.generation: int
        """The grants under which that was decided last."""
        self.session = session
        self.is_incremental = session.id != 0
        """Whether only changes are returned, and what does not fit is left for the next request."""
        self.is_in_turns = False
        """Whether other requests run in between."""
        self.is_late = False
        """Whether grants may have changed since the request was read."""
        self.epoch = session.epoch
        self.cold: list[Place] | None = []
        """Entries to be loaded from disk; None once that is done."""
        self._clear()

    def limit(self, *, min_bytes: int, max_bytes: int, is_committed: bool) -> None:
        """Set the minimum and the maximum size of the response."""
        self._max_bytes = max_bytes
        self._min_bytes = min(min_bytes, max_bytes)
        self.is_committed = is_committed

    def _clear(self) -> None:
        self.found: dict[Wanted, Finding] = {}
        self._size = self._counted = self._batch_count = self._unknown_count = 0
        self._is_urgent = False

    def begin_again(self) -> None:
        """Start over, now that the cold entries have been loaded."""
        self.cold = None
        self._clear()

    @property
    def is_outdated(self) -> bool:
        """Whether the session has moved on to another request."""
        return self.session.epoch != self.epoch

    @property
    def is_enough(self) -> bool:
        """Whether there is a reason to respond now.

        Enough bytes; something that the client should learn at once; or nothing that could give
        more, because no partition exists.
        """
        return (
            self._counted >= self._min_bytes
            or self._is_urgent
            or self._unknown_count >= self.session.count
        )

    def read(self, partitions: Iterable[Wanted]) -> None:
        """Read partitions in order, until the byte limit is reached."""
        session, found, reading = self.session, self.found, self.reading
        read, cold, is_committed = self._reader.read, self.cold, self.is_committed
        topic: WantedTopic | None = None
        queues: Sequence[Any] | ErrorCode = []
        for wanted in partitions:
            before = self._drop(wanted) if wanted in found else None
            left = self._max_bytes - self._size if self._batch_count < BATCHES_MAX else 0
            if left <= 0 and self._size and self.is_incremental:
                return
            if wanted.topic is not topic:
                topic = wanted.topic
                queues = self._finder.queues(topic, session.uses_ids)
                # What was allowed under these grants is found without a call.
                if (
                    reading is not None
                    and self.peer.readable.get(topic.store_name) != self.generation
                    and not self._may_read(topic, reading)
                ):
                    queues = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            asked = wanted.asked
            if isinstance(queues, ErrorCode) or not 0 <= asked.partition < len(queues):
                self._add_unknown(wanted, queues, before)
                continue
            queue = queues[asked.partition]
            if queue is not wanted.queue:
                session.bind(wanted, queue)
            size_max = asked.partition_max_bytes
            size_max = left if left < size_max else size_max
            size_max = 0 if size_max < 0 else size_max
            cold_count = len(cold) if cold else 0
            fetched, is_cut, batch_count = read(
                queue, asked, size_max, not self._size, is_committed, cold
            )
            if batch_count or (cold and len(cold) > cold_count):
                size = sum(map(len, fetched[RECORDS_FIELD] or ()))
                size += sum(size for _, size in cold[cold_count:]) if cold else 0
                counted = size_max if is_cut and size < size_max else size
                self._add(wanted, (fetched, size, counted, batch_count, False))
            else:
                # Nothing new is by far the most frequent case: it costs no more than this.
                found[wanted] = (fetched, 0, 0, 0, False)
                if fetched[ERROR_FIELD] or fetched[DIVERGING_FIELD]:
                    self._is_urgent = True

    def _may_read(self, topic: WantedTopic, reading: Reading) -> bool:
        # Of an unknown id the client learns that it is unknown.
        name = topic.store_name
        return not name or reading.may_read(self.peer, name, name)

    def check_again(self) -> None:
        """Withhold what was found of topics that the client may no longer read."""
        reading = self.reading
        if reading is None or self.generation == reading.grants.generation:
            return
        self.generation = reading.grants.generation
        allowed: dict[WantedTopic, bool] = {}
        for wanted in list(self.found):
            topic = wanted.topic
            if topic not in allowed:
                allowed[topic] = self._may_read(topic, reading)
            if not allowed[topic]:
                before = self._drop(wanted)
                self._add_unknown(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED, before)

    def _add(self, wanted: Wanted, finding: Finding) -> None:
        self.found[wanted] = finding
        _, size, counted, batch_count, is_unknown = finding
        self._size += size
        self._counted += counted
        self._batch_count += batch_count
        self._unknown_count += is_unknown
        if self._batch_count >= BATCHES_MAX:
            self._is_urgent = True

    def _add_unknown(
        self, wanted: Wanted, queues: Sequence[Any] | ErrorCode, before: Finding | None
    ) -> None:
        code = self._code_of(wanted, queues)
        self.session.bind(wanted, None)
        # A topic deleted since the last read is reported at once; one that never existed is not.
        is_unknown = before is None or before[_IS_UNKNOWN]
        is_urgent = code is ErrorCode.INCONSISTENT_TOPIC_ID or not is_unknown
        self._is_urgent |= is_urgent
        # Kafka's two kinds of error differ in this detail too.
        aborted = None if is_urgent else ()
        fetched = FetchedPartition(wanted.asked.partition, code, aborted=aborted)
        self._add(wanted, (fetched, 0, 0, 0, is_unknown))

    def _code_of(self, wanted: Wanted, queues: Sequence[Any] | ErrorCode) -> ErrorCode:
        """Return why there is no such partition.

        Of an id that was deleted before the partition was requested nothing is known, whatever name
        other partitions of the session have for it.
        """
        if not isinstance(queues, ErrorCode):
            wanted.is_known = True
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.session.uses_ids and not wanted.is_known and queues in _BY_NAME:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return queues

    def _drop(self, wanted: Wanted) -> Finding:
        """Remove the finding of a partition, which is read again, and return it."""
        finding = self.found.pop(wanted)
        _, size, counted, batch_count, is_unknown = finding
        self._size -= size
        self._counted -= counted
        self._batch_count -= batch_count
        self._unknown_count -= is_unknown
        return finding
