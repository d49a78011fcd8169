import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.hot.answers import OffsetMessageIds
from rockgate.protocol.remoting.ids import (
    POSITION_MASK,
    RECORD_INDEX_MAX,
    UniqueIds,
    client_id,
    offset_message_id,
    parse_offset_message_id,
    record_place,
    split_place,
)

V6 = bytes.fromhex("fd000000000000000000000000000002")


@given(st.sampled_from([4, 16]), st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_ids_written_together_are_those_written_one_by_one(
    address_size: int, positions: list[int]
) -> None:
    address, port = bytes(range(250 - address_size, 250)), 10911
    ids = OffsetMessageIds(address + port.to_bytes(4, "big"))
    wanted = [offset_message_id(address, port, position).encode() for position in positions]
    assert [ids.one(position) for position in positions] == wanted
    assert ids.all(positions) == b",".join(wanted)


def test_an_offset_message_id_is_the_recorded_one() -> None:
    assert offset_message_id(b"\x7f\0\0\1", 20911, 0x181B86DF) == "7F000001000051AF00000000181B86DF"


@pytest.mark.parametrize("address", [b"\x7f\0\0\1", V6])
def test_an_offset_message_id_comes_back(address: bytes) -> None:
    text = offset_message_id(address, 10911, 1 << 62)
    assert len(text) == (32 if len(address) == 4 else 56)
    assert parse_offset_message_id(text) == (address, 10911, 1 << 62)
    assert parse_offset_message_id(text.lower()) == (address, 10911, 1 << 62)


@pytest.mark.parametrize("text", ["", "7F", "x" * 32, "00" * 17, "é" * 32])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(MalformedContent, match="Message id"):
        parse_offset_message_id(text)


@pytest.mark.parametrize(("position", "index"), [(0, 0), (POSITION_MASK, RECORD_INDEX_MAX)])
def test_a_record_of_a_batch_has_a_place_that_java_can_hold(position: int, index: int) -> None:
    place = record_place(position, index)
    assert 0 < place < 2**63
    assert split_place(place) == (position, index)


def test_a_message_entry_is_its_position() -> None:
    assert split_place(4096) == (4096, None)


def test_unique_ids_have_the_length_of_their_address_and_differ() -> None:
    for address, digits in ((b"\x7f\0\0\1", 32), (V6, 56)):
        ids = UniqueIds(address, 4711, 7)
        made = {ids.next(1000) for _ in range(1000)}
        assert len(made) == 1000
        assert {len(each) for each in made} == {digits}
        assert all(bytes.fromhex(each).startswith(address) for each in made)


def test_a_client_names_itself_by_place_instance_and_unit() -> None:
    assert client_id("192.0.2.2", "4711") == "192.0.2.2@4711"
    assert client_id("192.0.2.2", "4711", "unit") == "192.0.2.2@4711@unit"
