"""Reading one partition for Kafka: what may be seen of it, from where, and how much at once.

    asked                                          answer
    leader epoch older than ours                   FENCED_LEADER_EPOCH
    leader epoch newer than ours                   UNKNOWN_LEADER_EPOCH
    last fetched epoch that is not known here      OFFSET_OUT_OF_RANGE
    offset before the log start, or behind its end OFFSET_OUT_OF_RANGE
    last fetched epoch ended before the offset     no records, and where it ended
    offset at or behind the last that may be seen  no records
    anything else                                  whole batches, first the one with the offset

An answer with an error says nothing else of the partition, as in Kafka. Batches are slices of the
log, except that many small ones are joined; a run of message entries becomes a batch in between,
and a batch of which records wait is sent without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from rockgate.gateway.kafka.fetch.leader_epochs import EpochEnd, LeaderEpochs
from rockgate.gateway.kafka.request.errors import code_of
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.fields import Buffer
from rockgate.protocol.kafka.hot.fetch import Diverging, FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import BATCHES_MAX, Alike, Reader, Slice
from rockgate.store.errors import StoreError


class MadeBatches(Protocol):
    """Batches that were made of messages, by the position of the first."""

    def get(self, position: int) -> tuple[bytearray, int] | None:
        """Return a batch, and the offset behind it."""

    def put(self, position: int, batch: bytearray, next_offset: int) -> None:
        """Cache a batch for the next reader."""


class MessageTranscoder(Protocol):
    """Knows how messages of the other side look as records."""

    @property
    def cache(self) -> MadeBatches:
        """What was made recently."""

    def batch(self, queue: Queue, run: Sequence[Slice], epoch: int) -> tuple[bytearray, int]:
        """Return one record batch of the first messages of a run, which are of one epoch.

        And of how many: as many as can be had at once. With none there is no batch yet; the queue
        counts as changed when there is.
        """

    def alike(self, run: Alike, epoch: int) -> bytearray | None:
        """Return one record batch of messages that are alike; None if they are not enough so."""


class VisibleParts(Protocol):
    """Knows what is visible of batches of which records wait."""

    def batch(self, found: Slice, later: list[Place] | None) -> Buffer | None:
        """Return it; None if it is to be made first, which is noted in `later` unless None."""


Bounds = tuple[int, int, int]
"""Log start, high watermark, last stable offset."""

Read = tuple[FetchedPartition, bool, int]
"""What was read of a partition; whether more was there than the limits let through; and how many
batches it is."""

SMALL_BYTES: Final = 1024
"""Batches smaller than this on average are joined: a copy costs less than so many buffers do."""

RUN_BYTES_MAX: Final = 1 << 20
"""Message entries that are made into a batch for one answer: about a millisecond."""

_new: Final = tuple.__new__  # as NamedTuple's own, without its call


class PartitionReader:
    """Reads partitions. Made once; it keeps nothing between two reads."""

    def __init__(
        self,
        *,
        reader: Reader,
        epochs: LeaderEpochs,
        transcoder: MessageTranscoder,
        visible_batches: VisibleParts,
        stable_offsets: StableOffsets,
    ) -> None:
        self._visible_batches = visible_batches
        self._reader = reader
        self._high_watermark = reader.high_watermark
        self._epochs = epochs
        self._epoch = epochs.current
        self._transcoder = transcoder
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
        """Read from the offset that was asked for; errors are in the answer.

        With `at_least_one` the first batch is returned however large it is. Under `is_committed`
        nothing is returned from where the oldest open transaction began on. What must be brought
        in from disk first is noted in `cold`, unless that is None.
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
                    aborted = self._aborted(queue, offset, read_to)
                if count > 1 and sum(map(len, records)) < count * SMALL_BYTES:
                    records = (b"".join(records),)
        except StoreError as error:
            return _refused(asked, code_of(error))
        bounds = (high_watermark, last_stable, log_start)
        fields = (asked.partition, 0, *bounds, records, aborted, -1, diverging, None)
        return _new(FetchedPartition, fields), is_cut, count

    def _aborted(self, queue: Queue, offset: int, end: int) -> Sequence[tuple[int, int]]:
        """Return the aborted transactions that a client must know of to read a range."""
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
        """Return batches, and the offset behind the last of them."""
        found = self._reader.batches(
            queue, offset, end, size_max, at_least_one=at_least_one, cold=cold
        )
        if not found.is_at_message and not found.is_at_delayed:
            return found.bodies, found.next_offset
        records: list[Buffer] = [*found.bodies]
        size, offset = found.size, found.next_offset
        while found.is_at_delayed:
            visible, following = self._delayed(queue, offset, cold)
            is_first = at_least_one and not records
            if visible is None or (size + len(visible) > size_max and not is_first):
                return records, offset
            records.append(visible)
            size, offset = size + len(visible), following
            if size >= size_max or len(records) >= BATCHES_MAX:
                return records, offset
            found = self._reader.batches(
                queue, offset, end, size_max - size, at_least_one=False, cold=cold
            )
            records += found.bodies
            size, offset = size + found.size, found.next_offset
        if found.is_at_message:
            is_first = at_least_one and not records
            offset = self._messages(queue, offset, end, size_max - size, is_first, cold, records)
        return records, offset

    def _delayed(
        self, queue: Queue, offset: int, cold: list[Place] | None
    ) -> tuple[Buffer | None, int]:
        """Return what is visible of a batch of which records wait, and the offset behind it."""
        unit = queue.find(offset)
        assert unit is not None, "there is an entry where the run ended"
        visible = self._visible_batches.batch(self._reader.entry(queue, unit), cold)
        return visible, unit.base + unit.offset_count

    def _messages(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        at_least_one: bool,
        cold: list[Place] | None,
        records: list[Buffer],
    ) -> int:
        """Add a run of messages as batches to an answer, and return the offset behind it.

        One run is enough: what follows it comes with the next answer.
        """
        first, cache = queue.find(offset), self._transcoder.cache
        assert first is not None, "there is an entry where the run ended"
        made = cache.get(first.position)
        if made is not None and made[1] <= end and len(made[0]) <= size_max:
            records.append(made[0])
            return made[1]
        size_max = min(size_max, RUN_BYTES_MAX)
        alike = self._reader.alike(queue, offset, end, size_max, may_be_cold=cold is not None)
        if alike is not None:
            epoch = self._epochs.of(queue, alike.first)
            if epoch == self._epochs.of(queue, alike.last):
                whole = self._transcoder.alike(alike, epoch)
                if whole is not None:
                    cache.put(first.position, whole, alike.last.base + 1)
                    records.append(whole)
                    return alike.last.base + 1
        run = self._reader.messages(
            queue, offset, end, size_max, at_least_one=at_least_one, cold=cold
        )
        for epoch, part in self._by_epoch(queue, run):
            batch, count = self._transcoder.batch(queue, part, epoch)
            if count:
                records.append(batch)
                offset = part[count - 1].unit.base + 1
                cache.put(part[0].unit.position, batch, offset)
            if count < len(part):
                break
        return offset

    def _by_epoch(self, queue: Queue, run: list[Slice]) -> Iterator[tuple[int, list[Slice]]]:
        """Cut a run where a new epoch begins: a batch can name only one."""
        start = 0
        while start < len(run):
            epoch = self._epochs.of(queue, run[start].unit)
            stop = len(run)
            if self._epochs.of(queue, run[-1].unit) != epoch:
                stop = start + 1
                while self._epochs.of(queue, run[stop].unit) == epoch:
                    stop += 1
            yield epoch, run[start:stop]
            start = stop


def _refused(asked: FetchPartition, code: ErrorCode | None) -> Read:
    code = ErrorCode.UNKNOWN_SERVER_ERROR if code is None else code
    return FetchedPartition(asked.partition, code), False, 0
