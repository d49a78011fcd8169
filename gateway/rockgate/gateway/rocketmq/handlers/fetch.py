"""Fetch over a RocketMQ cluster: v4-18.

Behaviour
- Returns record batches made of what was pulled; none of them is cut at the byte limit.
- Waits for `min_bytes` up to `max_wait_ms`, by a timer of its own.
- An offset below the start or above the end of its queue is OFFSET_OUT_OF_RANGE; a partition whose
  broker has neither master nor slave, or does not answer, is LEADER_NOT_AVAILABLE. A slave is read
  while there is no master, if it lets itself be read (`slaveReadEnable`).
- `read_committed` reads everything: half messages have no offset before they are committed.

Versions
- v5: log start offset.  v7: sessions, which are not supported: every response has session id 0.
  v12: flexible.  v13: topics by id.

Departs from Kafka
- Requests by followers are rejected: there are none.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from rockgate.gateway.kafka.handlers.fetch import Fetched
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.rocketmq.members.leadership import Leadership
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.queues.reader import UNKNOWN, QueueReader
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot import fetch as hot
from rockgate.protocol.kafka.hot.fetch import FetchedPartition, FetchedTopic
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic

PARTITIONS_MAX = 10_000
"""Partitions of one request: more of them cannot be read in one turn of the loop."""
SLICE_COUNT = 500
WAIT_MS_MAX = 60_000


class _Wanted(NamedTuple):
    partition: FetchPartition
    reader: QueueReader | None
    error: ErrorCode


class ClusterFetch:
    """Reads partitions, and waits for more."""

    def __init__(
        self,
        *,
        catalog: ClusterCatalog,
        cluster: Cluster,
        queues: ClusterQueues,
        leadership: Leadership,
        bytes_max: int,
    ) -> None:
        self._catalog = catalog
        self._cluster = cluster
        self._queues = queues
        self._leadership = leadership
        self._bytes_max = bytes_max

    async def handle(self, request: FetchRequest, call: Call) -> Fetched:
        """Respond with what is available, or wait until there is enough."""
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            return self.refuse(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if sum(len(topic.partitions) for topic in request.topics) > PARTITIONS_MAX:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        if call.version < hot.TOPIC_IDS:
            learning = self._catalog.learn([topic.topic for topic in request.topics])
            if learning is not None:
                await learning
        wanted = [
            (topic, [self._wanted(topic, each, call) for each in topic.partitions])
            for topic in request.topics
        ]
        readers = {each.reader for _, some in wanted for each in some if each.reader}
        news = asyncio.Event()
        for reader in readers:
            reader.watch(news.set)
        try:
            loop = asyncio.get_running_loop()
            until = loop.time() + min(max(request.max_wait_ms, 0), WAIT_MS_MAX) / 1000
            while True:
                news.clear()
                fetched, is_enough = await self._read(request, wanted)
                left_s = until - loop.time()
                if is_enough or left_s <= 0:
                    return fetched
                try:
                    async with asyncio.timeout(left_s):
                        await news.wait()
                except TimeoutError:
                    pass
        finally:
            for reader in readers:
                reader.unwatch(news.set)

    def refuse(self, request: FetchRequest, code: ErrorCode) -> Fetched:
        """Reject every partition, and the whole, with the same error."""
        topics = [
            FetchedTopic(
                topic.topic,
                topic.topic_id,
                [FetchedPartition(each.partition, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
        return Fetched(topics, code)

    def _wanted(self, asked: FetchTopic, each: FetchPartition, call: Call) -> _Wanted:
        is_by_id = call.version >= hot.TOPIC_IDS
        topic = (
            self._catalog.find_id(asked.topic_id) if is_by_id else self._catalog.find(asked.topic)
        )
        if topic is None or not 0 <= each.partition < topic.queue_count:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None and is_by_id:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            return _Wanted(each, None, unknown)
        queue = topic.queue(each.partition)
        if queue.broker not in self._cluster.masters and queue.broker not in self._cluster.readable:
            return _Wanted(each, None, ErrorCode.LEADER_NOT_AVAILABLE)
        if self._leadership.is_elsewhere(queue):
            return _Wanted(each, None, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if each.current_leader_epoch > 0:
            return _Wanted(each, None, ErrorCode.UNKNOWN_LEADER_EPOCH)
        return _Wanted(each, self._queues.reader(queue), ErrorCode.NONE)

    async def _read(
        self, request: FetchRequest, wanted: list[tuple[FetchTopic, list[_Wanted]]]
    ) -> tuple[Fetched, bool]:
        """Read every partition; return the answer, and whether it need not wait."""
        left = min(max(request.max_bytes, 0), self._bytes_max)
        size, is_final, count = 0, False, 0
        topics: list[FetchedTopic] = []
        for asked, some in wanted:
            partitions: list[FetchedPartition] = []
            for each in some:
                found = self._read_one(each, left - size, at_least_one=not size)
                partitions.append(found)
                size += sum(map(len, found.records or ()))
                is_final = is_final or bool(found.error_code)
                count += 1
                if count % SLICE_COUNT == 0:
                    await asyncio.sleep(0)
            topics.append(FetchedTopic(asked.topic, asked.topic_id, partitions))
        is_enough = is_final or size >= max(0, min(request.min_bytes, left)) or not count
        return Fetched(topics), is_enough

    @staticmethod
    def _read_one(wanted: _Wanted, size_max: int, *, at_least_one: bool) -> FetchedPartition:
        asked, reader, error = wanted
        if reader is None:
            return FetchedPartition(asked.partition, error)
        size_max = min(size_max, asked.partition_max_bytes)
        reading = reader.read(asked.fetch_offset, size_max, at_least_one=at_least_one)
        end = max(reading.end, UNKNOWN)
        return FetchedPartition(
            asked.partition, reading.error, end, end, reading.start, reading.batches
        )
