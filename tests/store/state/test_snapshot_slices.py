"""Where a slice of a snapshot ends: by work, and by bytes."""

from __future__ import annotations

import msgspec
import pytest

from rockgate.store.state.snapshot_slices import Measured, pack_array, sliced


def of_sizes(*sizes: int) -> list[Measured[int]]:
    return [(1, size, size) for size in sizes]


def test_a_slice_ends_with_the_item_that_makes_it_cost_enough() -> None:
    assert list(sliced(of_sizes(1, 2, 3, 4, 5), 2)) == [[1, 2], [3, 4], [5]]


def test_a_slice_ends_before_the_item_that_has_no_room() -> None:
    assert list(sliced(of_sizes(4, 6, 1, 9, 2), 99, 10)) == [[4, 6], [1, 9], [2]]


def test_an_item_that_is_larger_than_a_slice_is_one_of_its_own() -> None:
    assert list(sliced(of_sizes(3, 50, 3), 99, 10)) == [[3], [50], [3]]


def test_empty_places_are_work_too() -> None:
    nothing: Measured[int] = (1, 0, None)
    assert list(sliced([nothing, nothing, (1, 7, 7), nothing], 2)) == [[], [7], []]


def test_without_items_there_is_one_empty_slice() -> None:
    assert list(sliced(of_sizes(), 1)) == [[]]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 70_000])
def test_an_array_of_encoded_items_is_an_array(count: int) -> None:
    items = list(range(count))
    packed = pack_array([msgspec.msgpack.encode(item) for item in items])
    assert msgspec.msgpack.decode(packed) == items
