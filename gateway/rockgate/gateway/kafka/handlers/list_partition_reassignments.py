"""ListPartitionReassignments: v0.

Behaviour
- The list is always empty: there is one node. Unknown partitions are not reported.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class ListPartitionReassignments:
    """Answers that no partition is being moved."""

    def handle(
        self, request: ListPartitionReassignmentsRequest, call: Call
    ) -> ListPartitionReassignmentsResponse:
        """List no moves."""
        return ListPartitionReassignmentsResponse(error_message=None)

    def refuse(
        self, request: ListPartitionReassignmentsRequest, code: ErrorCode
    ) -> ListPartitionReassignmentsResponse:
        """An error for the whole request."""
        return ListPartitionReassignmentsResponse(error_code=code, error_message=code.meaning)
