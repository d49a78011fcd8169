"""Members of share groups: epochs, sessions, limits, restarts."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.share.world import Sharer, Shares, joined

from rockgate.gateway.kafka.groups.share.config import ShareGroupsConfig
from rockgate.protocol.kafka.errors import ErrorCode


@pytest.fixture
def world() -> Shares:
    world = Shares()
    world.topic("orders", 4)
    return world


def held(member: Sharer) -> list[int]:
    return sorted(number for _, number in member.wanted)


def test_partitions_are_shared_out_and_every_member_follows_in_one_step(world: Shares) -> None:
    a = Sharer(world, "a")
    answer = a.beat()
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (0, 1, 5_000)
    assert held(a) == [0, 1, 2, 3]
    b = Sharer(world, "b")
    b.beat()
    world.pass_time(1_100)
    for member in (a, b):
        member.beat()
    assert (len(held(a)), len(held(b)), a.member_epoch) == (2, 2, b.member_epoch)
    assert a.beat().assignment is None, "nothing has changed"


def test_more_members_than_partitions_read_the_same_ones(world: Shares) -> None:
    members = joined(world, *(f"m{number}" for number in range(10)))
    read = [number for member in members for number in held(member)]
    assert sorted(set(read)) == [0, 1, 2, 3]
    assert {read.count(number) for number in range(4)} == {3}


def test_an_epoch_is_the_members_own_or_the_one_before(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    now = a.member_epoch
    assert a.beat(member_epoch=now + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    b.leave()
    world.pass_time(1_100)
    a.beat()
    assert a.member_epoch > now
    assert a.beat(member_epoch=now).error_code == 0, "the answer may have been lost"
    assert a.beat(member_epoch=now - 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert a.beat(member_epoch=0, subscribed_topic_names=["orders"]).error_code == 0


def test_who_is_no_member_is_told_so(world: Shares) -> None:
    a = Sharer(world, "a")
    assert a.beat(member_epoch=3).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert a.leave() == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.groups.describe("g") is None, "a refusal makes no group"
    joined(world, "b")
    assert a.beat(member_epoch=3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert a.leave() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_not_heard_of_is_removed(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.pass_time(40_000)
    a.beat()
    world.pass_time(6_000)
    a.beat()
    world.pass_time(1_100)
    a.beat()
    assert held(a) == [0, 1, 2, 3]
    assert b.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_topic_that_is_made_or_grows_is_assigned(world: Shares) -> None:
    a = Sharer(world, "a", topics=("orders", "later"))
    a.beat()
    world.topic("later", 2)
    world.pass_time(1_100)
    a.beat()
    world.pass_time(1_100)
    a.beat()
    assert len(a.wanted) == 6


def test_a_group_has_a_largest_size() -> None:
    world = Shares()
    world.topic("orders", 1)
    world.share_config = ShareGroupsConfig(members_max=2)
    world.reopen()
    joined(world, "a", "b")
    code = Sharer(world, "c").beat().error_code
    assert code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("is_killed", [False, True])
def test_members_do_not_notice_a_restart(world: Shares, is_killed: bool) -> None:
    a, b = joined(world, "a", "b")
    epoch = a.member_epoch
    world.kill() if is_killed else world.reopen()
    for member in (a, b):
        assert member.beat().error_code == 0
    assert a.member_epoch > epoch
    assert sorted(held(a) + held(b)) == [0, 1, 2, 3]
    group = world.shares.find("g")
    assert group is not None and len(group.members) == 2


def test_the_epoch_goes_on_when_the_group_was_empty(world: Shares) -> None:
    (a,) = joined(world, "a")
    a.leave()
    before = world.groups.last_generation("g")
    world.reopen()
    b = Sharer(world, "b")
    assert b.beat().member_epoch > before
