"""The epochs of a log: who wrote which part of it."""

from __future__ import annotations

import struct

import pytest
from tests.world import World

from rockgate.store.directory_id import UNKNOWN
from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.epochs import TOPIC, Epoch, Epochs
from rockgate.store.state.fold import Change

DIRECTORY, NONCE = bytes(range(16)), bytes(range(8))


def change(position: int, body: bytes) -> Change:
    return Change(position, 0, TOPIC, 0, -1, 0, b"", memoryview(body))


def test_an_epoch_carries_its_number_its_directory_and_a_nonce() -> None:
    epochs = Epochs()
    epochs.apply(change(100, epochs.next_change(7, DIRECTORY, NONCE)))
    assert epochs.all == [Epoch(7, 100, DIRECTORY, NONCE)]
    again = Epochs()
    again.restore(epochs.snapshot())
    assert again.all == epochs.all


def test_an_entry_and_a_snapshot_of_the_first_format_are_read() -> None:
    epochs = Epochs()
    epochs.apply(change(0, struct.pack(">BI", 1, 3)))
    assert epochs.all == [Epoch(3, 0, UNKNOWN, bytes(8))]
    epochs.restore([b"\1" + struct.pack(">IQIQ", 1, 10, 2, 20)])
    assert epochs.all == [Epoch(1, 10), Epoch(2, 20)]


@pytest.mark.parametrize("body", [struct.pack(">BI", 2, 3), struct.pack(">BIq", 1, 3, 0)])
def test_a_body_of_another_size_is_damage(body: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        Epochs().apply(change(0, body))
    with pytest.raises(StoreCorrupt):
        Epochs().restore([body[:4]])


def test_a_store_begins_the_epoch_that_was_assigned_to_it() -> None:
    world = World()
    world.store.close()
    store = world.open_to_read()
    store.begin_epoch(9, NONCE)
    newest, first = store.epochs.all[-1], store.epochs.all[0]
    assert (newest.number, newest.nonce) == (9, NONCE)
    assert newest.directory == first.directory != UNKNOWN, "one directory"
    assert first.nonce != NONCE
    store.close()
    with pytest.raises(ValueError, match="cannot follow"):
        world.open_to_read().begin_epoch(9)


def test_a_directory_without_its_id_is_another_one() -> None:
    world = World()
    world.store.close()
    world.directory.remove("directory")
    world.open()
    first, second = world.store.epochs.all
    assert first.directory != second.directory


def test_a_damaged_id_is_replaced() -> None:
    world = World()
    world.store.close()
    file = world.directory.open("directory")
    file.write(0, b"zz")
    file.close()
    world.open()
    first, second = world.store.epochs.all
    assert first.directory != second.directory
    world.reopen()
    assert world.store.epochs.all[-1].directory == second.directory
