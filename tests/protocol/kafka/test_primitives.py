import pytest
from construct import ConstructError, Int16ub

from rockgate.protocol.kafka.primitives import (
    ArrayCodec,
    MaybeStruct,
    SizedBytes,
    Utf8,
    UVarint,
    fixed,
    length_codec,
)


def test_varints_are_bounded_where_constructs_own_are_not() -> None:
    assert UVarint.parse(b"\xac\x02") == 300
    assert UVarint.build(300) == b"\xac\x02"
    for data in (b"\xff" * 41, b"\xff\xff\xff\xff\x7f", b"\x80"):
        with pytest.raises(ConstructError):
            UVarint.parse(data)


@pytest.mark.parametrize(
    ("flexible", "short", "data"),
    [(True, True, b"\x04"), (False, True, b"\0\x03"), (False, False, b"\0\0\0\x03")],
)
def test_a_length_has_three_forms(flexible: bool, short: bool, data: bytes) -> None:
    assert length_codec(flexible, short).build(3) == data


def test_null_is_minus_one_or_a_zero_varint() -> None:
    for flexible, data in ((True, b"\0"), (False, b"\xff\xff\xff\xff")):
        codec = SizedBytes(length_codec(flexible), nullable=True)
        assert codec.build(None) == data
        assert codec.parse(data) is None
        with pytest.raises(ConstructError):
            SizedBytes(length_codec(flexible), nullable=False).parse(data)
        with pytest.raises(ConstructError):
            SizedBytes(length_codec(flexible), nullable=False).build(None)


def test_bytes_longer_than_what_is_left_or_allowed_are_refused() -> None:
    codec = SizedBytes(length_codec(flexible=True), nullable=False, size_max=3)
    assert codec.parse(b"\x04abc") == b"abc"
    for data in (b"\x04ab", b"\x05abcd", b"\xff\xff\xff\xff\x07"):
        with pytest.raises(ConstructError):
            codec.parse(data)


def test_text_is_utf_8() -> None:
    codec = Utf8(SizedBytes(length_codec(flexible=True), nullable=False))
    assert codec.parse(codec.build("né")) == "né"
    with pytest.raises(ConstructError):
        codec.parse(b"\x02\xff")


def test_an_array_is_refused_by_its_count_before_it_is_read() -> None:
    codec = ArrayCodec(length_codec(flexible=False), Int16ub, 2, nullable=False, count_max=5)
    assert codec.parse(b"\0\0\0\x02\0\x07\0\x08") == [7, 8]
    assert codec.build([7, 8]) == b"\0\0\0\x02\0\x07\0\x08"
    for data in (b"\0\0\0\x03\0\x07\0\x08", b"\0\0\0\x06" + bytes(12), b"\xff\xff\xff\xfe"):
        with pytest.raises(ConstructError):
            codec.parse(data)


def test_a_struct_that_may_be_null_is_led_by_a_byte() -> None:
    codec = MaybeStruct(Int16ub)
    assert (codec.build(None), codec.build(7)) == (b"\xff", b"\x01\0\x07")
    assert (codec.parse(b"\xff"), codec.parse(b"\x01\0\x07")) == (None, 7)
    with pytest.raises(ConstructError):
        codec.parse(b"\x02\0\x07")


def test_kinds_of_constant_size_are_big_endian() -> None:
    assert fixed("int32").build(-2) == b"\xff\xff\xff\xfe"
    assert fixed("float64").build(1.5) == b"\x3f\xf8\0\0\0\0\0\0"
    assert fixed("bool").parse(b"\x02") is True
