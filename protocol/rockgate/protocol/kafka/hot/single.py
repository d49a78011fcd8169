"""Produce with a single batch, the most common request: decoded and answered in one step each.

From v9 on. Whatever is not of the usual form is None here and left to `hot.produce`, which reads
the same values out of all that this module takes; a test holds the two together.
"""

import struct
from struct import Struct
from typing import Final

from rockgate.protocol.kafka.hot.produce import FLEXIBLE, TOPIC_IDS, VERSION_MAX
from rockgate.protocol.kafka.varint import Buffer

Single = tuple[int, bytes, str | bytes, int, memoryview]
"""Acks; the topic as an answer names it; its name, or its id from v13 on; partition; records."""

_LEAD: Final = Struct(">BhiBB")
_TOPICS_AT: Final = 7
_TOPIC_AT: Final = 8
_UUID_SIZE: Final = 16
_PARTITION: Final = Struct(">BiBBB")
_ONE: Final = 2
"""The count of an array with one element, as a compact array says it."""
_NO_TAGS: Final = memoryview(b"\x00\x00\x00")
"""What ends the partition, the topic and the request."""
# Partition, error code, base offset, append time, log start; neither record errors nor a message
# nor tags; the topic's tags; throttle time; tags.
_OUTCOME: Final = Struct(">ihqqqB2xxiB")


def decode_single(version: int, view: memoryview) -> Single | None:
    """The one batch of a request without a transactional id; None for any other request."""
    if not FLEXIBLE <= version <= VERSION_MAX:
        return None
    try:
        text_size, acks, _, topics, name_size = _LEAD.unpack_from(view)
        if text_size or topics != _ONE:
            return None
        topic: str | bytes
        if version >= TOPIC_IDS:
            at = _TOPIC_AT + _UUID_SIZE
            topic = bytes(view[_TOPIC_AT:at])
        else:
            if not 0 < name_size < 128:
                return None
            at = _TOPIC_AT + name_size
            topic = str(view[_TOPIC_AT + 1 : at], "ascii")
        partitions, index, n, second, third = _PARTITION.unpack_from(view, at)
    except (struct.error, ValueError):
        return None
    if n < 128:
        start = at + 6
    elif second < 128:
        n = n & 127 | second << 7
        start = at + 7
    elif third < 128:
        n = n & 127 | (second & 127) << 7 | third << 14
        start = at + 8
    else:
        return None
    end = start + n - 1
    if partitions != _ONE or n == 0 or view[end:] != _NO_TAGS:
        return None
    return acks, bytes(view[_TOPICS_AT : at + 1]), topic, index, view[start:end]


def encode_single(
    topic: bytes, index: int, base_offset: int, append_time_ms: int, log_start: int
) -> list[Buffer]:
    """The body of a response that says where the batch begins."""
    outcome = _OUTCOME.pack(index, 0, base_offset, append_time_ms, log_start, 1, 0, 0)
    return [topic + outcome]
