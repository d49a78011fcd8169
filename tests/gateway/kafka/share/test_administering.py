"""What administrators see and change of share groups."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.groups.coordinator import code_of, read
from tests.gateway.kafka.share.world import ACCEPT, Sharer, Shares, joined, offsets

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from rockgate.protocol.kafka.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from rockgate.protocol.kafka.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rockgate.protocol.kafka.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
)
from rockgate.protocol.kafka.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rockgate.protocol.kafka.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


@pytest.fixture
def world() -> Shares:
    world = Shares()
    world.topic("orders", 2)
    world.configure(auto_offset_reset="earliest")
    return world


async def describe(world: Shares, name: str = "g") -> DescribedGroup:
    request = ShareGroupDescribeRequest(group_ids=[name], include_authorized_operations=True)
    response = await world.send(request, 1)
    (group,) = read(response, ShareGroupDescribeResponse, 1).groups
    return group


async def starts(world: Shares, *partitions: int, group: str = "g") -> list[tuple[int, int, int]]:
    """Partition, start and lag, of some partitions or of all that were read."""
    topics = [DescribeShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[*partitions])]
    asked = DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=topics if partitions else None
    )
    response = await world.send(DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
    (found,) = read(response, DescribeShareGroupOffsetsResponse, 1).groups
    assert not found.error_code, found
    return [
        (each.partition_index, each.start_offset, each.lag)
        for topic in found.topics
        for each in topic.partitions
    ]


def alter(world: Shares, partition: int, offset: int, group: str = "g") -> int:
    request = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name="orders",
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=partition, start_offset=offset
                    )
                ],
            )
        ],
    )
    answer = world.ask(request, AlterShareGroupOffsetsResponse, 0)
    return answer.responses[0].partitions[0].error_code


def forget(world: Shares, topic: str = "orders", group: str = "g") -> int:
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
    )
    return world.ask(request, DeleteShareGroupOffsetsResponse, 0).responses[0].error_code


def delete(world: Shares, group: str = "g") -> int:
    answer = world.ask(DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse, 2)
    return answer.results[0].error_code


async def test_a_group_is_described_with_its_members(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    group = await describe(world)
    assert (group.group_state, group.assignor_name, group.error_code) == ("Stable", "simple", 0)
    assert (group.group_epoch, group.assignment_epoch) == (a.member_epoch, b.member_epoch)
    assert group.authorized_operations > 0
    held = {each.member_id: each.assignment.topic_partitions[0] for each in group.members}
    assert sorted(held["a"].partitions + held["b"].partitions) == [0, 1]
    assert held["a"].topic_name == "orders"
    for member in (a, b):
        member.leave()
    group = await describe(world)
    assert (group.group_state, group.members) == ("Empty", [])


async def test_any_other_group_is_not_found(world: Shares) -> None:
    await world.member("classic")
    for name, reason in (
        ("nobody", "Group nobody not found."),
        ("classic", "Group classic is not a share group."),
    ):
        group = await describe(world, name)
        assert (group.error_code, group.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, reason)


async def test_it_is_listed_by_its_type(world: Shares) -> None:
    (a,) = joined(world, "a")
    request = ListGroupsRequest(types_filter=["Share"])
    (listed,) = world.ask(request, ListGroupsResponse, 5).groups
    assert (listed.group_id, listed.group_type, listed.protocol_type, listed.group_state) == (
        ("g", "share", "share", "Stable")
    )
    a.leave()
    (listed,) = world.ask(request, ListGroupsResponse, 5).groups
    assert (listed.group_type, listed.group_state) == ("share", "Empty")


async def test_apis_of_other_protocols_do_not_find_it(world: Shares) -> None:
    joined(world, "a")
    request = DescribeGroupsRequest(groups=["g"])
    (group,) = world.ask(request, DescribeGroupsResponse, 6).groups
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(world.commit(3)) == ErrorCode.GROUP_ID_NOT_FOUND
    refused_join: Any = world.send_join("g")
    assert refused_join.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    topic = OffsetDeleteRequestTopic(
        name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    with pytest.raises(RequestError) as refused:
        world.send(OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert not world.groups.hold("g", GroupType.ROCKETMQ)


async def test_members_of_other_protocols_keep_their_group(world: Shares) -> None:
    await world.member("classic")
    answer = Sharer(world, "a", group="classic").beat()
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    world.commit(1, group="offsets")
    assert Sharer(world, "a", group="offsets").beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.row("GRP-28")
async def test_starts_and_lags_are_described(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.batch(10, partition=1)
    assert await starts(world, 0, 1, 9) == [(0, -1, -1), (1, -1, -1), (9, -1, -1)]
    await a.take(max_records=4)
    assert a.code((2, 3, [ACCEPT]), partition=1) == 0
    assert await starts(world) == [(0, 0, 0), (1, 0, 8)]
    assert a.code((0, 1, [ACCEPT]), partition=1) == 0
    assert await starts(world, 1) == [(1, 4, 6)]


@pytest.mark.row("GRP-28")
async def test_a_group_without_members_can_be_moved(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1", b"2", b"3")
    assert offsets(await a.take()) == [0, 1, 2]
    assert a.code((0, 2, [ACCEPT])) == 0
    with pytest.raises(RequestError) as refused:
        alter(world, 0, 1)
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert alter(world, 0, 1) == 0
    assert alter(world, 7, 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await starts(world, 0) == [(0, 1, 2)]
    (b,) = joined(world, "b")
    assert [(each.offset, each.deliveries) for each in await b.take()] == [(1, 1), (2, 1)]


@pytest.mark.row("GRP-28")
async def test_a_group_without_members_can_be_made_to_forget(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1", b"2")
    await a.take()
    assert a.code((0, 1, [ACCEPT])) == 0
    with pytest.raises(RequestError):
        forget(world)
    a.leave()
    assert (forget(world), forget(world, "nothing")) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await starts(world) == []
    (b,) = joined(world, "b")
    assert offsets(await b.take()) == [0, 1], "it begins as a new group does"


@pytest.mark.parametrize("change", [alter, forget])
async def test_only_share_groups_can_be_changed(world: Shares, change: Any) -> None:
    await world.member("classic")
    for group, code in (
        ("", ErrorCode.INVALID_GROUP_ID),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND),
    ):
        with pytest.raises(RequestError) as refused:
            alter(world, 0, 0, group) if change is alter else forget(world, group=group)
        assert refused.value.code is code


async def test_a_group_is_deleted_with_all_that_is_known_of_it(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1")
    await a.take()
    assert delete(world) == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert len(world.folds.share_state) == 2
    assert delete(world) == 0
    assert (len(world.folds.share_state), await_none(world)) == (0, True)
    assert delete(world) == ErrorCode.GROUP_ID_NOT_FOUND
    await world.member("g")


def await_none(world: Shares) -> bool:
    return world.groups.describe("g") is None


async def test_a_group_without_members_stays_a_share_group_after_a_restart(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1")
    await a.take()
    a.leave()
    world.reopen()
    assert (await describe(world)).group_state == "Empty"
    for _ in range(3):
        world.expiry.step()
    assert (await describe(world)).group_state == "Empty", "it does not expire"


async def test_a_topic_that_is_deleted_is_forgotten(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1")
    await a.take()
    world.store.topics.delete([world.store.topics.get("orders")])
    assert len(world.folds.share_state) == 0
    world.topic("orders", 1)
    world.pass_time(2_000)
    a.beat()
    a.beat()
    assert {number for _, number in a.wanted} == {0}
