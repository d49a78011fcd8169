"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete: what administrators see and do."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.kafka.groups.coordinator import SUBSCRIPTION, Coordinator, read

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rockgate.protocol.kafka.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)


def describe(world: Coordinator, version: int, group: str = "g") -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=version >= 3)
    [found] = world.ask(request, DescribeGroupsResponse, version).groups
    assert found.group_id == group
    return found


@pytest.mark.parametrize("version", range(7))
async def test_a_stable_group_is_described_in_every_version(version: int) -> None:
    world = Coordinator()
    member = await world.member(version=5, instance="i")
    found = describe(world, version)
    assert (found.error_code, found.group_state) == (0, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    [shown] = found.members
    assert (shown.member_id, shown.client_id, shown.client_host) == (member.member_id, "me", "/b")
    assert (shown.member_metadata, shown.member_assignment) == (SUBSCRIPTION, b"all")
    assert shown.group_instance_id == ("i" if version >= 4 else None)
    if version >= 3:
        assert found.authorized_operations == 0b110101001000


async def test_a_group_of_which_no_generation_was_yet_shows_members_without_assignments() -> None:
    world = Coordinator()
    waiting = asyncio.ensure_future(world.send_join())
    found = describe(world, 5)
    assert (found.group_state, found.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_assignment for each in found.members] == [b""]
    world.pass_time(3_001)
    await waiting
    assert describe(world, 5).group_state == "CompletingRebalance"


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_does_not_exist_is_dead_and_from_v6_not_found(version: int) -> None:
    found = describe(Coordinator(), version)
    code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0
    assert (found.error_code, found.group_state, found.members) == (code, "Dead", [])


def test_a_group_of_offsets_alone_is_empty() -> None:
    world = Coordinator()
    world.topic()
    world.commit(1)
    found = describe(world, 6)
    assert (found.error_code, found.group_state, found.protocol_type) == (0, "Empty", "")


# Listing


def listed(
    world: Coordinator,
    version: int,
    states: list[str] | None = None,
    types: list[str] | None = None,
) -> dict[str, tuple[str, str, str]]:
    request = ListGroupsRequest(states_filter=states or [], types_filter=types or [])
    response = world.ask(request, ListGroupsResponse, version)
    assert response.error_code == 0
    return {
        each.group_id: (each.protocol_type, each.group_state, each.group_type)
        for each in response.groups
    }


@pytest.mark.parametrize("version", range(6))
async def test_groups_are_listed_in_every_version(version: int) -> None:
    world = Coordinator()
    world.topic()
    await world.member("members")
    world.commit(1, "offsets")
    stable = "Stable" if version >= 4 else ""
    empty = "Empty" if version >= 4 else ""
    kind = "classic" if version >= 5 else ""
    assert listed(world, version) == {
        "members": ("consumer", stable, kind),
        "offsets": ("", empty, kind),
    }


async def test_groups_are_filtered_by_state_and_type() -> None:
    world = Coordinator()
    world.topic()
    await world.member("members")
    world.commit(1, "offsets")
    world.groups.hold("rocket", GroupType.ROCKETMQ)
    assert set(listed(world, 5, ["stable"])) == {"members", "rocket"}
    assert set(listed(world, 5, ["Empty", "Dead"])) == {"offsets"}
    assert set(listed(world, 5, ["Nonsense"])) == set()
    assert set(listed(world, 5, types=["Classic"])) == {"members", "offsets"}
    assert set(listed(world, 5, ["stable"], ["classic"])) == {"members"}
    assert set(listed(world, 5, types=["consumer"])) == set()


async def test_many_groups_are_listed_in_slices() -> None:
    world = Coordinator()
    world.topic()
    for number in range(1_200):
        world.commit(1, f"g{number}")
    waiting = world.send(ListGroupsRequest(), 5)
    response = read(await waiting, ListGroupsResponse, 5)
    assert len(response.groups) == 1_200


# Deleting


@pytest.mark.parametrize("version", range(3))
async def test_groups_without_members_are_deleted_for_good(version: int) -> None:
    world = Coordinator()
    world.topic()
    await world.member("busy")
    world.commit(1, "idle")
    left = await world.member("left")
    world.leave(left, "left")
    request = DeleteGroupsRequest(groups_names=["busy", "idle", "left", "none", "idle"])
    results = world.ask(request, DeleteGroupsResponse, version).results
    assert {each.group_id: each.error_code for each in results} == {
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "idle": 0,
        "left": 0,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert sorted(world.groups.names()) == ["busy"]
    world.reopen()
    assert sorted(world.groups.names()) == ["busy"]


def delete_offsets(world: Coordinator, group: str = "g") -> dict[tuple[str, int], int]:
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)]
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=partitions)
            for name in ("orders", "other", "nothing")
        ],
    )
    response = world.ask(request, OffsetDeleteResponse, 0)
    assert response.error_code == 0
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


async def test_offsets_go_unless_a_member_subscribes_to_the_topic() -> None:
    world = Coordinator()
    world.topic()
    world.topic("other")
    member = await world.member()
    for topic in ("orders", "other"):
        world.commit(1, topic=topic, member=member)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete_offsets(world) == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("orders", 9): unknown,
        ("other", 0): 0,
        ("other", 9): unknown,
        ("nothing", 0): unknown,
        ("nothing", 9): unknown,
    }
    assert (world.committed(), world.committed(topic="other")) == (1, None)
    world.leave(member)
    assert delete_offsets(world)["orders", 0] == 0
    assert world.committed() is None


async def test_offsets_of_a_group_that_is_not_there_or_is_no_consumers_do_not_go() -> None:
    world = Coordinator()
    world.topic()
    with pytest.raises(RequestError, match="GROUP_ID_NOT_FOUND"):
        delete_offsets(world)
    world.groups.hold("g", GroupType.ROCKETMQ)
    with pytest.raises(RequestError, match="NON_EMPTY_GROUP"):
        delete_offsets(world)


async def test_during_a_rebalance_members_are_shown_with_what_they_read_until_then() -> None:
    world = Coordinator()
    first = await world.member()
    second = asyncio.ensure_future(world.send_join())
    for state in ("PreparingRebalance", "CompletingRebalance"):
        found = describe(world, 5)
        assert (found.group_state, found.protocol_data) == (state, "")
        shown = {each.member_id: each.member_assignment for each in found.members}
        assert sorted(shown.values()) == [b"", b"all"]
        assert shown[first.member_id] == b"all"
        assert {each.member_metadata for each in found.members} == {b""}
        world.send_join(member_id=first.member_id)
    await second
