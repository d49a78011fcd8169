"""SyncGroup: v0-5.

Behaviour
- The leader sends the assignment of every member, which the server does not interpret; the others
  wait for it. A member that repeats the request gets the same assignment.
- The assignment is in the log before any member gets it.

Versions
- v3: static members.  v4: flexible.  v5: the member's protocol must be the
  group's, else INCONSISTENT_GROUP_PROTOCOL.

Departs from Kafka
- More than 16 MiB of assignments is UNKNOWN_SERVER_ERROR, regardless of max.message.bytes; a
  request of more than 24 MiB is not decoded.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.kafka.groups.classic.events import Sync, Synced
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter, later
from rockgate.gateway.kafka.request.chunked import Steps, in_slices
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.sync_group import SyncGroupRequest, SyncGroupResponse

ASSIGNMENTS_BYTES_MAX = 16 << 20
REQUEST_BYTES_MAX = 24 << 20
TOO_LARGE = ErrorCode.UNKNOWN_SERVER_ERROR
PIECE_COUNT = 500


class SyncGroup:
    """Returns each member its assignment."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, request: SyncGroupRequest, call: Call
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        """Give a member its assignment, now or when the leader has brought it."""
        return in_slices(self._steps(request))

    def _steps(self, request: SyncGroupRequest) -> Steps[SyncGroupResponse]:
        size = 0
        assignments: dict[str, bytes] = {}
        for at in range(0, len(request.assignments), PIECE_COUNT):
            for each in request.assignments[at : at + PIECE_COUNT]:
                size += len(each.assignment)
                assignments[each.member_id] = bytes(each.assignment)
            yield None
        if size > ASSIGNMENTS_BYTES_MAX:
            return self.refuse(request, TOO_LARGE)
        waiter: Waiter[Synced] = Waiter()
        outcome = self._groups.sync(
            request.group_id,
            Sync(
                waiter=waiter,
                generation=request.generation_id,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignments=assignments,
            ),
        )
        return later(outcome, _response)

    def refuse(self, request: SyncGroupRequest | None, code: ErrorCode) -> SyncGroupResponse:
        """An error for the whole request."""
        return SyncGroupResponse(error_code=code)


def _response(synced: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=synced.code,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )
