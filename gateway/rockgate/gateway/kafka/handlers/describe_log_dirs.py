"""DescribeLogDirs: v1-5.

Behaviour
- There is one directory, the data directory. A partition's size is what its batches and messages
  take in the shared commit log, envelopes included; no replica lags or is being moved.
- Null asks for every topic; an empty list for none. What is unknown is left out.
- The disk is asked beside the loop; large queues are counted a little at a time, and only what came
  since they were counted last.

Versions
- v2: flexible.  v3: a top-level error.  v4: the disk's size.  v5: cordoned directories: none is.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator

from rockgate.gateway.kafka.embedded.resolve import find_queue
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.dedup import merged
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from rockgate.store.api.queues import Queue, Queues

SLICE_COUNT = 200
"""Partitions described before other requests run."""


class DescribeLogDirs:
    """Measures partitions."""

    def __init__(
        self, *, catalog: TopicCatalog, queues: Queues, path: str, sizes: QueueSizes
    ) -> None:
        self._catalog = catalog
        self._queues = queues
        self._path = path
        self._sizes = sizes

    async def handle(self, request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
        """Measure the requested partitions."""
        loop = asyncio.get_running_loop()
        disk = await loop.run_in_executor(None, shutil.disk_usage, self._path)
        result = DescribeLogDirsResult(
            log_dir=self._path,
            topics=await self._measure(self._asked(request)),
            total_bytes=disk.total,
            usable_bytes=disk.free,
        )
        return DescribeLogDirsResponse(results=[result])

    def refuse(self, request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
        """An error for the whole request; before v3 it is an empty list."""
        return DescribeLogDirsResponse(error_code=code)

    def _asked(self, request: DescribeLogDirsRequest) -> Iterable[tuple[str, list[int] | None]]:
        if request.topics is None:
            return ((names.to_kafka(topic.name), None) for topic in self._catalog)
        return merged((each.topic, each.partitions) for each in request.topics).items()

    async def _measure(
        self, asked: Iterable[tuple[str, list[int] | None]]
    ) -> list[DescribeLogDirsTopic]:
        found: list[DescribeLogDirsTopic] = []
        count = 0
        for name, indexes in asked:
            partitions = []
            for index, queue in self._found(name, indexes):
                for _ in self._sizes.measure(queue):
                    await asyncio.sleep(0)
                size = self._sizes.size(queue)
                partitions.append(
                    DescribeLogDirsPartition(partition_index=index, partition_size=size)
                )
                count += 1
                if count % SLICE_COUNT == 0:
                    await asyncio.sleep(0)
            if partitions:
                found.append(DescribeLogDirsTopic(name=name, partitions=partitions))
        return found

    def _found(self, name: str, indexes: list[int] | None) -> Iterator[tuple[int, Queue]]:
        topic = self._catalog.find(name)
        if topic is not None and indexes is None:
            yield from enumerate(self._queues.of(topic.id))
            return
        for index in indexes or ():
            queue = find_queue(self._queues, topic, index)
            if queue is not None:
                yield index, queue
