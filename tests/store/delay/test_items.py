"""Items of a snapshot: the columns hold what a struct of the page's table would."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.store.delay.items import ITEM_SIZE, pack_items, unpack_items

ITEM = struct.Struct(">qQqI")
WIDE = st.integers(0, 2**63 - 1)
ITEMS = st.lists(st.tuples(WIDE, WIDE, WIDE, st.integers(0, 2**32 - 1)), max_size=20)


@given(ITEMS)
def test_items_lie_one_after_the_other_as_the_page_says(items: list[tuple[int, ...]]) -> None:
    columns = list(zip(*items, strict=True)) or [()] * 4
    packed = pack_items(*columns)
    assert ITEM.size == ITEM_SIZE
    assert packed == b"".join(ITEM.pack(*each) for each in items)
    assert list(zip(*unpack_items(packed), strict=True)) == items


@given(ITEMS.filter(bool), st.integers(1, ITEM_SIZE - 1))
def test_an_item_that_is_cut_short_is_refused(items: list[tuple[int, ...]], cut: int) -> None:
    packed = b"".join(ITEM.pack(*each) for each in items)
    with pytest.raises(ValueError, match="not a multiple"):
        unpack_items(packed[:-cut])
