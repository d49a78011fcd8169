"""AlterReplicaLogDirs: v1-2.

Behaviour
- There is one directory, the data directory, so moving a partition there succeeds without
  work. Any other directory is LOG_DIR_NOT_FOUND.
- An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION.

Versions
- v2: flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, has_partition
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)


class Asked(NamedTuple):
    """Some partitions of a topic, and the directory for them."""

    path: str
    topic: AlterReplicaLogDirTopic


class AlterReplicaLogDirs:
    """Moves nothing, as there is one directory."""

    def __init__(self, *, catalog: TopicCatalog, path: str) -> None:
        self._catalog = catalog
        self._path = path

    def handle(
        self, request: AlterReplicaLogDirsRequest, call: Call
    ) -> AlterReplicaLogDirsResponse | Awaitable[AlterReplicaLogDirsResponse]:
        """Check each partition, in slices if there are many."""
        return in_slices(self._steps(request))

    def _steps(self, request: AlterReplicaLogDirsRequest) -> Steps[AlterReplicaLogDirsResponse]:
        response = AlterReplicaLogDirsResponse(results=[])
        for asked in request.dirs:
            for named in asked.topics:
                partitions: list[AlterReplicaLogDirPartitionResult] = []
                response.results.append(
                    AlterReplicaLogDirTopicResult(topic_name=named.name, partitions=partitions)
                )
                for index in named.partitions:
                    code = self._code(asked.path, named.name, index)
                    partitions.append(
                        AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    )
                    yield None
        return response

    def refuse(
        self, request: AlterReplicaLogDirsRequest, code: ErrorCode
    ) -> AlterReplicaLogDirsResponse:
        """Reject every partition with the same error."""
        return AlterReplicaLogDirsResponse(
            results=[
                _result(topic, lambda _: code) for each in request.dirs for topic in each.topics
            ]
        )

    def _code(self, path: str, name: str, index: int) -> ErrorCode:
        if path != self._path:
            return ErrorCode.LOG_DIR_NOT_FOUND
        topic = self._catalog.find(name)
        return (
            ErrorCode.NONE if has_partition(topic, index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )


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
