import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.protocol.kafka.fields import read_uvarint, uvarint


@given(st.integers(0, 0xFFFFFFFF))
def test_a_varint_is_read_back_wherever_it_stands(value: int) -> None:
    data = b"\xff" + uvarint(value) + b"\xff"
    assert read_uvarint(data, 1) == (value, len(data) - 1)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (16384, b"\x80\x80\x01")],
)
def test_varints_have_their_least_significant_group_first(value: int, data: bytes) -> None:
    assert uvarint(value) == data


def test_a_padded_varint_is_read_as_kafka_reads_it() -> None:
    assert read_uvarint(b"\x81\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize("data", [b"\x80" * 5 + b"\0", b"\xff" * 41])
def test_a_varint_ends_within_five_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match="over 5 bytes"):
        read_uvarint(data, 0)


def test_a_varint_fits_32_bits() -> None:
    with pytest.raises(ValueError, match="over 32 bits"):
        read_uvarint(b"\xff\xff\xff\xff\x1f", 0)
    with pytest.raises(ValueError, match="out of range"):
        uvarint(1 << 32)
    with pytest.raises(ValueError, match="out of range"):
        uvarint(-1)


def test_a_varint_cut_short_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80\x80", 0)
