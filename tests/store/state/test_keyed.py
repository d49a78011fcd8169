"""The fold of keyed records keeps what every fold must keep (docs/internals/state.md)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.journals import MemoryJournal, change_at

from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.state.fold import CHANGE_SIZE_MAX
from rockgate.store.state.keyed import FORMAT, KeyedFold

TOPIC = b"rmq_sys_rockgate_test"
Key = tuple[int, str]
Changes = list[dict[Key, dict[str, str] | None]]
KEYS = st.tuples(st.integers(0, 1), st.sampled_from("ab"))
VALUES = st.none() | st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))
CHANGES = st.lists(st.dictionaries(KEYS, VALUES, min_size=1), max_size=25)


def make() -> tuple[KeyedFold[Key, dict[str, str]], MemoryJournal]:
    journal = MemoryJournal()
    fold: KeyedFold[Key, dict[str, str]] = KeyedFold(
        journal, name="test", topic=TOPIC, key=Key, value=dict[str, str], slice_places=1
    )
    journal.attach(fold)
    return fold, journal


def test_what_was_put_last_is_found_until_it_is_removed() -> None:
    fold, journal = make()
    fold.put({(1, "a"): {"x": "1"}, (2, "a"): {"y": "2"}})
    fold.put({(1, "a"): {"x": "3"}})
    assert fold.find((1, "a")) == {"x": "3"}
    assert len(fold) == 2
    told: list[int] = []
    fold.on_changed.append(lambda: told.append(len(fold)))
    fold.put({(1, "a"): None, (9, "nobody"): None})
    assert fold.find((1, "a")) is None
    assert dict(fold.items()) == {(2, "a"): {"y": "2"}}
    fold.put({})
    assert told == [1]
    assert journal.group_sizes == [1, 1, 1]


@settings(max_examples=budget("property_examples"), deadline=None)
@given(CHANGES, st.integers(0, 25), st.integers(0, 25))
def test_a_replay_from_any_snapshot_comes_to_the_same(
    changes: Changes, begin: int, pause: int
) -> None:
    fold, journal = make()
    for change in changes[:begin]:
        fold.put(change)
    replay_from = journal.end
    slices, left = [], changes[begin:]
    # The fold continues to change between two slices.
    for piece in fold.snapshot():
        slices.append(piece)
        step, left = left[: pause % 3], left[pause % 3 :]
        for change in step:
            fold.put(change)
    for change in left:
        fold.put(change)
    again, _ = make()
    again.restore(slices)
    for entry in journal.changes:
        if entry.position >= replay_from:
            again.apply(entry)
    assert dict(again.items()) == dict(fold.items())
    # And once more from the start: existing state is not reset.
    for entry in journal.changes:
        again.apply(entry)
    assert dict(again.items()) == dict(fold.items())


def test_many_items_are_several_bodies_of_one_atomic_group() -> None:
    fold, journal = make()
    items = {(number, "n" * 100): {"x": "v" * 900} for number in range(2_000)}
    fold.put(items)
    assert dict(fold.items()) == items
    assert len(journal.bodies) > 1
    assert journal.group_sizes == [len(journal.bodies)]
    assert max(map(len, journal.bodies)) <= CHANGE_SIZE_MAX


def test_a_body_is_an_ordinary_msgpack_array() -> None:
    fold, journal = make()
    for count in (1, 15, 16, 300):
        fold.put({(number, ""): None for number in range(count)})
        assert len(msgspec.msgpack.decode(journal.bodies[-1][1:])) == count


def test_damage_and_later_formats_are_refused() -> None:
    fold, _ = make()
    with pytest.raises(FormatTooNew):
        fold.apply(change_at(1, TOPIC, bytes((FORMAT + 1, 0x90))))
    for body in (b"", bytes((FORMAT,)), bytes((FORMAT, 0xC1)), bytes((FORMAT, 0x91, 0x01))):
        with pytest.raises(StoreCorrupt):
            fold.apply(change_at(1, TOPIC, body))
    with pytest.raises(StoreCorrupt):
        fold.restore([bytes((FORMAT, 0xC1))])
    with pytest.raises(FormatTooNew):
        fold.restore([bytes((FORMAT + 1,))])


class Following:
    """An index that is a copy."""

    def __init__(self) -> None:
        self.copy: dict[Key, dict[str, str]] = {}

    def was_set(self, key: Key, value: dict[str, str], /) -> None:
        self.copy[key] = value

    def was_removed(self, key: Key, /) -> None:
        del self.copy[key]

    def was_cleared(self) -> None:
        self.copy.clear()


@settings(max_examples=budget("property_examples"), deadline=None)
@given(CHANGES, CHANGES)
def test_a_follower_is_told_of_every_record(before: Changes, after: Changes) -> None:
    def followed() -> tuple[KeyedFold[Key, dict[str, str]], Following]:
        index = Following()
        fold: KeyedFold[Key, dict[str, str]] = KeyedFold(
            journal,
            name="test",
            topic=TOPIC,
            key=Key,
            value=dict[str, str],
            follower=index,
        )
        return fold, index

    journal = MemoryJournal()
    fold, index = followed()
    journal.attach(fold)
    for change in before:
        fold.put(change)
    assert index.copy == dict(fold.items())
    slices = list(fold.snapshot())
    for change in after:
        fold.put(change)
    assert index.copy == dict(fold.items())
    again, other = followed()
    again.restore(slices)
    for entry in journal.changes:
        again.apply(entry)
    assert other.copy == dict(again.items()) == dict(fold.items())
