"""FindCoordinator: v0-6.

Behaviour
- There is one node, so it coordinates every group and every transactional id.
- A key that is named twice is answered once; many keys are answered in slices.
- Share groups have no coordinator here until they exist: INVALID_REQUEST, with the reason as the
  error message, so that a client stops at once instead of asking on.

Versions
- v1: key types.  v3: flexible.  v4: many keys, each with its own error.  v6: share groups.

Departs from Kafka
- An answer of more than 90 MiB is refused as a whole with POLICY_VIOLATION: ask for less at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rockgate.gateway.kafka.request.chunked import Each, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import distinct_in_steps
from rockgate.gateway.kafka.request.peer import Call
from rockgate.gateway.kafka.topics.advertised import Advertised
from rockgate.gateway.runtime.identity import Identity
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
        self._slicing = Slicing(FindCoordinatorResponse, Coordinator)

    def handle(
        self, request: FindCoordinatorRequest, call: Call
    ) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
        """Name this node, once for each key."""
        if request.key_type not in (GROUP, TRANSACTION):
            reason = _REFUSALS.get(request.key_type, f"there is no key type {request.key_type}")
            return self._refuse(request, call, reason)
        address = self._advertised.address_for(call.peer)
        node_id, host, port = self._node_id, address.host, address.port

        def answer(key: str) -> Coordinator:
            return Coordinator(key=key, node_id=node_id, host=host, port=port)

        def respond(coordinators: list[Any]) -> FindCoordinatorResponse:
            return FindCoordinatorResponse(
                node_id=node_id, host=host, port=port, coordinators=coordinators
            )

        return in_slices(self._steps(request, call, answer, respond))

    def _steps(
        self,
        request: FindCoordinatorRequest,
        call: Call,
        answer: Callable[[str], Coordinator],
        respond: Callable[[list[Any]], FindCoordinatorResponse],
    ) -> Steps[FindCoordinatorResponse]:
        keys = yield from distinct_in_steps(request.coordinator_keys)
        return self._slicing.work(keys, lambda: Each(answer), respond, call.version)

    def refuse(self, request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
        """The same error for every key."""
        refuse = _refusing(code, code.meaning)
        return _refused(code, code.meaning, [*map(refuse, dict.fromkeys(request.coordinator_keys))])

    def _refuse(
        self, request: FindCoordinatorRequest, call: Call, reason: str
    ) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
        code = ErrorCode.INVALID_REQUEST

        def respond(coordinators: list[Any]) -> FindCoordinatorResponse:
            return _refused(code, reason, coordinators)

        return in_slices(self._steps(request, call, _refusing(code, reason), respond))


def _refusing(code: ErrorCode, reason: str) -> Callable[[str], Coordinator]:
    return lambda key: Coordinator(
        key=key, node_id=-1, port=-1, error_code=code, error_message=reason
    )


def _refused(code: ErrorCode, reason: str, coordinators: list[Any]) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=code, error_message=reason, node_id=-1, port=-1, coordinators=coordinators
    )
