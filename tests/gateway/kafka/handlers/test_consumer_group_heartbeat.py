"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, as clients send and read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator, code_of, read
from tests.gateway.kafka.world import call

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.handlers.consumer_group_describe import ConsumerGroupDescribe
from rockgate.gateway.kafka.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeat
from rockgate.gateway.kafka.request.permitted import Unchecked
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from rockgate.protocol.kafka.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rockgate.protocol.kafka.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}


class Hidden(Unchecked):
    """A client that may not see one topic."""

    def may(self, peer: Any, operation: Any, resource_type: Any, name: str, /) -> bool:
        return not (
            operation is AclOperation.DESCRIBE
            and resource_type is AclResourceType.TOPIC
            and name == "secret"
        )

    def permit(self, peer: Any, api: Any, operation: Any, type_: Any, name: str, /) -> bool:
        return self.may(peer, operation, type_, name)


@pytest.fixture
def world() -> Coordinator:
    world = Coordinator()
    world.topic("orders", 3)
    return world


def beat(
    world: Coordinator, said: Mapping[str, Any] = JOIN, version: int = 1, **changed: Any
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(**{**said, **changed})
    return world.ask(request, ConsumerGroupHeartbeatResponse, version)


async def describe(world: Coordinator, name: str = "g", version: int = 1) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(
        group_ids=[name, name], include_authorized_operations=True
    )
    response = await world.send(request, version)
    (group,) = read(response, ConsumerGroupDescribeResponse, version).groups
    return group


async def test_a_member_joins_and_is_described(world: Coordinator) -> None:
    joined = beat(world, rack_id="r", instance_id="i")
    orders = world.store.topics.get("orders").id
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
    assert joined.heartbeat_interval_ms == 5_000
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions == [
        TopicPartitions(topic_id=orders, partitions=[0, 1, 2])
    ]
    group = await describe(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.assignor_name, group.authorized_operations > 0) == ("uniform", True)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.member_epoch, member.member_type) == (2, 1)
    assert member.subscribed_topic_names == ["orders"]
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_name, assigned.partitions) == ("orders", [0, 1, 2])
    assert member.target_assignment == member.assignment


async def test_groups_are_listed_and_described_by_their_protocol(world: Coordinator) -> None:
    beat(world)
    await world.member("classic")
    listed = world.ask(
        ListGroupsRequest(types_filter=["consumer"], states_filter=["stable"]),
        ListGroupsResponse,
        5,
    )
    assert [each.group_id for each in listed.groups] == ["g"]
    classic, nobody = await describe(world, "classic"), await describe(world, "nobody")
    assert classic.error_code == nobody.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert classic.error_message == "Group classic is not a consumer group."
    assert nobody.error_message == "Group nobody not found."
    beat(world, member_epoch=-1)
    assert (await describe(world)).group_state == "Empty"
    assert not (await describe(world)).members


def test_a_client_without_an_id_is_given_one_up_to_v0(world: Coordinator) -> None:
    assert beat(world, member_id="").error_code == ErrorCode.INVALID_REQUEST
    given = beat(world, version=0, member_id="")
    assert given.error_code == 0
    assert given.member_id


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": "g" * 1_001}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": "i" * 1_001}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": ["x" * 250] * 2_000}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 7}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_no_group_could_take_is_refused_with_a_reason(
    world: Coordinator, changed: dict[str, Any], code: ErrorCode
) -> None:
    refused = beat(world, **changed)
    assert (refused.error_code, refused.member_id) == (code, None)
    assert refused.error_message
    assert world.groups.describe("g") is None


async def test_topics_that_a_client_may_not_describe_are_not_for_it(world: Coordinator) -> None:
    world.topic("secret", 1)
    consumers = world.groups.consumers
    assert consumers is not None
    world.handlers["ConsumerGroupHeartbeat"] = ConsumerGroupHeartbeat(
        consumers, world.durability, Hidden()
    )
    refused = beat(world, subscribed_topic_names=["orders", "secret"])
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = beat(world, subscribed_topic_names=None, subscribed_topic_regex=".*")
    assert found.error_code == 0
    group = await describe(world)
    assert {each.topic_name for each in group.members[0].target_assignment.topic_partitions} == {
        "orders"
    }
    world.handlers["ConsumerGroupHeartbeat"] = ConsumerGroupHeartbeat(consumers, world.durability)
    beat(world, member_id="other", subscribed_topic_names=["secret"])
    described = ConsumerGroupDescribe(world.groups, world.group_topics, Hidden())
    request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    (hidden,) = read(
        await described.handle(request, call(1)), ConsumerGroupDescribeResponse, 1
    ).groups
    assert hidden.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not hidden.members


async def test_offsets_are_for_members_in_their_epoch(world: Coordinator) -> None:
    joined = beat(world)
    member: Any = type("M", (), {"generation_id": joined.member_epoch, "member_id": "m"})()
    assert code_of(world.commit(5, member=member, version=9)) == 0
    assert world.committed() == 5
    assert code_of(world.commit(6, member=member, version=8)) == ErrorCode.UNSUPPORTED_VERSION
    member.generation_id = 1
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(world.commit(6, member=member, version=9)) == stale
    assert code_of(world.commit(6, member=member, version=10)) == stale
    assert code_of(world.commit(6, version=9)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.committed() == 5
    for epoch, code in ((joined.member_epoch, 0), (1, stale)):
        topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        asked = OffsetFetchRequestGroup(
            group_id="g", member_id="m", member_epoch=epoch, topics=topics
        )
        fetched = world.ask(
            OffsetFetchRequest(groups=[asked], require_stable=False), OffsetFetchResponse, 9
        )
        (group,) = fetched.groups
        assert (group.error_code, len(group.topics)) == (code, 0 if code else 1)


async def test_members_outlive_a_restart_of_the_server(world: Coordinator) -> None:
    joined = beat(world)
    world.reopen()
    said = {"group_id": "g", "member_id": "m", "member_epoch": joined.member_epoch}
    again = beat(world, said)
    assert (again.error_code, again.member_epoch) == (0, joined.member_epoch)
    assert again.assignment is None
    view = world.groups.describe("g")
    assert view is not None
    assert view.kind is GroupType.CONSUMER
