"""Guards on the whole path of a request: mixed items, revoked grants, requests that wait."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.authorization.granted import ADMIN, ALICE, GuardedServer, allow

from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

OP, TYPE = AclOperation, AclResourceType
READ = allow(ALICE, OP.READ, TYPE.TOPIC, "t")
WRITE = allow(ALICE, OP.WRITE, TYPE.TOPIC, "t")
FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def create(server: GuardedServer, *names: str) -> None:
    topics = [CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in names]
    await server.ask(server.peer(ADMIN), CreateTopicsRequest(topics=topics, timeout_ms=1_000), 7)


def producing(*names: str, acks: int = -1) -> ProduceRequest:
    batch = build_batch([Record(0, 1_000, b"k", b"v")], base_offset=0)
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=0, records=bytes(batch))]
            )
            for name in names
        ],
    )


def fetching(*names: str, wait_ms: int = 0, session: tuple[int, int] = (0, -1)) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic=name,
                partitions=[
                    FetchPartition(
                        partition=0,
                        current_leader_epoch=-1,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
            for name in names
        ],
    )


def produced(response: Any) -> dict[str, int]:
    return {topic.name: topic.partition_responses[0].error_code for topic in response.responses}


def fetched(response: Any) -> dict[str, tuple[int, bool]]:
    return {
        topic.topic: (each.error_code, bool(each.records))
        for topic in response.responses
        for each in topic.partitions
    }


@pytest.mark.row("SEC-2")
async def test_refused_topics_of_a_produce_are_answered_beside_the_appended_ones() -> None:
    async with GuardedServer.running([WRITE]) as server:
        await create(server, "t", "u")
        response = await server.ask(server.peer(), producing("u", "t", "none"), 12)
        assert produced(response) == {"t": 0, "u": FAILED, "none": FAILED}
        assert ("User:alice", "PRODUCE", "WRITE", "TOPIC:u") in server.audit.found


@pytest.mark.row("SEC-2")
async def test_a_single_batch_is_refused_on_the_short_path_too() -> None:
    async with GuardedServer.running([WRITE]) as server:
        await create(server, "t", "u")
        client = server.peer()
        assert produced(await server.ask(client, producing("t"), 12)) == {"t": 0}
        assert produced(await server.ask(client, producing("u"), 12)) == {"u": FAILED}
        server.access.revoke(WRITE)
        assert produced(await server.ask(client, producing("t"), 12)) == {"t": FAILED}


async def test_a_refused_produce_without_an_answer_closes_the_connection() -> None:
    async with GuardedServer.running([WRITE]) as server:
        await create(server, "t")
        with pytest.raises(Disconnect):
            server.send(server.peer(), producing("t", "u", acks=0), 12)
        found = await server.ask(server.peer(ADMIN), fetching("t"), 12)
        assert fetched(found) == {"t": (0, True)}, "what was allowed is appended, as in Kafka"


@pytest.mark.row("SEC-3")
async def test_a_fetch_that_waits_checks_again_when_it_is_answered() -> None:
    async with GuardedServer.running([READ]) as server:
        await create(server, "t")
        request = fetching("t", wait_ms=60_000)
        waiting = server.send(server.peer(), request, 12)
        assert not isinstance(waiting, list), "it waits"
        server.access.revoke(READ)
        await server.ask(server.peer(ADMIN), producing("t"), 12)
        response = await server.received(waiting, request, 12)
        assert fetched(response) == {"t": (FAILED, False)}


async def test_a_session_learns_that_a_grant_was_revoked_and_given_again() -> None:
    async with GuardedServer.running([READ]) as server:
        await create(server, "t", "u")
        client = server.peer()
        opened = await server.ask(client, fetching("t", session=(0, 0)), 12)
        assert opened.session_id and fetched(opened) == {"t": (0, False)}
        session = opened.session_id
        again = await server.ask(client, fetching(session=(session, 1)), 12)
        assert fetched(again) == {}
        server.access.revoke(READ)
        refused = await server.ask(client, fetching(session=(session, 2)), 12)
        assert fetched(refused) == {"t": (FAILED, False)}
        server.access.add(READ)
        allowed = await server.ask(client, fetching(session=(session, 3)), 12)
        assert fetched(allowed) == {"t": (0, False)}


async def test_a_heartbeat_is_refused_once_the_grant_is_gone() -> None:
    grant = allow(ALICE, OP.READ, TYPE.GROUP, "g")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    async with GuardedServer.running([grant]) as server:
        client = server.peer()
        assert (await server.ask(client, request, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        server.access.revoke(grant)
        refused = await server.ask(client, request, 4)
        assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.row("SEC-6")
async def test_topics_by_name_and_id_do_not_tell_whether_they_exist() -> None:
    async with GuardedServer.running() as server:
        await create(server, "t")
        named = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        (topic,) = (await server.ask(server.peer(ADMIN), named, 12)).topics
        names = [MetadataRequestTopic(name="t"), MetadataRequestTopic(name="none")]
        found = await server.ask(server.peer(), MetadataRequest(topics=names), 12)
        assert {each.error_code for each in found.topics} == {FAILED}
        assert {each.topic_id for each in found.topics} == {bytes(16)}
        ids = [MetadataRequestTopic(topic_id=each) for each in (topic.topic_id, b"\7" * 16)]
        found = await server.ask(server.peer(), MetadataRequest(topics=ids), 12)
        assert [(each.error_code, each.name) for each in found.topics] == [
            (ErrorCode.UNKNOWN_TOPIC_ID, None),
            (ErrorCode.UNKNOWN_TOPIC_ID, None),
        ]
