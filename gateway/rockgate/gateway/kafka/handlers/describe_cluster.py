"""DescribeCluster: v0-2.

Behaviour
- Every node of the deployment, of which one is named as the controller; none is ever fenced.
- A client that asks for controllers (v1+, endpoint type 2) has come to a broker:
  MISMATCHED_ENDPOINT_TYPE. Any other type is UNSUPPORTED_ENDPOINT_TYPE.

Versions
- v1: endpoint types.  v2: fenced brokers.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.permitted import (
    NOT_ASKED,
    UNCHECKED,
    Permitted,
    cluster_operations,
)
from rockgate.gateway.kafka.topics.placement import Placement
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


class DescribeCluster:
    """Describes the cluster."""

    def __init__(
        self, *, placement: Placement, cluster_id: str, permitted: Permitted = UNCHECKED
    ) -> None:
        self._permitted = permitted
        self._placement = placement
        self._cluster_id = cluster_id

    def handle(self, request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
        """Describe the nodes."""
        if call.version >= 1 and request.endpoint_type != BROKERS:
            return _wrong_endpoint(request.endpoint_type)
        operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            operations = cluster_operations(self._permitted, call.peer)
        return DescribeClusterResponse(
            cluster_id=self._cluster_id,
            controller_id=self._placement.controller_id,
            brokers=[
                DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port)
                for node in self._placement.nodes(call.peer)
            ],
            cluster_authorized_operations=operations,
        )

    def refuse(self, request: DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse:
        """An error and no cluster."""
        return DescribeClusterResponse(error_code=code, error_message=code.meaning)


def _wrong_endpoint(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="Controller endpoints are not available on a broker listener.",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"Unknown endpoint type {endpoint_type}.",
    )
