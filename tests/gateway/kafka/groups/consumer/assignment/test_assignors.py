"""The server's assignors: every partition has one reader, evenly, and little moves."""

from __future__ import annotations

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.kafka.groups.consumer.assignment.assignors import (
    ASSIGNORS,
    Subscriber,
    Subscribers,
    Target,
    Topics,
    uniform,
)
from rockgate.gateway.kafka.request.chunked import at_once

IDS = [bytes([number]) * 16 for number in range(5)]
TOPICS = st.dictionaries(st.sampled_from(IDS), st.integers(1, 12), max_size=5)
READ = st.sets(st.sampled_from(IDS)).map(frozenset)
GROUPS = st.dictionaries(st.sampled_from("abcdefgh"), READ, max_size=8)


def subscribers(read: dict[str, frozenset[bytes]], target: Target | None = None) -> Subscribers:
    return {
        each: Subscriber(topics, None, f"rack-{each}", (target or {}).get(each, {}))
        for each, topics in read.items()
    }


def assign(name: str, topics: Topics, members: Subscribers) -> Target:
    return at_once(ASSIGNORS[name](topics, members))


def loads(target: Target) -> dict[str, int]:
    return {each: sum(map(len, parts.values())) for each, parts in target.items()}


def moved(before: Target, after: Target) -> int:
    owners = {(t, p): m for m, parts in before.items() for t, held in parts.items() for p in held}
    return sum(
        owners.get((t, p), m) != m
        for m, parts in after.items()
        for t, held in parts.items()
        for p in held
    )


def check_valid(topics: Topics, members: Subscribers, target: Target) -> None:
    assert target.keys() == members.keys()
    owners: dict[tuple[bytes, int], str] = {}
    for member_id, parts in target.items():
        for topic_id, held in parts.items():
            assert held, "a topic without partitions is left out"
            assert topic_id in members[member_id].topics
            for partition in held:
                assert 0 <= partition < topics[topic_id]
                assert owners.setdefault((topic_id, partition), member_id) == member_id
    read = frozenset[bytes]().union(*(each.topics for each in members.values()))
    assert len(owners) == sum(count for each, count in topics.items() if each in read)


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=budget("property_examples"), deadline=None)
@given(TOPICS, GROUPS, TOPICS, GROUPS)
def test_every_partition_has_one_reader_that_subscribes_to_it(
    name: str, topics: Topics, read: dict[str, frozenset[bytes]], later: Topics,
    then: dict[str, frozenset[bytes]],
) -> None:  # fmt: skip
    first = assign(name, topics, subscribers(read))
    check_valid(topics, subscribers(read), first)
    members = subscribers(then, first)
    second = assign(name, later, members)
    check_valid(later, members, second)
    assert assign(name, later, subscribers(then, second)) == second, "a target is stable"


@settings(max_examples=budget("property_examples"), deadline=None)
@given(TOPICS, GROUPS, GROUPS)
def test_uniform_leaves_no_single_move_that_would_make_it_more_even(
    topics: Topics, read: dict[str, frozenset[bytes]], then: dict[str, frozenset[bytes]]
) -> None:
    first = assign("uniform", topics, subscribers(read))
    members = subscribers(then, first)
    target = assign("uniform", topics, members)
    load = loads(target)
    for giver, parts in target.items():
        for topic_id in parts:
            for taker, member in members.items():
                if topic_id in member.topics:
                    assert load[giver] - load[taker] <= 1


@settings(max_examples=budget("property_examples"), deadline=None)
@given(TOPICS, st.sets(st.sampled_from("abcdefgh"), min_size=1), st.sampled_from("abcdefghi"))
def test_uniform_moves_only_what_a_newcomer_gets_or_a_leaver_had(
    topics: Topics, names: set[str], other: str
) -> None:
    everything = frozenset(topics)
    before = assign("uniform", topics, subscribers(dict.fromkeys(names, everything)))
    assert max(loads(before).values()) - min(loads(before).values()) <= 1
    names = (names - {other} or names) if other in names else names | {other}
    after = assign("uniform", topics, subscribers(dict.fromkeys(names, everything), before))
    gone = sum(count for each, count in loads(before).items() if each not in names)
    come = sum(count for each, count in loads(after).items() if each not in before)
    assert moved(before, after) == gone + come


@settings(max_examples=budget("property_examples"), deadline=None)
@given(TOPICS, GROUPS)
def test_range_gives_runs_and_equal_topics_go_to_equal_members(
    topics: Topics, read: dict[str, frozenset[bytes]]
) -> None:
    target = assign("range", topics, subscribers(read))
    for topic_id, count in topics.items():
        shares = [
            target[each].get(topic_id, frozenset()) for each in read if topic_id in read[each]
        ]
        sizes = list(map(len, shares))
        if sizes:
            assert max(sizes) - min(sizes) <= 1
        for share in shares:
            assert all(after == before + 1 for before, after in pairwise(sorted(share)))
        for other, other_count in topics.items():
            same = all((topic_id in each) == (other in each) for each in read.values())
            if count == other_count and same:
                assert all(parts.get(topic_id) == parts.get(other) for parts in target.values())


def test_static_members_come_first_in_range() -> None:
    topic = IDS[0]
    members = {
        "a": Subscriber(frozenset({topic})),
        "z": Subscriber(frozenset({topic}), "1"),
        "y": Subscriber(frozenset({topic}), "2"),
    }
    target = assign("range", {topic: 3}, members)
    assert [min(target[each][topic]) for each in ("z", "y", "a")] == [0, 1, 2]


@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_large_group_is_assigned_in_pieces_that_do_not_hold_the_loop(
    name: str, *, is_equal: bool
) -> None:
    topics = {number.to_bytes(16, "big"): 100 for number in range(100)}
    every = frozenset(topics)
    read = {
        f"m{number:04}": every if is_equal else every - {(number % 100).to_bytes(16, "big")}
        for number in range(1_000)
    }
    before = assign(name, topics, subscribers(dict(list(read.items())[:990])))
    members = subscribers(read, before)
    work = ASSIGNORS[name](topics, members)
    longest = 0.0
    while True:
        began = process_time()
        try:
            next(work)
        except StopIteration as done:
            target = done.value
            break
        longest = max(longest, process_time() - began)
    check_valid(topics, members, target)
    # In time of the processor: a loaded machine stretches what a clock shows.
    assert longest < 0.05


def test_no_members_have_no_target() -> None:
    assert at_once(uniform({IDS[0]: 3}, {})) == {}
