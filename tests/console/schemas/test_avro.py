"""Avro's binary encoding: the examples of its specification, and bytes that are none."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.console.schemas.avro import ITEMS_MAX, AvroSchema, NotAvro


def decoded(schema: Any, data: bytes, **references: Any) -> Any:
    others = {name: json.dumps(each) for name, each in references.items()}
    return AvroSchema(json.dumps(schema), others).decode(data)


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),
        (64, "8001"),
        (1 << 62, "80808080808080808001"),
    ],
)
def test_numbers_are_zigzag(number: int, data: str) -> None:
    assert decoded("long", bytes.fromhex(data)) == number


def test_the_record_of_the_specification() -> None:
    schema = {
        "type": "record",
        "name": "test",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}],
    }
    assert decoded(schema, bytes.fromhex("3606666f6f")) == {"a": 27, "b": "foo"}


def test_the_array_and_the_union_of_the_specification() -> None:
    array = {"type": "array", "items": "long"}
    assert decoded(array, bytes.fromhex("04063600")) == [3, 27]
    assert decoded(["null", "string"], bytes.fromhex("00")) is None
    assert decoded(["null", "string"], bytes.fromhex("020261")) == "a"


def test_a_block_with_a_size_is_read_alike() -> None:
    assert decoded({"type": "array", "items": "long"}, bytes.fromhex("0304063600")) == [3, 27]


def test_other_types() -> None:
    assert decoded("boolean", b"\1") is True
    assert decoded("double", struct.pack("<d", 1.5)) == 1.5
    assert decoded("float", struct.pack("<f", 1.5)) == 1.5
    assert decoded("bytes", b"\4ab") == b"ab"
    assert decoded({"type": "fixed", "name": "f", "size": 2}, b"ab") == b"ab"
    assert decoded({"type": "enum", "name": "e", "symbols": ["A", "B"]}, b"\2") == "B"
    assert decoded({"type": "map", "values": "int"}, b"\2\2k\4\0") == {"k": 2}


def test_logical_types_are_shown_as_what_they_mean() -> None:
    assert decoded({"type": "int", "logicalType": "date"}, b"\2") == "1970-01-02"
    at = {"type": "long", "logicalType": "timestamp-millis"}
    assert decoded(at, b"\xd0\x0f") == "1970-01-01T00:00:01+00:00"
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    assert decoded(price, b"\4\x04\xd2") == "12.34"


def test_a_type_is_known_by_its_name_also_inside_itself_and_from_a_reference() -> None:
    node = {
        "type": "record",
        "name": "Node",
        "namespace": "n",
        "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
    }
    assert decoded(node, b"\2\2\4\0") == {"v": 1, "next": {"v": 2, "next": None}}
    assert decoded("n.Node", b"\2\0", node=node) == {"v": 1, "next": None}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("long", ""),
        ("long", "ff" * 11),
        ("string", "ff01"),
        ("string", "04ff"),
        ("string", "04ffff"),
        ("bytes", "01"),
        ("int", "0202"),
        (["null"], "02"),
        ({"type": "array", "items": "null"}, "feffffffffffffff7f"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "04"),
        ({"type": "record", "name": "r"}, "02"),
        ("unknown", "02"),
    ],
)
def test_what_does_not_fit_is_refused(schema: Any, data: str) -> None:
    with pytest.raises(NotAvro):
        decoded(schema, bytes.fromhex(data))


def test_few_bytes_do_not_become_many_items() -> None:
    """An array of nulls takes no bytes for its items; blocks of blocks do not either."""
    nulls = {"type": "array", "items": {"type": "array", "items": "null"}}
    block = (ITEMS_MAX * 2 - 10).to_bytes(3, "little")
    with pytest.raises(NotAvro):
        decoded(nulls, b"\x14" + (b"\xa0\x9c\x01\0") * 10 + b"\0" + block)


def test_a_schema_that_contains_itself_ends() -> None:
    loop = {"type": "record", "name": "L", "fields": [{"name": "l", "type": "L"}]}
    with pytest.raises(NotAvro, match="too deep"):
        decoded(loop, b"")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": ["null", "string", {"type": "map", "values": "bytes"}]},
            {"name": "b", "type": {"type": "array", "items": ["long", "r"]}},
        ],
    }
    with contextlib.suppress(NotAvro):
        decoded(schema, data)
