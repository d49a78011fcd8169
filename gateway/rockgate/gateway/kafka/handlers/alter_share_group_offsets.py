"""AlterShareGroupOffsets: v0.

Behaviour
- Moves the start of a share group without members; what was in flight is forgotten. An offset
  behind the end is moved to the end.
- A group that does not exist is GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP; unknown
  partitions are UNKNOWN_TOPIC_OR_PARTITION. Many partitions are changed in slices.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.embedded.resolve import find_queue, find_topic
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code, explain
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.share.emptiness import check_empty
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import TopicLookup
from rockgate.store.errors import StoreError


class AlterShareGroupOffsets:
    """Moves share groups."""

    def __init__(
        self,
        *,
        groups: Groups,
        records: ShareRecords,
        topics: TopicLookup,
        queues: Queues,
        durability: Durable,
    ) -> None:
        self._groups = groups
        self._records = records
        self._topics = topics
        self._queues = queues
        self._durability = durability

    def handle(
        self, request: AlterShareGroupOffsetsRequest, call: Call
    ) -> AlterShareGroupOffsetsResponse | Awaitable[AlterShareGroupOffsetsResponse]:
        """Move what can be moved."""
        check_empty(self._groups, request.group_id)
        return in_slices(self._steps(request))

    def _steps(
        self, request: AlterShareGroupOffsetsRequest
    ) -> Steps[AlterShareGroupOffsetsResponse]:
        response = AlterShareGroupOffsetsResponse(responses=[])
        for asked in request.topics:
            topic = find_topic(self._topics, asked.topic_name)
            partitions: list[AlterShareGroupOffsetsResponsePartition] = []
            response.responses.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=asked.topic_name,
                    topic_id=bytes(16) if topic is None else topic.id,
                    partitions=partitions,
                )
            )
            for each in asked.partitions:
                queue = find_queue(self._queues, topic, each.partition_index)
                code, reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""
                if queue is not None:
                    code, reason = self._move(request.group_id, queue, each.start_offset)
                partitions.append(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=each.partition_index,
                        error_code=code,
                        error_message=(reason or code.meaning) if code else None,
                    )
                )
                yield None
        return self._durability.after_changes(response)

    def _move(self, group: str, queue: Queue, offset: int) -> tuple[ErrorCode, str]:
        # Members may have come between two slices.
        try:
            check_empty(self._groups, group)
            if not self._records.move(group, queue, min(max(0, offset), queue.next_offset)):
                return ErrorCode.COORDINATOR_NOT_AVAILABLE, "Share groups read too many partitions."
        except (RequestError, StoreError) as error:
            return explain(error)
        return ErrorCode.NONE, ""

    def refuse(
        self, request: AlterShareGroupOffsetsRequest, code: ErrorCode
    ) -> AlterShareGroupOffsetsResponse:
        """An error for the whole request."""
        code = coordinator_code(code)
        return AlterShareGroupOffsetsResponse(error_code=code, error_message=code.meaning)
