"""Avro's binary encoding, read by the schema that it was written with.

Everything is bounded: depth, the number of items, and every length by the bytes that are left.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

DEPTH_MAX: Final = 64
ITEMS_MAX: Final = 100_000
_PLAIN: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ZERO: Final = date(1970, 1, 1)
_PER_SECOND: Final = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}


class NotAvro(Exception):
    """Bytes or a schema that cannot be read."""


class AvroSchema:
    """A parsed schema. Names of records, enums and fixed types are known in all of it."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        """`references` are the texts of other schemas that this one names; NotAvro if invalid."""
        self._named: dict[str, dict[str, Any]] = {}
        for other in (references or {}).values():
            self._learn(_parsed(other), "", 0)
        self._schema = _parsed(text)
        self._learn(self._schema, "", 0)

    def decode(self, data: bytes) -> Any:
        """The value that fills `data`."""
        reader = _Reader(data, self._named)
        try:
            value = reader.value(self._schema, "", 0)
        except (KeyError, TypeError, IndexError) as error:
            raise NotAvro(f"the schema lacks {error}") from None
        if reader.at != len(data):
            raise NotAvro("bytes are left over")
        return value

    def _learn(self, schema: Any, space: str, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise NotAvro("the schema is too deep")
        if isinstance(schema, list):
            for each in schema:
                self._learn(each, space, depth + 1)
            return
        if not isinstance(schema, dict):
            return
        kind = schema.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            name = _full(str(schema.get("name", "")), str(schema.get("namespace", space)))
            self._named[name] = schema
            space = name.rpartition(".")[0]
            schema["#space"] = space
        for each in schema.get("fields", ()):
            if isinstance(each, dict):
                self._learn(each.get("type"), space, depth + 1)
        for part in ("items", "values"):
            self._learn(schema.get(part), space, depth + 1)
        if isinstance(kind, dict | list):
            self._learn(kind, space, depth + 1)


def _parsed(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        # A schema may be the bare name of a type.
        found = text.strip().strip('"')
    return found


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


class _Reader:
    def __init__(self, data: bytes, named: Mapping[str, dict[str, Any]]) -> None:
        self._data = data
        self._named = named
        self._items = 0
        self.at = 0

    def value(self, schema: Any, space: str, depth: int) -> Any:
        self._items += 1
        if depth > DEPTH_MAX or self._items > ITEMS_MAX:
            raise NotAvro("too deep, or too many items")
        if isinstance(schema, list):
            return self.value(schema[self._index(len(schema))], space, depth + 1)
        if isinstance(schema, str):
            if schema in _PLAIN:
                return self._plain(schema)
            found = self._named.get(_full(schema, space)) or self._named.get(schema)
            if found is None:
                raise NotAvro(f"the schema has no type {schema!r}")
            return self.value(found, space, depth + 1)
        kind = schema["type"]
        space = schema.get("#space", space)
        if not isinstance(kind, str):
            return self.value(kind, space, depth + 1)
        if kind in ("record", "error"):
            fields = schema["fields"]
            return {each["name"]: self.value(each["type"], space, depth + 1) for each in fields}
        if kind == "enum":
            return schema["symbols"][self._index(len(schema["symbols"]))]
        if kind == "array":
            return self._blocks(lambda: self.value(schema["items"], space, depth + 1))
        if kind == "map":
            pairs = self._blocks(
                lambda: (self._text(), self.value(schema["values"], space, depth + 1))
            )
            return dict(pairs)
        if kind == "fixed":
            return _logical(schema, self._take(int(schema["size"])))
        return _logical(schema, self.value(kind, space, depth + 1))

    def _blocks(self, one: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        while count := self._long():
            if count < 0:
                count = -count
                self._long()
            if count > ITEMS_MAX - self._items:
                raise NotAvro("too many items")
            found += [one() for _ in range(count)]
        return found

    def _plain(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            return self._take(1) != b"\0"
        if kind in ("int", "long"):
            return self._long()
        if kind == "float":
            return struct.unpack("<f", self._take(4))[0]
        if kind == "double":
            return struct.unpack("<d", self._take(8))[0]
        return self._text() if kind == "string" else self._take(self._long())

    def _text(self) -> str:
        try:
            return self._take(self._long()).decode()
        except UnicodeDecodeError:
            raise NotAvro("a string that is not UTF-8") from None

    def _index(self, count: int) -> int:
        index = self._long()
        if not 0 <= index < count:
            raise NotAvro(f"choice {index} of {count}")
        return index

    def _long(self) -> int:
        number = shift = 0
        while True:
            byte = self._take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise NotAvro("a number of more than ten bytes")

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise NotAvro("truncated")
        self.at += size
        return self._data[self.at - size : self.at]


def _logical(schema: Mapping[str, Any], value: Any) -> Any:
    """A value as its logical type has it; as it is where that does not fit."""
    logical = schema.get("logicalType")
    if not isinstance(logical, str):
        return value
    try:
        if logical == "decimal" and isinstance(value, bytes):
            number = int.from_bytes(value, "big", signed=True)
            return str(Decimal(number).scaleb(-int(schema.get("scale", 0))))
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        if logical == "date":
            return (_DAY_ZERO + timedelta(days=value)).isoformat()
        kind, _, unit = logical.rpartition("-")
        if unit in _PER_SECOND and kind in ("timestamp", "local-timestamp"):
            moment = _EPOCH + timedelta(microseconds=value * 1_000_000 // _PER_SECOND[unit])
            return (moment if kind == "timestamp" else moment.replace(tzinfo=None)).isoformat()
    except (OverflowError, ValueError, ArithmeticError):
        return value
    return value
