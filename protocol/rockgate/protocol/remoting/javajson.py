"""JSON as Java's library writes it: maps with objects or bare numbers as keys.

    {"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"maxOffset":1}},"tps":0.0}
    {"brokerAddrs":{0:"127.0.0.1:10911"}}

Neither is legal JSON. A body declares such a map as `Keyed[Key, Value]`, or as a `dict` with
numbers for keys; `encode` writes the first so, and `decode` reads both, whether keys are objects,
bare numbers or quoted strings. Legal JSON is parsed directly. The slow path, token by token, is
only for bodies that can have such keys, and up to a size.

Every body is decoded here. Nesting is bounded, and the work is linear in the bytes.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.errors import MalformedRequest

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

DEPTH_MAX: Final = 32
LEGALISED_SIZE_MAX: Final = 1 << 20
"""The limit of the slow path, which takes a microsecond or more per byte."""

_TOKEN: Final = re.compile(rb'\s+|"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+', re.DOTALL)


class Keyed(Generic[K, V]):
    """A map with keys that JSON does not allow; `items` is the map."""

    __slots__ = ("items",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self.items: dict[K, V] = dict(items or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keyed) and self.items == other.items

    __hash__ = None  # type: ignore[assignment]  # a map is not a key

    def __repr__(self) -> str:
        return f"Keyed({self.items!r})"


def encode(value: object) -> bytes:
    """A body's bytes. Field names are written as declared; None is omitted by declaration."""
    return _ENCODER.encode(value)


def decode(data: Buffer, kind: type[T], what: str, *, size_max: int | None = None) -> T:
    """A body of this type; MalformedRequest, starting with `what`, if invalid or too large."""
    if size_max is not None and len(data) > size_max:
        raise MalformedRequest(
            what, f"body of {len(data):,} bytes exceeds the maximum of {size_max:,}"
        )
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_read_keyed)
    except (msgspec.ValidationError, UnicodeDecodeError) as wrong:
        raise MalformedRequest(what, str(wrong)) from None
    except (msgspec.DecodeError, RecursionError) as wrong:
        if len(data) > LEGALISED_SIZE_MAX or not _has_odd_keys(cast(Any, kind)):
            raise MalformedRequest(what, str(wrong)) from None
        try:
            legal = legalise(bytes(data))
        except ValueError:
            raise MalformedRequest(what, str(wrong)) from None
    try:
        return msgspec.json.decode(legal, type=kind, dec_hook=_read_keyed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise MalformedRequest(what, str(wrong)) from None


@lru_cache(maxsize=256)
def _has_odd_keys(kind: Any) -> bool:
    """Whether Java may write a body of this type with keys that JSON does not allow."""
    origin = get_origin(kind) or kind
    if origin is Keyed:
        return True
    parts = get_args(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping) and parts and parts[0] is int:
        return True
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        parts = (*parts, *get_type_hints(origin).values())
    return any(_has_odd_keys(part) for part in parts)


def legalise(data: bytes) -> bytes:
    """The same as legal JSON: a key that is not a string becomes a string of its JSON."""
    out: list[bytes] = []
    end = _copy_value(data, _skip(data, 0), out, DEPTH_MAX)
    if _skip(data, end) != len(data):
        raise ValueError(f"unexpected data after the value at byte {end}")
    return b"".join(out)


def _write_keyed(value: object) -> object:
    if isinstance(value, Keyed):
        pairs = b",".join(
            _ENCODER.encode(key) + b":" + _ENCODER.encode(item) for key, item in value.items.items()
        )
        return msgspec.Raw(b"{" + pairs + b"}")
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded as JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_write_keyed)


def _read_keyed(kind: type, value: Any) -> Any:
    origin = getattr(kind, "__origin__", kind)
    if origin is not Keyed:
        raise NotImplementedError(f"{kind!r} cannot be decoded from JSON")
    if not isinstance(value, dict):
        raise ValueError(f"expected a map, got {type(value).__name__}")
    key_kind, value_kind = get_args(kind)
    keyed: Keyed[Any, Any] = Keyed()
    for key, item in value.items():
        read = key if key_kind is str else msgspec.json.decode(key, type=key_kind)
        keyed.items[read] = msgspec.convert(item, value_kind, dec_hook=_read_keyed)
    return keyed


def _copy_value(data: bytes, at: int, out: list[bytes], depth: int) -> int:
    """Copy the value at `at` to `out` as legal JSON; returns where it ends."""
    if depth == 0:
        raise ValueError(f"nested deeper than {DEPTH_MAX}")
    token, end = _token(data, at)
    if token == b"{":
        return _copy_items(data, end, out, depth, b"}")
    if token == b"[":
        return _copy_items(data, end, out, depth, b"]")
    if token in (b"}", b"]", b":", b","):
        raise ValueError(f"unexpected {token!r} instead of a value at byte {at}")
    out.append(token)
    return end


def _copy_items(data: bytes, at: int, out: list[bytes], depth: int, closing: bytes) -> int:
    out.append(b"{" if closing == b"}" else b"[")
    at = _skip(data, at)
    token, end = _token(data, at)
    while token != closing:
        if closing == b"}":
            at = _copy_key(data, at, out, depth)
        at = _skip(data, _copy_value(data, at, out, depth - 1))
        token, end = _token(data, at)
        if token == b",":
            out.append(token)
            at = _skip(data, end)
        elif token != closing:
            raise ValueError(f"unexpected {token!r} between values at byte {at}")
    out.append(closing)
    return end


def _copy_key(data: bytes, at: int, out: list[bytes], depth: int) -> int:
    """Copy the key at `at` and its colon; returns where the value begins."""
    if data[at : at + 1] == b'"':
        token, end = _token(data, at)
        out.append(token)
    else:
        parts: list[bytes] = []
        end = _copy_value(data, at, parts, depth - 1)
        out.append(msgspec.json.encode(b"".join(parts).decode()))
    end = _skip(data, end)
    token, after = _token(data, end)
    if token != b":":
        raise ValueError(f"unexpected {token!r} after a key at byte {end}")
    out.append(token)
    return _skip(data, after)


def _token(data: bytes, at: int) -> tuple[bytes, int]:
    found = _TOKEN.match(data, at)
    if found is None:
        raise ValueError(f"invalid JSON at byte {at}")
    return found[0], found.end()


def _skip(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b" \t\r\n":
        at += 1
    return at
