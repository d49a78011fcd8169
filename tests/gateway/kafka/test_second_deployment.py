"""Shared handlers over a deployment that has to be asked for everything."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.admin import answered, seen
from tests.gateway.kafka.far import REFUSED, AtOnce, Far, FarPlacement, unlimited
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.configs.resources import Alterable, ResourceType, TopicResources
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.handlers.alter_configs import AlterConfigs
from rockgate.gateway.kafka.handlers.create_partitions import CreatePartitions
from rockgate.gateway.kafka.handlers.create_topics import CreateTopics
from rockgate.gateway.kafka.handlers.delete_groups import DeleteGroups
from rockgate.gateway.kafka.handlers.delete_topics import DeleteTopics
from rockgate.gateway.kafka.handlers.describe_cluster import DescribeCluster
from rockgate.gateway.kafka.handlers.describe_topic_partitions import DescribeTopicPartitions
from rockgate.gateway.kafka.handlers.find_coordinator import FindCoordinator
from rockgate.gateway.kafka.handlers.offset_commit import SLICE_COUNT
from rockgate.gateway.kafka.handlers.offset_delete import OffsetDelete
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from rockgate.protocol.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from rockgate.protocol.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rockgate.protocol.kafka.messages.delete_groups import DeleteGroupsRequest
from rockgate.protocol.kafka.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rockgate.protocol.kafka.messages.describe_cluster import DescribeClusterRequest
from rockgate.protocol.kafka.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from rockgate.protocol.kafka.messages.find_coordinator import FindCoordinatorRequest
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

# Metadata, DescribeTopicPartitions, DescribeCluster


def leaders_of(topic: Any) -> list[tuple[int, int, list[int]]]:
    return [(each.error_code, each.leader_id, each.replica_nodes) for each in topic.partitions]


async def test_metadata_learns_a_topic_and_shows_who_leads_it() -> None:
    far = Far()
    far.catalog.add("t", 4)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    answer = await seen(far.metadata().handle(request, call(12)), 12)
    assert [(each.node_id, each.host) for each in answer.brokers] == [(1, "one"), (2, "two")]
    assert (answer.cluster_id, answer.controller_id) == ("far", 2)
    lost: tuple[int, int, list[int]] = (ErrorCode.LEADER_NOT_AVAILABLE, -1, [])
    assert leaders_of(answer.topics[0]) == [(0, 1, [1]), (0, 2, [2]), lost, (0, 1, [1])]


async def test_all_topics_are_shown_again_when_leaders_have_changed() -> None:
    far = Far()
    far.catalog.add("t", 1)
    handler, everything = far.metadata(), MetadataRequest(topics=None)
    first = await seen(handler.handle(everything, call(12)), 12)
    far.placement.version = 1
    second = await seen(handler.handle(everything, call(12)), 12)
    assert [each.topics[0].partitions[0].leader_id for each in (first, second)] == [1, 2]


async def test_metadata_creates_what_may_be_created() -> None:
    far = Far()
    names = ("new", "no-thing")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    answer = await seen(far.metadata(auto_create=True).handle(request, call(9)), 9)
    found = {each.name: (each.error_code, len(each.partitions)) for each in answer.topics}
    assert found == {"new": (0, 2), "no-thing": (ErrorCode.POLICY_VIOLATION, 0)}


async def test_a_page_of_partitions_has_their_leaders() -> None:
    far = Far()
    far.catalog.add("t", 3)
    handler = DescribeTopicPartitions(catalog=far.catalog, placement=far.placement)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")])
    answer = await seen(handler.handle(request, call(0)), 0)
    assert [each.leader_id for each in answer.topics[0].partitions] == [1, 2, -1]


async def test_the_cluster_is_all_nodes() -> None:
    handler = DescribeCluster(placement=FarPlacement(), cluster_id="far")
    answer = await seen(handler.handle(DescribeClusterRequest(), call(0)), 0)
    assert [each.host for each in answer.brokers] == ["one", "two"]


# FindCoordinator


async def test_each_key_has_the_coordinator_that_its_placement_names() -> None:
    handler = FindCoordinator(FarPlacement())
    one = FindCoordinatorRequest(key="g")
    assert (await seen(handler.handle(one, call(3)), 3)).host == "two"
    many = FindCoordinatorRequest(coordinator_keys=["g", "gg", "g"])
    answer = await seen(handler.handle(many, call(4)), 4)
    assert [(each.key, each.node_id) for each in answer.coordinators] == [("g", 2), ("gg", 1)]


@pytest.mark.parametrize("version", [3, 4])
async def test_who_has_no_coordinator_is_told_why(version: int) -> None:
    request = FindCoordinatorRequest(key="t", coordinator_keys=["t"], key_type=1)
    answer = await seen(FindCoordinator(FarPlacement()).handle(request, call(version)), version)
    told = answer if version < 4 else answer.coordinators[0]
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (told.error_code, told.error_message) == (code, "no transactions")


# Progress


async def test_offsets_are_committed_and_fetched_where_they_lie() -> None:
    far = Far()
    far.catalog.add("t", 10)
    assert await far.commit("t", [3, 9, 4, 50]) == [
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[4, 5])]
    for asked, expected in ((topics, [(4, 4), (5, -1)]), (None, [(3, 3), (4, 4)])):
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)])
        answer = await seen(far.offset_fetch().handle(request, call(8)), 8)
        partitions = answer.groups[0].topics[0].partitions
        found = [(each.partition_index, each.committed_offset) for each in partitions]
        assert found == expected


async def test_many_offsets_are_committed_and_fetched_in_slices() -> None:
    far = Far()
    far.catalog.add("t", SLICE_COUNT * 2)
    codes = await far.commit("t", range(SLICE_COUNT * 2))
    assert [at for at, code in enumerate(codes) if code] == [9]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    answer = await seen(far.offset_fetch().handle(request, call(8)), 8)
    assert len(answer.groups[0].topics[0].partitions) == SLICE_COUNT * 2 - 1


async def test_offsets_and_groups_are_forgotten_where_they_lie() -> None:
    far = Far()
    far.catalog.add("t", 3)
    await far.commit("t", [0, 1])
    handler = OffsetDelete(
        catalog=far.catalog, progress=far.progress, groups=far.groups, durability=AtOnce()
    )
    topic = OffsetDeleteRequestTopic(
        name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    await answered(handler.handle(OffsetDeleteRequest(group_id="g", topics=[topic]), call(0)))
    assert [at for _, _, at in far.progress.offsets] == [1]
    deletion = DeleteGroups(groups=far.groups, durability=AtOnce())
    answer = await seen(deletion.handle(DeleteGroupsRequest(groups_names=["g", "h"]), call(2)), 2)
    assert [each.error_code for each in answer.results] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
    assert not far.progress.offsets


# Changes of topics


async def test_topics_are_created_grown_altered_and_deleted_or_refused_each_by_itself() -> None:
    far = Far()
    far.catalog.add("no-way", 1)
    replicas = Replicas(1, is_strict=False)
    creation = CreateTopics(
        catalog=far.catalog,
        replicas=replicas,
        defaults=TopicDefaults(),
        config=TopicsConfig(),
        durability=AtOnce(),
        throttling=unlimited(),
    )
    names = ("yes", "no-thing")
    wanted = [CreatableTopic(name=n, num_partitions=2, replication_factor=-1) for n in names]
    answer = await seen(creation.handle(CreateTopicsRequest(topics=wanted), call(7)), 7)
    told = [(each.error_code, each.error_message, each.topic_id) for each in answer.topics]
    assert told == [(0, None, far.catalog.there["yes"].id), (*REFUSED, bytes(16))]

    growth = CreatePartitions(
        catalog=far.catalog, replicas=replicas, durability=AtOnce(), throttling=unlimited()
    )
    more = [
        CreatePartitionsTopic(name=name, count=3, assignments=None) for name in ("yes", "no-way")
    ]
    answer = await seen(growth.handle(CreatePartitionsRequest(topics=more), call(3)), 3)
    assert [each.error_code for each in answer.results] == [0, REFUSED.code]
    assert far.catalog.there["yes"].queue_count == 3

    topics = TopicResources(catalog=far.catalog, defaults=TopicDefaults())
    alterable = Alterable(
        catalog=far.catalog,
        resources={ResourceType.TOPIC: topics},
        node_id=1,
        broker_configs={},
    )
    configs = [AlterableConfig(name="retention.ms", value="5")]
    resources = [
        AlterConfigsResource(resource_type=2, resource_name=name, configs=configs)
        for name in ("yes", "no-way")
    ]
    altering = AlterConfigs(alterable=alterable, durability=AtOnce())
    answer = await seen(altering.handle(AlterConfigsRequest(resources=resources), call(1)), 1)
    assert [each.error_code for each in answer.responses] == [0, REFUSED.code]
    assert far.catalog.there["yes"].config == {"retention.ms": "5"}

    deletion = DeleteTopics(catalog=far.catalog, durability=AtOnce(), throttling=unlimited())
    doomed = [DeleteTopicState(name=name) for name in ("yes", "no-way")]
    answer = await seen(deletion.handle(DeleteTopicsRequest(topics=doomed), call(6)), 6)
    assert [each.error_code for each in answer.responses] == [0, REFUSED.code]
    assert [*far.catalog.there] == ["no-way"]
