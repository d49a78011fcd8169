"""Runtime support of generated decoders: rare paths and errors."""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from rockgate.protocol.kafka.fields import Buffer, continue_uvarint, read_uvarint
from rockgate.protocol.kafka.schema.kinds import ARRAY_COUNT_MAX, STRING_SIZE_MAX, TAG_COUNT_MAX

__all__ = [
    "ROWS",
    "OutOfRoom",
    "continue_uvarint",
    "keep",
    "read_many",
    "refuse_count",
    "refuse_memory",
    "refuse_null",
    "refuse_size",
    "refuse_tag",
    "rows",
    "skip_tags",
    "weigh_many",
    "weigh_text",
    "wider",
]

_ASCII_STRING = 49
_SEEN = [1 << 62] * 61

ROWS = 16
"""Runs of fewer values than this are read by a call prepared for their count."""


@cache
def rows(code: str) -> tuple[Callable[[Buffer, int], tuple[Any, ...]], ...]:
    """For a `struct` code, the functions that read zero, one, two and more values."""
    return tuple(Struct(">" + code * count).unpack_from for count in range(ROWS))


def read_many(code: str, data: Buffer, at: int, count: int) -> list[Any]:
    """Read `count` values of one `struct` code; the caller has checked the size."""
    one = Struct(">" + code)
    end = at + count * one.size
    return [value for (value,) in one.iter_unpack(memoryview(data)[at:end])]


def skip_tags(data: Buffer, at: int, size: int, first: int) -> int:
    """Skip a struct's unknown tagged fields; `first` is the first byte of their count."""
    count = first
    if first > 127:
        count, at = continue_uvarint(data, at, first)
    if count > TAG_COUNT_MAX:
        raise refuse_tag(count)
    for _ in range(count):
        _, at = read_uvarint(data, at)
        length, at = read_uvarint(data, at)
        if length > size - at:
            raise refuse_size(length, size - at)
        at += length
    return at


def wider(text: str, size: int, room: int) -> int:
    """The room left after a string that takes more memory than its `size` bytes on the wire."""
    room -= text.__sizeof__() - size - _ASCII_STRING
    if room < 0:
        raise refuse_memory()
    return room


# The following functions are called by the decoders that count exactly.


def weigh_text(text: str, room: int) -> int:
    """The room left after a string of any width; there is only one empty string."""
    return room - text.__sizeof__() if text else room


def keep(value: int, room: int) -> tuple[int, int]:
    """An integer and the room left after it: one that was seen recently costs nothing."""
    if -6 < value < 257:
        return value, room
    at = value % len(_SEEN)
    if _SEEN[at] != value:
        _SEEN[at] = value
        room -= value.__sizeof__()
    return _SEEN[at], room


def weigh_many(code: str, data: Buffer, at: int, count: int, room: int) -> tuple[list[Any], int]:
    """Read `count` values of one `struct` code, as far as the room allows."""
    one = Struct(">" + code)
    # Of its final length from the start: a growing list over-allocates.
    found: list[Any] = [None] * count
    for index in range(count):
        (value,) = one.unpack_from(data, at + index * one.size)
        if isinstance(value, int):
            value, room = keep(value, room)
        else:
            room -= value.__sizeof__()
        if room < 0:
            raise refuse_memory()
        found[index] = value
    return found, room


def refuse_count(count: int, size_min: int, left: int) -> ValueError:
    """The error for an array that exceeds the limit, the bytes that follow, or memory."""
    if count > ARRAY_COUNT_MAX:
        return ValueError(f"{count:,} elements exceed the maximum of {ARRAY_COUNT_MAX:,}")
    if count * size_min > left:
        return ValueError(f"{count:,} elements cannot fit in {left:,} bytes")
    return refuse_memory()


class OutOfRoom(ValueError):
    """A message would exceed its memory limit, as this decoder counts it."""


def refuse_memory() -> OutOfRoom:
    """The error for a message that would take many times its size in memory."""
    return OutOfRoom("message would exceed the memory allowed for its size")


def refuse_size(size: int, left: int) -> ValueError:
    """The error for bytes or text longer than the bytes left, or text above its limit."""
    if size > left:
        return ValueError(f"length {size:,} exceeds the {left:,} bytes left")
    return ValueError(f"length {size:,} exceeds the maximum of {STRING_SIZE_MAX:,}")


def refuse_null(length: int) -> ValueError:
    """The error for a null that the version does not allow, or a length below -1."""
    return ValueError("null is not allowed" if length == -1 else f"invalid length {length}")


def refuse_tag(count: int, tag: int | None = None) -> ValueError:
    """The error for too many tagged fields, or one (`tag`) whose size is wrong."""
    if tag is None:
        return ValueError(f"{count:,} tagged fields exceed the maximum of {TAG_COUNT_MAX:,}")
    return ValueError(f"tagged field {tag} differs from its stated size by {count} bytes")
