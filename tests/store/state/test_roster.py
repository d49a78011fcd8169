"""Stable places, so that a walk may pause while items come and go."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.store.state.roster import Roster


def things(roster: Roster[str]) -> list[str]:
    return [thing for _, thing in roster.walk() if thing is not None]


def test_a_thing_stays_in_its_place_while_others_go() -> None:
    roster: Roster[str] = Roster()
    places = [roster.add(thing) for thing in "abc"]
    roster.remove(places[1])
    assert (roster[places[0]], roster[places[2]], len(roster)) == ("a", "c", 2)


def test_an_empty_place_is_filled_again_before_a_new_one() -> None:
    roster: Roster[str] = Roster()
    places = [roster.add(thing) for thing in "abc"]
    roster.remove(places[0])
    assert roster.add("d") == places[0]
    assert things(roster) == ["d", "b", "c"]


def test_a_walk_shows_empty_places_so_that_they_count_as_work() -> None:
    roster: Roster[str] = Roster()
    places = [roster.add(thing) for thing in "abc"]
    roster.remove(places[1])
    assert [thing for _, thing in roster.walk()] == ["a", None, "c"]
    assert [thing for _, thing in roster.walk(places[1])] == [None, "c"]


def test_a_cleared_roster_is_empty() -> None:
    roster: Roster[str] = Roster()
    roster.remove(roster.add("a"))
    roster.add("b")
    roster.clear()
    assert (len(roster), things(roster)) == (0, [])


@settings(max_examples=budget("property_examples"), deadline=None)
@given(
    before=st.integers(0, 8),
    steps=st.lists(st.sampled_from(["walk", "add", "remove"]), max_size=40),
    seed=st.randoms(use_true_random=False),
)
def test_what_is_there_throughout_a_walk_is_met_exactly_once(
    before: int, steps: list[str], seed: Random
) -> None:
    roster: Roster[int] = Roster()
    places = {number: roster.add(number) for number in range(1, before + 1)}
    throughout = set(places)
    met: list[int] = []
    walk = roster.walk()
    for number, step in enumerate(steps, start=before + 1):
        if step == "add":
            places[number] = roster.add(number)
        elif step == "remove" and places:
            gone = seed.choice(sorted(places))
            roster.remove(places.pop(gone))
            throughout.discard(gone)
        else:
            met += [thing for _, thing in [next(walk, (0, None))] if thing is not None]
    met += [thing for _, thing in walk if thing is not None]
    assert all(met.count(thing) == 1 for thing in throughout)
    assert len(roster) == len(places)
