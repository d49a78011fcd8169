"""AlterReplicaLogDirs: v1-2.

Behaviour
- There is one directory, the data directory, and everything is in it: to move a partition there is
  done already. Any other directory is LOG_DIR_NOT_FOUND.
- An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION.

Versions
- v2: flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rockgate.gateway.kafka.listing import Listing
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.slices import Each, Slicing
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)


class Asked(NamedTuple):
    """Some partitions of a topic, and where they shall be."""

    path: str
    topic: AlterReplicaLogDirTopic


class AlterReplicaLogDirs:
    """Moves nothing, as there is one place."""

    def __init__(self, *, listing: Listing, path: str) -> None:
        self._listing = listing
        self._path = path
        self._slicing = Slicing(AlterReplicaLogDirsResponse, AlterReplicaLogDirTopicResult)

    def handle(
        self, request: AlterReplicaLogDirsRequest, call: Call
    ) -> AlterReplicaLogDirsResponse | Awaitable[AlterReplicaLogDirsResponse]:
        """Check each partition, in slices if there are many topics."""
        return self._slicing.work(
            (Asked(each.path, topic) for each in request.dirs for topic in each.topics),
            lambda: Each(self._topic),
            lambda results: AlterReplicaLogDirsResponse(results=results),
            call.version,
        )

    def refuse(
        self, request: AlterReplicaLogDirsRequest, code: ErrorCode
    ) -> AlterReplicaLogDirsResponse:
        """Say the same of every partition."""
        return AlterReplicaLogDirsResponse(
            results=[
                _result(topic, lambda _: code) for each in request.dirs for topic in each.topics
            ]
        )

    def _topic(self, asked: Asked) -> AlterReplicaLogDirTopicResult:
        if asked.path != self._path:
            return _result(asked.topic, lambda _: ErrorCode.LOG_DIR_NOT_FOUND)
        topic = self._listing.find(asked.topic.name)
        count = topic.queue_count if topic is not None else 0

        def code_of(index: int) -> ErrorCode:
            is_there = 0 <= index < count
            return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        return _result(asked.topic, code_of)


def _result(
    topic: AlterReplicaLogDirTopic, code_of: Callable[[int], ErrorCode]
) -> AlterReplicaLogDirTopicResult:
    return AlterReplicaLogDirTopicResult(
        topic_name=topic.name,
        partitions=[
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code_of(index))
            for index in topic.partitions
        ],
    )
