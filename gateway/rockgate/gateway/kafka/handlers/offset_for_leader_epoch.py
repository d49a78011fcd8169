"""OffsetForLeaderEpoch: v2-4.

Behaviour
- The end of an epoch is the offset of the first record of a later one, or the end of the log; the
  answer names the largest epoch, up to the one asked for, that has records. An epoch that is not
  known, of the future or below 0, is epoch -1 and offset -1 without an error.
- A client whose current leader epoch is another than ours gets FENCED_LEADER_EPOCH or
  UNKNOWN_LEADER_EPOCH.
- Nothing past the high watermark is reported.
- After a start every consumer asks for all its partitions: many are done in slices, and a thread
  loads what is cold first.

Versions
- v3: replica id (ignored).  v4: flexible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from itertools import islice

from rockgate.gateway.kafka.embedded.resolve import find_queue, find_topic
from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.request.errors import code_of
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import TopicLookup
from rockgate.store.errors import StoreError

SLICE_COUNT = 200
"""Partitions looked up before other requests run."""

Asked = tuple[str, OffsetForLeaderPartition]


class OffsetForLeaderEpoch:
    """Says where epochs end."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        reader: PartitionReader,
        epochs: LeaderEpochs,
        cold_reads: ColdReads,
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._epochs = epochs
        self._cold_reads = cold_reads

    def handle(
        self, request: OffsetForLeaderEpochRequest, call: Call
    ) -> OffsetForLeaderEpochResponse | Awaitable[OffsetForLeaderEpochResponse]:
        """Look all up at once if that is little work on resident entries."""
        part = list(islice(_walk(request), SLICE_COUNT + 1))
        if len(part) > SLICE_COUNT or self._cold(part):
            return self._in_slices(request)
        return _respond(request, [self._find(*asked) for asked in part])

    def refuse(
        self, request: OffsetForLeaderEpochRequest, code: ErrorCode
    ) -> OffsetForLeaderEpochResponse:
        """Reject every partition with the same error."""
        return _respond(
            request,
            [
                EpochEndOffset(error_code=code, partition=each.partition)
                for _, each in _walk(request)
            ],
        )

    async def _in_slices(
        self, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        found = []
        walk = _walk(request)
        while part := list(islice(walk, SLICE_COUNT)):
            await self._cold_reads.load(self._cold(part))
            found += [self._find(*asked) for asked in part]
            await asyncio.sleep(0)
        return _respond(request, found)

    def _cold(self, part: list[Asked]) -> list[Place]:
        """Return what will be looked at first and is cold: the last entry of each queue."""
        queues = (self._queue(name, asked.partition) for name, asked in part)
        return self._cold_reads.cold(
            queue.find(queue.next_offset - 1)
            for queue in queues
            if not isinstance(queue, ErrorCode)
        )

    def _queue(self, name: str, index: int) -> Queue | ErrorCode:
        topic = find_topic(self._topics, name)
        queue = find_queue(self._queues, topic, index)
        if topic is None or queue is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return queue if topic.is_readable else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _find(self, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        answer = EpochEndOffset(partition=asked.partition)
        queue = self._queue(name, asked.partition)
        if isinstance(queue, ErrorCode):
            answer.error_code = queue
            return answer
        refusal = self._epochs.refusal(asked.current_leader_epoch)
        if refusal is not None:
            answer.error_code = refusal
            return answer
        try:
            end = self._epochs.end(queue, asked.leader_epoch)
        except StoreError as error:
            answer.error_code = code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR
            return answer
        answer.leader_epoch = end.epoch
        answer.end_offset = min(end.offset, self._reader.bounds(queue)[1])
        return answer


def _walk(request: OffsetForLeaderEpochRequest) -> Iterator[Asked]:
    return ((topic.topic, each) for topic in request.topics for each in topic.partitions)


def _respond(
    request: OffsetForLeaderEpochRequest, found: list[EpochEndOffset]
) -> OffsetForLeaderEpochResponse:
    """Put the answers, one for each partition in order, under their topics."""
    each = iter(found)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=list(islice(each, len(topic.partitions)))
            )
            for topic in request.topics
        ]
    )
