"""Protobuf's encoding, read by the text of a schema as registries store it.

The text is read as far as names and types of fields need it: messages, enums, maps, groups of
alternatives, nested types and those of imported texts. Options, services and extensions are passed
over. A field that no schema names goes by its number. Everything is bounded.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

DEPTH_MAX: Final = 64
ITEMS_MAX: Final = 100_000
TOKENS_MAX: Final = 200_000
_TOKEN: Final = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[\w.+-]+|[{}()\[\]<>=;,]",
    re.DOTALL,
)
_VARINTS: Final = frozenset(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool"))
_FIXED: Final = {
    "fixed32": "<I",
    "sfixed32": "<i",
    "float": "<f",
    "fixed64": "<Q",
    "sfixed64": "<q",
    "double": "<d",
}
_SIZED: Final = frozenset(("string", "bytes"))


class NotProtobuf(Exception):
    """Bytes or a schema that cannot be read."""


@dataclass(slots=True)
class _Field:
    name: str
    type: str
    is_repeated: bool = False
    key_type: str | None = None
    """Of a map; `type` is then that of its values."""


@dataclass(slots=True)
class _Message:
    name: str
    fields: dict[int, _Field] = field(default_factory=dict)
    inner: list[_Message] = field(default_factory=list)


class ProtobufSchema:
    """The messages and enums of a text and of those that it imports."""

    def __init__(self, text: str, references: Iterable[str] = ()) -> None:
        self._messages: dict[str, _Message] = {}
        self._enums: dict[str, dict[int, str]] = {}
        for other in references:
            _Parser(other, self._messages, self._enums)
        self._top = _Parser(text, self._messages, self._enums).top

    def decode(self, data: bytes, path: Sequence[int]) -> dict[str, Any]:
        """The message that fills `data`; `path` says which of the text it is, outermost first."""
        messages, found = self._top, None
        for index in path:
            if not 0 <= index < len(messages):
                raise NotProtobuf(f"the schema has no message {index}")
            found = messages[index]
            messages = found.inner
        if found is None:
            raise NotProtobuf("no message is named")
        return _Decoder(self._messages, self._enums).message(data, found, 0)


def split(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """What a serializer wrote behind the schema's id: which message, and its bytes."""
    count, at = _varint(data, 0)
    count = (count >> 1) ^ -(count & 1)
    if count == 0:
        return (0,), data[at:]
    if not 0 < count <= DEPTH_MAX:
        raise NotProtobuf(f"{count} message indexes")
    path = []
    for _ in range(count):
        index, at = _varint(data, at)
        path.append((index >> 1) ^ -(index & 1))
    return tuple(path), data[at:]


