"""Message entries of one topic and queue, packed in one pass.

A client's batch send is many small messages with the same hosts, times and flags. The common part
of their envelopes is packed once; each message then costs one packing of its own fields, and its
checksums. The bytes are those of `pack_head` and `pack_tail`; a property test compares them.
"""

from __future__ import annotations

import struct
import sys
from array import array
from binascii import hexlify
from collections.abc import Iterable, Sequence
from itertools import chain, count, repeat
from typing import Final, NamedTuple, Self

from rockgate.protocol.entry.checksum import crc32
from rockgate.protocol.entry.codec import head_size, tail_size, topic_magic
from rockgate.protocol.entry.format import (
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    CONTINUES,
    MAGIC_V1,
    Buffer,
)

_SHARED: Final = struct.Struct(">iq")
_SIZE: Final = struct.Struct(">h")
_DIGITS_SIZE: Final = 9
_POSITIVE: Final = 0x7FFFFFFF

Content = tuple[int, Buffer, bytes]
"""Flag, body and packed properties of a message."""


class Contents(NamedTuple):
    """Messages column by column, so that each step is done for a whole column at once."""

    flags: Sequence[int]
    bodies: Sequence[Buffer]
    properties: Sequence[bytes]
    """Packed."""
    is_alike: bool = False
    """Whether all bodies are known to be as long as each other, and all properties too."""

    @classmethod
    def of(cls, rows: Sequence[Content]) -> Self:
        """Turn messages given one by one into columns."""
        if not rows:
            return cls((), (), ())
        flags, bodies, properties = zip(*rows, strict=True)
        return cls(flags, bodies, properties)


def envelope_size(topic: bytes, sys_flag: int) -> int:
    """Return the size of a message of a topic without its body and its properties."""
    return head_size(sys_flag) + tail_size(topic, b"", topic_magic(topic))


def pack_messages(
    contents: Contents,
    sizes: Sequence[int],
    positions: Iterable[int],
    *,
    topic: bytes,
    queue_id: int,
    offset: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
) -> bytes:
    """Return consecutive entries, of which recovery restores all or none.

    `sizes` are those of the entries, which follow each other from the first of `positions` on; the
    hosts' widths must agree with `sys_flag`.
    """
    magic = topic_magic(topic)
    is_short = magic == MAGIC_V1
    prefix = len(topic).to_bytes(1 if is_short else 2, "big") + topic
    hosts = born_host + store_ms.to_bytes(8, "big", signed=True) + store_host + bytes(12)
    shared = _SHARED.pack(sys_flag & ~CONTINUES | CONTINUES, born_ms) + hosts
    head = struct.Struct(f">I4sI4siqq{len(shared)}sI")
    assert head.size == head_size(sys_flag), "hosts as wide as the flags say"
    flags, bodies, properties, is_alike = contents
    last = len(sizes) - 1
    end = _SHARED.pack(sys_flag & ~CONTINUES, born_ms) + hosts
    # Column by column: the loops over messages are then the interpreter's own.
    leads = list(
        map(
            head.pack,
            sizes,
            repeat(magic.to_bytes(4, "big")),
            [checksum & _POSITIVE for checksum in map(crc32, bodies)],
            repeat(queue_id.to_bytes(4, "big", signed=True)),
            flags,
            count(offset),
            positions,
            chain(repeat(shared, last), (end,)),
            map(len, bodies),
        )
    )
    tails = _tails(prefix, properties, is_alike=is_alike)
    pieces: list[Buffer] = [b""] * (4 * len(sizes))
    pieces[0::4] = leads
    pieces[1::4] = bodies
    pieces[2::4] = tails
    pieces[3::4] = _checksums(leads, tails)
    return b"".join(pieces)


def _tails(prefix: bytes, properties: Sequence[bytes], *, is_alike: bool) -> list[bytes]:
    """Everything after the bodies, up to the checksums."""
    if is_alike:
        # Joined into one piece, then split again.
        size = len(properties[0])
        begin = prefix + _SIZE.pack(size + CHECKSUM_SIZE)
        whole = b"%b%b%b" % (begin, (CHECKSUM_NAME + begin).join(properties), CHECKSUM_NAME)
        return _cut(whole, len(begin) + size + len(CHECKSUM_NAME))
    begins = {size: prefix + _SIZE.pack(size + CHECKSUM_SIZE) for size in set(map(len, properties))}
    return [begins[len(each)] + each + CHECKSUM_NAME for each in properties]


def _checksums(leads: Sequence[bytes], tails: Sequence[bytes]) -> list[bytes]:
    """The values that the entries end with: eight digits and the end of the property."""
    numbers = array("I", map(crc32, tails, map(crc32, leads)))
    if sys.byteorder == "little":
        numbers.byteswap()
    return _cut(hexlify(numbers, "\x02", numbers.itemsize) + b"\x02", _DIGITS_SIZE)


def _cut(whole: bytes, size: int) -> list[bytes]:
    """Pieces of one size."""
    return [piece for (piece,) in struct.iter_unpack(f"{size}s", whole)]
