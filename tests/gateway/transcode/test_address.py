from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.transcode.address import (
    INDEX_MAX,
    POSITION_MAX,
    MessageAddress,
    pack_address,
    unpack_address,
)


@given(st.integers(0, POSITION_MAX), st.integers(-1, INDEX_MAX))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_an_address_leads_back_to_where_it_was_made(position: int, index: int) -> None:
    address = pack_address(position, index)
    assert 0 <= address < 1 << 63
    assert unpack_address(address) == MessageAddress(position, index)


def test_the_address_of_a_message_entry_is_its_position() -> None:
    assert pack_address(4096) == 4096
    assert pack_address(4096, 0) == 4096 | 1 << 44


@pytest.mark.parametrize("index", [INDEX_MAX + 1, INDEX_MAX + 2, 1 << 31])
def test_a_record_too_far_behind_has_no_address(index: int) -> None:
    address = pack_address(7, index)
    assert 0 <= address < 1 << 63
    assert unpack_address(address) is None


@pytest.mark.parametrize("address", [-1, -(1 << 63)])
def test_a_number_that_was_never_given_out_is_none(address: int) -> None:
    assert unpack_address(address) is None
