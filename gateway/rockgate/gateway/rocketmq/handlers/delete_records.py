"""DeleteRecords over a RocketMQ cluster: v0-2.

Behaviour
- Brokers delete whole files of their log when those are old, and nothing else: every partition is
  POLICY_VIOLATION, as with Kafka's topics whose records cannot be deleted; one that does not
  exist is UNKNOWN_TOPIC_OR_PARTITION.

Versions
- v2: flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.rocketmq.topics.catalog import ClusterCatalog
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UNKNOWN_OFFSET = -1


class ClusterDeleteRecords:
    """Refuses to delete records."""

    def __init__(self, catalog: ClusterCatalog) -> None:
        self._catalog = catalog

    def handle(
        self, request: DeleteRecordsRequest, call: Call
    ) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
        """Refuse every partition, once its topic is known."""
        learning = self._catalog.learn([topic.name for topic in request.topics])
        return self._refused(request) if learning is None else self._after(learning, request)

    def refuse(self, request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
        """Reject every partition with the same error."""
        return _response(request, lambda name, partition: code)

    async def _after(
        self, learning: Awaitable[None], request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse:
        await learning
        return self._refused(request)

    def _refused(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        def code_of(name: str, partition: int) -> ErrorCode:
            topic = self._catalog.find(name)
            if topic is None or not 0 <= partition < topic.queue_count:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.POLICY_VIOLATION

        return _response(request, code_of)


def _response(
    request: DeleteRecordsRequest, code_of: Callable[[str, int], ErrorCode]
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=each.partition_index,
                        low_watermark=UNKNOWN_OFFSET,
                        error_code=code_of(topic.name, each.partition_index),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
