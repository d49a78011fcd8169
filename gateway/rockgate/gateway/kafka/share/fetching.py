"""Reads the partitions of a share session, and acquires what a member may have of them.

Reading and acquiring are one step of the loop: what has to be loaded or searched first is left out
and named, for the caller to await, and then everything is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rockgate.gateway.kafka.embedded.resolve import find_queue
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.fetch.time_search import TimeSearch
from rockgate.gateway.kafka.groups.share.config import EARLIEST, SharePolicy, duration_ms
from rockgate.gateway.kafka.request.errors import explain
from rockgate.gateway.kafka.share.batches import Piece, pieces_of
from rockgate.gateway.kafka.share.plan import plan, reach, room_of
from rockgate.gateway.kafka.share.records import RUNS_AT_ONCE, Acquired, ShareRecords
from rockgate.gateway.kafka.share.sessions import Partition
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.fields import Buffer
from rockgate.store.api.clock import Clock
from rockgate.store.api.inflight import ShareWindow
from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.errors import StoreError

READ_BYTES_MAX: Final = 1 << 20
"""What is read of one partition at once, unless its first batch is larger."""
ANSWER_BYTES_MAX: Final = 8 << 20
"""What one answer has at most, unless its first batch is larger: it is copied together."""
READS_MAX: Final = 256
"""Partitions that are read in one turn of the loop."""


RANGES_MAX: Final = 2_000
"""Ranges of offsets that are acquired at once, where clients have given back single records."""


class Found(NamedTuple):
    """What a member gets of one partition."""

    partition: Partition
    acquired: list[Acquired]
    records: Buffer
    code: ErrorCode = ErrorCode.NONE
    reason: str | None = None


class ShareAsked(NamedTuple):
    """What a request asks of each partition and of all together."""

    group: str
    member_id: str
    policy: SharePolicy
    bytes_max: int
    records_max: int
    is_strict: bool
    """Whether `records_max` cuts a batch."""


class Look:
    """What was found in the partitions."""

    __slots__ = ("beginning", "cold", "count", "found", "range_count", "reads", "rest", "size")

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.count = 0
        """Offsets that were acquired."""
        self.size = 0
        self.reads = 0
        self.range_count = 0
        self.rest: Sequence[Partition] = ()
        """Partitions that were not looked at, because the others took long enough."""
        self.cold: list[Place] = []
        """What has to be loaded from disk."""
        self.beginning: list[Queue] = []
        """Partitions where a time has to be searched for, because the group begins there."""


class ShareFetching:
    """Acquires records for members."""

    def __init__(
        self,
        *,
        records: ShareRecords,
        topics: TopicLookup,
        queues: Queues,
        reader: PartitionReader,
        search: TimeSearch,
        cold_reads: ColdReads,
        clock: Clock,
    ) -> None:
        self._records = records
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._search = search
        self._cold_reads = cold_reads
        self._clock = clock

    def topic(self, topic_id: bytes) -> Topic | None:
        """A topic that may be read."""
        topic = self._topics.find_id(topic_id)
        return topic if topic is not None and topic.is_readable else None

    def queue(self, topic_id: bytes, index: int) -> Queue | ErrorCode:
        """A partition, or why there is none."""
        topic = self.topic(topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        queue = find_queue(self._queues, topic, index)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if queue is None else queue

    def look(
        self, asked: ShareAsked, partitions: Sequence[Partition], *, may_be_cold: bool
    ) -> Look:
        """Acquire what is available, in order, until there is enough."""
        look, scanned = Look(), 0
        for at, partition in enumerate(partitions):
            if scanned > RUNS_AT_ONCE:
                look.rest = partitions[at:]
                break
            left = min(asked.bytes_max, ANSWER_BYTES_MAX) - look.size
            is_over = look.count >= asked.records_max or (look.size > 0 and left <= 0)
            is_over = is_over or look.reads >= READS_MAX or look.range_count >= RANGES_MAX
            is_over = is_over or self._records.is_full
            queue = self.queue(*partition)
            if isinstance(queue, ErrorCode):
                look.found.append(Found(partition, [], b"", queue, queue.meaning))
                continue
            try:
                # Where a group begins is where it is now, whether or not there is more room.
                window = self._window(asked, queue, look)
                if window is not None and not is_over:
                    scanned += window.run_count
                    self._look_at(
                        asked, partition, queue, window, look, left, may_be_cold=may_be_cold
                    )
            except (StoreError, MalformedBatch) as error:
                code, reason = (
                    explain(error)
                    if isinstance(error, StoreError)
                    else (ErrorCode.CORRUPT_MESSAGE, str(error))
                )
                look.found.append(Found(partition, [], b"", code, reason))
        return look

    def _look_at(
        self,
        asked: ShareAsked,
        partition: Partition,
        queue: Queue,
        window: ShareWindow,
        look: Look,
        left: int,
        *,
        may_be_cold: bool,
    ) -> None:
        records, policy = self._records, asked.policy
        records.settle(window, asked.member_id)
        records.trim(window, queue, policy)
        now_ms = self._clock.monotonic_ms()
        where = reach(window, now_ms, room_of(window, policy))
        if where is None:
            return
        read_from, until = where
        _, high_watermark, last_stable = self._reader.bounds(queue)
        end = last_stable if policy.is_committed else high_watermark
        if until is not None:
            end = min(end, until)
        if read_from >= end:
            return
        cold: list[Place] | None = [] if may_be_cold else None
        size_max = max(1, min(left, READ_BYTES_MAX))
        look.reads += 1
        buffers, read_to = self._reader.batches(queue, read_from, end, size_max, cold)
        if cold:
            look.cold += cold
            return
        aborted = self._reader.aborted(queue, read_from, read_to) if policy.is_committed else ()
        pieces = pieces_of(buffers, aborted)
        planned = plan(
            window,
            pieces,
            read_from,
            read_to,
            records_max=asked.records_max - look.count,
            ranges_max=RANGES_MAX - look.range_count,
            is_strict=asked.is_strict,
            policy=policy,
            now_ms=now_ms,
        )
        acquired = records.acquire(window, asked.member_id, planned)
        if acquired:
            body = _bytes_of(pieces, acquired)
            look.found.append(Found(partition, acquired, body))
            look.count += planned.count
            look.range_count += len(planned.taken)
            look.size += len(body)

    # Where a group begins

    def _window(self, asked: ShareAsked, queue: Queue, look: Look) -> ShareWindow | None:
        window = self._records.find(asked.group, queue)
        # A window without anything in flight is empty, and not absent.
        return self._begin(asked, queue, look) if window is None else window

    def _begin(self, asked: ShareAsked, queue: Queue, look: Look) -> ShareWindow | None:
        log_start, high_watermark, _ = self._reader.bounds(queue)
        begins = asked.policy.begins
        if begins == EARLIEST:
            return self._records.begin(asked.group, queue, log_start)
        if duration_ms(begins) is not None:
            look.beginning.append(queue)
            return None
        return self._records.begin(asked.group, queue, high_watermark)

    async def prepare(self, asked: ShareAsked, look: Look) -> None:
        """Do what a look has left for later: load what is cold, search for times."""
        await self._cold_reads.load(look.cold)
        for queue in look.beginning:
            age_ms = duration_ms(asked.policy.begins)
            _, high_watermark, _ = self._reader.bounds(queue)
            time_ms = self._clock.now_ms() - (age_ms or 0)
            found = await self._search.first_at(queue, time_ms, high_watermark)
            topic = self._topics.find_id(queue.topic_id)
            if topic is None or self._records.find(asked.group, queue) is not None:
                continue
            offset = high_watermark if found is None else found.offset
            self._records.begin(asked.group, queue, max(offset, queue.log_start))


def _bytes_of(pieces: Sequence[Piece], acquired: Sequence[Acquired]) -> Buffer:
    """The batches that have acquired records."""
    views: list[memoryview] = []
    ranges = iter(acquired)
    at = next(ranges, None)
    for piece in pieces:
        while at is not None and at.last < piece.first:
            at = next(ranges, None)
        if at is None:
            break
        if at.first < piece.end:
            views.append(piece.view)
    return views[0] if len(views) == 1 else b"".join(views)
