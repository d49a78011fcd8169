"""AlterPartitionReassignments: v0-1.

Behaviour
- A partition can be "moved" to where it is: this node alone. Any other set of brokers, none, or one
  broker twice is INVALID_REPLICA_ASSIGNMENT.
- To stop a move (null) is NO_REASSIGNMENT_IN_PROGRESS: none is ever in progress.
- An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION.

Versions
- v1: whether the number of replicas may change; it cannot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, TopicView, has_partition
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


class AlterPartitionReassignments:
    """Accepts reassignments to this node, and no others."""

    def __init__(self, *, catalog: TopicCatalog, node_id: int) -> None:
        self._catalog = catalog
        self._node_id = node_id

    def handle(
        self, request: AlterPartitionReassignmentsRequest, call: Call
    ) -> AlterPartitionReassignmentsResponse | Awaitable[AlterPartitionReassignmentsResponse]:
        """Check each partition, in slices if there are many."""
        return in_slices(self._steps(request))

    def _steps(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Steps[AlterPartitionReassignmentsResponse]:
        response = AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None,
            responses=[],
        )
        for asked in request.topics:
            partitions: list[ReassignablePartitionResponse] = []
            response.responses.append(
                ReassignableTopicResponse(name=asked.name, partitions=partitions)
            )
            for each in asked.partitions:
                partitions.append(self._partition(self._catalog.find(asked.name), each))
                yield None
        return response

    def refuse(
        self, request: AlterPartitionReassignmentsRequest, code: ErrorCode
    ) -> AlterPartitionReassignmentsResponse:
        """An error for the whole request."""
        return AlterPartitionReassignmentsResponse(error_code=code, error_message=code.meaning)

    def _partition(
        self, topic: TopicView | None, asked: ReassignablePartition
    ) -> ReassignablePartitionResponse:
        code, reason = self._check(topic, asked)
        return ReassignablePartitionResponse(
            partition_index=asked.partition_index, error_code=code, error_message=reason
        )

    def _check(
        self, topic: TopicView | None, asked: ReassignablePartition
    ) -> tuple[ErrorCode, str | None]:
        if not has_partition(topic, asked.partition_index):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return code, code.meaning
        if asked.replicas is None:
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None
        if asked.replicas == [self._node_id]:
            return ErrorCode.NONE, None
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, self._why_not(asked.replicas)

    def _why_not(self, replicas: Sequence[int]) -> str:
        if not replicas:
            return "Replica list is empty."
        for broker in replicas:
            if broker != self._node_id:
                return f"Broker {broker} does not exist; this broker is {self._node_id}."
        return f"Broker {self._node_id} appears more than once in the replica list."
