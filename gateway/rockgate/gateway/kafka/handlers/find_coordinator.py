"""FindCoordinator: v0-6.

Behaviour
- There is one node, so it coordinates every group and every transactional id.
- Share groups have no coordinator here until they exist: INVALID_REQUEST, with the reason as the
  error message, so that a client stops at once instead of asking on.

Versions
- v1: key types.  v3: flexible.  v4: many keys, each with its own error.  v6: share groups.
"""

from __future__ import annotations

from rockgate.gateway.identity import Identity
from rockgate.gateway.kafka.advertised import Advertised
from rockgate.gateway.kafka.peer import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP = 0
TRANSACTION = 1
_REFUSALS = {
    2: "share groups are not supported by this server",
}


class FindCoordinator:
    """Names this node."""

    def __init__(self, *, identity: Identity, advertised: Advertised) -> None:
        self._node_id = identity.node_id
        self._advertised = advertised

    def handle(self, request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
        """Name this node, once for each key."""
        if request.key_type not in (GROUP, TRANSACTION):
            reason = _REFUSALS.get(request.key_type, f"there is no key type {request.key_type}")
            return self._refuse(request, ErrorCode.INVALID_REQUEST, reason)
        address = self._advertised.address_for(call.peer)
        node_id, host, port = self._node_id, address.host, address.port
        return FindCoordinatorResponse(
            node_id=node_id,
            host=host,
            port=port,
            coordinators=[
                Coordinator(key=key, node_id=node_id, host=host, port=port)
                for key in request.coordinator_keys
            ],
        )

    def refuse(self, request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
        """The same error for every key."""
        return self._refuse(request, code, code.meaning)

    @staticmethod
    def _refuse(
        request: FindCoordinatorRequest, code: ErrorCode, reason: str
    ) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            error_code=code,
            error_message=reason,
            node_id=-1,
            port=-1,
            coordinators=[
                Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=reason)
                for key in request.coordinator_keys
            ],
        )
