import json

import msgspec
import pytest

from rockgate.console.content import cbor
from rockgate.console.content.encodings import (
    OPENED_BYTES_MAX,
    TEXT_CHARS_MAX,
    Encoding,
    as_hex,
    decode,
)

TREE = {"a": [1, {"b": None}], "c": "é"}


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (None, Encoding.NULL),
        (b"", Encoding.EMPTY),
        (json.dumps(TREE).encode(), Encoding.JSON),
        (b" [1, 2]\n", Encoding.JSON),
        (b"{not json", Encoding.TEXT),
        (b"17", Encoding.TEXT),
        (b"<a b='c'>d</a>", Encoding.XML),
        (b"<a>", Encoding.TEXT),
        (b'<!DOCTYPE a [<!ENTITY b "bbbb">]><a>&b;&b;</a>', Encoding.TEXT),
        ("words, wörter\n".encode(), Encoding.TEXT),
        (b"a\x00b", Encoding.HEX),
        (msgspec.msgpack.encode(TREE), Encoding.MESSAGEPACK),
        (bytes.fromhex("a2616101616282f5f6"), Encoding.CBOR),
        (bytes.fromhex("bf61610161629f0102ffff"), Encoding.CBOR),
        (b"\xff\xfe\x00", Encoding.HEX),
        (b"\x93\x01", Encoding.HEX),
    ],
)
def test_a_value_is_recognised_by_itself(data: bytes | None, encoding: Encoding) -> None:
    assert decode(data).encoding is encoding


def test_structured_values_are_shown_as_json() -> None:
    for data in (json.dumps(TREE).encode(), msgspec.msgpack.encode(TREE)):
        assert json.loads(decode(data).text) == TREE
    assert json.loads(decode(bytes.fromhex("a2616101616242ff00")).text) == {"a": 1, "b": "0xff00"}


def test_the_head_of_a_schema_registry_is_read() -> None:
    found = decode(b"\x00\x00\x00\x01\x02" + json.dumps(TREE).encode())
    assert (found.encoding, found.schema_id, found.tree) == (Encoding.JSON, 258, TREE)


def test_what_is_large_is_cut_and_not_opened() -> None:
    found = decode(b"[" + b"1," * OPENED_BYTES_MAX + b"1]")
    assert (found.encoding, found.is_cut, len(found.text)) == (Encoding.TEXT, True, TEXT_CHARS_MAX)
    assert as_hex(bytes(1 << 20)).is_cut


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b"[" * 5_000 + b"]" * 5_000, b"\x91" * 100_000, b"\x9f" * 100_000]
)
def test_what_is_deep_ends_in_text_or_bytes(data: bytes) -> None:
    assert decode(data).text


@pytest.mark.parametrize(
    "data",
    ["", "81", "9bffffffffffffffff", "5f4100", "a101", "ff", "1c", "61ff", "0101", "f8ff", "c1"],
)
def test_bytes_that_are_no_cbor_are_refused(data: str) -> None:
    with pytest.raises(cbor.NotCbor):
        cbor.decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("3903e7", -1000),
        ("f93c00", 1.0),
        ("fb3ff199999999999a", 1.1),
        ("c11a514b67b0", 1363896240),
        ("7f657374726561646d696e67ff", "streaming"),
        ("8301820203820405", [1, [2, 3], [4, 5]]),
        ("f4", False),
    ],
)
def test_the_examples_of_the_rfc(data: str, value: object) -> None:
    assert cbor.decode(bytes.fromhex(data)) == value
