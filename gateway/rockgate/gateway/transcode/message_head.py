"""The common parts of the envelopes of all messages of a batch."""

from __future__ import annotations

from rockgate.gateway.transcode import names
from rockgate.gateway.transcode.dictionary import SKIPPED, TAGS, is_text, is_word
from rockgate.protocol.entry import Entry, MessageFrame, pack_size
from rockgate.store.api.queues import tag_code


def frame_of(entry: Entry) -> MessageFrame:
    """Return the envelope of a batch's messages, with the topic's name in RocketMQ."""
    topic = names.to_rocketmq(entry.topic.decode("utf-8", "surrogateescape"))
    return MessageFrame(entry, topic.encode("utf-8", "surrogateescape"))


def code_of(headers: tuple[tuple[str, bytes | None], ...]) -> int:
    """Return the tag code of a record: that of its first TAGS header, if it became the property."""
    for name, value in headers:
        if name == TAGS:
            return tag_code(value) if value and is_text(value) else 0
    return 0


def marker(topic: bytes, size: int, key: bytes | None) -> bytes:
    """Return what follows the empty body of a message that is too large for any client."""
    properties = b"%b\x01%d\x02" % (SKIPPED, size)
    if key is not None and len(key) < 250 and is_word(key):
        properties += b"KEYS\x01%b\x02" % key
    return b"%b%b%b" % (topic, pack_size(len(properties)), properties)
