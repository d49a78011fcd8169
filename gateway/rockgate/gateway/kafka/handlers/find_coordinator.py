"""FindCoordinator: v0-6.

Behaviour
- The placement says which node coordinates a group or a transactional id: on one node, that one.
- The internal topic of the kind of coordinator is created if it does not exist, as in Kafka: tools
  that read it ask for a coordinator first.
- A key that is named twice is answered once; many keys are answered in slices.
- The coordinator of a share group is that of any group. The keys of type 2 are those of brokers
  that keep the state of share groups for others, which no server does here: INVALID_REQUEST.

Versions
- v1: key types.  v3: flexible.  v4: many keys, each with its own error.  v6: share groups.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rockgate.gateway.kafka.request.chunked import EachNow, Slicing, Steps, in_slices
from rockgate.gateway.kafka.request.dedup import distinct_in_steps
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.now import Now
from rockgate.gateway.kafka.topics.placement import CoordinatorType, Node, Placement
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

MANY_SINCE = 4
_TYPES = {type_.value: type_ for type_ in CoordinatorType}
_REFUSALS = {
    2: "No broker has the state of share groups for others.",
}


class FindCoordinator:
    """Names the coordinators of groups and transactional ids."""

    def __init__(
        self, placement: Placement, prepare: Callable[[CoordinatorType], None] | None = None
    ) -> None:
        """`prepare` is called with the type of coordinator that was asked for."""
        self._placement = placement
        self._prepare = prepare
        self._slicing = Slicing(FindCoordinatorResponse, Coordinator)

    def handle(
        self, request: FindCoordinatorRequest, call: Call
    ) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
        """Name a node for each key."""
        type_ = _TYPES.get(request.key_type)
        if type_ is None:
            reason = _REFUSALS.get(request.key_type, f"Unknown key type {request.key_type}.")
            return self._refuse(request, call, reason)
        if self._prepare is not None:
            self._prepare(type_)
        answer = self._finder(type_, call.peer)
        if call.version < MANY_SINCE:
            found, respond = answer(request.key), _respond_one
        elif len(request.coordinator_keys) == 1:
            found, respond = answer(request.coordinator_keys[0]), _respond_alone
        else:
            return in_slices(self._steps(request, call, answer, _respond_many))
        return respond(found) if isinstance(found, Coordinator) else _wait_for(found, respond)

    def _finder(self, type_: CoordinatorType, peer: Peer) -> Callable[[str], Now[Coordinator]]:
        coordinator = self._placement.coordinator

        def find(key: str) -> Now[Coordinator]:
            try:
                node = coordinator(type_, key, peer)
            except RequestError as error:
                return _refusing(error.code, error.reason)(key)
            return _found(key, node) if isinstance(node, Node) else _find_later(key, node)

        return find

    def _steps(
        self,
        request: FindCoordinatorRequest,
        call: Call,
        answer: Callable[[str], Now[Coordinator]],
        respond: Callable[[list[Any]], FindCoordinatorResponse],
    ) -> Steps[FindCoordinatorResponse]:
        keys = yield from distinct_in_steps(request.coordinator_keys)
        return self._slicing.work(keys, lambda: EachNow(Coordinator, answer), respond, call.version)

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


def _found(key: str, node: Node) -> Coordinator:
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)


async def _find_later(key: str, node: Awaitable[Node]) -> Coordinator:
    try:
        return _found(key, await node)
    except RequestError as error:
        return _refusing(error.code, error.reason)(key)


async def _wait_for(
    found: Awaitable[Coordinator], respond: Callable[[Coordinator], FindCoordinatorResponse]
) -> FindCoordinatorResponse:
    return respond(await found)


def _respond_one(found: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        coordinators=[],
    )


def _respond_alone(found: Coordinator) -> FindCoordinatorResponse:
    return _respond_many([found])


def _respond_many(coordinators: list[Any]) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(node_id=-1, port=-1, coordinators=coordinators)


def _refusing(code: ErrorCode, reason: str) -> Callable[[str], Coordinator]:
    return lambda key: Coordinator(
        key=key, node_id=-1, port=-1, error_code=code, error_message=reason
    )


def _refused(code: ErrorCode, reason: str, coordinators: list[Any]) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=code, error_message=reason, node_id=-1, port=-1, coordinators=coordinators
    )
