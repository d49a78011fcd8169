"""DescribeGroups: v0-6.

Behaviour
- Subscriptions and the protocol are described while a group is stable. Assignments are described as
  they were last given, during a rebalance too.
- A group that is named twice is described once; many groups, or many members, in slices.
- A group that does not exist is "Dead" without an error, and from v6 GROUP_ID_NOT_FOUND. So is one
  that has members of another kind.

Versions
- v3: authorized operations.  v4: instance ids.  v5: flexible.  v6: an error message.

Departs from Kafka
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.classic.members import Member
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.permitted import NOT_ASKED, UNCHECKED, Permitted
from rockgate.gateway.security.grants import AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_NOT_FOUND = 6
SLICE_COUNT = 100
"""Groups and members that are described at once; more of them in slices."""
Operations = Callable[[str], int]
"""What the client may do with a group, as bits; or that it did not ask."""


class DescribeGroups:
    """Describes classic groups."""

    def __init__(self, groups: Groups, permitted: Permitted = UNCHECKED) -> None:
        self._groups = groups
        self._permitted = permitted

    def handle(
        self, request: DescribeGroupsRequest, call: Call
    ) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
        """Describe each."""
        operations = self._operations(request, call)
        if len(request.groups) > SLICE_COUNT:
            return self._in_turns(request.groups, call.version, operations)
        wanted = dict.fromkeys(request.groups)
        if len(wanted) + sum(map(self._groups.member_count, wanted)) > SLICE_COUNT:
            return self._in_turns(wanted, call.version, operations)
        groups = []
        for name in wanted:
            view = self._groups.describe(name)
            group = _describe(name, view, call.version, operations(name))
            if view is not None:
                group.members = [_member(each, view) for each in view.members]
            groups.append(group)
        return DescribeGroupsResponse(groups=groups)

    def _operations(self, request: DescribeGroupsRequest, call: Call) -> Operations:
        if not request.include_authorized_operations:
            return lambda name: NOT_ASKED
        operations, peer = self._permitted.operations, call.peer
        return lambda name: operations(peer, AclResourceType.GROUP, name)

    async def _in_turns(
        self, wanted: Iterable[str], version: int, operations: Operations
    ) -> DescribeGroupsResponse:
        """Describe many, each once, with other requests in between."""
        turn, room = Turn(), Room()
        groups = Growing(DescribeGroupsResponse, DescribedGroup, version, room)
        seen: set[str] = set()
        for name in wanted:
            if name in seen:
                continue
            seen.add(name)
            view = self._groups.describe(name)
            group = _describe(name, view, version, operations(name))
            if view is not None and view.members:
                members = Growing(DescribeGroupsResponse, DescribedGroupMember, version, Room())
                for each in view.members:
                    members.add(_member(each, view))
                    if turn.is_over:
                        await turn.next()
                group.members = members.take()
            groups.add(group)
            if turn.is_over:
                await turn.next()
        return DescribeGroupsResponse(groups=groups.take())

    def refuse(self, request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
        """The same error for every group."""
        code = coordinator_code(code)
        return DescribeGroupsResponse(
            groups=[
                DescribedGroup(group_id=name, error_code=code)
                for name in dict.fromkeys(request.groups)
            ]
        )


def _describe(name: str, view: GroupView | None, version: int, operations: int) -> DescribedGroup:
    """A group without its members."""
    if view is None or view.kind is not GroupType.CLASSIC:
        if version < _NOT_FOUND:
            return DescribedGroup(
                group_id=name, group_state="Dead", authorized_operations=operations
            )
        return DescribedGroup(
            group_id=name,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_found(name, is_there=view is not None),
            group_state="Dead",
            authorized_operations=operations,
        )
    return DescribedGroup(
        group_id=name,
        group_state=view.state.value,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol_name if view.state is GroupState.STABLE else "",
        authorized_operations=operations,
    )


def _not_found(name: str, *, is_there: bool) -> str:
    """Kafka's own message, which tools search for."""
    return f"Group {name} is not a classic group." if is_there else f"Group {name} not found."


def _member(member: Member, view: GroupView) -> DescribedGroupMember:
    is_stable = view.state is GroupState.STABLE
    return DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(view.protocol_name) if is_stable else b"",
        member_assignment=member.assignment,
    )
