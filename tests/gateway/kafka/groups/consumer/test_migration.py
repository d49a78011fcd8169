"""Groups that change their protocol while they have members."""

from __future__ import annotations

from typing import cast

import pytest
from tests.gateway.kafka.groups.consumer.bench import GROUP, ConsumerBench
from tests.gateway.kafka.groups.consumer.test_machine import ALL, refusal

from rockgate.gateway.kafka.groups.classic.events import GroupState, Joined
from rockgate.gateway.kafka.groups.consumer.config import ConsumerGroupsConfig
from rockgate.protocol.kafka.errors import ErrorCode

OK = ErrorCode.NONE
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.row("GRP-5")
def test_a_classic_group_is_upgraded_by_a_client_of_the_consumer_protocol() -> None:
    bench = ConsumerBench()
    classic = bench.stable_classic(ALL)
    one = bench.join("one")
    assert (one.epoch, bench.named(one.assigned)) == (classic.generation + 1, {})
    assert bench.group.classic_count == 1
    assert bench.classic_beat(classic) is REBALANCE
    assert bench.commit(classic.member_id, classic.generation, ALL) is OK
    # It still has all of it when it joins again, and has to give up half.
    again = cast(Joined, bench.classic_join(classic.member_id, owned=ALL))
    assert again.generation == classic.generation
    assert bench.classic_sync(again) == {"a": [0, 1]}
    assert bench.classic_beat(again) is REBALANCE
    assert bench.beat("one", one.epoch).assigned is None
    again = cast(Joined, bench.classic_join(classic.member_id, owned={"a": [0, 1]}))
    assert (again.generation, again.leader) == (one.epoch, "")
    assert bench.classic_sync(again) == {"a": [0, 1]}
    assert bench.classic_beat(again) is OK
    assert bench.named(bench.beat("one", one.epoch).assigned) == {"a": [2, 3]}
    assert bench.group.state is GroupState.STABLE
    view = bench.groups.describe(GROUP)
    assert view is not None
    assert view.kind.value == "consumer"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.row("GRP-5")
def test_the_group_is_classic_again_when_only_classic_members_are_left(*, restarts: bool) -> None:
    bench = ConsumerBench()
    classic = bench.stable_classic(ALL)
    bench.join("one")
    again = cast(Joined, bench.classic_join(classic.member_id))
    assert bench.classic_sync(again) == {"a": [0, 1]}
    bench.beat("one", -1)
    assert GROUP not in bench.consumers
    assert dict(bench.records.items()) == {}
    if restarts:
        # What it was to have may still be another's, so it starts over, without the old group.
        bench.restart()
        assert bench.classic_beat(again) is ErrorCode.UNKNOWN_MEMBER_ID
        assert bench.classic_join().generation > again.generation
        return
    assert bench.classic_beat(again) is REBALANCE
    alone = bench.classic_join(classic.member_id)
    assert (alone.code, alone.generation) == (OK, again.generation + 1)
    assert bench.classic_sync(alone, ALL) == ALL


def test_a_silent_consumer_member_lets_the_group_be_classic_again() -> None:
    bench = ConsumerBench()
    classic = bench.stable_classic(ALL)
    bench.join("one")
    joined = cast(Joined, bench.classic_join(classic.member_id))
    for _ in range(10):
        bench.pass_time(5_000)
        bench.classic_sync(joined)
        bench.classic_beat(joined)
    assert GROUP not in bench.consumers
    assert bench.groups.member_count(GROUP) == 1


def test_a_classic_client_joins_a_consumer_group_and_leaves_it() -> None:
    bench = ConsumerBench()
    one = bench.join("one")
    joined = cast(Joined, bench.classic_join())
    assert joined.code is OK
    bench.pass_time(1_100)
    assert bench.classic_beat(joined) is REBALANCE
    bench.beat("one", one.epoch)
    bench.beat("one", one.epoch, owned={"a": [0, 1]})
    joined = cast(Joined, bench.classic_join(joined.member_id))
    assert bench.classic_sync(joined) == {"a": [2, 3]}
    other = bench.classic_join(protocols=(("roundrobin", b"\0\0\0\0\0\0\0\0\0\0"),))
    assert other.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_leave(("nobody", None), (joined.member_id, None)) == [unknown, OK]
    assert bench.classic_beat(joined) is unknown
    # An administrator may remove members of either protocol.
    assert bench.classic_leave(("one", None)) == [OK]
    assert GROUP not in bench.consumers


