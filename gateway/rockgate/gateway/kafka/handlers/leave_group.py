"""LeaveGroup: v0-5.

Behaviour
- The members that stay join again at once. A static member leaves only by this request, or when
  its session is over.

Versions
- v3: several members, each with its own error, static ones by instance id alone.  v4: flexible.
  v5: a reason, which is not kept.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.kafka.groups.events import Leave, Leaver, Left
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter, later
from rockgate.gateway.kafka.peer import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

_MANY = 3


class LeaveGroup:
    """Lets members go."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, request: LeaveGroupRequest, call: Call
    ) -> LeaveGroupResponse | asyncio.Future[LeaveGroupResponse]:
        """Let members go."""
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        is_one = call.version < _MANY
        if is_one:
            leavers = [Leaver(request.member_id, None)]
        else:
            leavers = [Leaver(each.member_id, each.group_instance_id) for each in request.members]
        waiter: Waiter[Left] = Waiter()
        outcome = self._groups.leave(request.group_id, Leave(waiter=waiter, leavers=leavers))

        def respond(codes: Left) -> LeaveGroupResponse:
            if is_one:
                return LeaveGroupResponse(error_code=codes[0])
            members = [
                MemberResponse(
                    member_id=leaver.member_id,
                    group_instance_id=leaver.instance_id,
                    error_code=code,
                )
                for leaver, code in zip(leavers, codes, strict=True)
            ]
            return LeaveGroupResponse(members=members)

        return later(outcome, respond)

    def refuse(self, request: LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse:
        """One error for all of it."""
        return LeaveGroupResponse(error_code=code)
