"""A consumer group as its members see it: joining, targets, revocation first, deadlines."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.groups.consumer.bench import GROUP, ConsumerBench

from rockgate.gateway.groups.ownership import GroupOwnership, GroupType
from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.consumer.config import ConsumerGroupsConfig
from rockgate.gateway.kafka.groups.consumer.heartbeats import Beat, HeartbeatOutcome
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreFull

ALL = {"a": [0, 1, 2, 3]}


def refusal(ask: Any, *args: Any, **said: Any) -> ErrorCode:
    with pytest.raises(RequestError) as caught:
        ask(*args, **said)
    return caught.value.code


def two_members(bench: ConsumerBench) -> tuple[HeartbeatOutcome, HeartbeatOutcome]:
    """One that has everything, and one that is to get half of it."""
    one = bench.join("one")
    assert bench.named(one.assigned) == ALL
    two = bench.join("two")
    assert bench.named(two.assigned) == {}
    bench.pass_time(1_100)
    return one, two


def test_the_first_member_gets_everything_at_once() -> None:
    bench = ConsumerBench()
    joined = bench.join("one", "a b")
    assert (joined.epoch, joined.interval_ms) == (2, 5_000)
    assert bench.named(joined.assigned) == {"a": [0, 1, 2, 3], "b": [0, 1, 2]}
    assert bench.group.state is GroupState.STABLE
    again = bench.beat("one", 2)
    assert (again.epoch, again.assigned) == (2, None)


@pytest.mark.row("GRP-1")
def test_a_partition_is_given_up_before_another_member_gets_it() -> None:
    bench = ConsumerBench()
    one, two = two_members(bench)
    two = bench.beat("two", two.epoch)
    assert (two.epoch, two.assigned) == (3, None)
    assert bench.state() is GroupState.RECONCILING
    one = bench.beat("one", one.epoch)
    assert (one.epoch, bench.named(one.assigned)) == (2, {"a": [0, 1]})
    assert bench.named(bench.group.members["one"].owned()) == ALL
    still = bench.beat("one", 2, owned=ALL)
    assert (still.epoch, still.assigned) == (2, None)
    assert bench.beat("two", 3).assigned is None, "they are not free yet"
    one = bench.beat("one", 2, owned={"a": [0, 1]})
    assert (one.epoch, one.assigned) == (3, None)
    two = bench.beat("two", 3)
    assert (two.epoch, bench.named(two.assigned)) == (3, {"a": [2, 3]})
    assert bench.state() is GroupState.STABLE


def test_a_target_is_computed_once_an_interval_whoever_comes_and_goes() -> None:
    bench = ConsumerBench()
    bench.join("one")
    for name in ("two", "three", "four"):
        bench.join(name)
    assert bench.epochs() == (5, 2)
    assert bench.group.state is GroupState.ASSIGNING
    bench.pass_time(1_100)
    assert bench.epochs() == (5, 5), "without waiting for a heartbeat"


def test_the_interval_and_time_outs_of_a_group_are_its_configs() -> None:
    bench = ConsumerBench()
    bench.configs[GROUP] = {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "7000",
        "consumer.assignment.interval.ms": "0",
    }
    assert bench.join("one").interval_ms == 7_000
    bench.join("two")
    assert bench.epochs() == (3, 3)
    bench.pass_time(49_000)
    assert len(bench.group.members) == 2
    bench.pass_time(1_100)
    assert GROUP not in bench.consumers


def test_a_silent_member_is_fenced_and_its_partitions_go_to_the_others() -> None:
    bench = ConsumerBench()
    bench.join("one")
    two = bench.join("two")
    for _ in range(10):
        bench.pass_time(5_000)
        two = bench.beat("two", two.epoch)
    assert list(bench.group.members) == ["two"]
    assert bench.named(bench.group.members["two"].assigned) == ALL
    assert refusal(bench.beat, "one", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    bench = ConsumerBench()
    one = bench.join("one", rebalance_ms=20_000)
    two = bench.join("two")
    bench.pass_time(1_100)
    for _ in range(5):
        one = bench.beat("one", 2)
        two = bench.beat("two", two.epoch)
        bench.pass_time(4_500)
    assert refusal(bench.beat, "one", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.named(bench.beat("two", two.epoch).assigned) == ALL


def test_epochs_fence_those_who_missed_something() -> None:
    bench = ConsumerBench()
    one = bench.join("one")
    fenced = ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal(bench.beat, "one", one.epoch + 1) is fenced
    assert refusal(bench.beat, "one", one.epoch - 1) is fenced
    bench.topics.put("a", 5)
    bench.pass_time(1_100)
    assert bench.beat("one", 2).epoch == 3
    # The answer may have been lost: the epoch before is good, without what was just given.
    assert refusal(bench.beat, "one", 2) is fenced
    assert refusal(bench.beat, "one", 2, owned={"a": [9]}) is fenced
    assert bench.beat("one", 2, owned=ALL).epoch == 3
    again = bench.join("one")
    assert (again.epoch, bench.named(again.assigned)) == (3, {"a": [0, 1, 2, 3, 4]})


def test_topics_that_come_grow_and_go_change_the_target() -> None:
    bench = ConsumerBench()
    assert bench.named(bench.join("one", "a later").assigned) == ALL
    bench.topics.put("later", 2)
    bench.pass_time(1_100)
    assert bench.named(bench.beat("one", 2).assigned) == ALL | {"later": [0, 1]}
    bench.topics.put("later", 3)
    bench.pass_time(1_100)
    assert bench.named(bench.beat("one", 3).assigned) == ALL | {"later": [0, 1, 2]}
    bench.topics.drop("later")
    bench.pass_time(1_100)
    assert bench.named(bench.beat("one", 4).assigned) == ALL
    assert bench.beat("one", 4, owned=ALL).epoch == 5
    bench.topics.put("other", 2)
    bench.pass_time(1_100)
    assert bench.beat("one", 5).epoch == 5, "a topic that nobody reads changes nothing"


@pytest.mark.row("GRP-6")
def test_a_pattern_finds_topics_that_the_client_may_see() -> None:
    bench = ConsumerBench(orders=2, orders_eu=1, secret_orders=1, other=1)

    def sees(name: str) -> bool:
        return not name.startswith("secret")

    one = bench.join("one", None, regex=r".*orders.*", sees=sees)
    one = bench.beat("one", one.epoch, owned={}, sees=sees)
    assert bench.named(bench.group.members["one"].assigned) == {"orders": [0, 1], "orders_eu": [0]}
    bench.topics.put("orders_us", 1)
    bench.pass_time(10_100)
    one = bench.beat("one", one.epoch, sees=sees)
    assert bench.named(one.assigned) == {"orders": [0, 1], "orders_eu": [0], "orders_us": [0]}
    two = bench.join("two", None, regex=r".*orders.*")
    bench.pass_time(1_100)
    assert two.epoch == one.epoch
    assert bench.epochs()[0] == one.epoch + 1, "a known pattern counts at once"
    changed = bench.beat("one", one.epoch, regex="", names="other")
    assert "orders" not in (bench.named(changed.assigned) or {})


@pytest.mark.parametrize("regex", ["(", "(?=a)", "((a{100}){100}){100}", "a" * 5_000, "\ud800"])
@pytest.mark.row("GRP-6")
def test_a_pattern_that_is_not_re2_or_too_large_is_refused(regex: str) -> None:
    bench = ConsumerBench()
    code = refusal(bench.join, "one", None, regex=regex)
    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert GROUP not in bench.consumers


def test_a_member_that_unsubscribes_gives_up_a_topic_before_the_next_target() -> None:
    bench = ConsumerBench()
    bench.join("one", "a b")
    outcome = bench.beat("one", 2, names="b")
    assert bench.named(outcome.assigned) == {"b": [0, 1, 2]}
    assert bench.epochs() == (3, 2)


def test_a_static_member_comes_back_to_what_it_had() -> None:
    bench = ConsumerBench()
    one = bench.join("one", instance_id="i")
    unreleased = ErrorCode.UNRELEASED_INSTANCE_ID
    assert refusal(bench.join, "two", instance_id="i") is unreleased
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert refusal(bench.beat, "two", one.epoch, instance_id="i") is fenced
    assert refusal(bench.beat, "two", -2, instance_id="i") is fenced
    assert refusal(bench.beat, "two", 2, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat("one", -2, instance_id="i").epoch == -2
    assert refusal(bench.beat, "one", 2, instance_id="i") is ErrorCode.FENCED_MEMBER_EPOCH
    bench.restart()
    back = bench.join("two", instance_id="i")
    assert (back.epoch, bench.named(back.assigned)) == (2, ALL)
    assert bench.epochs() == (2, 2), "nobody else notices"
    assert bench.beat("two", -1, instance_id="i").epoch == -1
    assert GROUP not in bench.consumers


def test_a_static_member_that_stays_away_is_fenced_in_the_end() -> None:
    bench = ConsumerBench()
    bench.join("one", instance_id="i")
    bench.beat("one", -2, instance_id="i")
    bench.pass_time(46_000)
    assert GROUP not in bench.consumers


@pytest.mark.parametrize("restarts", [False, True])
def test_the_only_member_is_told_that_it_is_fenced_so_that_it_joins_again(
    *, restarts: bool
) -> None:
    bench = ConsumerBench()
    one = bench.join("one")
    bench.pass_time(46_000)
    assert GROUP not in bench.consumers
    if restarts:
        bench.restart()
    # Clients take GROUP_ID_NOT_FOUND as final.
    assert refusal(bench.beat, "one", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(bench.beat, "one", 1, instance_id="i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(bench.beat, "one", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.named(bench.join("one").assigned) == ALL


def test_a_group_that_never_was_is_not_found() -> None:
    bench = ConsumerBench()
    assert refusal(bench.beat, "one", 1) is ErrorCode.GROUP_ID_NOT_FOUND


def test_leaving_frees_at_once_and_the_last_one_leaves_an_empty_group() -> None:
    bench = ConsumerBench()
    two_members(bench)
    assert bench.beat("two", -1).epoch == -1
    assert refusal(bench.beat, "two", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.beat("one", -1)
    view = bench.groups.describe(GROUP)
    assert view is not None
    assert (view.kind, view.state) == (GroupType.CONSUMER, GroupState.EMPTY)
    assert dict(bench.records.items()) == {}
    assert bench.clock.timers == []
    bench.restart()
    assert bench.join("three").epoch > 4, "epochs only grow"
    assert bench.consumers.find("none") is None
    assert bench.consumers.beat("none", Beat(member_id="x", epoch=-1)).epoch == -1


@pytest.mark.parametrize("at", range(6))
@pytest.mark.row("GRP-7")
def test_a_restart_at_any_step_goes_unnoticed(at: int) -> None:
    bench = ConsumerBench()
    steps = iter(range(6))

    def may_restart() -> None:
        if next(steps) == at:
            bench.restart()

    one, two = two_members(bench)
    may_restart()
    two = bench.beat("two", two.epoch)
    may_restart()
    one = bench.beat("one", one.epoch)
    may_restart()
    one = bench.beat("one", one.epoch, owned={"a": [0, 1]})
    may_restart()
    two = bench.beat("two", two.epoch)
    may_restart()
    assert bench.beat("one", one.epoch).epoch == 3
    assert bench.beat("two", two.epoch).epoch == 3
    owned = [bench.named(bench.group.members[each].assigned) for each in ("one", "two")]
    assert owned == [{"a": [0, 1]}, {"a": [2, 3]}]


@pytest.mark.row("GRP-7")
def test_nothing_changes_that_could_not_be_written() -> None:
    bench = ConsumerBench()
    one = bench.join("one")
    bench.journal.failure = StoreFull.__new__(StoreFull)
    with pytest.raises(StoreFull):
        bench.join("two")
    assert list(bench.group.members) == ["one"]
    assert bench.beat("one", one.epoch).epoch == 2, "what needs no change goes on"
    bench.pass_time(46_000)
    assert list(bench.group.members) == ["one"], "nobody is fenced without a record of it"
    bench.journal.failure = None
    bench.pass_time(2_000)
    assert GROUP not in bench.consumers


def test_a_group_that_another_protocol_has_members_in_is_not_joined() -> None:
    bench = ConsumerBench()
    owners = GroupOwnership(bench.groups)
    assert owners.take(GROUP)
    assert refusal(bench.join, "one") is ErrorCode.GROUP_ID_NOT_FOUND
    owners.give_back(GROUP)
    bench.join("one")
    assert not owners.take(GROUP)
    assert owners.is_foreign(GROUP)
    assert bench.groups.member_count(GROUP) == 1
    assert not bench.groups.may_commit_from_outside(GROUP)


def test_members_and_groups_are_limited() -> None:
    bench = ConsumerBench(groups=GroupsConfig(members_max=1, groups_max=1))
    bench.join("one")
    assert refusal(bench.join, "two") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.join("one").epoch == 2
    full = Beat(member_id="x", epoch=0, rebalance_ms=1, names=frozenset({"a"}), owned={})
    assert refusal(bench.consumers.beat, "h", full) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_partitions_beyond_the_limit_have_no_reader_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = ConsumerBench(ConsumerGroupsConfig(partitions_max=5), a=4, b=3, c=1)
    assert bench.named(bench.join("one", "a b c").assigned) == {"a": [0, 1, 2, 3], "c": [0]}
    assert "unassigned=3" in caplog.text


@pytest.mark.row("GRP-4")
def test_offsets_are_committed_in_the_epoch_or_since_the_partitions_were_given() -> None:
    bench = ConsumerBench()
    one, _ = two_members(bench)
    stale, ok = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.NONE
    bench.beat("one", one.epoch)
    one = bench.beat("one", one.epoch, owned={"a": [0, 1]})
    assert one.epoch == 3
    assert bench.commit("one", 3, ALL) is ok
    assert bench.commit("one", 2, {"a": [0, 1]}) is ok, "it had them in this epoch"
    assert bench.commit("one", 2, ALL) is stale, "some are not its own any more"
    assert bench.commit("one", 1, {"a": [0]}) is stale
    assert bench.commit("one", 4, {"a": [0]}) is stale
    assert bench.commit("one", -1, {"a": [0]}) is stale
    assert bench.commit("", -1, {"a": [0]}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit("one", 3, ALL, version=8) is ErrorCode.UNSUPPORTED_VERSION
    bench.beat("two", 2)
    assert bench.commit("two", 2, {"a": [2]}) is stale, "given in epoch 3"
    assert bench.commit("two", 3, {"a": [2]}) is ok
    check = bench.groups.check_fetch
    assert check(GROUP, None, -1) is ok
    assert check(GROUP, "one", 3) is ok
    assert check(GROUP, "one", 2) is stale
    assert check(GROUP, "nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert check("none", "nobody", 1) is ok


def test_an_assignor_is_that_of_most_members() -> None:
    bench = ConsumerBench(a=3, b=3)
    bench.join("one", "a b", assignor="range")
    bench.join("two", "a b", assignor="range")
    bench.join("three", "a b", assignor="uniform")
    assert bench.group.assignor("uniform") == "range"
    assert refusal(bench.join, "four", assignor="mine") is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_an_empty_classic_group_becomes_a_consumer_group_in_its_next_generation() -> None:
    bench = ConsumerBench()
    bench.saved.save(GROUP, SavedGroup("classic", 7, "consumer"))
    assert bench.join("one").epoch == 8
