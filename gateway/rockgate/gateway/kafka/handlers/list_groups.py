"""ListGroups: v0-5.

Behaviour
- Every group that has members or committed offsets, in slices when there are many.
- Filters are compared without regard to case; a state or type that does not exist matches nothing.

Versions
- v3: flexible.  v4: states.  v5: types.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
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

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, request: ListGroupsRequest, call: Call
    ) -> ListGroupsResponse | Awaitable[ListGroupsResponse]:
        """List the groups that pass the filters."""
        names = list(self._groups.names())
        if len(names) <= SLICE_COUNT:
            return ListGroupsResponse(groups=self._list(names, request))
        return self._list_many(names, request, call.version)

    def refuse(self, request: ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse:
        """An error for the whole request."""
        return ListGroupsResponse(error_code=coordinator_code(code))

    async def _list_many(
        self, names: list[str], request: ListGroupsRequest, version: int
    ) -> ListGroupsResponse:
        turn = Turn()
        listed = Growing(ListGroupsResponse, ListedGroup, version, Room())
        for at in range(0, len(names), PIECE_COUNT):
            for group in self._list(names[at : at + PIECE_COUNT], request):
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
