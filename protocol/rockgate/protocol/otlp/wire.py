"""Protobuf's wire format: a message as its fields, by number, in the order in which they came.

A field is not copied, and a message inside a message is the range of its bytes. Every field takes
one from a budget, so that a small message of a million empty fields costs no more than it may.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

from rockgate.protocol.errors import ProtocolError

_VARINT: Final = 0
_DOUBLE_WORD: Final = 1
_BYTES: Final = 2
_WORD: Final = 5
_VARINT_SIZE_MAX: Final = 10
_U64_MAX: Final = (1 << 64) - 1
_DOUBLE: Final = struct.Struct("<d")
_SIGNED: Final = struct.Struct("<q")

Data: TypeAlias = "bytes | mmap.mmap"
Range: TypeAlias = tuple[int, int]
"""Where the bytes of a value begin and end."""
Field: TypeAlias = tuple[int, "int | Range"]
"""A field's number, and its varint or the range of its value."""


class MalformedMetrics(ProtocolError):
    """Bytes that are no metrics, or more than they may be."""


class Budget:
    """How many fields may still be read."""

    __slots__ = ("left",)

    def __init__(self, fields_max: int) -> None:
        self.left = fields_max

    def take(self) -> None:
        """Count a field."""
        self.left -= 1
        if self.left < 0:
            raise MalformedMetrics("Metrics have more fields than are read.")


def fields(data: Data, within: Range, budget: Budget) -> Iterator[Field]:
    """The fields of a message."""
    at, end = within
    while at < end:
        budget.take()
        key, at = _varint(data, at, end)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at, end)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at, end)
        elif kind == _DOUBLE_WORD:
            size = 8
        elif kind == _WORD:
            size = 4
        else:
            raise MalformedMetrics(f"Field at byte {at} has the unknown wire type {kind}.")
        if size > end - at:
            raise MalformedMetrics(f"Field at byte {at} has {size:,} bytes, {end - at:,} are left.")
        yield key >> 3, (at, at + size)
        at += size


def double_in(data: Data, value: int | Range) -> float:
    """A field of type double."""
    found: float = _DOUBLE.unpack_from(data, _eight(value))[0]
    return found


def signed_in(data: Data, value: int | Range) -> int:
    """A field of type sfixed64, or fixed64 below its half."""
    found: int = _SIGNED.unpack_from(data, _eight(value))[0]
    return found


def text_in(data: Data, value: int | Range, size_max: int) -> str:
    """A field of type string."""
    begin, end = range_of(value)
    if end - begin > size_max:
        raise MalformedMetrics(f"Text at byte {begin} has {end - begin:,} of {size_max:,} bytes.")
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError as error:
        raise MalformedMetrics(f"Text at byte {begin} is not UTF-8.") from error


def range_of(value: int | Range) -> Range:
    """A field that is not a number."""
    if isinstance(value, int):
        raise MalformedMetrics("A number stands where a message or text is expected.")
    return value


def _eight(value: int | Range) -> int:
    begin, end = range_of(value)
    if end - begin != 8:
        raise MalformedMetrics(f"Number at byte {begin} has {end - begin:,} bytes instead of 8.")
    return begin


def _varint(data: Data, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    for index in range(at, min(end, at + _VARINT_SIZE_MAX)):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _U64_MAX:
                break
            return value, index + 1
        shift += 7
    raise MalformedMetrics(f"Varint at byte {at} does not end.")
