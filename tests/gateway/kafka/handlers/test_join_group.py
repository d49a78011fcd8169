"""JoinGroup on the wire, in every version; the rules are the machine's own tests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator, read
from tests.gateway.kafka.world import call

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.handlers.join_group import CLIENT_ID_CHARS_MAX
from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rockgate.protocol.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)


def request(**asked: Any) -> JoinGroupRequest:
    usual: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
    }
    return JoinGroupRequest(**{**usual, **asked})


@pytest.mark.parametrize("version", range(10))
async def test_a_member_joins_in_every_version(version: int) -> None:
    world = Coordinator()
    member_id = ""
    if version >= 4:
        sent = world.ask(request(), JoinGroupResponse, version)
        assert sent.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member_id = sent.member_id
        assert member_id
    waiting = world.send(request(member_id=member_id), version)
    assert isinstance(waiting, asyncio.Future)
    world.pass_time(3_001)
    joined = read(await waiting, JoinGroupResponse, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    assert joined.leader == joined.member_id
    assert [(each.member_id, each.metadata) for each in joined.members] == [
        (joined.member_id, b"m")
    ]
    if member_id:
        assert joined.member_id == member_id


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "g" * 1_001}, ErrorCode.INVALID_GROUP_ID),
        ({"member_id": "m" * 1_001}, ErrorCode.INVALID_REQUEST),
        ({"protocol_type": "c" * 1_001}, ErrorCode.INVALID_REQUEST),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m" * (1 << 20))]},
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_what_cannot_join_is_told_why(version: int, asked: dict[str, Any], code: ErrorCode) -> None:
    world = Coordinator()
    refused = world.ask(request(**asked), JoinGroupResponse, version)
    assert (refused.error_code, refused.generation_id) == (code, -1)
    assert refused.member_id == asked.get("member_id", "")
    assert world.groups.active_count == 0


async def test_in_version_0_the_rebalance_timeout_is_that_of_the_session() -> None:
    world = Coordinator()
    waiting = world.send(request(session_timeout_ms=7_000), 0)
    view = world.groups.describe("g")
    assert view is not None
    assert [each.rebalance_ms for each in view.members] == [7_000]
    waiting.cancel()


async def test_a_static_leader_that_is_back_skips_the_assignment_from_version_9() -> None:
    world = Coordinator()
    first = await world.member(version=5, instance="i")
    old = world.ask(request(group_instance_id="i"), JoinGroupResponse, 8)
    assert (old.error_code, old.generation_id, old.leader) == (0, 1, first.member_id)
    assert not old.skip_assignment
    new = world.ask(request(group_instance_id="i"), JoinGroupResponse, 9)
    assert new.skip_assignment
    assert [each.group_instance_id for each in new.members] == ["i"]


def called(client_id: str | None) -> Call:
    return Call(3, client_id, call(3).peer)


@pytest.mark.parametrize("size", [CLIENT_ID_CHARS_MAX, CLIENT_ID_CHARS_MAX + 1, 30_000])
async def test_of_a_client_id_the_first_255_characters_are_kept(size: int) -> None:
    world = Coordinator()
    client_id = "é" * size
    waiting = world.handlers["JoinGroup"].handle(request(), called(client_id))
    world.pass_time(3_001)
    joined = await waiting
    assert joined.error_code == ErrorCode.NONE
    kept = client_id[:255]
    asked = DescribeGroupsRequest(groups=["g"])
    [described] = world.ask(asked, DescribeGroupsResponse, 5).groups
    assert [each.client_id for each in described.members] == [kept]
    assert joined.member_id.startswith("é") and len(joined.member_id) <= 255 + 37


@pytest.mark.parametrize("client_id", [None, ""])
async def test_a_client_without_an_id_may_join(client_id: str | None) -> None:
    world = Coordinator()
    waiting = world.handlers["JoinGroup"].handle(request(), called(client_id))
    world.pass_time(3_001)
    assert (await waiting).error_code == ErrorCode.NONE


def test_more_than_a_hundred_protocols_are_refused() -> None:
    world = Coordinator()
    some = [JoinGroupRequestProtocol(name=f"p-{at}", metadata=b"") for at in range(101)]
    assert world.ask(request(protocols=some), JoinGroupResponse, 9).error_code == (
        ErrorCode.INVALID_REQUEST
    )
    few = world.ask(request(protocols=some[:100]), JoinGroupResponse, 9)
    assert few.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_groups_have_requests_of_a_bounded_size() -> None:
    sizes = {ApiKey.JOIN_GROUP: 2 << 20, ApiKey.SYNC_GROUP: 24 << 20}
    rows = [row for row in HANDLERS if row.key in sizes]
    assert {row.key: row.size_max for row in rows} == sizes
    for row in rows:
        if row.size_max is not None:
            # Whoever is refused unread is refused without a request.
            handler = row.make(SimpleNamespace(groups=None))  # type: ignore[arg-type]
            assert handler.refuse(None, row.too_large).error_code == row.too_large
