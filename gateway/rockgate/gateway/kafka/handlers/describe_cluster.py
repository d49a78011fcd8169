"""DescribeCluster: v0-2.

Behaviour
- The cluster is this node, which is its controller too; it is never fenced.
- A client that asks for controllers (v1+, endpoint type 2) has come to a broker:
  MISMATCHED_ENDPOINT_TYPE. Any other type is UNSUPPORTED_ENDPOINT_TYPE.

Versions
- v1: endpoint types.  v2: fenced brokers.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request.peer import Call
from rockgate.gateway.kafka.topics.advertised import Advertised
from rockgate.gateway.kafka.topics.metadata_cache import CLUSTER_OPERATIONS, NOT_ASKED
from rockgate.gateway.runtime.identity import Identity
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

    def __init__(self, *, identity: Identity, advertised: Advertised) -> None:
        self._identity = identity
        self._advertised = advertised

    def handle(self, request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
        """Describe this node."""
        if call.version >= 1 and request.endpoint_type != BROKERS:
            return _wrong_endpoint(request.endpoint_type)
        address = self._advertised.address_for(call.peer)
        node_id = self._identity.node_id
        with_operations = request.include_cluster_authorized_operations
        return DescribeClusterResponse(
            cluster_id=self._identity.cluster_id,
            controller_id=node_id,
            brokers=[
                DescribeClusterBroker(broker_id=node_id, host=address.host, port=address.port)
            ],
            cluster_authorized_operations=CLUSTER_OPERATIONS if with_operations else NOT_ASKED,
        )

    def refuse(self, request: DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse:
        """An error and no cluster."""
        return DescribeClusterResponse(error_code=code, error_message=code.meaning)


def _wrong_endpoint(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="controllers were asked for, and this is a broker's address",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"there is no endpoint type {endpoint_type}",
    )
