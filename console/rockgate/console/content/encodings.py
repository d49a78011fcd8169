"""What bytes of a message are: JSON, XML, text, MessagePack, CBOR, or bytes in hex;
by a schema registry also Avro and Protobuf.

A value is recognised by itself, in this order: text that is JSON or XML, other text, then binary
forms whose outermost part is a map or an array and that are used up to the last byte. Everything
is bounded: what is large is cut, what is deep is not opened.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from xml.parsers import expat

import msgspec

from rockgate.console.content import cbor
from rockgate.console.schemas.registry import HEAD, NotRead, Registry, id_of

OPENED_BYTES_MAX: Final = 1 << 20
"""Larger values are not opened."""
TEXT_CHARS_MAX: Final = 200_000
HEX_BYTES_MAX: Final = 4_096
DEPTH_MAX: Final = 64


class Encoding(StrEnum):
    """What a value was recognised as, in the words of the page."""

    NULL = "null"
    EMPTY = "empty"
    JSON = "JSON"
    XML = "XML"
    TEXT = "text"
    MESSAGEPACK = "MessagePack"
    CBOR = "CBOR"
    AVRO = "Avro"
    PROTOBUF = "Protobuf"
    HEX = "hex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A value as text; `tree` is what a structured one holds."""

    encoding: Encoding
    text: str
    tree: Any = None
    schema_id: int | None = None
    is_cut: bool = False

    @property
    def is_structured(self) -> bool:
        """Whether it has fields."""
        return isinstance(self.tree, dict | list)


def decode(data: bytes | None, registry: Registry | None = None) -> Decoded:
    """Recognise a value; what names a schema of a registry is read by it, once it is loaded."""
    if data is None:
        return Decoded(encoding=Encoding.NULL, text="null")
    if not data:
        return Decoded(encoding=Encoding.EMPTY, text="")
    if len(data) > OPENED_BYTES_MAX:
        return as_text(data) or as_hex(data)
    found = _text(data) or _by_schema(data, registry) or _registered(data) or _binary(data)
    return found if found is not None else as_hex(data)


def as_hex(data: bytes) -> Decoded:
    """Bytes in hex, sixteen to a line with their characters."""
    lines = []
    for at in range(0, min(len(data), HEX_BYTES_MAX), 16):
        part = data[at : at + 16]
        characters = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
        lines.append(f"{at:08x}  {part.hex(' '):<47}  {characters}")
    return Decoded(encoding=Encoding.HEX, text="\n".join(lines), is_cut=len(data) > HEX_BYTES_MAX)


def as_text(data: bytes) -> Decoded | None:
    """Bytes as text; None if they are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if any(each < " " and each not in "\t\n\r" for each in text[:TEXT_CHARS_MAX]):
        return None
    return Decoded(
        encoding=Encoding.TEXT, text=text[:TEXT_CHARS_MAX], is_cut=len(text) > TEXT_CHARS_MAX
    )


def of_tree(encoding: Encoding, tree: Any, schema_id: int | None = None) -> Decoded:
    """A structured value as indented JSON."""
    text = json.dumps(plain(tree), indent=2, ensure_ascii=False)
    return Decoded(
        encoding=encoding,
        text=text[:TEXT_CHARS_MAX],
        tree=tree,
        schema_id=schema_id,
        is_cut=len(text) > TEXT_CHARS_MAX,
    )


def plain(value: Any, depth: int = 0) -> Any:
    """A tree that JSON can write: bytes in hex, what is too deep left out."""
    if depth > DEPTH_MAX:
        return "…"
    if isinstance(value, dict):
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _text(data: bytes) -> Decoded | None:
    text = as_text(data)
    if text is None:
        return None
    begin = text.text.lstrip()[:1]
    if begin in ("{", "["):
        return _json(data) or text
    if begin == "<" and _is_xml(data):
        return Decoded(encoding=Encoding.XML, text=text.text, is_cut=text.is_cut)
    return text


def _json(data: bytes, schema_id: int | None = None) -> Decoded | None:
    try:
        return of_tree(Encoding.JSON, msgspec.json.decode(data), schema_id)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _is_xml(data: bytes) -> bool:
    """Whether it is well-formed; entities are not expanded, for they can be bombs."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("an entity")

    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):
        return False
    return True


def _by_schema(data: bytes, registry: Registry | None) -> Decoded | None:
    """What a serializer wrote by a schema that is known."""
    id_ = id_of(data)
    schema = None if registry is None or id_ is None else registry.get(id_)
    if schema is None:
        return None
    try:
        return of_tree(Encoding(schema.kind), schema.decode(data[HEAD:]), id_)
    except NotRead:
        return None


def _registered(data: bytes) -> Decoded | None:
    """What a serializer with a schema registry wrote as JSON."""
    if data[0] != 0 or len(data) <= HEAD:
        return None
    if data[HEAD] not in b"{[":
        return None
    return _json(data[HEAD:], int.from_bytes(data[1:HEAD], "big"))


def _binary(data: bytes) -> Decoded | None:
    if 0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF:
        try:
            tree = msgspec.msgpack.decode(data, strict=False)
            return of_tree(Encoding.MESSAGEPACK, tree)
        except (msgspec.DecodeError, RecursionError, ValueError, TypeError):
            pass
    if 0x80 <= data[0] <= 0xBF or data[0] in (0xD8, 0xD9):
        try:
            tree = cbor.decode(data)
        except cbor.NotCbor:
            return None
        if isinstance(tree, dict | list):
            return of_tree(Encoding.CBOR, tree)
    return None
