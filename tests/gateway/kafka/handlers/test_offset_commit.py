"""OffsetCommit: who may, what is refused partition by partition, what lasts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator, code_of, read
from tests.world import CONFIG

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.join_group import JoinGroupResponse
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)


@pytest.mark.parametrize("version", range(2, 11))
def test_one_from_outside_commits_in_every_version(version: int) -> None:
    world = Coordinator()
    topic = world.topic()
    answer = read(world.commit(42, metadata="note", version=version), OffsetCommitResponse, version)
    assert code_of(answer) == 0
    if version >= 10:
        assert answer.topics[0].topic_id == topic.id
    else:
        assert answer.topics[0].name == "orders"
    found = world.store.progress.fetch("g", topic.id, 0)
    assert found is not None
    assert (found.offset, found.metadata) == (42, "note")
    assert found.leader_epoch == (3 if version >= 6 else -1)


def test_a_time_to_keep_that_ends_past_all_time_is_kept_forever() -> None:
    world = Coordinator()
    topic = world.topic()
    assert code_of(world.commit(42, retention_ms=2**63 - 1, version=4)) == 0
    found = world.store.progress.fetch("g", topic.id, 0)
    assert found is not None and found.expire_ms == 2**63 - 1


async def test_members_commit_and_others_do_not_while_there_are_members() -> None:
    world = Coordinator()
    world.topic()
    member = await world.member()
    assert code_of(world.commit(1, member=member)) == 0
    assert code_of(world.commit(2)) == ErrorCode.UNKNOWN_MEMBER_ID
    member.generation_id = 7
    assert code_of(world.commit(3, member=member)) == ErrorCode.ILLEGAL_GENERATION
    assert world.committed() == 1


@pytest.mark.parametrize("version", [2, 8, 9, 10])
async def test_a_generation_of_a_group_that_is_not_there_is_illegal(version: int) -> None:
    world = Coordinator()
    world.topic()
    member = await world.member("other")
    answer = world.commit(1, member=member, version=version)
    assert code_of(answer) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", [9, 10])
def test_partitions_succeed_and_fail_each_by_itself(version: int) -> None:
    world = Coordinator()
    topic = world.topic(partitions=2)

    def asked(index: int, offset: int = 5, metadata: str = "") -> OffsetCommitRequestPartition:
        return OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )

    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="orders",
                topic_id=topic.id,
                partitions=[
                    asked(0),
                    asked(2),
                    asked(-1),
                    asked(1, metadata="ä" * 2_049),
                    asked(1, offset=-1),
                ],
            ),
            OffsetCommitRequestTopic(name="nothing", topic_id=b"\7" * 16, partitions=[asked(0)]),
        ],
    )
    answer = world.ask(request, OffsetCommitResponse, version)
    assert [each.error_code for each in answer.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.topics[1].partitions[0].error_code == unknown
    assert (world.committed(), world.committed(partition=1)) == (5, None)


def test_a_commit_is_in_the_log_before_its_answer() -> None:
    world = Coordinator()
    world.topic()
    world.commit(9)
    world.reopen()
    assert world.committed() == 9


async def test_under_sync_flush_the_answer_waits_for_the_disk() -> None:
    world = Coordinator(replace(CONFIG, flush="sync"))
    world.topic()
    waiting = world.commit(9)
    assert isinstance(waiting, asyncio.Future)
    await asyncio.sleep(0)
    assert not waiting.done()
    world.store.flush()
    assert code_of(await waiting) == 0


def test_a_group_may_be_set_back() -> None:
    world = Coordinator()
    world.topic()
    world.commit(9)
    assert code_of(world.commit(3)) == 0
    assert world.committed() == 3


def test_what_went_wrong_in_the_store_is_said_as_clients_expect_it_of_a_coordinator() -> None:
    world = Coordinator()
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="orders", partitions=[OffsetCommitRequestPartition(partition_index=0)]
            )
        ],
    )
    refuse = world.handlers["OffsetCommit"].refuse
    assert code_of(refuse(request, ErrorCode.KAFKA_STORAGE_ERROR)) == 15
    assert code_of(refuse(request, ErrorCode.INVALID_GROUP_ID)) == 24


def _many(world: Coordinator, offset: int, topics: int, partitions: int) -> OffsetCommitRequest:
    for number in range(topics):
        world.topic(f"many-{number}", partitions=partitions)
    return OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=f"many-{number}",
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )


@pytest.mark.parametrize(("topics", "partitions"), [(1, 1_700), (900, 2), (3, 501)])
async def test_thousands_of_partitions_are_committed_with_others_in_between(
    topics: int, partitions: int
) -> None:
    world = Coordinator()
    request = _many(world, 7, topics, partitions)
    before = world.store.log.end
    answer = world.send(request, 9)
    assert not isinstance(answer, OffsetCommitResponse)
    turns = 0
    done = asyncio.ensure_future(answer)
    while not done.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= topics * partitions // 500
    found = done.result()
    assert [len(topic.partitions) for topic in found.topics] == [partitions] * topics
    assert {each.error_code for topic in found.topics for each in topic.partitions} == {0}
    for number in (0, topics - 1):
        topic = world.store.topics.find(f"many-{number}")
        assert topic is not None
        for index in (0, partitions - 1):
            committed = world.store.progress.fetch("g", topic.id, index)
            assert committed is not None and committed.offset == 7
    assert world.store.log.end > before


async def test_a_member_fenced_between_two_slices_commits_no_more() -> None:
    world = Coordinator()
    request = _many(world, 7, 1, 1_200)
    answer = asyncio.ensure_future(world.send(request, 9))
    await asyncio.sleep(0)
    # The group has a member from now on, who alone may commit.
    await world.member()
    codes = [each.error_code for each in (await answer).topics[0].partitions]
    assert codes[:500] == [0] * 500
    assert codes[-200:] == [ErrorCode.UNKNOWN_MEMBER_ID] * 200


@pytest.mark.parametrize("version", [2, 8, 9, 10])
@pytest.mark.parametrize("has_offsets", [False, True])
async def test_a_former_member_is_unknown_to_a_group_without_members(
    version: int, has_offsets: bool
) -> None:
    world = Coordinator()
    world.topic()
    member = await world.member()
    if has_offsets:
        assert code_of(world.commit(1, member=member)) == 0
    world.leave(member)
    answer = world.commit(2, member=member, version=version)
    assert code_of(answer) == ErrorCode.UNKNOWN_MEMBER_ID
    member.generation_id += 1
    answer = world.commit(2, member=member, version=version)
    assert code_of(answer) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_is_unknown_to_a_group_that_has_nothing_but_offsets() -> None:
    world = Coordinator()
    world.topic()
    assert code_of(world.commit(1)) == 0
    stranger = JoinGroupResponse(generation_id=3, member_id="m-1")
    assert code_of(world.commit(2, member=stranger)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.committed() == 1
