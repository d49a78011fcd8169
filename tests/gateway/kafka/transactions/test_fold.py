"""The folds of transactions keep what every fold must keep: see docs/internals/state.md."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.journals import MemoryJournal, change_at

from rockgate.gateway.kafka.transactions import changes
from rockgate.gateway.kafka.transactions.changes import TOPIC, TransactionChangeKind
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.pending import size_of
from rockgate.gateway.kafka.transactions.transaction import Ending, Offset, ProducerIdAndEpoch
from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.progress.records import Removed

IDS = st.sampled_from("abc")
EPOCHS = st.integers(0, 9)
TOPIC_IDS = (b"\x01" * 16, b"\x02" * 16)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just(TransactionChangeKind.INIT), IDS, EPOCHS),
        st.tuples(st.just(TransactionChangeKind.ADD), IDS, st.integers(0, 3)),
        st.tuples(st.just(TransactionChangeKind.OFFSETS), IDS, st.integers(0, 3)),
        st.tuples(st.just(TransactionChangeKind.PREPARE), IDS, EPOCHS),
        st.tuples(st.just(TransactionChangeKind.COMPLETE), IDS, EPOCHS),
        st.tuples(st.just(TransactionChangeKind.REMOVE), IDS, st.just(0)),
        st.tuples(st.just(TransactionChangeKind.SETTLE), IDS, st.integers(0, 3)),
        st.tuples(st.just(TransactionChangeKind.DROP), IDS, st.integers(0, 5)),
    ),
    max_size=25,
)


def body_of(kind: TransactionChangeKind, id_: str, number: int) -> bytes:
    producer = ProducerIdAndEpoch(ord(id_), number)
    change: changes.AnyChange
    if kind is TransactionChangeKind.INIT:
        change = changes.Init(id_, producer, ProducerIdAndEpoch(-1, -1), 1000 + number)
    elif kind is TransactionChangeKind.ADD:
        change = changes.Add(id_, [(TOPIC_IDS[number % 2], [number])], [f"g{number}"])
    elif kind is TransactionChangeKind.OFFSETS:
        offset = Offset(TOPIC_IDS[number % 2], number, number * 10, -1, "m")
        change = changes.Offsets(id_, f"g{number % 2}", [offset])
    elif kind is TransactionChangeKind.SETTLE:
        change = changes.Settle(id_, f"g{number % 2}", [(TOPIC_IDS[number % 2], [number])])
    elif kind is TransactionChangeKind.DROP:
        topic_id = None if number > 4 else TOPIC_IDS[number % 2]
        queue_ids = [number] if number < 4 else None
        change = changes.Drop([Removed(f"g{number % 2}", topic_id, queue_ids)])
    elif kind is TransactionChangeKind.REMOVE:
        change = changes.Remove([id_])
    else:
        ending = Ending(
            bool(number % 2), number, producer, ProducerIdAndEpoch(ord(id_), number - 1)
        )
        change = changes.End(id_, ending)
    return changes.encode(kind, change)


def make() -> tuple[Transactions, MemoryJournal]:
    journal = MemoryJournal()
    fold = Transactions(slice_cost=1)
    journal.attach(fold)
    return fold, journal


def perform(
    journal: MemoryJournal, operations: Sequence[tuple[TransactionChangeKind, str, int]]
) -> None:
    for kind, id_, number in operations:
        journal.append_state(TOPIC, body_of(kind, id_, number))


def view(fold: Transactions) -> dict[str, Any]:
    shown: dict[str, Any] = {
        each.id: [(name, getattr(each, name)) for name in sorted(each.__slots__) if name != "place"]
        for each in fold.all()
    }
    owners: dict[str, set[str]] = {}
    for each in fold.all():
        found = [offset for offsets in each.offsets.values() for offset in offsets.values()]
        assert each.offsets_size == sum(map(size_of, found))
        for group, offsets in each.offsets.items():
            assert all(fold.pending.has_at(group, *partition) for partition in offsets)
            owners.setdefault(group, set()).add(each.id)
    assert fold.pending.size == sum(each.offsets_size for each in fold.all())
    assert {*fold.pending.groups()} == {*owners}
    for group, ids in owners.items():
        assert {each.id for each in fold.pending.owners(group)} == ids
        pairs = itertools.product(TOPIC_IDS, range(4))
        pending = {each for each in pairs if fold.pending.has_at(group, *each)}
        assert pending == {
            each for owner in fold.pending.owners(group) for each in owner.offsets[group]
        }
    return shown


@settings(max_examples=budget("property_examples"), deadline=None)
@given(OPERATIONS, st.integers(0, 25), st.integers(0, 3))
def test_a_replay_from_any_snapshot_comes_to_the_same(
    operations: list[tuple[TransactionChangeKind, str, int]], begin: int, pace: int
) -> None:
    fold, journal = make()
    perform(journal, operations[:begin])
    replay_from = journal.end
    slices, left = [], operations[begin:]
    for piece in fold.snapshot():
        slices.append(piece)
        step, left = left[:pace], left[pace:]
        perform(journal, step)
    perform(journal, left)
    again = Transactions()
    again.restore(slices)
    for change in journal.changes:
        if change.position >= replay_from:
            again.apply(change)
    assert view(again) == view(fold)


@settings(max_examples=budget("property_examples"), deadline=None)
@given(OPERATIONS, st.integers(0, 25))
def test_replaying_any_prefix_twice_is_replaying_it_once(
    operations: list[tuple[TransactionChangeKind, str, int]], count: int
) -> None:
    fold, journal = make()
    perform(journal, operations[:count])
    before = view(fold)
    for change in journal.changes:
        fold.apply(change)
    assert view(fold) == before


@pytest.mark.parametrize(
    "body", [b"\x01", b"\x01\x63", b"\x01\x01\xc1", b"\x01\x02" + msgspec.msgpack.encode([1])]
)
def test_a_change_that_cannot_be_read_is_corrupt(body: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        make()[0].apply(change_at(0, TOPIC, body))


def test_a_later_format_is_refused() -> None:
    with pytest.raises(FormatTooNew):
        make()[0].apply(change_at(0, TOPIC, b"\x02\x01"))
    with pytest.raises(FormatTooNew):
        make()[0].restore([b"\x02\x90"])
    with pytest.raises(StoreCorrupt):
        make()[0].restore([b"\x01\xc1"])


def test_a_long_list_is_cut_so_that_no_change_is_too_large() -> None:
    parts = changes.in_parts(list(range(100_000)), 64)
    assert [item for part in parts for item in part] == list(range(100_000))
    assert max(map(len, parts)) * 64 <= 1 << 20
