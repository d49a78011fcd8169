"""StreamsGroupHeartbeat and StreamsGroupDescribe, as clients send and read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.gateway.kafka.admin import NODE_ID, seen
from tests.gateway.kafka.groups.coordinator import Coordinator, code_of, read

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.handlers.create_topics import CreateTopics
from rockgate.gateway.kafka.handlers.streams_group_describe import StreamsGroupDescribe
from rockgate.gateway.kafka.handlers.streams_group_heartbeat import StreamsGroupHeartbeat
from rockgate.gateway.kafka.quotas.config import QuotasConfig
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted, Unchecked
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages import streams_group_heartbeat as wire
from rockgate.protocol.kafka.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from rockgate.protocol.kafka.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from rockgate.protocol.kafka.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)

MISSING = 3


class Limited(Unchecked):
    """A client that may not do something to some topics."""

    def __init__(self, operation: AclOperation, *names: str) -> None:
        self.operation = operation
        self.names = names

    def may(self, peer: Any, operation: Any, resource_type: Any, name: str, /) -> bool:
        if operation is not self.operation:
            return True
        return resource_type is AclResourceType.TOPIC and name not in self.names

    def permit(self, peer: Any, api: Any, operation: Any, type_: Any, name: str, /) -> bool:
        return self.may(peer, operation, type_, name)


def word_count() -> Topology:
    configs = [wire.KeyValue(key="cleanup.policy", value="compact")]
    return Topology(
        epoch=0,
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=["orders"],
                repartition_sink_topics=["g-repartition"],
            ),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name="g-repartition")],
                state_changelog_topics=[TopicInfo(name="g-changelog", topic_configs=configs)],
                copartition_groups=[wire.CopartitionGroup(repartition_source_topics=[0])],
            ),
        ],
    )


JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "process_id": "p",
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
}


@pytest.fixture
def world() -> Coordinator:
    world = Coordinator()
    world.topic("orders", 3)
    serve(world)
    return world


def serve(
    world: Coordinator, permitted: Permitted = UNCHECKED, partitions_max: int = 1_000
) -> None:
    """Have both handlers in a world, for a client with these permissions."""
    creation = CreateTopics(
        catalog=StoreCatalog(world.store.topics, partitions_max),
        replicas=Replicas(NODE_ID, is_strict=False),
        defaults=TopicDefaults(),
        config=TopicsConfig(),
        durability=world.durability,
        throttling=Throttling(quotas=world.folds.quotas, config=QuotasConfig(), clock=world.hand),
    )
    world.handlers["StreamsGroupHeartbeat"] = StreamsGroupHeartbeat(
        world.streams, world.durability, creation.handle, permitted
    )
    world.handlers["StreamsGroupDescribe"] = StreamsGroupDescribe(
        world.groups, world.streams, permitted
    )


async def beat(
    world: Coordinator, said: Mapping[str, Any] = JOIN, **changed: Any
) -> StreamsGroupHeartbeatResponse:
    asked = {"topology": word_count(), **said, **changed}
    response: StreamsGroupHeartbeatResponse = await seen(
        world.send(StreamsGroupHeartbeatRequest(**asked), 0), 0
    )
    return response


async def again(world: Coordinator, epoch: int, **said: Any) -> StreamsGroupHeartbeatResponse:
    world.pass_time(2_000)
    said = {"group_id": "g", "member_id": "m", "member_epoch": epoch, "topology": None, **said}
    return await beat(world, said)


async def describe(world: Coordinator, name: str = "g") -> DescribedGroup:
    request = StreamsGroupDescribeRequest(
        group_ids=[name, name], include_authorized_operations=True
    )
    response = await world.send(request, 0)
    (group,) = read(response, StreamsGroupDescribeResponse, 0).groups
    return group


def ids(said: Any) -> dict[str, list[int]] | None:
    return None if said is None else {each.subtopology_id: each.partitions for each in said}


ALL = {"0": [0, 1, 2], "1": [0, 1, 2]}


async def test_internal_topics_are_created_with_what_they_need(world: Coordinator) -> None:
    joined = await beat(world)
    assert (joined.error_code, joined.member_id, joined.heartbeat_interval_ms) == (0, "m", 5_000)
    (status,) = joined.status or []
    assert (status.status_code, status.status_detail) == (
        MISSING,
        "Internal topics are missing: g-changelog, g-repartition",
    )
    assert world.store.topics.get("g-repartition").queue_count == 3
    changelog = world.store.topics.get("g-changelog")
    assert changelog.queue_count == 3 and changelog.config["cleanup.policy"] == "compact"
    ready = await again(world, joined.member_epoch)
    assert ready.status == [] and ids(ready.active_tasks) == ALL
    assert (ids(ready.standby_tasks), ids(ready.warmup_tasks)) == ({}, {})
    assert (await again(world, ready.member_epoch)).active_tasks is None


async def test_why_a_topic_could_not_be_created_is_in_the_status(world: Coordinator) -> None:
    serve(world, partitions_max=4)
    (status,) = (await beat(world)).status or []
    assert "; Creation failed: g-changelog (" in status.status_detail
    serve(world, Limited(AclOperation.CREATE, "g-changelog"))
    (status,) = (await again(world, 2)).status or []
    assert status.status_detail.endswith("; Unauthorized to CREATE on topics g-changelog.")
    assert world.store.topics.find("g-changelog") is None


async def test_topics_that_a_client_may_not_describe_are_not_for_it(world: Coordinator) -> None:
    serve(world, Limited(AclOperation.DESCRIBE, "orders"))
    assert (await beat(world)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.groups.describe("g") is None
    serve(world)
    await beat(world)
    serve(world, Limited(AclOperation.DESCRIBE, "orders"))
    group = await describe(world)
    assert group.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert group.topology is None and group.members == []


def named(**changed: Any) -> Topology:
    """A word count whose first subtopology is another one."""
    topology = word_count()
    for name, value in changed.items():
        setattr(topology.subtopologies[0], name, value)
    return topology


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": "x" * 1_001}, ErrorCode.INVALID_REQUEST),
        ({"process_id": "x" * 1_001}, ErrorCode.INVALID_REQUEST),
        ({"user_endpoint": wire.Endpoint(host="x" * 1_001, port=1)}, ErrorCode.INVALID_REQUEST),
        ({"client_tags": [wire.KeyValue(key="k", value="v")] * 21}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": "i"}, ErrorCode.INVALID_REQUEST),
        ({"task_offsets": []}, ErrorCode.INVALID_REQUEST),
        ({"standby_tasks": None}, ErrorCode.INVALID_REQUEST),
        ({"topology": named(source_topic_regex=[".*"])}, ErrorCode.INVALID_REQUEST),
        ({"topology": named(source_topics=["a b"])}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (
            {"topology": named(source_topics=["__consumer_offsets"])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        ({"topology": named(subtopology_id="1")}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (
            {"topology": named(copartition_groups=[wire.CopartitionGroup(source_topics=[1])])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": named(source_topics=[f"t{at}" for at in range(10_001)])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": Topology(subtopologies=[Subtopology(subtopology_id="0")] * 1_001)},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": named(state_changelog_topics=[TopicInfo(name="c", partitions=2)])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        (
            {"topology": named(state_changelog_topics=[TopicInfo(name="c", partitions=-2)])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        ({"topology": Topology(epoch=-1)}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
    ],
)
async def test_what_no_group_could_take_is_refused_with_a_reason(
    world: Coordinator, changed: dict[str, Any], code: ErrorCode
) -> None:
    refused = await beat(world, **changed)
    assert (refused.error_code, refused.member_id) == (code, "")
    assert refused.error_message
    assert world.groups.describe("g") is None


async def test_a_large_topology_is_refused_by_its_bytes(world: Coordinator) -> None:
    configs = [wire.KeyValue(key="k", value="v" * 1_000)] * 600
    info = TopicInfo(name="c", topic_configs=configs)
    refused = await beat(world, topology=named(state_changelog_topics=[info]))
    assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY


async def test_a_group_is_described_with_topology_members_and_tasks(world: Coordinator) -> None:
    joined = await beat(
        world,
        user_endpoint=wire.Endpoint(host="here", port=65_535),
        client_tags=[wire.KeyValue(key="zone", value="z")],
        rack_id="r",
    )
    waiting = await describe(world)
    assert waiting.group_state == "NotReady" and waiting.topology is not None
    await again(world, joined.member_epoch)
    group = await describe(world)
    assert (group.error_code, group.group_state) == (0, "Stable")
    assert group.group_epoch == group.assignment_epoch == 3
    assert group.topology is not None and group.topology.subtopologies is not None
    source, counting = group.topology.subtopologies
    assert (source.source_topics, source.repartition_sink_topics) == (
        ["orders"],
        ["g-repartition"],
    )
    assert [(each.name, each.partitions) for each in counting.state_changelog_topics] == [
        ("g-changelog", 3)
    ]
    (member,) = group.members
    assert (member.member_id, member.process_id, member.rack_id) == ("m", "p", "r")
    assert member.user_endpoint is not None and member.user_endpoint.port == 65_535
    assert [(each.key, each.value) for each in member.client_tags] == [("zone", "z")]
    assert ids(member.assignment.active_tasks) == ids(member.target_assignment.active_tasks) == ALL
    assert (await describe(world, "x")).error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_group_is_listed_and_described_when_it_is_empty(world: Coordinator) -> None:
    joined = await beat(world)
    await again(world, -1)
    listed = world.ask(ListGroupsRequest(types_filter=["streams"]), ListGroupsResponse, 5)
    assert [(each.group_id, each.group_state, each.protocol_type) for each in listed.groups] == [
        ("g", "Empty", "streams")
    ]
    group = await describe(world)
    assert (group.group_state, group.members) == ("Empty", [])
    assert group.topology is not None and group.group_epoch == joined.member_epoch + 1
    view = world.groups.describe("g")
    assert view is not None and view.kind is GroupType.STREAMS


async def test_partitions_of_end_points_are_by_topic(world: Coordinator) -> None:
    joined = await beat(world, user_endpoint=wire.Endpoint(host="here", port=1))
    assert joined.partitions_by_user_endpoint == [], "no tasks yet"
    ready = await again(world, joined.member_epoch)
    (there,) = ready.partitions_by_user_endpoint or []
    assert {each.topic: each.partitions for each in there.active_partitions} == {
        "orders": [0, 1, 2],
        "g-repartition": [0, 1, 2],
    }
    told = await again(
        world, ready.member_epoch, endpoint_information_epoch=ready.endpoint_information_epoch
    )
    assert told.partitions_by_user_endpoint is None


async def test_offsets_are_for_members_in_their_epoch(world: Coordinator) -> None:
    joined = await beat(world)
    ready = await again(world, joined.member_epoch)
    member: Any = type("M", (), {"generation_id": ready.member_epoch, "member_id": "m"})()
    assert code_of(world.commit(5, member=member, version=9)) == 0
    assert code_of(world.commit(6, member=member, version=8)) == ErrorCode.UNSUPPORTED_VERSION
    member.generation_id = 1
    assert code_of(world.commit(6, member=member, version=9)) == ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(world.commit(6, version=9)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.committed() == 5


def test_a_request_that_is_too_large_is_refused(world: Coordinator) -> None:
    handler = world.handlers["StreamsGroupHeartbeat"]
    assert handler.refuse(None, ErrorCode.INVALID_REQUEST).error_code == ErrorCode.INVALID_REQUEST
    request = StreamsGroupDescribeRequest(group_ids=["a", "a"])
    refused = world.handlers["StreamsGroupDescribe"].refuse(
        request, ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    assert [each.group_id for each in refused.groups] == ["a"]
