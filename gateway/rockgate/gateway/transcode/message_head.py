"""What the envelopes of all messages of one batch have in common, and the ends of some of them."""

from __future__ import annotations

import struct
from typing import Final

from rockgate.gateway.transcode import names
from rockgate.gateway.transcode.dictionary import SKIPPED, TAGS, is_text, is_word
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    BORN_HOST_V6,
    STORE_HOST_V6,
    TOPIC_SIZE_V1_MAX,
    Entry,
)
from rockgate.store.api.queues import tag_code

SIZE_I16: Final = struct.Struct(">h")


class Head:
    """What the envelopes of all messages of a batch have in common."""

    def __init__(self, entry: Entry) -> None:
        topic = names.to_rocketmq(entry.topic.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
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
        self.size = layout.size
        self.magic = envelope.topic_magic(topic).to_bytes(4, "big")
        self.queue = entry.queue_id.to_bytes(4, "big", signed=True) + bytes(4)
        self.flags = hosts.to_bytes(4, "big")
        is_short = len(topic) <= TOPIC_SIZE_V1_MAX
        self.topic = len(topic).to_bytes(1 if is_short else 2, "big") + topic
        """With its length in front."""
        self.bare_tail = self.topic + bytes(2)
        self.position = entry.position


def code_of(headers: tuple[tuple[str, bytes | None], ...]) -> int:
    """Return the tag code of a record: of its first header TAGS, if that became the property."""
    for name, value in headers:
        if name == TAGS:
            return tag_code(value) if value and is_text(value) else 0
    return 0


def marker(topic: bytes, size: int, key: bytes | None) -> bytes:
    """Return what stands behind the empty body of a message that no client could have taken."""
    properties = b"%b\x01%d\x02" % (SKIPPED, size)
    if key is not None and len(key) < 250 and is_word(key):
        properties += b"KEYS\x01%b\x02" % key
    return b"%b%b%b" % (topic, SIZE_I16.pack(len(properties)), properties)
