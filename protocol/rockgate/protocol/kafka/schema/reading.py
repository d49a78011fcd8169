"""What generated decoders call when one line will not do: the rare paths and the refusals."""

from struct import Struct

from rockgate.protocol.kafka.schema.kinds import ARRAY_COUNT_MAX, STRING_SIZE_MAX, TAG_COUNT_MAX
from rockgate.protocol.kafka.varint import Buffer, continue_uvarint, read_uvarint

__all__ = [
    "continue_uvarint",
    "read_many",
    "refuse_count",
    "refuse_null",
    "refuse_size",
    "refuse_tag",
    "skip_tags",
    "wider",
]

_ASCII_STRING = 49
_PREPARED = 16
_PACKINGS = {
    code: tuple(Struct(">" + code * count) for count in range(_PREPARED)) for code in "bhiqd"
}


def read_many(code: str, data: Buffer, at: int, count: int) -> list[int]:
    """Read `count` values of one `struct` code; the bytes are known to be there."""
    prepared = _PACKINGS.get(code)
    if prepared is not None and count < _PREPARED:
        return list(prepared[count].unpack_from(data, at))
    one = Struct(">" + code)
    end = at + count * one.size
    return [value for (value,) in one.iter_unpack(memoryview(data)[at:end])]


def skip_tags(data: Buffer, at: int, size: int, first: int) -> int:
    """Step over a struct's tagged fields, none of them known; `first` begins their count."""
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


def refuse_count(count: int, size_min: int, left: int) -> ValueError:
    """An array that is too long: by rule, for the bytes behind it, or else for memory."""
    if count > ARRAY_COUNT_MAX:
        return ValueError(f"{count} elements are over {ARRAY_COUNT_MAX}")
    if count * size_min > left:
        return ValueError(f"{count} elements in {left} bytes")
    return refuse_memory()


def refuse_memory() -> ValueError:
    """A message that would take many times its size in memory."""
    return ValueError("the message would take too much memory for its size")


def refuse_size(size: int, left: int) -> ValueError:
    """Bytes or text that are longer than what is left, or than text may be."""
    if size > left:
        return ValueError(f"a length of {size} with {left} bytes left")
    return ValueError(f"a length of {size} is over {STRING_SIZE_MAX}")


def refuse_null(length: int) -> ValueError:
    """A null that the version does not have, or a length below null."""
    return ValueError("null is not allowed" if length == -1 else f"a length of {length}")


def refuse_tag(count: int, tag: int | None = None) -> ValueError:
    """Too many tagged fields, or one (`tag`) that is not as long as it says."""
    if tag is None:
        return ValueError(f"{count} tagged fields are over {TAG_COUNT_MAX}")
    return ValueError(f"tagged field {tag} is off its size by {count} bytes")
