import pytest
from tests.cli.client.brokers import Brokers

from rockgate.cli.client.admin import committed, groups
from rockgate.cli.client.kafka.errors import Refused
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import consumer_group_describe as newer
from rockgate.protocol.kafka.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from rockgate.protocol.kafka.messages.list_groups import ListedGroup, ListGroupsResponse
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)


async def test_every_broker_lists_its_own_groups() -> None:
    brokers = Brokers(nodes=(1, 2))
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: ListGroupsResponse(
        groups=[ListedGroup(group_id=f"g{3 - node}", group_state="Stable", group_type="Classic")]
    )
    async with brokers.cluster() as cluster:
        found = await groups.list_groups(cluster)
    assert [each.group_id for each in found] == ["g1", "g2"]


async def test_an_older_server_that_ignores_a_filter_is_filtered_here() -> None:
    brokers = Brokers()
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: ListGroupsResponse(
        groups=[
            ListedGroup(group_id="a", group_state="Stable"),
            ListedGroup(group_id="b", group_state="Empty"),
        ]
    )
    async with brokers.cluster() as cluster:
        found = await groups.list_groups(cluster, states=["empty"])
    assert [each.group_id for each in found] == ["b"]


async def test_a_group_of_the_newer_protocol_is_asked_for_first() -> None:
    brokers = Brokers(nodes=(1, 2))
    place = newer.TopicPartitions(topic_name="t", partitions=[1, 0])
    member = newer.Member(
        member_id="m", client_id="c", assignment=newer.Assignment(topic_partitions=[place])
    )
    brokers.answers[ApiKey.CONSUMER_GROUP_DESCRIBE] = lambda node, request: (
        newer.ConsumerGroupDescribeResponse(
            groups=[newer.DescribedGroup(group_id="g", group_state="Stable", members=[member])]
        )
    )
    async with brokers.cluster() as cluster:
        group = await groups.describe(cluster, "g")
    assert (group.kind, group.state, group.is_active) == ("consumer", "Stable", True)
    assert group.members[0].assignment == (("t", 0), ("t", 1))
    assert brokers.requests(newer.ConsumerGroupDescribeRequest)[0][0] == 2


@pytest.mark.parametrize("is_newer_served", [True, False])
async def test_a_classic_group_is_found_after_that(is_newer_served: bool) -> None:
    brokers = Brokers()
    if is_newer_served:
        told = newer.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_id="g")
        brokers.answers[ApiKey.CONSUMER_GROUP_DESCRIBE] = lambda node, request: (
            newer.ConsumerGroupDescribeResponse(groups=[told])
        )
    else:
        del brokers.served[ApiKey.CONSUMER_GROUP_DESCRIBE]
    part = TopicPartition(topic="t", partitions=[4])
    given = ConsumerProtocolAssignment(assigned_partitions=[part])
    members = [
        DescribedGroupMember(member_id="m", member_assignment=encode_versioned(given, 1)),
        DescribedGroupMember(member_id="new"),
        DescribedGroupMember(member_id="odd", member_assignment=b"\x00"),
    ]
    brokers.answers[ApiKey.DESCRIBE_GROUPS] = lambda node, request: DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                group_id="g", group_state="Stable", protocol_type="consumer", members=members
            )
        ]
    )
    async with brokers.cluster() as cluster:
        group = await groups.describe(cluster, "g")
    assert group.kind == "classic"
    assert [each.assignment for each in group.members] == [(("t", 4),), (), ()]
    assert {place: each.member_id for place, each in group.owners().items()} == {("t", 4): "m"}


async def test_a_group_that_an_older_server_calls_dead_is_not_there() -> None:
    brokers = Brokers()
    del brokers.served[ApiKey.CONSUMER_GROUP_DESCRIBE]
    brokers.answers[ApiKey.DESCRIBE_GROUPS] = lambda node, request: DescribeGroupsResponse(
        groups=[DescribedGroup(group_id="g", group_state="Dead")]
    )
    async with brokers.cluster() as cluster:
        with pytest.raises(Refused, match=r"Group g: .*GROUP_ID_NOT_FOUND"):
            await groups.describe(cluster, "g")


@pytest.mark.parametrize("version", [7, 9])
async def test_offsets_of_older_and_newer_servers(version: int) -> None:
    brokers = Brokers()
    brokers.served[ApiKey.OFFSET_FETCH] = (1, version)
    newer_parts = [
        OffsetFetchResponsePartitions(partition_index=0, committed_offset=5),
        OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
    ]
    older_parts = [
        OffsetFetchResponsePartition(partition_index=0, committed_offset=5),
        OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
    ]
    topics = [OffsetFetchResponseTopics(name="t", partitions=[*newer_parts])]
    brokers.answers[ApiKey.OFFSET_FETCH] = lambda node, request: OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name="t", partitions=[*older_parts])],
        groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)],
    )
    async with brokers.cluster() as cluster:
        assert await committed.fetch(cluster, "g") == {("t", 0): 5}
        assert await committed.fetch(cluster, "g", [("t", 0), ("t", 1)]) == {("t", 0): 5}
