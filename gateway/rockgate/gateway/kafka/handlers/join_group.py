"""JoinGroup: v0-9.

Behaviour
- The answer comes when the group's next generation begins: an empty group waits for a short while
  for more members, any other until all have joined or the rebalance timeout is over.
- Only the leader gets the list of members.

Versions
- v1: a separate rebalance timeout, before it was the session timeout.  v4: one without a member id
  gets an id and has to join again with it.  v5: static members.  v6: flexible.  v7: protocol type.
  v8: a reason, which is not stored.  v9: a static leader that is back may keep the assignment.

Departs from Kafka
- A group id of more than 1,000 characters is INVALID_GROUP_ID, other ids as long INVALID_REQUEST.
- Member metadata is limited: more than 1 MiB of subscriptions, or a hundred protocols, is
  INVALID_REQUEST; a request that exceeds these limits by its size is not decoded.
- groups.members_max has a default; Kafka's group.max.size has none.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.kafka.groups.classic.events import Join, Joined
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter, later
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

PROTOCOLS_BYTES_MAX = 1 << 20
PROTOCOLS_MAX = 100
REQUEST_BYTES_MAX = 2 << 20
ID_CHARS_MAX = 1_000
CLIENT_ID_CHARS_MAX = 255
"""Client ids are truncated to this size; member ids begin with them."""
_NULL_NAMES = 7


class JoinGroup:
    """Adds clients to groups."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, request: JoinGroupRequest, call: Call
    ) -> JoinGroupResponse | asyncio.Future[JoinGroupResponse]:
        """Add a client, now or with the next generation."""
        version = call.version
        if len(request.protocols) > PROTOCOLS_MAX:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        size = sum(len(each.name) + len(each.metadata) for each in request.protocols)
        if size > PROTOCOLS_BYTES_MAX:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        if len(request.group_id) > ID_CHARS_MAX:
            return self.refuse(request, ErrorCode.INVALID_GROUP_ID)
        ids = (request.member_id, request.group_instance_id or "", request.protocol_type)
        if max(map(len, ids)) > ID_CHARS_MAX:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        waiter: Waiter[Joined] = Waiter()
        outcome = self._groups.join(
            request.group_id,
            Join(
                waiter=waiter,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                client_id=(call.client_id or "")[:CLIENT_ID_CHARS_MAX],
                client_host=f"/{call.peer.remote.host}",
                session_ms=request.session_timeout_ms,
                rebalance_ms=(
                    request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms
                ),
                protocol_type=request.protocol_type,
                protocols=tuple((each.name, bytes(each.metadata)) for each in request.protocols),
                needs_id=version >= 4,
                can_skip=version >= 9,
            ),
        )
        return later(outcome, lambda joined: _response(joined, version))

    def refuse(self, request: JoinGroupRequest | None, code: ErrorCode) -> JoinGroupResponse:
        """An error for the whole; there is no request if it was too large to be decoded."""
        member_id = "" if request is None else request.member_id
        return JoinGroupResponse(error_code=code, protocol_name="", member_id=member_id)


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    name = joined.protocol_name
    return JoinGroupResponse(
        error_code=joined.code,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=name if name is not None or version >= _NULL_NAMES else "",
        leader=joined.leader,
        skip_assignment=joined.is_skipping,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                metadata=each.metadata,
            )
            for each in joined.members
        ],
    )
