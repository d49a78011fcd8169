"""ListOffsets: v1-11.

Behaviour
- By time: the first record of that time or later, with its own offset and time; -1 and -1 without
  an error if there is none. Only what may be seen is found.
- -1 latest: the high watermark, or under read_committed the last stable offset. It never falls.
- -2 earliest and -4 earliest local: the log start. -3: the record of the largest time. -5 latest
  tiered and -6 earliest pending upload: -1, as nothing is tiered.
- A partition that is named twice is INVALID_REQUEST, reported once; a special time that its version
  does not have is UNSUPPORTED_VERSION.
- Batches are opened one at a time, large ones in a thread; many partitions are done in slices.

Versions
- v2: isolation level.  v4: leader epoch.  v6: flexible.  v7: -3.  v8: -4.  v9: -5.  v10: timeout
  (ignored: nothing is asked of another broker).  v11: -6.

Departs from Kafka
- -3 finds the largest timestamp of the visible records. Kafka finds nothing if a record that is not
  visible yet has a larger one, and returns a deleted record until its segment is deleted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from rockgate.gateway.kafka.embedded.resolve import find_queue, find_topic
from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.fetch.time_search import FoundRecord, TimeSearch
from rockgate.gateway.kafka.request.errors import code_of
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.errors import StoreError

LATEST: Final = -1
EARLIEST: Final = -2
LARGEST_TIME: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING: Final = -6
FIRST_VERSIONS: Final = {
    LATEST: 1,
    EARLIEST: 1,
    LARGEST_TIME: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
NEVER: Final = 1 << 15
READ_COMMITTED: Final = 1
SLICE_COUNT: Final = 500
"""Partitions looked up before other requests run."""

Search = Callable[[], Awaitable[FoundRecord | None]]


class ListOffsets:
    """Finds offsets by time, and the ends of the log."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: PartitionReader,
        epochs: LeaderEpochs,
        search: TimeSearch,
        cold_reads: ColdReads,
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._epochs = epochs
        self._search = search
        self._cold_reads = cold_reads

    def handle(
        self, request: ListOffsetsRequest, call: Call
    ) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
        """Answer at once where possible, or search with other requests in between."""
        if sum(len(topic.partitions) for topic in request.topics) > SLICE_COUNT:
            return self._search_all(request, call)
        lookup = _Lookup(request, call)
        for asked in request.topics:
            lookup.count(asked, asked.partitions)
        topics = []
        for asked in request.topics:
            topic = find_topic(self._topics, asked.name)
            partitions = []
            for each in lookup.partitions(asked):
                answer = self._find(topic, asked, each, lookup)
                if not isinstance(answer, ListOffsetsPartitionResponse):
                    return self._search_all(request, call)
                partitions.append(answer)
            topics.append(ListOffsetsTopicResponse(name=asked.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def refuse(self, request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
        """Reject every partition with the same error."""
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[_error(each, code) for each in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    async def _search_all(self, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
        lookup = _Lookup(request, call)
        for asked in request.topics:
            for at in range(0, len(asked.partitions), SLICE_COUNT):
                lookup.count(asked, asked.partitions[at : at + SLICE_COUNT])
                await asyncio.sleep(0)
        response = ListOffsetsResponse(topics=[])
        count = 0
        for asked in request.topics:
            partitions: list[ListOffsetsPartitionResponse] = []
            response.topics.append(ListOffsetsTopicResponse(name=asked.name, partitions=partitions))
            for each in lookup.partitions(asked):
                # A topic may be deleted during the search: it is looked up for each.
                topic = find_topic(self._topics, asked.name)
                answer = self._find(topic, asked, each, lookup)
                if not isinstance(answer, ListOffsetsPartitionResponse):
                    answer = await _searched(each, answer)
                partitions.append(answer)
                count += 1
                if count % SLICE_COUNT == 0:
                    await asyncio.sleep(0)
        return response

    def _find(
        self,
        topic: Topic | None,
        asked_topic: ListOffsetsTopic,
        asked: ListOffsetsPartition,
        lookup: _Lookup,
    ) -> ListOffsetsPartitionResponse | Search:
        """Return the answer for one partition, or the search that will find it."""
        queue = find_queue(self._queues, topic, asked.partition_index)
        code: ErrorCode | None
        if lookup.counts[asked_topic.name, asked.partition_index] > 1:
            code = ErrorCode.INVALID_REQUEST
        elif asked.timestamp < 0 and lookup.version < FIRST_VERSIONS.get(asked.timestamp, NEVER):
            code = ErrorCode.UNSUPPORTED_VERSION
        elif topic is None or queue is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif not topic.is_readable:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            code = self._epochs.refusal(asked.current_leader_epoch)
        if code is not None:
            return _error(asked, code)
        assert queue is not None, "a partition without an error is there"
        return self._look_up(queue, asked, lookup)

    def _look_up(
        self, queue: Queue, asked: ListOffsetsPartition, lookup: _Lookup
    ) -> ListOffsetsPartitionResponse | Search:
        log_start, high_watermark, last_stable = self._reader.bounds(queue)
        end = last_stable if lookup.is_committed else high_watermark
        time_ms = asked.timestamp
        if time_ms == LATEST:
            return _answer(asked, FoundRecord(end, -1, self._epochs.current))
        if time_ms in (LATEST_TIERED, EARLIEST_PENDING):
            return _answer(asked, None)
        if time_ms in (EARLIEST, EARLIEST_LOCAL):
            if cold := self._cold_reads.cold([queue.find(log_start)]):

                async def earliest() -> FoundRecord:
                    await self._cold_reads.load(cold)
                    return self._earliest(queue)

                return earliest
            return _answer(asked, self._earliest(queue))
        if time_ms == LARGEST_TIME:
            return lambda: self._search.largest(queue, end)
        return lambda: self._search.first_at(queue, time_ms, end)

    def _earliest(self, queue: Queue) -> FoundRecord:
        return FoundRecord(queue.log_start, -1, self._epochs.at(queue, queue.log_start))


class _Lookup:
    """The parameters of a request."""

    __slots__ = ("counts", "is_committed", "version")

    def __init__(self, request: ListOffsetsRequest, call: Call) -> None:
        self.version = call.version
        self.is_committed = request.isolation_level == READ_COMMITTED
        self.counts: Counter[tuple[str, int]] = Counter()

    def count(self, topic: ListOffsetsTopic, partitions: Iterable[ListOffsetsPartition]) -> None:
        """Count how often each partition is named, before the first is answered."""
        name = topic.name
        self.counts.update((name, each.partition_index) for each in partitions)

    def partitions(self, topic: ListOffsetsTopic) -> Iterator[ListOffsetsPartition]:
        """Return each partition of a topic once, however often it is named."""
        for each in topic.partitions:
            key = (topic.name, each.partition_index)
            if self.counts[key]:
                yield each
                if self.counts[key] > 1:
                    self.counts[key] = 0


async def _searched(asked: ListOffsetsPartition, search: Search) -> ListOffsetsPartitionResponse:
    try:
        return _answer(asked, await search())
    except MalformedBatch:
        # A batch that was appended unopened may be invalid inside.
        return _error(asked, ErrorCode.CORRUPT_MESSAGE)
    except StoreError as error:
        return _error(asked, code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR)


def _answer(asked: ListOffsetsPartition, found: FoundRecord | None) -> ListOffsetsPartitionResponse:
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.epoch,
    )


def _error(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
