"""The machine of one group, row by row of its table; docs/internals/groups.md has the table."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.groups.bench import (
    DELAY_MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    Bench,
)

from rockgate.gateway.kafka.groups.classic.events import Finish, GroupState, Unsaved
from rockgate.gateway.kafka.groups.classic.group import NEW_MEMBER_MS
from rockgate.gateway.kafka.groups.classic.group_record import pack, unpack
from rockgate.gateway.kafka.groups.classic.memory import saved_of
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.protocol.kafka.errors import ErrorCode

OK = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
FENCED = ErrorCode.FENCED_INSTANCE_ID
INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
FULL = ErrorCode.GROUP_MAX_SIZE_REACHED


# First members


def test_an_empty_group_waits_a_while_for_more_members() -> None:
    bench = Bench()
    first, second = bench.send_join(), bench.send_join()
    bench.advance(DELAY_MS - 1)
    assert not bench.answers
    bench.advance(DELAY_MS + 1)
    assert bench.joined(first).generation == bench.joined(second).generation == 1
    assert bench.group.state is GroupState.COMPLETING


def test_it_waits_as_long_again_while_more_come_within_the_rebalance_timeout() -> None:
    bench = Bench()
    waiters = []
    for _ in range(3):
        waiters.append(bench.send_join(rebalance_ms=DELAY_MS * 3))
        bench.advance(DELAY_MS - 1)
    assert not bench.answers
    bench.advance(4)
    assert set(bench.answers) == set(waiters)


def test_without_a_delay_the_first_member_is_answered_at_once() -> None:
    bench = Bench(GroupsConfig(initial_delay_ms=0))
    assert bench.joined(bench.send_join()).generation == 1


def test_only_the_leader_is_told_who_the_members_are() -> None:
    bench = Bench()
    first, second = bench.send_join(), bench.send_join(instance="i")
    bench.advance(DELAY_MS * 2)
    leader, other = bench.joined(first), bench.joined(second)
    assert leader.leader == other.leader == leader.member_id
    assert [each.member_id for each in leader.members] == [leader.member_id, other.member_id]
    assert [each.instance_id for each in leader.members] == [None, "i"]
    assert {each.metadata for each in leader.members} == {b"subscription"}
    assert other.members == []
    assert (leader.protocol_type, leader.protocol_name) == ("consumer", "range")


def test_one_without_an_id_is_sent_away_for_one_and_let_in_with_it() -> None:
    bench = Bench()
    sent = bench.joined(bench.send_join(client="app", needs_id=True))
    assert (sent.code, sent.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "app-1")
    assert bench.group.state is GroupState.EMPTY
    waiter = bench.send_join(sent.member_id, needs_id=True)
    bench.advance(DELAY_MS)
    assert bench.joined(waiter).member_id == "app-1"


def test_an_id_that_no_one_comes_back_with_is_forgotten_after_its_session() -> None:
    bench = Bench()
    sent = bench.joined(bench.send_join(needs_id=True))
    bench.advance(SESSION_MS)
    assert bench.group.is_idle
    assert bench.joined(bench.send_join(sent.member_id, needs_id=True)).code == UNKNOWN


def test_a_static_member_is_never_sent_away_for_an_id() -> None:
    bench = Bench()
    waiter = bench.send_join(instance="i", needs_id=True)
    bench.advance(DELAY_MS)
    assert bench.joined(waiter).code == OK


# Protocols


def test_the_protocol_with_most_votes_among_those_all_know_is_chosen() -> None:
    bench = Bench()
    votes = ["abx", "bax", "bay", "yb"]
    for names in votes:
        bench.send_join(protocols=tuple((name, name.encode()) for name in names))
    bench.advance(DELAY_MS * 6)
    assert {answer.protocol_name for answer in map(bench.joined, bench.answers)} == {"b"}
    assert [each.metadata for each in bench.joined(1).members] == [b"b"] * 4


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("consumer", (("other", b""),)), ("connect", RANGE), ("consumer", ()), ("", RANGE)],
)
def test_one_who_shares_no_protocol_with_the_group_is_refused(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    bench = Bench()
    bench.stable()
    waiter = bench.send_join(protocol_type=protocol_type, protocols=protocols)
    assert bench.joined(waiter).code == INCONSISTENT
    assert bench.group.state is GroupState.STABLE


def test_an_empty_group_takes_any_protocol_but_none() -> None:
    bench = Bench()
    assert bench.joined(bench.send_join(protocols=())).code == INCONSISTENT
    assert bench.joined(bench.send_join(protocol_type="")).code == INCONSISTENT
    assert bench.group.is_idle


# Limits


def test_a_full_group_takes_no_more_members_but_lets_its_own_join_again() -> None:
    bench = Bench(GroupsConfig(members_max=2))
    ids = bench.stable(None, None)
    assert bench.joined(bench.send_join()).code == FULL
    again = bench.send_join(ids[0])
    assert again not in bench.answers
    assert bench.group.state is GroupState.PREPARING


def test_a_static_member_comes_back_to_a_full_group() -> None:
    bench = Bench(GroupsConfig(members_max=1))
    bench.stable("i")
    assert bench.joined(bench.send_join(instance="i")).code == OK
    assert bench.joined(bench.send_join(instance="j")).code == FULL


def test_ids_that_are_on_their_way_are_bounded() -> None:
    bench = Bench(GroupsConfig(members_max=3))
    codes = [bench.joined(bench.send_join(needs_id=True)).code for _ in range(4)]
    assert codes == [ErrorCode.MEMBER_ID_REQUIRED] * 3 + [FULL]


# Syncing


def test_members_wait_for_the_leader_and_get_what_it_brings() -> None:
    bench = Bench()
    leader, other, left_out = bench.completing(None, None, None)
    waiting = [bench.send_sync(other), bench.send_sync(left_out)]
    assert not set(waiting) & set(bench.answers)
    own = bench.send_sync(leader, {leader: b"1", other: b"2", "stranger": b"3"})
    assert [bench.synced(each).assignment for each in (own, *waiting)] == [b"1", b"2", b""]
    assert bench.synced(own).protocol_name == "range"
    assert bench.group.state is GroupState.STABLE
    assert bench.save_count == 1
    assert bench.synced(bench.send_sync(other)).assignment == b"2"


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "code"),
    [
        (None, None, OK),
        ("consumer", "range", OK),
        ("connect", "range", INCONSISTENT),
        ("consumer", "sticky", INCONSISTENT),
    ],
)
def test_a_sync_names_the_protocol_of_the_group_or_none(
    protocol_type: str | None, protocol_name: str | None, code: ErrorCode
) -> None:
    bench = Bench()
    [member] = bench.stable()
    waiter = bench.send_sync(member, protocol_type=protocol_type, protocol_name=protocol_name)
    assert bench.synced(waiter).code == code


def test_a_member_that_asks_twice_is_answered_twice() -> None:
    bench = Bench()
    leader, other = bench.completing(None, None)
    first = bench.send_sync(other)
    second = bench.send_sync(other)
    assert bench.synced(first).code == REBALANCE
    bench.send_sync(leader, {other: b"2"})
    assert bench.synced(second).assignment == b"2"


def test_who_never_syncs_is_dropped_and_the_others_join_again() -> None:
    bench = Bench()
    leader, other = bench.completing(None, None)
    waiter = bench.send_sync(other)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        assert bench.beat(leader) == OK
        bench.advance(SESSION_MS // 2)
    assert bench.synced(waiter).code == REBALANCE
    assert leader not in bench.group.members
    assert bench.group.members.leader == other


# What each state answers


def test_every_request_in_an_empty_group() -> None:
    bench = Bench()
    assert bench.joined(bench.send_join("x")).code == UNKNOWN
    assert bench.synced(bench.send_sync("x")).code == UNKNOWN
    assert bench.beat("x") == UNKNOWN
    assert bench.commit("x", 0) == UNKNOWN
    assert bench.commit() == OK
    assert bench.leave(("x", None)) == [UNKNOWN]
    assert bench.group.is_idle


def test_every_request_while_members_join() -> None:
    bench = Bench()
    member, other = bench.stable(None, None)
    bench.send_join(member)
    assert bench.group.state is GroupState.PREPARING
    assert bench.synced(bench.send_sync(other)).code == REBALANCE
    assert bench.beat(other) == REBALANCE
    assert bench.beat(other, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(other, 1) == OK
    assert bench.commit() == UNKNOWN


def test_every_request_before_the_assignment_is_there() -> None:
    bench = Bench()
    leader, other = bench.completing(None, None)
    assert bench.beat(other) == OK
    assert bench.commit(other, 1) == REBALANCE
    assert bench.commit(other, 0) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit() == UNKNOWN
    again = bench.joined(bench.send_join(leader))
    assert (again.generation, len(again.members)) == (1, 2)
    assert bench.joined(bench.send_join(other)).members == []
    assert bench.group.state is GroupState.COMPLETING


def test_every_request_in_a_stable_group() -> None:
    bench = Bench()
    _, other = bench.stable(None, None)
    assert bench.beat(other) == OK
    assert bench.beat(other, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert bench.synced(bench.send_sync(other, generation=0)).code == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(other, 1) == OK
    assert bench.commit("", 1) == UNKNOWN
    assert bench.commit() == UNKNOWN
    same = bench.joined(bench.send_join(other))
    assert (same.code, same.generation, same.members) == (OK, 1, [])
    assert bench.group.state is GroupState.STABLE


@pytest.mark.parametrize("is_stable", [False, True])
def test_a_member_that_changed_makes_a_new_generation(is_stable: bool) -> None:
    bench = Bench()
    leader, other = (bench.stable if is_stable else bench.completing)(None, None)
    waiting = None if is_stable else bench.send_sync(other)
    waiter = bench.send_join(other, protocols=(("range", b"more"),))
    assert waiter not in bench.answers
    first = bench.send_join(leader)
    assert bench.joined(waiter).generation == 2
    assert [each.metadata for each in bench.joined(first).members] == [b"subscription", b"more"]
    assert waiting is None or bench.synced(waiting).code == REBALANCE


def test_a_leader_that_joins_again_makes_a_new_generation() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    waiters = [bench.send_join(leader), bench.send_join(other)]
    assert [bench.joined(each).generation for each in waiters] == [2, 2]


def test_a_new_member_makes_a_new_generation_and_syncs_under_way_are_ended() -> None:
    bench = Bench()
    _, other = bench.completing(None, None)
    waiting = bench.send_sync(other)
    bench.send_join()
    assert bench.synced(waiting).code == REBALANCE
    assert bench.group.state is GroupState.PREPARING


def test_one_who_joins_twice_is_answered_twice() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    first = bench.send_join(leader)
    second = bench.send_join(leader)
    assert bench.joined(first).code == REBALANCE
    bench.send_join(other)
    assert bench.joined(second).generation == 2


# Time


def test_who_does_not_join_again_in_time_is_dropped() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    waiter = bench.send_join(leader)
    for _ in range(REBALANCE_MS // SESSION_MS * 2 - 1):
        assert bench.beat(other, 1) == REBALANCE
        bench.advance(SESSION_MS // 2)
    assert waiter not in bench.answers
    bench.advance(SESSION_MS // 2)
    assert [each.member_id for each in bench.joined(waiter).members] == [leader]
    assert bench.beat(other, 1) == UNKNOWN


def test_a_member_lives_as_long_as_it_is_heard_of() -> None:
    bench = Bench()
    [member] = bench.stable()
    for _ in range(10):
        bench.advance(SESSION_MS - 1)
        assert bench.beat(member) == OK
        bench.advance(SESSION_MS - 1)
        assert bench.commit(member, 1) == OK
    bench.advance(SESSION_MS)
    assert bench.beat(member) == UNKNOWN
    assert bench.group.is_idle
    assert bench.group.generation == 2


def test_a_member_that_waits_for_others_does_not_die() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    waiter = bench.send_join(leader)
    for _ in range(8):
        bench.advance(SESSION_MS - 1)
        assert bench.beat(other, 1) == REBALANCE or waiter in bench.answers
    assert bench.joined(waiter).code == OK


def test_one_that_is_never_answered_its_first_join_is_dropped_after_five_minutes() -> None:
    bench = Bench()
    [member] = bench.stable("i")
    waiter = bench.send_join(rebalance_ms=NEW_MEMBER_MS * 4)
    for _ in range(NEW_MEMBER_MS // SESSION_MS * 2 + 1):
        assert bench.beat(member, 1, "i") == REBALANCE
        bench.advance(SESSION_MS // 2)
    assert bench.joined(waiter).code == UNKNOWN


def test_a_rebalance_waits_for_those_on_their_way_and_not_longer() -> None:
    bench = Bench()
    [member] = bench.stable()
    bench.send_join(needs_id=True)
    waiter = bench.send_join(member)
    assert bench.group.state is GroupState.PREPARING
    bench.advance(SESSION_MS)
    assert bench.joined(waiter).generation == 2


def test_a_group_with_a_rebalance_timeout_of_nothing_does_not_spin() -> None:
    bench = Bench()
    bench.send_join(instance="i", rebalance_ms=-5)
    bench.advance(DELAY_MS)
    bench.send_sync(next(iter(bench.group.members)).id, {})
    bench.advance(60_000)
    assert bench.group.is_idle


# Leaving


def test_when_one_leaves_the_others_join_again() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    assert bench.leave((leader, None)) == [OK]
    assert bench.group.state is GroupState.PREPARING
    waiter = bench.send_join(other)
    assert (bench.joined(waiter).generation, bench.joined(waiter).leader) == (2, other)


def test_when_the_last_one_leaves_the_group_is_empty_and_written_down() -> None:
    bench = Bench()
    [member] = bench.stable()
    assert bench.leave((member, None)) == [OK]
    assert bench.group.is_idle
    assert (bench.group.generation, bench.save_count) == (2, 2)
    assert bench.group.protocol_type == "consumer"


def test_many_leave_at_once_each_with_its_own_answer() -> None:
    bench = Bench()
    ids = bench.stable(None, "i", "j", None)
    pending = bench.joined(bench.send_join(needs_id=True)).member_id
    codes = bench.leave(
        (ids[0], None),
        ("", "i"),
        (ids[0], "j"),
        ("", "nobody"),
        ("", None),
        ("nobody", None),
        (pending, None),
    )
    assert codes == [OK, OK, FENCED, UNKNOWN, UNKNOWN, UNKNOWN, OK]
    assert [each.id for each in bench.group.members] == ids[2:]


def test_one_that_leaves_while_it_waits_is_answered() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    waiter = bench.send_join(leader)
    bench.leave((leader, None))
    assert bench.joined(waiter).code == UNKNOWN
    assert bench.joined(bench.send_join(other)).generation == 2


# Static members


def test_a_static_member_that_is_back_keeps_its_assignment_without_a_rebalance() -> None:
    bench = Bench()
    leader, old = bench.stable(None, "i")
    joined = bench.joined(bench.send_join(instance="i", protocols=(("range", b"changed"),)))
    assert (joined.code, joined.generation, joined.leader) == (OK, 1, leader)
    assert not joined.is_skipping and joined.members == []
    assert joined.member_id != old
    synced = bench.synced(bench.send_sync(joined.member_id, instance="i"))
    assert synced.assignment == old.encode()
    assert bench.group.state is GroupState.STABLE
    assert bench.save_count == 2


def test_whoever_uses_the_old_id_of_a_static_member_is_fenced() -> None:
    bench = Bench()
    _, old = bench.stable(None, "i")
    bench.send_join(instance="i")
    assert bench.beat(old, 1, "i") == FENCED
    assert bench.commit(old, 1, "i") == FENCED
    assert bench.synced(bench.send_sync(old, instance="i")).code == FENCED
    assert bench.joined(bench.send_join(old, instance="i")).code == FENCED
    assert bench.leave((old, "i")) == [FENCED]
    assert bench.beat(old, 1) == UNKNOWN
    assert bench.beat("x", 1, "nobody") == UNKNOWN


def test_a_static_leader_that_is_back_is_told_to_skip_the_assignment() -> None:
    bench = Bench()
    bench.stable("i", None)
    joined = bench.joined(bench.send_join(instance="i", can_skip=True))
    assert joined.is_skipping and joined.leader == joined.member_id
    assert len(joined.members) == 2


def test_a_static_leader_that_cannot_be_told_so_is_told_that_another_leads() -> None:
    bench = Bench()
    old, _ = bench.stable("i", None)
    joined = bench.joined(bench.send_join(instance="i", can_skip=False))
    assert (joined.leader, joined.is_skipping, joined.members) == (old, False, [])
    assert bench.group.members.leader == joined.member_id


def test_a_static_member_that_changes_the_vote_makes_a_new_generation() -> None:
    bench = Bench()
    both = (("range", b""), ("sticky", b""))
    bench.send_join(instance="i", protocols=both)
    bench.advance(DELAY_MS)
    [member] = bench.group.members
    bench.send_sync(member.id, {})
    waiter = bench.send_join(instance="i", protocols=both[::-1])
    assert (bench.joined(waiter).generation, bench.joined(waiter).protocol_name) == (2, "sticky")


def test_a_static_member_that_is_back_early_makes_a_new_generation() -> None:
    bench = Bench()
    leader, _ = bench.completing(None, "i")
    waiter = bench.send_join(instance="i")
    assert waiter not in bench.answers
    bench.send_join(leader)
    assert bench.joined(waiter).generation == 2


def test_two_with_one_instance_id_who_join_at_once_are_one_member() -> None:
    bench = Bench()
    first = bench.send_join(instance="i")
    second = bench.send_join(instance="i")
    assert bench.joined(first).code == FENCED
    bench.advance(DELAY_MS * 3)
    assert bench.joined(second).code == OK
    assert len(bench.group.members) == 1


def test_a_static_member_is_not_dropped_for_not_joining_again_but_when_its_session_ends() -> None:
    bench = Bench()
    leader, static = bench.stable(None, "i")
    waiter = bench.send_join(leader, rebalance_ms=REBALANCE_MS)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        bench.beat(static, 1, "i")
        bench.advance(SESSION_MS // 2)
    assert [each.member_id for each in bench.joined(waiter).members] == [leader, static]
    bench.advance(SESSION_MS * 2)
    assert static not in bench.group.members


def test_a_group_of_absent_static_members_ends_with_their_sessions() -> None:
    bench = Bench()
    bench.stable("i", "j")
    bench.leave(("", "i"))
    bench.advance(SESSION_MS)
    assert bench.group.is_idle


# Stopping and coming back


def test_when_the_server_stops_no_one_is_kept_waiting() -> None:
    bench = Bench()
    leader, other = bench.completing(None, None)
    syncing = bench.send_sync(other)
    bench.happen(Finish())
    assert bench.synced(syncing).code == ErrorCode.NOT_COORDINATOR
    joining = bench.send_join(leader, protocols=(("range", b"new"),))
    bench.happen(Finish())
    assert bench.joined(joining).code == ErrorCode.NOT_COORDINATOR


def test_a_group_that_was_written_down_continues_as_if_nothing_had_been() -> None:
    bench = Bench()
    leader, static = bench.stable(None, "i")
    saved = unpack(pack(saved_of(bench.group)))
    back = Bench()
    for effect in back.group.restore(saved, back.now_ms, is_changed=False):
        back.wake_ms = effect.at_ms  # type: ignore[union-attr]
    assert back.beat(leader, 1) == OK
    assert back.commit(static, 1, "i") == OK
    assert back.synced(back.send_sync(static, instance="i")).assignment == static.encode()
    assert back.group.members.leader == leader
    back.advance(SESSION_MS)
    assert back.group.is_idle
    assert back.group.generation == 2


def test_when_assignments_were_not_written_down_all_have_those_before_and_join_again() -> None:
    bench = Bench()
    leader, other = bench.stable(None, None)
    joining = [bench.send_join(leader), bench.send_join(other)]
    assert [bench.joined(each).generation for each in joining] == [2, 2]
    bench.send_sync(leader, {leader: b"new", other: b"new"})
    bench.happen(Unsaved({leader: b"1", other: b"2"}))
    assert bench.group.state is GroupState.PREPARING
    assert [member.assignment for member in bench.group.members] == [b"1", b"2"]
    assert bench.beat(leader) is REBALANCE
    joining = [bench.send_join(other), bench.send_join(leader)]
    assert [bench.joined(each).generation for each in joining] == [3, 3]


def test_a_group_too_large_to_be_written_down_keeps_its_generation() -> None:
    bench = Bench()
    waiters = [bench.send_join(protocols=(("range", b"x" * 400_000),)) for _ in range(3)]
    bench.advance(DELAY_MS * 4)
    leader = bench.joined(waiters[0]).member_id
    bench.send_sync(leader, {})
    saved = unpack(pack(saved_of(bench.group)))
    assert (saved.generation, saved.protocol_type, saved.members) == (1, "consumer", ())
