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
log; a run of message entries becomes a batch in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from rockgate.gateway.kafka.errors import code_of
from rockgate.gateway.kafka.leaderepochs import LeaderEpochs
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.fetch import Diverging, FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition
from rockgate.protocol.kafka.varint import Buffer
from rockgate.store.bodies import Bodies
from rockgate.store.consumequeue import Queue
from rockgate.store.errors import StoreError
from rockgate.store.reading import Reader, Slice
from rockgate.store.warmth import Place


class Transcoder(Protocol):
    """Knows how messages of the other side look as records."""

    def batch(self, run: Sequence[Slice], epoch: int) -> Buffer:
        """Return one record batch of all messages of a run, which are of one epoch."""


class Bounds(NamedTuple):
    """What there is of a partition for one who reads."""

    log_start: int
    high_watermark: int
    last_stable: int


class Limits(NamedTuple):
    """What one read may take."""

    size_max: int
    at_least_one: bool
    """Whether the first batch is returned however large it is."""
    is_committed: bool
    """Whether to stop where the oldest open transaction began."""
    cold: list[Place] | None
    """Where to note what must be brought in from disk first; None to take it as it is."""


class Read(NamedTuple):
    """What was read of a partition."""

    fetched: FetchedPartition
    is_cut: bool = False
    """Whether more was there than the limits let through."""


class PartitionReader:
    """Reads partitions. Made once; it keeps nothing between two reads."""

    def __init__(
        self, *, reader: Reader, bodies: Bodies, epochs: LeaderEpochs, transcoder: Transcoder
    ) -> None:
        self._reader = reader
        self._bodies = bodies
        self._epochs = epochs
        self._transcoder = transcoder

    def bounds(self, queue: Queue) -> Bounds:
        """Return a partition's bounds; without transactions all that is shown is stable."""
        high_watermark = self._reader.high_watermark(queue)
        return Bounds(queue.log_start, high_watermark, high_watermark)

    def read(self, queue: Queue, asked: FetchPartition, limits: Limits) -> Read:
        """Read from the offset that was asked for; errors are in the answer."""
        index = asked.partition
        epoch = asked.current_leader_epoch
        if epoch >= 0 and epoch != self._epochs.current:
            return Read(FetchedPartition(index, self._epochs.refusal(epoch) or 0))
        try:
            return self._read(queue, asked, limits)
        except StoreError as error:
            return Read(FetchedPartition(index, code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR))

    def _read(self, queue: Queue, asked: FetchPartition, limits: Limits) -> Read:
        log_start, high_watermark, last_stable = self.bounds(queue)
        offset = asked.fetch_offset
        diverging = None
        if asked.last_fetched_epoch >= 0:
            ended = self._epochs.end(queue, asked.last_fetched_epoch)
            if ended.epoch < 0:
                return Read(FetchedPartition(asked.partition, ErrorCode.OFFSET_OUT_OF_RANGE))
            if ended.epoch < asked.last_fetched_epoch or ended.offset < offset:
                diverging = Diverging(ended.epoch, min(ended.offset, high_watermark))
        # Between the high watermark and the end lies what will be shown soon: that is no error.
        if offset < log_start or (offset > queue.next_offset and diverging is None):
            return Read(FetchedPartition(asked.partition, ErrorCode.OFFSET_OUT_OF_RANGE))
        records: Sequence[Buffer] = ()
        is_cut = False
        end = last_stable if limits.is_committed else high_watermark
        if offset < end and diverging is None and (limits.size_max > 0 or limits.at_least_one):
            records, read_to = self._records(queue, offset, end, limits)
            is_cut = read_to < end
        aborted = () if limits.is_committed else None
        bounds = (high_watermark, last_stable, log_start)
        return Read(
            FetchedPartition(asked.partition, 0, *bounds, records, aborted, -1, diverging), is_cut
        )

    def _records(
        self, queue: Queue, offset: int, end: int, limits: Limits
    ) -> tuple[Sequence[Buffer], int]:
        """Return batches, and the offset behind the last of them."""
        found = self._bodies.batches(
            queue,
            offset,
            end,
            limits.size_max,
            at_least_one=limits.at_least_one,
            cold=limits.cold,
        )
        if not found.is_at_message:
            return found.bodies, found.next_offset
        records: list[Buffer] = [*found.bodies]
        size, offset = found.size, found.next_offset
        # One run of messages is enough for an answer: what follows it comes with the next.
        run = self._bodies.messages(
            queue,
            offset,
            end,
            limits.size_max - size,
            at_least_one=limits.at_least_one and not records,
            cold=limits.cold,
        )
        for epoch, part in self._by_epoch(queue, run):
            records.append(self._transcoder.batch(part, epoch))
        return records, run[-1].unit.base + 1 if run else offset

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
