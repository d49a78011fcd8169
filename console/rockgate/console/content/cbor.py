"""CBOR (RFC 8949) as plain values, with every depth and count bounded."""

from __future__ import annotations

import struct
from typing import Any, Final

DEPTH_MAX: Final = 64
ITEMS_MAX: Final = 100_000
_SIMPLE: Final = {20: False, 21: True, 22: None, 23: None}
_BREAK: Final = object()
_FLOATS: Final = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}


class NotCbor(ValueError):
    """The bytes are something else, or more than is read."""


def decode(data: bytes) -> Any:
    """The one value that fills `data`."""
    reader = _Reader(data)
    value = reader.value(0)
    if value is _BREAK or reader.at != len(data):
        raise NotCbor("bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._items = 0
        self.at = 0

    def value(self, depth: int) -> Any:
        self._items += 1
        if depth > DEPTH_MAX or self._items > ITEMS_MAX:
            raise NotCbor("too deep, or too many items")
        head = self._take(1)[0]
        major, info = head >> 5, head & 31
        if major == 7:
            return self._simple(info)
        length = self._length(info)
        if major in (0, 1):
            if length is None:
                raise NotCbor("a number without its end")
            return length if major == 0 else -1 - length
        if major in (2, 3):
            return self._text(major, length, depth)
        if major == 4:
            return self._array(length, depth)
        if major == 5:
            return self._map(length, depth)
        if length is None:
            raise NotCbor("a tag without its number")
        return self.value(depth + 1)

    def _take(self, size: int) -> bytes:
        part = self._data[self.at : self.at + size]
        if len(part) != size:
            raise NotCbor("truncated")
        self.at += size
        return part

    def _length(self, info: int) -> int | None:
        if info < 24:
            return info
        if info == 31:
            return None
        if info > 27:
            raise NotCbor("a reserved length")
        return int.from_bytes(self._take(1 << (info - 24)), "big")

    def _simple(self, info: int) -> Any:
        if info == 31:
            return _BREAK
        if info in _FLOATS:
            form, size = _FLOATS[info]
            return struct.unpack(form, self._take(size))[0]
        if info not in _SIMPLE:
            raise NotCbor("an unknown simple value")
        return _SIMPLE[info]

    def _text(self, major: int, length: int | None, depth: int) -> Any:
        if length is None:
            parts = self._until_break(depth)
            kind = str if major == 3 else bytes
            if not all(isinstance(part, kind) for part in parts):
                raise NotCbor("parts of another kind")
            return kind().join(parts)
        part = self._take(length)
        try:
            return part.decode() if major == 3 else part
        except UnicodeDecodeError:
            raise NotCbor("text that is not UTF-8") from None

    def _array(self, length: int | None, depth: int) -> list[Any]:
        if length is None:
            return self._until_break(depth)
        self._check(length)
        return [self._whole(depth) for _ in range(length)]

    def _map(self, length: int | None, depth: int) -> dict[str, Any]:
        if length is None:
            flat = self._until_break(depth)
            if len(flat) % 2:
                raise NotCbor("a key without a value")
        else:
            self._check(2 * length)
            flat = [self._whole(depth) for _ in range(2 * length)]
        return {str(key): value for key, value in zip(flat[::2], flat[1::2], strict=True)}

    def _check(self, count: int) -> None:
        # Each item takes a byte at least.
        if count > len(self._data) - self.at:
            raise NotCbor("truncated")

    def _whole(self, depth: int) -> Any:
        value = self.value(depth + 1)
        if value is _BREAK:
            raise NotCbor("an end without a begin")
        return value

    def _until_break(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while (value := self.value(depth + 1)) is not _BREAK:
            found.append(value)
        return found
