"""All groups of a server: who exists, who may do what, what a restart finds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.gateway.kafka.groups.coordinator import Coordinator, code_of
from tests.world import CONFIG

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.groups import new_member_id
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreFull

OK = ErrorCode.NONE


async def test_a_group_without_members_costs_no_machine_and_no_timer() -> None:
    world = Coordinator()
    member = await world.member()
    assert world.groups.active_count == 1
    world.leave(member)
    assert world.groups.active_count == 0
    assert world.hand.timers == []
    view = world.groups.describe("g")
    assert view is not None
    assert (view.state, view.protocol_type) == (GroupState.EMPTY, "consumer")


async def test_a_member_whose_connection_is_lost_while_it_waits_harms_no_one() -> None:
    world = Coordinator()
    lost = asyncio.ensure_future(world.send_join())
    stays = world.send_join()
    lost.cancel()
    await asyncio.sleep(0)
    world.pass_time(7_000)
    joined = await stays
    assert joined.error_code == OK
    assert world.groups.member_count("g") == 2
    # The lost one led, and brings nothing: it is dropped when its session is over.
    world.pass_time(9_000)
    assert world.beat(joined) == OK
    world.pass_time(2_000)
    assert world.groups.member_count("g") == 1
    assert world.beat(joined) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("flush", ["async", "sync"])
async def test_members_find_their_group_as_it_was_after_a_restart(flush: str) -> None:
    world = Coordinator(replace(CONFIG, flush=flush))  # type: ignore[arg-type]
    world.topic()
    waiting = asyncio.ensure_future(world.member())
    while not waiting.done():
        await asyncio.sleep(0)
        world.store.flush()
    member = await waiting
    world.reopen()
    assert world.beat(member) == OK
    committing = world.commit(5, member=member)
    world.store.flush()
    answer = await committing if isinstance(committing, asyncio.Future) else committing
    assert code_of(answer) == OK
    world.pass_time(10_001)
    assert world.beat(member) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_group_continues_from_the_generation_it_had_when_it_was_left() -> None:
    world = Coordinator()
    member = await world.member()
    world.leave(member)
    world.reopen()
    again = await world.member()
    assert (member.generation_id, again.generation_id) == (1, 3)


async def test_under_sync_flush_an_assignment_is_reported_when_it_is_on_disk() -> None:
    world = Coordinator(replace(CONFIG, flush="sync"))
    waiting = world.send_join()
    world.pass_time(4_000)
    joined = await waiting
    syncing = world.sync("g", joined, {joined.member_id: b"all"})
    assert isinstance(syncing, asyncio.Future)
    await asyncio.sleep(0)
    assert not syncing.done()
    world.store.flush()
    assert (await syncing).assignment == b"all"


async def answered(answer: Any) -> Any:
    """An answer that is there at once, or later."""
    return await answer if isinstance(answer, asyncio.Future) else answer


async def test_no_member_gets_an_assignment_that_could_not_be_written() -> None:
    world = Coordinator()
    waiting = [world.send_join(), world.send_join()]
    world.pass_time(7_000)
    leader, other = [await each for each in waiting]
    waits = world.sync("g", other, {})
    world.store.appender.state_refusal = StoreFull("the disk is full")
    synced = world.sync("g", leader, {leader.member_id: b"1", other.member_id: b"2"})
    for answer in (synced, await waits):
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert answer.assignment == b""
    assert world.beat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    world.store.appender.state_refusal = None
    again = [world.send_join(member_id=each.member_id) for each in (other, leader)]
    leader, other = [await answered(each) for each in reversed(again)]
    assert (leader.generation_id, other.generation_id) == (2, 2)
    world.sync("g", leader, {leader.member_id: b"1", other.member_id: b"2"})
    assert world.sync("g", other, {}).assignment == b"2"


async def test_after_a_restart_members_have_the_last_assignment_that_was_written() -> None:
    world = Coordinator()
    member = await world.member()
    world.store.appender.state_refusal = StoreFull("the disk is full")
    joined: Any = world.send_join(member_id=member.member_id)
    assert joined.generation_id == 2
    refused = world.sync("g", joined, {joined.member_id: b"other"})
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.reopen()
    assert world.beat(member) == OK
    assert world.sync("g", member, {}).assignment == b"all"


async def test_a_static_member_is_not_told_an_id_that_could_not_be_written() -> None:
    world = Coordinator()
    await world.member(instance="i", version=5)
    world.store.appender.state_refusal = StoreFull("the disk is full")
    refused: Any = world.send_join(instance="i", version=5)
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused.member_id == ""
    world.store.appender.state_refusal = None
    back: Any = world.send_join(instance="i", version=5)
    assert (back.error_code, back.generation_id) == (OK, 1)


async def test_only_so_many_groups_have_members_at_a_time() -> None:
    class Small(Coordinator):
        groups_config = GroupsConfig(groups_max=1)

    world = Small()
    world.send_join("a")
    assert world.send_join("b").error_code == (  # type: ignore[attr-defined]
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    )


async def test_a_stopping_server_keeps_no_one_waiting() -> None:
    world = Coordinator()
    waiting = world.send_join()
    world.groups.finish()
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR
    late = world.send_join()
    assert late.error_code == ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
    assert world.hand.timers == []


# Kinds


async def test_while_another_kind_has_the_group_classic_members_cannot_join() -> None:
    world = Coordinator()
    world.topic()
    assert world.groups.hold("g", GroupType.ROCKETMQ)
    refused = world.send_join()
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[attr-defined]
    assert code_of(world.commit(1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert not world.groups.hold("g", GroupType.SHARE)
    world.groups.release("g", GroupType.ROCKETMQ)
    assert code_of(world.commit(1)) == OK
    await world.member()


async def test_while_it_has_classic_members_no_other_kind_can_have_the_group() -> None:
    world = Coordinator()
    member = await world.member()
    assert not world.groups.hold("g", GroupType.ROCKETMQ)
    assert not world.groups.may_commit_from_outside("g")
    world.leave(member)
    assert world.groups.may_commit_from_outside("g")
    assert world.groups.hold("g", GroupType.ROCKETMQ)


def test_a_member_id_is_short_enough_for_the_wire_and_never_the_same() -> None:
    assert new_member_id("x" * 40_000) != new_member_id("x" * 40_000)
    assert len(new_member_id("x" * 40_000)) < 300


# Offsets that expire


def expire(world: Coordinator) -> None:
    while world.expiry.step():
        pass


RETENTION_MS = GroupsConfig().offsets_retention_ms


async def test_offsets_of_a_group_that_never_had_members_expire_by_their_commit() -> None:
    world = Coordinator()
    world.topic(partitions=2)
    world.commit(1)
    world.clock.advance(RETENTION_MS // 2)
    world.commit(2, partition=1)
    world.clock.advance(RETENTION_MS // 2)
    expire(world)
    assert (world.committed(), world.committed(partition=1)) == (None, 2)
    world.clock.advance(RETENTION_MS)
    expire(world)
    assert world.groups.describe("g") is None


async def test_offsets_of_a_group_that_had_members_expire_after_the_last_one_left() -> None:
    world = Coordinator()
    world.topic()
    member = await world.member()
    world.commit(1, member=member)
    world.clock.advance(RETENTION_MS * 2)
    world.leave(member)
    world.reopen()
    expire(world)
    assert world.committed() == 1
    world.clock.advance(RETENTION_MS)
    expire(world)
    assert world.committed() is None
    assert world.groups.describe("g") is None


async def test_offsets_of_topics_that_members_still_read_do_not_expire() -> None:
    world = Coordinator()
    world.topic()
    world.topic("old")
    member = await world.member()
    world.commit(1, member=member)
    world.commit(1, topic="old", member=member)
    world.clock.advance(RETENTION_MS)
    expire(world)
    assert (world.committed(), world.committed(topic="old")) == (1, None)


async def test_an_offset_with_a_time_of_its_own_goes_by_that() -> None:
    world = Coordinator()
    world.topic()
    world.commit(1, retention_ms=60_000, version=4)
    world.clock.advance(59_999)
    expire(world)
    assert world.committed() == 1
    world.clock.advance(1)
    expire(world)
    assert world.committed() is None


async def test_expiry_walks_in_pages() -> None:
    world = Coordinator()
    world.topic(partitions=100)
    for group in range(20):
        for partition in range(100):
            world.commit(1, f"g{group}", partition=partition)
    world.clock.advance(RETENTION_MS)
    steps = 1
    while world.expiry.step():
        steps += 1
    assert steps >= 4
    assert world.expiry.removed_count == 2_000
    assert list(world.groups.names()) == []


async def test_groups_of_which_nothing_is_left_are_forgotten() -> None:
    world = Coordinator()
    member = await world.member("gone")
    await world.member("stays")
    world.leave(member, "gone")
    expire(world)
    assert sorted(world.groups.names()) == ["stays"]
    world.reopen()
    assert sorted(world.groups.names()) == ["stays"]
