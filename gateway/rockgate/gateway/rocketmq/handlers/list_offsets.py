"""ListOffsets over a RocketMQ cluster: v1-11.

Behaviour
- -1 latest: the end of the queue at its master, or what this gateway has stored if that is higher:
  brokers show what they have confirmed some milliseconds later.
- -2 earliest and -4 earliest local: the start of the queue. -3: the last record of the queue. -5
  and -6: -1, as nothing is known of tiers.
- By time: the broker finds the first message stored at that time or later.
- A broker that does not answer is LEADER_NOT_AVAILABLE.

Versions
- v2: isolation level, which makes no difference.  v4: leader epoch, 0.  v6: flexible.  v7: -3.
  v8: -4.  v9: -5.  v11: -6.

Departs from Kafka
- By time goes by the time of storage, and the timestamp in the answer is the one asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rockgate.gateway.kafka.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    FIRST_VERSIONS,
    LARGEST_TIME,
    LATEST,
    NEVER,
)
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.rocketmq.cluster.brokers import QueueName, checked, read
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.members.leadership import Leadership
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.offsets import (
    MaxOffsetHeader,
    OffsetAnswer,
    QueueHeader,
    SearchOffsetHeader,
)

ASKS_MAX = 64
"""Partitions that are asked for at the same time."""


class ClusterListOffsets:
    """Asks masters for the bounds of queues, and for times."""

    def __init__(
        self,
        *,
        catalog: ClusterCatalog,
        cluster: Cluster,
        queues: ClusterQueues,
        leadership: Leadership,
    ) -> None:
        self._leadership = leadership
        self._catalog = catalog
        self._cluster = cluster
        self._queues = queues

    async def handle(self, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
        """Ask for every partition."""
        learning = self._catalog.learn([topic.name for topic in request.topics])
        if learning is not None:
            await learning
        limit = asyncio.Semaphore(ASKS_MAX)
        topics = []
        for asked in request.topics:
            partitions: Sequence[ListOffsetsPartitionResponse] = await asyncio.gather(
                *(self._one(asked.name, each, call, limit) for each in asked.partitions)
            )
            topics.append(ListOffsetsTopicResponse(name=asked.name, partitions=[*partitions]))
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

    async def _one(
        self, name: str, asked: ListOffsetsPartition, call: Call, limit: asyncio.Semaphore
    ) -> ListOffsetsPartitionResponse:
        topic = self._catalog.find(name)
        time_ms = asked.timestamp
        if time_ms < 0 and call.version < FIRST_VERSIONS.get(time_ms, NEVER):
            return _error(asked, ErrorCode.UNSUPPORTED_VERSION)
        if topic is None or not 0 <= asked.partition_index < topic.queue_count:
            return _error(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        queue = topic.queue(asked.partition_index)
        if queue.broker not in self._cluster.masters:
            return _error(asked, ErrorCode.LEADER_NOT_AVAILABLE)
        if self._leadership.is_elsewhere(queue):
            # What its leader has confirmed is not known here.
            return _error(asked, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        async with limit:
            try:
                offset = await self._find(queue, time_ms)
            except BrokerError:
                return _error(asked, ErrorCode.LEADER_NOT_AVAILABLE)
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index,
            offset=offset,
            timestamp=time_ms if time_ms >= 0 and offset >= 0 else -1,
            leader_epoch=0,
        )

    async def _find(self, queue: QueueName, time_ms: int) -> int:
        if time_ms == LATEST:
            return await self._end(queue)
        if time_ms in (EARLIEST, EARLIEST_LOCAL):
            return await self._start(queue)
        if time_ms == LARGEST_TIME:
            return await self._end(queue) - 1
        if time_ms < 0:
            return -1
        header = SearchOffsetHeader(topic=queue.topic, queue_id=queue.queue_id, timestamp=time_ms)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        offset = await self._offset(queue, code, header)
        return -1 if offset >= await self._end(queue) else offset

    async def _end(self, queue: QueueName) -> int:
        header = MaxOffsetHeader(topic=queue.topic, queue_id=queue.queue_id)
        found = await self._offset(queue, RequestCode.GET_MAX_OFFSET, header)
        return max(found, self._queues.confirmed(queue))

    async def _start(self, queue: QueueName) -> int:
        header = QueueHeader(topic=queue.topic, queue_id=queue.queue_id)
        return await self._offset(queue, RequestCode.GET_MIN_OFFSET, header)

    async def _offset(
        self,
        queue: QueueName,
        code: RequestCode,
        header: MaxOffsetHeader | QueueHeader | SearchOffsetHeader,
    ) -> int:
        answer = await self._cluster.ask(queue.broker, code, header)
        return read(checked(answer), OffsetAnswer).offset


def _error(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
