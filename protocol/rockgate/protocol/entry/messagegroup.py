"""Message entries of one topic and queue that belong together, packed in one pass.

A client's batch send is many small messages with the same hosts, times and flags. What they share
of their envelopes is packed once; each message then costs one packing of what is its own, and its
checksums. The bytes are those of `pack_head` and `pack_tail`; a property test compares them.
"""

from __future__ import annotations

import struct
import sys
from array import array
from binascii import hexlify
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, count, repeat
from typing import Final

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
_DIGITS: Final = struct.Struct("9s")
_POSITIVE: Final = 0x7FFFFFFF

Content = tuple[int, Buffer, bytes]
"""Flag, body and packed properties of a message."""


def envelope_size(topic: bytes, sys_flag: int) -> int:
    """Return what a message of a topic takes besides its body and its properties."""
    return head_size(sys_flag) + tail_size(topic, b"", topic_magic(topic))


def pack_messages(
    contents: Iterable[Content],
    sizes: Sequence[int],
    *,
    topic: bytes,
    queue_id: int,
    offset: int,
    position: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
) -> bytes:
    """Return entries one after the other, of which recovery keeps all or none.

    `sizes` are those of the entries; the hosts' widths must agree with `sys_flag`.
    """
    magic = topic_magic(topic)
    is_short = magic == MAGIC_V1
    prefix = len(topic).to_bytes(1 if is_short else 2, "big") + topic
    hosts = born_host + store_ms.to_bytes(8, "big", signed=True) + store_host + bytes(12)
    shared = _SHARED.pack(sys_flag & ~CONTINUES | CONTINUES, born_ms) + hosts
    head = struct.Struct(f">I4sI4siqq{len(shared)}sI")
    assert head.size == head_size(sys_flag), "hosts as wide as the flags say"
    flags, bodies, properties = zip(*contents, strict=True)
    last = len(sizes) - 1
    end = _SHARED.pack(sys_flag & ~CONTINUES, born_ms) + hosts
    # Column by column: what is done for each message is done by the interpreter's own loops.
    leads = list(
        map(
            head.pack,
            sizes,
            repeat(magic.to_bytes(4, "big")),
            [checksum & _POSITIVE for checksum in map(crc32, bodies)],
            repeat(queue_id.to_bytes(4, "big", signed=True)),
            flags,
            count(offset),
            accumulate(sizes, initial=position),
            chain(repeat(shared, last), (end,)),
            map(len, bodies),
        )
    )
    begins = {size: prefix + _SIZE.pack(size + CHECKSUM_SIZE) for size in set(map(len, properties))}
    tails = [begins[len(each)] + each + CHECKSUM_NAME for each in properties]
    entries = zip(leads, bodies, tails, _checksums(leads, tails), strict=True)
    return b"".join(chain.from_iterable(entries))


def _checksums(leads: Sequence[bytes], tails: Sequence[bytes]) -> Iterator[bytes]:
    """The values that the entries end with: eight digits and the end of the property."""
    numbers = array("I", map(crc32, tails, map(crc32, leads)))
    if sys.byteorder == "little":
        numbers.byteswap()
    digits = hexlify(numbers, "\x02", numbers.itemsize) + b"\x02"
    return chain.from_iterable(_DIGITS.iter_unpack(digits))
