"""The producers' batches among pulled messages: what a first record says of its batch.

The first record of an idempotent producer's batch has the producer's id, epoch and sequence in its
`UNIQ_KEY`, and the number of records in `__KAFKA_COUNT`. All other messages say nothing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rockgate.gateway.transcode.remote.sent_records import MESSAGES_MAX
from rockgate.gateway.transcode.remote.whole_batches import count_of
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import HEAD_SIZE_V4, INNER_BATCH, EntryError, message_fields
from rockgate.protocol.remoting.command import Buffer

_key: Final = re.compile(
    rb"(?:^|\x02)UNIQ_KEY\x01K([0-9A-F]{16})([0-9A-F]{4})([0-9A-F]{8})\x02"
).search
_count: Final = re.compile(rb"(?:^|\x02)__KAFKA_COUNT\x01([0-9]{1,5})\x02").search
_HINT: Final = b"UNIQ_KEY\x01K"
UNKNOWN: Final = 0


class BatchMark(NamedTuple):
    """A batch of a producer, as its first record names it."""

    queue_id: int
    offset: int
    producer_id: int
    epoch: int
    sequence: int
    record_count: int
    """Its records; UNKNOWN if that is not said."""


class Marks(NamedTuple):
    """What was found, in the order of the messages, and the offset after the last of them."""

    batches: list[BatchMark]
    end: int


def find_marks(data: Buffer, end: int = 0) -> Marks:
    """Return the batches that begin among messages; EntryError if one is damaged.

    `end` is the offset after the messages if there is none.
    """
    view = memoryview(data)
    found: list[BatchMark] = []
    at = 0
    while at < len(view):
        if len(view) - at < HEAD_SIZE_V4:
            raise EntryError("message is truncated")
        total, _, offset, sys_flag, *_ = message_fields(view, at)
        if not HEAD_SIZE_V4 <= total <= len(view) - at:
            raise EntryError(f"message has size {total}")
        message = view[at : at + total]
        mark = _mark(message, offset) if _HINT in bytes(message) else None
        if mark is not None:
            found.append(mark)
        end = offset + (_inner_count(message) if sys_flag & INNER_BATCH else 1)
        at += total
    return Marks(found, end)


def _inner_count(message: memoryview) -> int:
    entry = envelope.read(message)
    return count_of(
        bytes(message[entry.properties_at : entry.properties_at + entry.properties_size])
    )


def _mark(message: memoryview, offset: int) -> BatchMark | None:
    entry = envelope.read(message)
    properties = bytes(message[entry.properties_at : entry.properties_at + entry.properties_size])
    key = _key(properties)
    if key is None:
        return None
    producer_id, epoch, sequence = (int(each, 16) for each in key.groups())
    counted = _count(properties)
    count = int(counted[1]) if counted else UNKNOWN
    if producer_id >= 1 << 63 or epoch >= 1 << 15 or sequence >= 1 << 31 or count > MESSAGES_MAX:
        return None
    return BatchMark(entry.queue_id, offset, producer_id, epoch, sequence, count)
