"""Streams groups, heartbeat by heartbeat, as docs/internals/groups-streams.md has them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.kafka.groups.streams.bench import (
    COUNTS,
    GROUP,
    SIMPLE,
    StreamsBench,
    codes,
    listed,
    subtopology,
    topology,
)

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.consumer.member import MemberState
from rockgate.gateway.kafka.groups.streams.config import StreamsGroupsConfig
from rockgate.gateway.kafka.groups.streams.configured import StatusCode
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreFull


@pytest.fixture
def bench() -> StreamsBench:
    return StreamsBench()


def refused(code: ErrorCode, reason: str = "") -> Any:
    return pytest.raises(RequestError, match=f"(?s){reason}", check=lambda e: e.code is code)


# Joining


def test_the_first_member_gets_everything_at_once(bench: StreamsBench) -> None:
    outcome = bench.join("a")
    assert (outcome.epoch, listed(outcome.assigned)) == (2, {"0": [0, 1, 2, 3]})
    assert outcome.interval_ms == 5_000 and outcome.statuses == ()
    assert bench.group.state is GroupState.STABLE


@pytest.mark.row("GRP-11")
def test_a_second_member_waits_until_the_first_has_given_up(bench: StreamsBench) -> None:
    bench.join("a")
    bench.pass_time(1_000)
    joined = bench.join("b")
    assert (joined.epoch, listed(joined.assigned)) == (3, {})
    beaten = bench.beat("a", 2)
    assert (beaten.epoch, listed(beaten.assigned)) == (2, {"0": [0, 1]})
    assert bench.group.members["a"].state is MemberState.REVOKING
    assert listed(bench.beat("b", 3).assigned) is None
    assert bench.beat("a", 2, active={"0": [0, 1, 2]}).epoch == 2, "it has not given up all"
    assert bench.beat("a", 2, active={"0": [0, 1]}).epoch == 3
    assert listed(bench.beat("b", 3).assigned) == {"0": [2, 3]}
    assert bench.group.state is GroupState.STABLE


def test_members_of_an_empty_group_wait_for_each_other() -> None:
    bench = StreamsBench(StreamsGroupsConfig())
    outcome = bench.join("a")
    assert (outcome.epoch, listed(outcome.assigned)) == (1, {})
    assert codes(outcome) == [StatusCode.ASSIGNMENT_DELAYED]
    bench.join("b")
    bench.pass_time(3_100)
    given = [listed(bench.beat(each, 1).assigned) for each in ("a", "b")]
    assert given == [{"0": [0, 2]}, {"0": [1, 3]}]
    assert bench.group.head.assignment_epoch == 3


def test_targets_are_computed_once_in_an_interval(bench: StreamsBench) -> None:
    bench.join("a")
    outcome = bench.join("b")
    assert codes(outcome) == [StatusCode.ASSIGNMENT_DELAYED] and outcome.epoch == 2
    bench.pass_time(1_100)
    assert bench.beat("b", 2).epoch == 3


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"instance_id": "i"}, ErrorCode.INVALID_REQUEST),
        ({"has_offsets": True}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topology": None}, ErrorCode.INVALID_REQUEST),
        ({"active": {"0": [1]}}, ErrorCode.INVALID_REQUEST),
        ({"topology": topology(subtopology("0"))}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_heartbeat_that_no_group_takes(
    bench: StreamsBench, said: dict[str, Any], code: ErrorCode
) -> None:
    whole = {
        "member_id": "a",
        "epoch": 0,
        "topology": SIMPLE,
        "active": {},
        "rebalance_ms": 1,
        **said,
    }
    with refused(code):
        bench.beat(whole.pop("member_id"), whole.pop("epoch"), **whole)
    assert GROUP not in bench.streams and bench.groups.describe(GROUP) is None


def test_a_group_may_be_full(bench: StreamsBench) -> None:
    bench.groups_config = type(bench.groups_config)(members_max=1)
    bench.restart()
    bench.join("a")
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        bench.join("b")
    assert bench.join("a").epoch == 2, "a member may rejoin"


# Epochs


def test_epochs_fence_members(bench: StreamsBench) -> None:
    with refused(ErrorCode.GROUP_ID_NOT_FOUND, "Streams group g not found."):
        bench.beat("a", 3)
    bench.join("a")
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        bench.beat("x", 2)
    with refused(ErrorCode.FENCED_MEMBER_EPOCH, "greater member epoch"):
        bench.beat("a", 3)
    with refused(ErrorCode.FENCED_MEMBER_EPOCH, "smaller member epoch"):
        bench.beat("a", 1)


def test_an_answer_that_was_lost_is_sent_again(bench: StreamsBench) -> None:
    bench.join("a")
    bench.pass_time(1_100)
    bench.join("b")
    bench.beat("a", 2)
    assert bench.beat("a", 2, active={"0": [0, 1]}).epoch == 3
    assert bench.beat("a", 2, active={"0": [0, 1]}).epoch == 3, "as if it had not been"
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        bench.beat("a", 2, active={"0": [0, 3]})
    bench.beat("b", 3)
    lost = bench.beat("b", 3, active={})
    assert listed(lost.assigned) == {"0": [2, 3]}


def test_tasks_that_the_topology_does_not_have_are_refused(bench: StreamsBench) -> None:
    bench.join("a")
    with refused(ErrorCode.INVALID_REQUEST, "Subtopology 7 does not exist in the topology."):
        bench.beat("a", 2, active={"7": [0]})
    with refused(ErrorCode.INVALID_REQUEST, "Task 4 for subtopology 0 is invalid."):
        bench.beat("a", 2, active={"0": [4]})


# Leaving and time-outs


def test_a_leaver_s_tasks_go_to_the_others(bench: StreamsBench) -> None:
    bench.join("a")
    bench.pass_time(1_100)
    bench.join("b")
    bench.pass_time(1_100)
    left = bench.beat("a", -1)
    assert (left.epoch, left.assigned) == (-1, None)
    bench.pass_time(1_100)
    assert listed(bench.beat("b", 3).assigned) == {"0": [0, 1, 2, 3]}
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        bench.beat("a", -1)


def test_a_member_that_is_silent_is_removed(bench: StreamsBench) -> None:
    bench.join("a")
    bench.pass_time(30_000)
    bench.join("b")
    bench.pass_time(16_000)
    assert list(bench.group.members) == ["b"]


def test_a_member_that_does_not_give_up_in_time_is_removed(bench: StreamsBench) -> None:
    bench.join("a", rebalance_ms=10_000)
    bench.pass_time(1_100)
    bench.join("b")
    bench.beat("a", 2)
    for _ in range(3):
        bench.pass_time(4_000)
        if "a" in bench.group.members:
            bench.beat("a", 2, active={"0": [0, 1, 2, 3]})
    assert list(bench.group.members) == ["b"]
    bench.pass_time(1_100)
    assert listed(bench.beat("b", 3).assigned) == {"0": [0, 1, 2, 3]}


# Topologies


def test_internal_topics_are_asked_for_and_then_tasks_assigned(bench: StreamsBench) -> None:
    outcome = bench.join("a", COUNTS)
    assert [(each.name, each.partitions) for each in outcome.missing] == [
        ("g-changelog", 4),
        ("g-repartition", 4),
    ]
    assert codes(outcome) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert listed(outcome.assigned) == {} and bench.state() is GroupState.NOT_READY
    bench.create_missing(outcome)
    bench.pass_time(1_100)
    ready = bench.beat("a", outcome.epoch)
    assert listed(ready.assigned) == {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}
    assert ready.missing == () and bench.state() is GroupState.STABLE


def test_without_a_source_topic_all_tasks_are_taken_away(bench: StreamsBench) -> None:
    bench.join("a")
    bench.topics.drop("in")
    bench.pass_time(1_100)
    outcome = bench.beat("a", 2)
    assert codes(outcome) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert listed(outcome.assigned) == {}
    bench.topics.put("in", 2)
    bench.beat("a", 2, active={})
    bench.pass_time(2_000)
    assert listed(bench.beat("a", 3).assigned) == {"0": [0, 1]}


def test_a_topic_that_grows_has_more_tasks(bench: StreamsBench) -> None:
    bench.join("a")
    bench.topics.put("in", 6)
    bench.pass_time(2_000)
    assert listed(bench.beat("a", 2).assigned) == {"0": [0, 1, 2, 3, 4, 5]}


def test_another_topology_is_refused_and_a_stale_one_stays(bench: StreamsBench) -> None:
    said = topology(subtopology("0", "in"), epoch=3)
    bench.join("a", said)
    with refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."):
        bench.join("b", topology(subtopology("0", "in", sinks="x"), epoch=3))
    with refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."):
        bench.join("b", topology(subtopology("0", "in"), epoch=4))
    assert "b" not in bench.group.members
    bench.pass_time(1_100)
    outcome = bench.join("b", topology(subtopology("0", "in"), epoch=2))
    assert codes(outcome) == [StatusCode.STALE_TOPOLOGY]
    assert bench.group.topology == said


def test_a_member_may_shut_the_application_down(bench: StreamsBench) -> None:
    bench.join("a")
    bench.pass_time(1_100)
    bench.join("b")
    bench.beat("a", 2, shuts_down=True)
    assert codes(bench.beat("b", 3)) == [StatusCode.SHUTDOWN_APPLICATION]
    bench.beat("a", -1)
    bench.beat("b", -1)
    bench.pass_time(1_100)
    assert codes(bench.join("c")) == []


# Standbys, processes and end points


def test_standbys_are_a_setting_of_the_group(bench: StreamsBench) -> None:
    for name in ("g-repartition", "g-changelog"):
        bench.topics.put(name, 4)
    bench.join("a", COUNTS)
    bench.pass_time(1_100)
    bench.join("b", COUNTS)
    bench.configs[GROUP] = {"streams.num.standby.replicas": "1"}
    bench.pass_time(1_100)
    epoch = bench.group.head.epoch
    bench.beat("a", 2)
    assert bench.group.head.epoch == epoch + 1
    bench.pass_time(1_100)
    target = bench.group.target("b").standby, bench.group.target("a").standby
    assert sorted(at for each in target for at in each["1"]) == [0, 1, 2, 3]


def test_members_of_one_process_hand_a_task_over_before_it_changes_its_kind(
    bench: StreamsBench,
) -> None:
    bench.join("a", process_id="p")
    bench.pass_time(1_100)
    bench.join("b", process_id="p")
    assert listed(bench.beat("b", 3).assigned) is None
    bench.beat("a", 2)
    bench.beat("a", 2, active={"0": [0, 1]})
    assert listed(bench.beat("b", 3).assigned) == {"0": [2, 3]}


def test_end_points_are_sent_when_they_have_changed(bench: StreamsBench) -> None:
    first = bench.join("a", endpoint=("here", 1))
    assert first.endpoint_epoch == 0 and first.endpoints is not None
    assert [(each.endpoint, each.active) for each in first.endpoints] == [
        (("here", 1), {"in": [0, 1, 2, 3]})
    ]
    assert bench.beat("a", 2).endpoints is None
    bench.pass_time(1_100)
    bench.join("b", endpoint=("there", 2))
    bench.beat("a", 2)
    bench.beat("a", 2, active={"0": [0, 1]})
    given = bench.beat("b", 3)
    assert given.endpoints is not None and given.endpoint_epoch > 0
    assert {each.endpoint: each.active for each in given.endpoints} == {
        ("here", 1): {"in": [0, 1]},
        ("there", 2): {"in": [2, 3]},
    }
    assert bench.beat("b", 3, endpoint_epoch=given.endpoint_epoch).endpoints is None
    bench.beat("a", -1)
    told = bench.beat("b", 3, endpoint_epoch=given.endpoint_epoch).endpoints
    assert told is not None and [each.endpoint for each in told] == [("there", 2)]


# Offsets


@pytest.mark.row("GRP-13")
def test_offsets_are_fenced_by_epochs(bench: StreamsBench) -> None:
    bench.join("a")
    assert bench.commit("a", 2) is ErrorCode.NONE
    assert bench.commit("a", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit("x", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.pass_time(1_100)
    bench.join("b")
    bench.beat("a", 2)
    bench.beat("a", 2, active={"0": [0, 1]})
    assert bench.commit("a", 2, ("in", 0)) is ErrorCode.NONE, "it has had it since then"
    assert bench.commit("a", 2, ("in", 3)) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit("a", 1, ("in", 0)) is ErrorCode.STALE_MEMBER_EPOCH
    check = bench.groups.check_fetch
    assert check(GROUP, None, -1) is ErrorCode.NONE
    assert check(GROUP, "a", 3) is ErrorCode.NONE
    assert check(GROUP, "a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert check(GROUP, "x", 2) is ErrorCode.UNKNOWN_MEMBER_ID


# What lasts


def test_a_restart_is_not_noticed(bench: StreamsBench) -> None:
    bench.join("a", endpoint=("here", 1), tags=(("zone", "x"),))
    bench.pass_time(1_100)
    bench.join("b")
    bench.beat("a", 2)
    before = bench.group
    bench.restart()
    after = bench.group
    assert after.members == before.members and after.targets == before.targets
    assert (after.head, after.topology) == (before.head, before.topology)
    assert bench.beat("a", 2, active={"0": [0, 1]}).epoch == 3
    assert listed(bench.beat("b", 3).assigned) == {"0": [2, 3]}


def test_a_change_that_cannot_be_written_has_not_happened(bench: StreamsBench) -> None:
    bench.join("a")
    bench.journal.failure = StoreFull.__new__(StoreFull)
    with pytest.raises(StoreFull):
        bench.join("b")
    assert list(bench.group.members) == ["a"] and bench.group.head.epoch == 2
    bench.journal.failure = None
    bench.pass_time(1_100)
    assert bench.join("b").epoch == 3


def test_without_members_a_group_has_its_topology_and_its_epochs(bench: StreamsBench) -> None:
    bench.join("a")
    bench.beat("a", -1)
    assert GROUP not in bench.streams
    view = bench.groups.describe(GROUP)
    assert view is not None and (view.kind, view.state, view.protocol_type) == (
        GroupType.STREAMS,
        GroupState.EMPTY,
        "streams",
    )
    bench.restart()
    assert bench.streams.without_members(GROUP).topology == SIMPLE
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        bench.beat("a", 2)
    with refused(ErrorCode.INVALID_REQUEST, "Topology updates"):
        bench.join("a", COUNTS)
    assert bench.join("a").epoch == 4
    bench.beat("a", -1)
    assert bench.groups.delete([GROUP]) == [ErrorCode.NONE]
    assert dict(bench.records.items()) == {} and bench.groups.describe(GROUP) is None


def test_only_empty_classic_groups_become_streams_groups(bench: StreamsBench) -> None:
    bench.groups.save(GROUP, SavedGroup("consumer", 4, "consumer"))
    with refused(ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a streams group."):
        bench.join("a")
    bench.groups.save(GROUP, SavedGroup("classic", 4, "consumer"))
    assert bench.join("a").epoch == 2
    assert bench.groups.holder(GROUP) is GroupType.STREAMS
    assert bench.groups.member_count(GROUP) == 1
    assert bench.groups.delete([GROUP]) == [ErrorCode.NON_EMPTY_GROUP]
