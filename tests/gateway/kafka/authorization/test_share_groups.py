"""What grants let clients do with share groups, request by request, as Kafka's table has it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.authorization.granted import ADMIN, ALICE, GuardedServer, allow

from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.security.grants import AclOperation, AclResourceType, Grant
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from rockgate.protocol.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rockgate.protocol.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

OP, TYPE = AclOperation, AclResourceType
NO_GROUP, NO_TOPIC = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
READ_GROUP = allow(ALICE, OP.READ, TYPE.GROUP, "g")
DESCRIBE_GROUP = allow(ALICE, OP.DESCRIBE, TYPE.GROUP, "g")
DELETE_GROUP = allow(ALICE, OP.DELETE, TYPE.GROUP, "g")
READ_TOPIC = allow(ALICE, OP.READ, TYPE.TOPIC, "t")
DESCRIBE_TOPIC = allow(ALICE, OP.DESCRIBE, TYPE.TOPIC, "t")


async def prepare(server: GuardedServer) -> bytes:
    """A topic with three records, which group g begins with; its id."""
    admin = server.peer(ADMIN)
    topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
    await server.ask(admin, CreateTopicsRequest(topics=topics, timeout_ms=1_000), 7)
    batch = build_batch([Record(n, 1_000, b"k", b"v") for n in range(3)], base_offset=0)
    data = PartitionProduceData(index=0, records=bytes(batch))
    produced = [TopicProduceData(name="t", partition_data=[data])]
    await server.ask(admin, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=produced), 12)
    begin = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=32, resource_name="g", configs=[begin])
    configured = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await server.ask(admin, configured, 1)
    assert answer.responses[0].error_code == 0
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    metadata = await server.ask(admin, asked, 12)
    topic_id: bytes = metadata.topics[0].topic_id
    return topic_id


async def beat(server: GuardedServer, peer: Peer, *topics: str, epoch: int = 0) -> Any:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        subscribed_topic_names=list(topics) or None,
    )
    return await server.ask(peer, request, 1)


async def fetch(server: GuardedServer, peer: Peer, topic_id: bytes, epoch: int = 0) -> Any:
    topics = [
        share_fetch.FetchTopic(
            topic_id=topic_id,
            partitions=[share_fetch.FetchPartition(partition_index=0, acknowledgement_batches=[])],
        )
    ]
    request = share_fetch.ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=1,
        max_records=500,
        batch_size=500,
        topics=topics,
        forgotten_topics_data=[],
    )
    return await server.ask(peer, request, 2)


async def acknowledge(server: GuardedServer, peer: Peer, topic_id: bytes, epoch: int = 1) -> Any:
    batch = share_acknowledge.AcknowledgementBatch(
        first_offset=0, last_offset=0, acknowledge_types=[1]
    )
    part = share_acknowledge.AcknowledgePartition(
        partition_index=0, acknowledgement_batches=[batch]
    )
    request = share_acknowledge.ShareAcknowledgeRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        topics=[share_acknowledge.AcknowledgeTopic(topic_id=topic_id, partitions=[part])],
    )
    return await server.ask(peer, request, 2)


async def describe(server: GuardedServer, peer: Peer) -> Any:
    request = share_group_describe.ShareGroupDescribeRequest(
        group_ids=["g"], include_authorized_operations=True
    )
    answer = await server.ask(peer, request, 1)
    return answer.groups[0]


async def starts(server: GuardedServer, peer: Peer, *topics: str) -> Any:
    asked = [
        describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
            topic_name=each, partitions=[0]
        )
        for each in topics
    ]
    group = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id="g", topics=asked or None
    )
    request = describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[group])
    answer = await server.ask(peer, request, 1)
    return answer.groups[0]


async def alter(server: GuardedServer, peer: Peer) -> Any:
    part = alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
        partition_index=0, start_offset=1
    )
    topic = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
        topic_name="t", partitions=[part]
    )
    request = alter_share_group_offsets.AlterShareGroupOffsetsRequest(group_id="g", topics=[topic])
    return await server.ask(peer, request, 0)


async def forget(server: GuardedServer, peer: Peer) -> Any:
    topic = delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name="t")
    request = delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
        group_id="g", topics=[topic]
    )
    return await server.ask(peer, request, 0)


async def empty_group(server: GuardedServer, topic_id: bytes) -> None:
    """Let an administrator's member read, and leave."""
    admin = server.peer(ADMIN)
    assert (await beat(server, admin, "t")).error_code == 0
    assert (await fetch(server, admin, topic_id)).error_code == 0
    assert (await beat(server, admin, epoch=-1)).error_code == 0