def test_a_classic_member_that_does_not_join_again_in_time_is_removed() -> None:
    bench = ConsumerBench()
    classic = bench.stable_classic(ALL)
    one = bench.join("one")
    for _ in range(13):
        if classic.member_id in bench.group.members:
            bench.classic_beat(classic)
        one = bench.beat("one", one.epoch)
        bench.pass_time(5_000)
    assert list(bench.group.members) == ["one"]
    assert bench.named(bench.beat("one", one.epoch).assigned) == ALL


def test_a_static_member_changes_its_protocol_and_keeps_what_it_has() -> None:
    bench = ConsumerBench()
    bench.join("one", instance_id="i")
    joined = cast(Joined, bench.classic_join(instance_id="i", names="a"))
    assert joined.generation == 2
    assert GROUP not in bench.consumers, "all members are classic now"
    assert bench.groups.describe(GROUP).state is GroupState.STABLE  # type: ignore[union-attr]
    back = bench.join("two", instance_id="i")
    assert bench.named(back.assigned) == ALL
    assert list(bench.group.members) == ["two"]


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
@pytest.mark.row("GRP-5")
def test_a_policy_may_forbid_upgrades(policy: str) -> None:
    bench = ConsumerBench(ConsumerGroupsConfig(migration=policy))  # type: ignore[arg-type]
    classic = bench.stable_classic(ALL)
    assert refusal(bench.join, "one") is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.classic_beat(classic) is OK


@pytest.mark.row("GRP-5")
def test_a_policy_may_forbid_downgrades() -> None:
    bench = ConsumerBench(ConsumerGroupsConfig(migration="upgrade"))
    classic = bench.stable_classic(ALL)
    bench.join("one")
    bench.beat("one", -1)
    assert list(bench.group.members) == [classic.member_id]


def test_a_group_of_another_kind_of_clients_is_not_upgraded() -> None:
    bench = ConsumerBench()
    joined = bench.classic_join(protocol_type="connect", protocols=(("x", b"?"),))
    assert refusal(bench.join, "one") is ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.groups.member_count(GROUP) == 1
    assert joined.code is OK


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\1\xff\xff\xff\xff", b"\xff\xff"])
def test_garbage_in_a_classic_group_refuses_the_upgrade_and_harms_nobody(metadata: bytes) -> None:
    bench = ConsumerBench()
    joined = bench.classic_join(protocols=(("range", metadata),))
    assert joined.code is OK
    assert refusal(bench.join, "one") is ErrorCode.GROUP_ID_NOT_FOUND
    assert GROUP not in bench.consumers
    bench.restart()
    assert GROUP not in bench.consumers


def test_garbage_of_a_classic_member_does_not_enter_a_consumer_group() -> None:
    bench = ConsumerBench()
    bench.join("one")
    joined = bench.classic_join(protocols=(("range", b"\0\1\xff\xff\xff\xff"),))
    assert joined.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert list(bench.group.members) == ["one"]
    assert bench.classic_join(protocol_type="connect").code is joined.code
    huge = bench.classic_join(protocols=(("range", b"\0\1" + b"\0" * 600_000),))
    assert huge.code is ErrorCode.INVALID_REQUEST


def test_a_leader_that_gave_a_partition_twice_does_not_give_it_two_owners() -> None:
    bench = ConsumerBench()
    classic = bench.stable_classic({"a": [0, 0, 1, 99], "gone": [1]})
    bench.join("one")
    assert bench.named(bench.group.members[classic.member_id].owned()) == {"a": [0, 1]}
