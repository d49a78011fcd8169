"""Message entries of one topic and queue that belong together, packed in one pass.

A client's batch send is many small messages with the same hosts, times and flags. What they share
of their envelopes is packed once; each message then costs one packing of what is its own, and its
checksums. The bytes are those of `pack_head` and `pack_tail`; a property test compares them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
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
    pack, checksum = head.pack, crc32
    magic_bytes, queue_bytes = magic.to_bytes(4, "big"), queue_id.to_bytes(4, "big", signed=True)
    pieces: list[Buffer] = []
    tails: dict[int, bytes] = {}
    last = len(sizes) - 1
    for index, (flag, body, properties) in enumerate(contents):
        if index == last:
            shared = _SHARED.pack(sys_flag & ~CONTINUES, born_ms) + hosts
        size, properties_size = sizes[index], len(properties)
        begins = tails.get(properties_size)
        if begins is None:
            begins = tails[properties_size] = prefix + _SIZE.pack(properties_size + CHECKSUM_SIZE)
        lead = pack(
            size,
            magic_bytes,
            checksum(body) & 0x7FFFFFFF,
            queue_bytes,
            flag,
            offset + index,
            position,
            shared,
            len(body),
        )
        tail = begins + properties + CHECKSUM_NAME
        pieces += (lead, body, tail, b"%08x\x02" % checksum(tail, checksum(lead)))
        position += size
    return b"".join(pieces)
