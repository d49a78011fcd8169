from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.cli.client.consume.assignor import (
    ASSIGNORS,
    Assignment,
    MemberSubscription,
    assign_range,
    assign_round_robin,
    assign_sticky,
)

ROUNDS_MAX = 6


def test_range_gives_runs_and_the_first_members_the_rest() -> None:
    subscriptions = {
        "b": MemberSubscription(["t", "u"]),
        "a": MemberSubscription(["t"]),
        "c": MemberSubscription(["t"]),
    }
    assert assign_range(subscriptions, {"t": 7, "u": 2}) == {
        "a": [("t", 0), ("t", 1), ("t", 2)],
        "b": [("t", 3), ("t", 4), ("u", 0), ("u", 1)],
        "c": [("t", 5), ("t", 6)],
    }


def test_round_robin_skips_who_does_not_want_the_topic() -> None:
    subscriptions = {"a": MemberSubscription(["t", "u"]), "b": MemberSubscription(["u"])}
    assert assign_round_robin(subscriptions, {"t": 2, "u": 2}) == {
        "a": [("t", 0), ("t", 1), ("u", 1)],
        "b": [("u", 0)],
    }


def test_sticky_leaves_what_has_to_move_out_until_its_owner_let_go() -> None:
    owned = [("t", index) for index in range(4)]
    subscriptions = {"a": MemberSubscription(["t"], owned), "b": MemberSubscription(["t"])}
    first = assign_sticky(subscriptions, {"t": 4})
    assert first == {"a": [("t", 0), ("t", 1)], "b": []}
    # The owner retains two, rejoins with those, and the other two are free now.
    second = assign_sticky(
        {"a": MemberSubscription(["t"], first["a"]), "b": MemberSubscription(["t"])}, {"t": 4}
    )
    assert second == {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}


def test_sticky_believes_neither_of_two_that_claim_the_same() -> None:
    subscriptions = {
        "a": MemberSubscription(["t"], [("t", 0)]),
        "b": MemberSubscription(["t"], [("t", 0)]),
    }
    divided = assign_sticky(subscriptions, {"t": 1})
    assert sorted(chain(*divided.values())) == [("t", 0)]


def test_a_topic_that_is_gone_is_given_to_no_one() -> None:
    for divide in ASSIGNORS.values():
        assert divide({"a": MemberSubscription(["gone"], [("gone", 0)])}, {}) == {"a": []}


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, MemberSubscription], dict[str, int]]:
    counts = draw(
        st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 7), min_size=1, max_size=4)
    )
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1))
    places = [(topic, index) for topic, count in counts.items() for index in range(count)]
    free = draw(st.permutations(places))
    subscriptions = {}
    for name in names:
        topics = draw(st.lists(st.sampled_from(sorted(counts)), unique=True, min_size=1))
        taken = draw(st.integers(0, len(free)))
        mine, free = free[:taken], free[taken:]
        subscriptions[name] = MemberSubscription(
            topics, [place for place in mine if place[0] in topics]
        )
    return subscriptions, counts


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
@settings(max_examples=budget("property_examples"), deadline=None)
def test_every_partition_goes_once_to_someone_who_wants_it(
    name: str, group: tuple[dict[str, MemberSubscription], dict[str, int]]
) -> None:
    subscriptions, counts = group
    divided = settle(name, subscriptions, counts)
    wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    places = [(topic, index) for topic in wanted for index in range(counts[topic])]
    assert sorted(chain(*divided.values())) == sorted(places)
    for member, given_places in divided.items():
        assert {topic for topic, _ in given_places} <= set(subscriptions[member].topics)


@given(group=groups())
@settings(max_examples=budget("property_examples"), deadline=None)
def test_sticky_is_as_even_as_the_wishes_allow(
    group: tuple[dict[str, MemberSubscription], dict[str, int]],
) -> None:
    subscriptions, counts = group
    divided = settle("cooperative-sticky", subscriptions, counts)
    for giver, places in divided.items():
        for taker, others in divided.items():
            could_move = [place for place in places if place[0] in subscriptions[taker].topics]
            assert not could_move or len(places) <= len(others) + 1, (giver, taker)


def settle(
    name: str, subscriptions: dict[str, MemberSubscription], counts: dict[str, int]
) -> Assignment:
    """The assignment once no member has anything left to revoke: members rejoin until then."""
    divided = ASSIGNORS[name](subscriptions, counts)
    for _ in range(ROUNDS_MAX if name == "cooperative-sticky" else 0):
        again = {
            member: MemberSubscription(subscription.topics, divided[member])
            for member, subscription in subscriptions.items()
        }
        before, divided = divided, ASSIGNORS[name](again, counts)
        if divided == before:
            return divided
    return divided
