"""LeaveGroup: v0-5.

Behaviour
- The members that stay join again at once. A static member leaves only by this request, or when
  its session is over.

Versions
- v3: several members, each with its own error, static ones by instance id alone.  v4: flexible.
  v5: a reason, which is ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.groups.classic.events import Leave, Leaver, Left
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter, later
from rockgate.gateway.kafka.request.chunked import Turn
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

_MANY = 3
PIECE_COUNT: Final = 200
"""Members removed at once; further ones with other requests in between."""


class LeaveGroup:
    """Removes members."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, request: LeaveGroupRequest, call: Call
    ) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
        """Remove members."""
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        is_one = call.version < _MANY
        if len(request.members) > PIECE_COUNT:
            return self._leave_in_turns(request)
        leavers = [Leaver(request.member_id, None)] if is_one else _leavers(request.members)
        waiter: Waiter[Left] = Waiter()
        outcome = self._groups.leave(request.group_id, Leave(waiter=waiter, leavers=leavers))

        def respond(codes: Left) -> LeaveGroupResponse:
            if is_one:
                return LeaveGroupResponse(error_code=codes[0])
            return LeaveGroupResponse(members=_responses(leavers, codes))

        return later(outcome, respond)

    async def _leave_in_turns(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove many, some at a time, with other requests in between."""
        turn, members = Turn(), []
        for at in range(0, len(request.members), PIECE_COUNT):
            some = _leavers(request.members[at : at + PIECE_COUNT])
            waiter: Waiter[Left] = Waiter()
            outcome = self._groups.leave(request.group_id, Leave(waiter=waiter, leavers=some))
            codes = await outcome if isinstance(outcome, asyncio.Future) else outcome
            members += _responses(some, codes)
            if turn.is_over:
                await turn.next()
        return LeaveGroupResponse(members=members)

    def refuse(self, request: LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse:
        """An error for the whole request."""
        return LeaveGroupResponse(error_code=code)


def _leavers(members: list[MemberIdentity]) -> list[Leaver]:
    return [Leaver(each.member_id, each.group_instance_id) for each in members]


def _responses(leavers: list[Leaver], codes: Left) -> list[MemberResponse]:
    return [
        MemberResponse(
            member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=code
        )
        for leaver, code in zip(leavers, codes, strict=True)
    ]
