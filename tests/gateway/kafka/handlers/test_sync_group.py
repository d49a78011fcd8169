"""SyncGroup, Heartbeat and LeaveGroup on the wire, in every version."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rockgate.protocol.kafka.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from rockgate.protocol.kafka.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)


@pytest.mark.parametrize("version", range(6))
async def test_a_member_gets_its_assignment_in_every_version(version: int) -> None:
    world = Coordinator()
    member = await world.member()
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    synced = world.ask(request, SyncGroupResponse, version)
    assert (synced.error_code, synced.assignment) == (0, b"all")
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
        request.protocol_name = "other"
        refused = world.ask(request, SyncGroupResponse, version)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(6))
def test_a_sync_without_a_group_is_refused(version: int) -> None:
    world = Coordinator()
    for group, code in (("", ErrorCode.INVALID_GROUP_ID), ("g", ErrorCode.UNKNOWN_MEMBER_ID)):
        request = SyncGroupRequest(group_id=group, generation_id=1, member_id="m")
        assert world.ask(request, SyncGroupResponse, version).error_code == code


def test_assignments_are_bounded() -> None:
    world = Coordinator()
    huge = SyncGroupRequestAssignment(member_id="m", assignment=b"x" * ((16 << 20) + 1))
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[huge])
    assert world.ask(request, SyncGroupResponse, 3).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", range(5))
async def test_heartbeats_are_answered_in_every_version(version: int) -> None:
    world = Coordinator()
    member = await world.member()

    def beat(group: str, generation: int, member_id: str) -> int:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        return world.ask(request, HeartbeatResponse, version).error_code

    assert beat("g", 1, member.member_id) == 0
    assert beat("g", 2, member.member_id) == ErrorCode.ILLEGAL_GENERATION
    assert beat("g", 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat("other", 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat("", 1, "nobody") == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
async def test_members_leave_in_every_version(version: int) -> None:
    world = Coordinator()
    member = await world.member()
    request = LeaveGroupRequest(
        group_id="g",
        member_id=member.member_id,
        members=[MemberIdentity(member_id=member.member_id), MemberIdentity(member_id="x")],
    )
    left = world.ask(request, LeaveGroupResponse, version)
    again = world.ask(request, LeaveGroupResponse, version)
    if version < 3:
        assert (left.error_code, again.error_code) == (0, ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        assert (left.error_code, again.error_code) == (0, 0)
        assert [each.error_code for each in left.members] == [0, 25]
        assert [each.error_code for each in again.members] == [25, 25]
        assert [each.member_id for each in left.members] == [member.member_id, "x"]
    empty = world.ask(LeaveGroupRequest(group_id=""), LeaveGroupResponse, version)
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
