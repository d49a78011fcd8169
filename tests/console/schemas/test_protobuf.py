"""Protobuf by the text of its schema, compared with what Google's own library writes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from rockgate.console.schemas.protobuf import NotProtobuf, ProtobufSchema, split

TEXT = """
syntax = "proto3"; // a comment with message X {
package shop;
import "other.proto";
option java_package = "a{b";
/* enum Y { */
enum Kind { UNKNOWN = 0; BOOK = 1 [deprecated = true]; reserved 5; }
message Order {
  option deprecated = false;
  reserved 40 to 50;
  message Line { string name = 1; sint32 count = 2; repeated double prices = 3; }
  int64 id = 1;
  Kind kind = 2;
  repeated Line lines = 3;
  map<string, int32> stock = 4;
  bytes raw = 5;
  oneof way { bool fast = 6; string slow = 7; }
  repeated int32 numbers = 8 [packed = true];
  fixed64 big = 9;
  float part = 10;
  other.Place place = 11;
}
message Second { string text = 1; }
"""
OTHER = 'syntax = "proto3"; package other; message Place { string town = 1; }'
_T = descriptor_pb2.FieldDescriptorProto
_LABEL = {False: _T.LABEL_OPTIONAL, True: _T.LABEL_REPEATED}


def order() -> Any:
    """The same schema, as Google's library has it."""
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="UNKNOWN", number=0)
    kind.value.add(name="BOOK", number=1)
    place = file.message_type.add(name="Place")
    place.field.add(name="town", number=1, type=_T.TYPE_STRING, label=_LABEL[False])
    made = file.message_type.add(name="Order")
    line = made.nested_type.add(name="Line")
    for name, number, type_, many in (
        ("name", 1, _T.TYPE_STRING, False),
        ("count", 2, _T.TYPE_SINT32, False),
        ("prices", 3, _T.TYPE_DOUBLE, True),
    ):
        line.field.add(name=name, number=number, type=type_, label=_LABEL[many])
    entry = made.nested_type.add(name="StockEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_T.TYPE_STRING, label=_LABEL[False])
    entry.field.add(name="value", number=2, type=_T.TYPE_INT32, label=_LABEL[False])
    for name, number, type_, many, named in (
        ("id", 1, _T.TYPE_INT64, False, ""),
        ("kind", 2, _T.TYPE_ENUM, False, ".shop.Kind"),
        ("lines", 3, _T.TYPE_MESSAGE, True, ".shop.Order.Line"),
        ("stock", 4, _T.TYPE_MESSAGE, True, ".shop.Order.StockEntry"),
        ("raw", 5, _T.TYPE_BYTES, False, ""),
        ("fast", 6, _T.TYPE_BOOL, False, ""),
        ("numbers", 8, _T.TYPE_INT32, True, ""),
        ("big", 9, _T.TYPE_FIXED64, False, ""),
        ("part", 10, _T.TYPE_FLOAT, False, ""),
        ("place", 11, _T.TYPE_MESSAGE, False, ".shop.Place"),
    ):
        field = made.field.add(name=name, number=number, type=type_, label=_LABEL[many])
        if named:
            field.type_name = named
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))()


def test_a_message_that_google_s_library_wrote_is_read() -> None:
    made = order()
    made.id, made.kind, made.raw, made.fast = -7, 1, b"\0\1", True
    made.lines.add(name="a", count=-3, prices=[1.5, 2.5])
    made.lines.add(name="b")
    made.stock["x"] = -1
    made.numbers.extend([1, -2, 3])
    made.big, made.part, made.place.town = 1 << 60, 0.5, "Ulm"
    found = ProtobufSchema(TEXT, [OTHER]).decode(made.SerializeToString(), (0,))
    assert found == {
        "id": -7,
        "kind": "BOOK",
        "lines": [{"name": "a", "count": -3, "prices": [1.5, 2.5]}, {"name": "b"}],
        "stock": {"x": -1},
        "raw": b"\0\1",
        "fast": True,
        "numbers": [1, -2 % (1 << 64) - (1 << 64), 3],
        "big": 1 << 60,
        "part": 0.5,
        "place": {"town": "Ulm"},
    }


def test_the_message_is_named_by_its_place_in_the_text() -> None:
    schema = ProtobufSchema(TEXT, [OTHER])
    assert split(b"\0rest") == ((0,), b"rest")
    assert split(b"\4\0\0rest") == ((0, 0), b"rest")
    assert schema.decode(b"\x0a\1x", (1,)) == {"text": "x"}
    assert schema.decode(b"\x0a\1x", (0, 0)) == {"name": "x"}
    with pytest.raises(NotProtobuf):
        schema.decode(b"", (2,))


def test_a_field_that_no_schema_names_is_shown_by_its_number() -> None:
    assert ProtobufSchema(TEXT).decode(b"\xa0\x06\x05", (0,)) == {"#100": [5]}


@pytest.mark.parametrize(
    "text", ["message A {", "message A { int32 x = y; }", "message A { int32 x 1; }", "enum E {"]
)
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(NotProtobuf):
        ProtobufSchema(text)


def test_a_schema_that_is_too_deep_is_refused() -> None:
    with pytest.raises(NotProtobuf, match="deep"):
        ProtobufSchema("message A { " * 500 + "}" * 500)


def test_a_message_in_itself_ends() -> None:
    data = b""
    for _ in range(200):
        size = len(data)
        data = b"\x0a" + bytes([size & 127 | 128, size >> 7]) + data
    with pytest.raises(NotProtobuf, match="deep"):
        ProtobufSchema("message A { A a = 1; }").decode(data, (0,))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        path, rest = split(data)
        SCHEMA.decode(rest, path)
    except NotProtobuf:
        pass


SCHEMA = ProtobufSchema(TEXT, [OTHER])