class _Parser:
    """Reads a text into the tables of messages and enums by full name."""

    def __init__(
        self, text: str, messages: dict[str, _Message], enums: dict[str, dict[int, str]]
    ) -> None:
        found = (each.group() for each in _TOKEN.finditer(text))
        self._tokens = [each for each in found if not each.startswith(("//", "/*"))]
        if len(self._tokens) > TOKENS_MAX:
            raise NotProtobuf("the schema is too large")
        self._at = 0
        self._messages, self._enums = messages, enums
        self._package = ""
        self.top: list[_Message] = []
        while self._at < len(self._tokens):
            word = self._next()
            if word == "package":
                self._package = self._next()
            elif word == "message":
                self.top.append(self._message(self._package, 0))
            elif word == "enum":
                self._enum(self._package)
            elif word != ";":
                self._pass()

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise NotProtobuf("the schema ends early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _pass(self) -> None:
        """Go behind a statement: its semicolon, or its block."""
        depth = 0
        while self._at < len(self._tokens):
            word = self._next()
            depth += (word == "{") - (word == "}")
            if depth <= 0 and word in (";", "}"):
                return

    def _message(self, space: str, depth: int) -> _Message:
        if depth > DEPTH_MAX:
            raise NotProtobuf("the schema is too deep")
        name = self._next()
        full = f"{space}.{name}" if space else name
        made = self._messages[full] = _Message(full)
        self._expect("{")
        self._body(made, depth)
        return made

    def _body(self, made: _Message, depth: int) -> None:
        while (word := self._next()) != "}":
            if word == "message":
                made.inner.append(self._message(made.name, depth + 1))
            elif word == "enum":
                self._enum(made.name)
            elif word == "oneof":
                self._next()
                self._expect("{")
                self._body(made, depth + 1)
                if depth > DEPTH_MAX:
                    raise NotProtobuf("the schema is too deep")
            elif word == "map":
                self._map(made)
            elif word in ("option", "reserved", "extensions", "extend", "group"):
                self._pass()
            elif word != ";":
                self._field(made, word)

    def _field(self, made: _Message, word: str) -> None:
        is_repeated = word == "repeated"
        kind = self._next() if word in ("repeated", "optional", "required") else word
        if kind == "map":
            self._map(made)
            return
        name = self._next()
        self._expect("=")
        made.fields[self._number()] = _Field(name, kind, is_repeated)
        self._pass()

    def _map(self, made: _Message) -> None:
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        name = self._next()
        self._expect("=")
        made.fields[self._number()] = _Field(name, value, key_type=key)
        self._pass()

    def _enum(self, space: str) -> None:
        name = self._next()
        symbols = self._enums[f"{space}.{name}" if space else name] = {}
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved"):
                self._pass()
            elif word != ";":
                self._expect("=")
                symbols[self._number()] = word
                self._pass()

    def _number(self) -> int:
        text = self._next()
        try:
            return int(text, 0)
        except ValueError:
            raise NotProtobuf(f"expected a number, not {text!r}") from None

    def _expect(self, word: str) -> None:
        found = self._next()
        if found != word:
            raise NotProtobuf(f"expected {word!r}, not {found!r}")


class _Decoder:
    def __init__(self, messages: dict[str, _Message], enums: dict[str, dict[int, str]]) -> None:
        self._messages, self._enums = messages, enums
        self._items = 0

    def message(self, data: bytes, schema: _Message, depth: int) -> dict[str, Any]:
        if depth > DEPTH_MAX:
            raise NotProtobuf("too deep")
        found: dict[str, Any] = {}
        at = 0
        while at < len(data):
            tag, at = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            raw, at = _raw(data, at, wire)
            self._count()
            known = schema.fields.get(number)
            if known is None:
                found.setdefault(f"#{number}", []).append(raw)
            elif known.key_type is not None:
                key, value = self._entry(raw, known, schema.name, depth)
                found.setdefault(known.name, {})[str(key)] = value
            elif known.is_repeated:
                found.setdefault(known.name, []).extend(
                    self._several(raw, wire, known.type, schema.name, depth)
                )
            else:
                found[known.name] = self._one(raw, known.type, schema.name, depth)
        return found

    def _count(self) -> None:
        self._items += 1
        if self._items > ITEMS_MAX:
            raise NotProtobuf("too many items")

    def _entry(self, raw: Any, known: _Field, space: str, depth: int) -> tuple[Any, Any]:
        assert known.key_type is not None
        if not isinstance(raw, bytes):
            raise NotProtobuf("an entry of a map that is not a message")
        entry = _Message(space, {1: _Field("key", known.key_type), 2: _Field("value", known.type)})
        parts = self.message(raw, entry, depth + 1)
        return parts.get("key", ""), parts.get("value")

    def _several(self, raw: Any, wire: int, kind: str, space: str, depth: int) -> list[Any]:
        """The values of a repeated field; numbers may be packed."""
        is_number = kind in _VARINTS or kind in _FIXED or self._find(self._enums, kind, space)
        if wire != 2 or not is_number:
            return [self._one(raw, kind, space, depth)]
        found, at = [], 0
        form = _FIXED.get(kind)
        inner = 0 if form is None else (5 if struct.calcsize(form) == 4 else 1)
        while at < len(raw):
            self._count()
            part, at = _raw(raw, at, inner)
            found.append(self._one(part, kind, space, depth))
        return found

    def _one(self, raw: Any, kind: str, space: str, depth: int) -> Any:
        if kind in _VARINTS and isinstance(raw, int):
            return _number(raw, kind)
        if kind in _FIXED and isinstance(raw, _Fixed):
            form = _FIXED[kind]
            return struct.unpack(form, raw)[0] if len(raw) == struct.calcsize(form) else raw
        if kind in _SIZED and isinstance(raw, bytes):
            return raw.decode("utf-8", "replace") if kind == "string" else raw
        message = self._find(self._messages, kind, space)
        if message is not None and isinstance(raw, bytes):
            return self.message(raw, message, depth + 1)
        enum = self._find(self._enums, kind, space)
        if enum is not None and isinstance(raw, int):
            return enum.get(raw, raw)
        return raw

    @staticmethod
    def _find(table: dict[str, Any], name: str, space: str) -> Any:
        """A type by its name, looked for from the inner to the outer spaces."""
        if name.startswith("."):
            return table.get(name[1:])
        while True:
            found = table.get(f"{space}.{name}" if space else name)
            if found is not None or not space:
                return found
            space = space.rpartition(".")[0]


class _Fixed(bytes):
    """Four or eight bytes on the wire."""


def _raw(data: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
    if wire == 0:
        return _varint(data, at)
    if wire in (1, 5):
        size = 8 if wire == 1 else 4
        part = data[at : at + size]
        if len(part) != size:
            raise NotProtobuf("truncated")
        return _Fixed(part), at + size
    if wire != 2:
        raise NotProtobuf(f"wire type {wire}")
    size, at = _varint(data, at)
    if size > len(data) - at:
        raise NotProtobuf("truncated")
    return data[at : at + size], at + size


def _number(raw: int, kind: str) -> int | bool:
    if kind == "bool":
        return raw != 0
    if kind.startswith("sint"):
        return (raw >> 1) ^ -(raw & 1)
    if kind.startswith("int") and raw >= 1 << 63:
        return raw - (1 << 64)
    return raw


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotProtobuf("truncated, or a number of more than ten bytes")
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & ((1 << 64) - 1), at
        shift += 7
