"""Heartbeat: v0-4.

Behaviour
- REBALANCE_IN_PROGRESS tells a member to join again; it still counts as alive.

Versions
- v3: static members.  v4: flexible.
"""

from __future__ import annotations

from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Heartbeat:
    """Extends the sessions of members."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        """Return whether it is a member of this generation."""
        waiter: Waiter[ErrorCode] = Waiter()
        code = self._groups.heartbeat(
            request.group_id,
            events.MemberHeartbeat(
                waiter=waiter,
                generation=request.generation_id,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
            ),
        )
        return HeartbeatResponse(error_code=code)

    def refuse(self, request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
        """An error for the whole request."""
        return HeartbeatResponse(error_code=code)
