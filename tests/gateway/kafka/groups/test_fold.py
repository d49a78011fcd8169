"""The fold of groups keeps the contract of a fold: see docs/internals/state.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.journals import MemoryJournal, change_at

from rockgate.gateway.kafka.groups import fold
from rockgate.gateway.kafka.groups.classic.group_record import CLASSIC, SavedGroup
from rockgate.gateway.kafka.groups.fold import FORMAT, TOPIC, SavedGroups
from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.state.fold import CHANGE_SIZE_MAX

NAMES = st.sampled_from("abcd")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), NAMES, st.integers(0, 99)),
        st.tuples(st.just("remove"), st.lists(NAMES, min_size=1)),
    ),
    max_size=25,
)


def make() -> tuple[SavedGroups, MemoryJournal]:
    journal = MemoryJournal()
    groups = SavedGroups(journal, slice_places=1)
    journal.attach(groups)
    return groups, journal


def perform(groups: SavedGroups, operations: Sequence[tuple[Any, ...]]) -> None:
    for what, *values in operations:
        if what == "save":
            groups.save(values[0], SavedGroup(CLASSIC, values[1], "consumer"))
        else:
            groups.remove(values[0])


def test_what_was_saved_last_is_found_until_it_is_removed() -> None:
    groups, _ = make()
    for generation in (1, 2):
        groups.save("g", SavedGroup(CLASSIC, generation, "consumer"))
    record = groups.find("g")
    assert record is not None
    assert record.group.generation == 2
    groups.remove(["g", "nobody"])
    assert groups.find("g") is None
    assert len(groups) == 0


@settings(max_examples=budget("property_examples"), deadline=None)
@given(OPERATIONS, st.integers(0, 25), st.integers(0, 25))
def test_a_replay_from_any_snapshot_comes_to_the_same(
    operations: list[tuple[Any, ...]], begin: int, pause: int
) -> None:
    groups, journal = make()
    perform(groups, operations[:begin])
    replay_from = journal.end
    slices = []
    left = operations[begin:]
    # The fold continues to change between two slices.
    for piece in groups.snapshot():
        slices.append(piece)
        step, left = left[: pause % 3], left[pause % 3 :]
        perform(groups, step)
    perform(groups, left)
    again = SavedGroups(MemoryJournal())
    again.restore(slices)
    for change in journal.changes:
        if change.position >= replay_from:
            again.apply(change)
    assert dict(again.items()) == dict(groups.items())
    # And once more from the start: existing state is not reset.
    for change in journal.changes:
        again.apply(change)
    assert dict(again.items()) == dict(groups.items())


def test_many_removals_are_several_changes_each_small_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fold, "_REMOVALS_BYTES_MAX", 1_000)
    groups, journal = make()
    names = [f"group-{number}" for number in range(200)]
    for name in names:
        groups.save(name, SavedGroup(CLASSIC, 1, ""))
    count = len(journal.bodies)
    groups.remove(names)
    assert len(groups) == 0
    assert len(journal.bodies) > count + 1
    assert max(map(len, journal.bodies)) <= CHANGE_SIZE_MAX


def test_damage_and_later_formats_are_refused() -> None:
    groups, _ = make()
    with pytest.raises(FormatTooNew):
        groups.apply(change_at(1, TOPIC, bytes((FORMAT + 1, 1))))
    for body in (b"", bytes((FORMAT,)), bytes((FORMAT, 9)), bytes((FORMAT, 1)) + b"\xc1"):
        with pytest.raises(StoreCorrupt):
            groups.apply(change_at(1, TOPIC, body))
    with pytest.raises(StoreCorrupt):
        groups.restore([bytes((FORMAT,)) + b"\xc1"])
    with pytest.raises(FormatTooNew):
        groups.restore([bytes((FORMAT + 1,))])