@pytest.mark.row("SEC-2")
@pytest.mark.parametrize(
    ("grants", "code"),
    [
        ([DESCRIBE_TOPIC], NO_GROUP),
        ([DESCRIBE_GROUP, DESCRIBE_TOPIC], NO_GROUP),
        ([READ_GROUP], NO_TOPIC),
        ([READ_GROUP, DESCRIBE_TOPIC], ErrorCode.NONE),
        ([READ_GROUP, READ_TOPIC], ErrorCode.NONE),
    ],
)
async def test_a_member_needs_read_on_its_group_and_describe_on_its_topics(
    grants: list[Grant], code: ErrorCode
) -> None:
    async with GuardedServer.running(grants) as server:
        await prepare(server)
        assert (await beat(server, server.peer(), "t")).error_code == code


@pytest.mark.row("SEC-2")
async def test_records_need_read_on_group_and_topic() -> None:
    async with GuardedServer.running([READ_GROUP, READ_TOPIC]) as server:
        topic_id = await prepare(server)
        client = server.peer()
        assert (await beat(server, client, "t")).error_code == 0
        answer = await fetch(server, client, topic_id)
        (data,) = answer.responses[0].partitions
        assert (data.error_code, len(data.acquired_records)) == (0, 1)
        server.access.revoke(READ_TOPIC)
        answer = await acknowledge(server, client, topic_id)
        assert answer.responses[0].partitions[0].error_code == NO_TOPIC
        answer = await fetch(server, client, topic_id, epoch=2)
        (data,) = answer.responses[0].partitions
        assert (data.error_code, data.acquired_records, bytes(data.records)) == (NO_TOPIC, [], b"")
        server.access.add(READ_TOPIC)
        server.access.revoke(READ_GROUP)
        assert (await fetch(server, client, topic_id, epoch=3)).error_code == NO_GROUP
        assert (await acknowledge(server, client, topic_id, epoch=3)).error_code == NO_GROUP
        server.access.add(READ_GROUP)
        answer = await acknowledge(server, client, topic_id, epoch=3)
        assert answer.responses[0].partitions[0].error_code == 0, "nothing was released meanwhile"


@pytest.mark.row("SEC-2")
async def test_a_group_is_described_to_who_may_describe_it_and_its_topics() -> None:
    async with GuardedServer.running([]) as server:
        await prepare(server)
        assert (await beat(server, server.peer(ADMIN), "t")).error_code == 0
        client = server.peer()
        assert (await describe(server, client)).error_code == NO_GROUP
        server.access.add(DESCRIBE_GROUP)
        refused = await describe(server, client)
        assert (refused.error_code, refused.members) == (NO_TOPIC, [])
        server.access.add(DESCRIBE_TOPIC)
        found = await describe(server, client)
        assert (found.error_code, len(found.members)) == (0, 1)
        assert found.authorized_operations == 1 << OP.DESCRIBE


@pytest.mark.row("SEC-2")
async def test_starts_are_described_by_topic_to_who_may_describe_the_group() -> None:
    async with GuardedServer.running([]) as server:
        topic_id = await prepare(server)
        await empty_group(server, topic_id)
        client = server.peer()
        assert (await starts(server, client, "t")).error_code == NO_GROUP
        server.access.add(DESCRIBE_GROUP)
        found = await starts(server, client, "t")
        assert (found.error_code, found.topics[0].partitions[0].error_code) == (0, NO_TOPIC)
        assert (await starts(server, client)).topics == [], "what is not asked for is left out"
        server.access.add(DESCRIBE_TOPIC)
        for asked in (("t",), ()):
            (topic,) = (await starts(server, client, *asked)).topics
            assert (topic.partitions[0].error_code, topic.partitions[0].start_offset) == (0, 0)


@pytest.mark.row("SEC-2")
async def test_moving_a_group_needs_read_on_it_and_on_the_topics() -> None:
    async with GuardedServer.running([]) as server:
        await empty_group(server, await prepare(server))
        client = server.peer()
        assert (await alter(server, client)).error_code == NO_GROUP
        server.access.add(READ_GROUP)
        found = await alter(server, client)
        assert found.responses[0].partitions[0].error_code == NO_TOPIC
        server.access.add(READ_TOPIC)
        found = await alter(server, client)
        assert found.responses[0].partitions[0].error_code == 0
        (topic,) = (await starts(server, server.peer(ADMIN), "t")).topics
        assert topic.partitions[0].start_offset == 1


@pytest.mark.row("SEC-2")
async def test_forgetting_needs_delete_on_the_group_and_read_on_the_topics() -> None:
    async with GuardedServer.running([READ_GROUP]) as server:
        await empty_group(server, await prepare(server))
        client = server.peer()
        assert (await forget(server, client)).error_code == NO_GROUP
        server.access.add(DELETE_GROUP)
        assert (await forget(server, client)).responses[0].error_code == NO_TOPIC
        server.access.add(READ_TOPIC)
        assert (await forget(server, client)).responses[0].error_code == 0
        assert (await starts(server, server.peer(ADMIN))).topics == []
