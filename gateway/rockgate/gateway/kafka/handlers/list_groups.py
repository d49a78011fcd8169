"""ListGroups: v0-5.

Behaviour
- Every group that has members or committed offsets, in slices when there are many.
- A client that may not describe the cluster gets the groups that it may describe.
- Filters are compared without regard to case; a state or type that does not exist matches nothing.

Versions
- v3: flexible.  v4: states.  v5: types.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

SLICE_COUNT = 500
"""Groups that are listed at once; more of them in slices."""
PIECE_COUNT = 50
"""How many of these are read between two checks of the clock."""


class ListGroups:
    """Lists groups."""

    def __init__(self, groups: Groups, permitted: Permitted = UNCHECKED) -> None:
        self._groups = groups
        self._permitted = permitted

    def handle(
        self, request: ListGroupsRequest, call: Call
    ) -> ListGroupsResponse | Awaitable[ListGroupsResponse]:
        """List the groups that pass the filters."""
        names = list(self._groups.names())
        is_visible = self._visible(call.peer)
        if len(names) <= SLICE_COUNT:
            return ListGroupsResponse(groups=self._list(filter(is_visible, names), request))
        return self._list_many(names, is_visible, request, call.version)

    def _visible(self, peer: Peer) -> Callable[[str], bool] | None:
        """Which groups the client may see; None if all of them."""
        may, describe = self._permitted.may, AclOperation.DESCRIBE
        if may(peer, describe, AclResourceType.CLUSTER, CLUSTER_NAME):
            return None
        return lambda name: may(peer, describe, AclResourceType.GROUP, name)

    def refuse(self, request: ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse:
        """An error for the whole request."""
        return ListGroupsResponse(error_code=coordinator_code(code))

    async def _list_many(
        self,
        names: list[str],
        is_visible: Callable[[str], bool] | None,
        request: ListGroupsRequest,
        version: int,
    ) -> ListGroupsResponse:
        turn = Turn()
        listed = Growing(ListGroupsResponse, ListedGroup, version, Room())
        for at in range(0, len(names), PIECE_COUNT):
            some = filter(is_visible, names[at : at + PIECE_COUNT])
            for group in self._list(some, request):
                listed.add(group)
            if turn.is_over:
                await turn.next()
        return ListGroupsResponse(groups=listed.take())

    def _list(self, names: Iterable[str], request: ListGroupsRequest) -> list[ListedGroup]:
        states = {each.lower() for each in request.states_filter}
        types = {each.lower() for each in request.types_filter}
        listed = []
        for name in names:
            view = self._groups.describe(name)
            if view is None:
                # It was deleted meanwhile.
                continue
            state, kind = view.state.value, view.kind.value
            if (states and state.lower() not in states) or (types and kind not in types):
                continue
            listed.append(
                ListedGroup(
                    group_id=name,
                    protocol_type=view.protocol_type,
                    group_state=state,
                    group_type=kind,
                )
            )
        return listed
