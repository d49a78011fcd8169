"""The envelope of a batch entry, with the constant parts prepared in advance.

Batches of a topic share their tail: the topic's name, the names of the properties and the sizes of
both, which change only when an offset takes one more digit. A `BatchFrame` holds it as a format
string; `enclose_batch` fills in the rest. The bytes are those of `pack_head` and `pack_tail`; a
property test compares them.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from rockgate.protocol.entry.checksum import crc32
from rockgate.protocol.entry.codec import HEAD_SIZE_V4, batch_properties, pack_tail, tail_size
from rockgate.protocol.entry.format import HOST_SIZE_V4, INNER_BATCH, MAGIC_BATCH

# The head of `codec` without flag, reconsume times, prepared offset and the producer's host.
_HEAD: Final = struct.Struct(f">IIIi4xqqIq{HOST_SIZE_V4}xq{HOST_SIZE_V4}s12xI")
_pack_head: Final = _HEAD.pack
_NUMBERS: Final = b"INNER_NUM\x01%010d\x02INNER_BASE\x01%d\x02"


class BatchFrame(NamedTuple):
    """The envelope of batches of one topic, with two IPv4 hosts and no properties of its own."""

    tail: bytes
    """A format string for count and offset; its result ends where the checksum's digits begin."""
    size: int
    """The size of the envelope: an entry is that much larger than its body."""
    until: int
    """The first offset that needs another frame."""


NO_FRAME: Final = BatchFrame(b"", 0, 0)
"""An initial frame that fits no offset."""


@lru_cache(maxsize=4_096)
def _frame(topic: bytes, digits: int) -> BatchFrame:
    properties = batch_properties(1, 10 ** (digits - 1) if digits > 1 else 0)
    whole = pack_tail(b"", topic, properties, MAGIC_BATCH)
    before, _, behind = whole.rpartition(properties)
    tail = before.replace(b"%", b"%%") + _NUMBERS + behind[: -len(b"01234567\x02")]
    size = HEAD_SIZE_V4 + tail_size(topic, properties, MAGIC_BATCH)
    return BatchFrame(tail, size, 10**digits)


def batch_frame(topic: bytes, offset: int) -> BatchFrame:
    """Return the frame for a batch of a topic that begins at an offset."""
    return _frame(topic, len(str(offset)))


def enclose_batch(
    view: memoryview,
    at: int,
    end: int,
    body: memoryview,
    tail: bytes,
    queue_id: int,
    offset: int,
    count: int,
    position: int,
    born_ms: int,
    store_ms: int,
    store_host: bytes,
) -> None:
    """Write the envelope around a body in place, the head last: it makes the entry visible."""
    body_size = len(body)
    body_at = at + HEAD_SIZE_V4
    head = _pack_head(
        end - at,
        MAGIC_BATCH,
        crc32(body) & 0x7FFFFFFF,
        queue_id,
        offset,
        position,
        INNER_BATCH,
        born_ms,
        store_ms,
        store_host,
        body_size,
    )
    covered = tail % (count, offset)
    view[body_at + body_size : end] = b"%b%08x\x02" % (covered, crc32(covered, crc32(head)))
    view[at:body_at] = head
