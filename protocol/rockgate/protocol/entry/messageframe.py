"""Message entries field by field: reads single fields, and packs the fields that entries share.

For loops over the messages of a run or of a batch, where `read` and `pack_head` would do unneeded
work. The layout is that of `codec`, and a test compares the two.
"""

from __future__ import annotations

import struct
from typing import Final

from rockgate.protocol.entry.codec import Entry, topic_magic
from rockgate.protocol.entry.format import (
    BORN_HOST_V6,
    STORE_HOST_V6,
    TOPIC_SIZE_V1_MAX,
    Buffer,
)

message_fields: Final = struct.Struct(">II12xq8xiq36xI").unpack_from
"""Size, magic, offset, flags, time of birth and size of the body of an entry with IPv4 hosts.

Called for every message that is transcoded, so it is the struct's own method.
"""
V1_SIZES: Final = 3
"""What a MAGIC_V1 entry has after its body besides topic and properties: the sizes of both."""

_SIZE: Final = struct.Struct(">h")
_BODY_SIZE: Final = struct.Struct(">I")
_BORN_MS: Final = struct.Struct(">40xq")

pack_size: Final = _SIZE.pack
"""The size of the properties, which precedes them."""


def born_ms_of(view: Buffer) -> int:
    """Return the born timestamp of an entry; for a batch, its largest record timestamp."""
    return int(_BORN_MS.unpack_from(view)[0])


class MessageFrame:
    """The envelopes of messages made from one entry; only place, time and contents differ."""

    __slots__ = (
        "bare_tail",
        "flags",
        "magic",
        "pack",
        "position",
        "queue",
        "rest",
        "size",
        "topic",
    )

    def __init__(self, entry: Entry, topic: bytes) -> None:
        """`topic` is the topic of the messages, which need not be the entry's."""
        hosts = entry.sys_flag & (BORN_HOST_V6 | STORE_HOST_V6)
        self.rest = b"%b%b%b%b" % (
            entry.born_host,
            entry.store_ms.to_bytes(8, "big", signed=True),
            entry.store_host,
            bytes(12),
        )
        """Born host, store time and host, reconsume times, prepared offset."""
        layout = struct.Struct(f">I4sI8sqq4sq{len(self.rest)}sI")
        self.pack = layout.pack
        """Of size, magic, body's CRC, queue, offset, position, flags, birth, rest, body's size."""
        self.size = layout.size
        self.magic = topic_magic(topic).to_bytes(4, "big")
        self.queue = entry.queue_id.to_bytes(4, "big", signed=True) + bytes(4)
        self.flags = hosts.to_bytes(4, "big")
        is_short = len(topic) <= TOPIC_SIZE_V1_MAX
        self.topic = len(topic).to_bytes(1 if is_short else 2, "big") + topic
        """Preceded by its length."""
        self.bare_tail = self.topic + bytes(2)
        """Everything after the body of a message without properties."""
        self.position = entry.position

    def properties(self, buffer: memoryview, at: int, end: int) -> bytes:
        """Return the properties of the message from `at` to `end`."""
        body_at = at + self.size
        (body_size,) = _BODY_SIZE.unpack_from(buffer, body_at - _BODY_SIZE.size)
        return bytes(buffer[body_at + body_size + len(self.topic) + _SIZE.size : end])
