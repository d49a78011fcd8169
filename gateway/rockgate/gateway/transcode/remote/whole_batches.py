"""Whole record batches as single messages, in topics whose queues are BatchCQ (RocketMQ 5).

There a message takes as many offsets as its INNER_NUM says, so a batch of Kafka is stored as it
came, compressed or not, and nothing is done for a record. `__KAFKA_BATCH` tells such a message from
those of RocketMQ's producers, of which a batch send (320) is one message of sub-messages.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rockgate.gateway.transcode.dictionary import read_message
from rockgate.gateway.transcode.remote.sent_records import (
    COUNT,
    MESSAGES_MAX,
    OFFSET_MS,
    REQUEST_BYTES_MAX,
    UNIQUE,
    AloneMessage,
    unique_key,
)
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import INNER_BATCH, EntryError
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.message import decode_batch

SYS_FLAG: Final = INNER_BATCH
WHOLE: Final = b"__KAFKA_BATCH"
"""Property of a message whose body is a record batch."""
INNER_NUM: Final = b"INNER_NUM"
_count: Final = re.compile(rb"(?:^|\x02)INNER_NUM\x01([0-9]{1,10})\x02").search
_is_whole: Final = re.compile(rb"(?:^|\x02)__KAFKA_BATCH\x011\x02").search
_HIDDEN: Final = frozenset(
    (b"CLUSTER", b"MSG_REGION", b"TRACE_ON", b"INNER_BASE", INNER_NUM, OFFSET_MS, COUNT)
)


class InnerBatch(NamedTuple):
    """A record batch made of one message, and the offsets that it covers."""

    data: bytearray
    base: int
    end: int


def to_whole(body: bytes, header: BatchHeader) -> AloneMessage:
    """Return a batch as one message; BatchTooLarge if it cannot be one."""
    count = header.record_count
    if count > MESSAGES_MAX:
        raise BatchTooLarge(
            f"Batch has {count:,} records; a RocketMQ broker takes {MESSAGES_MAX:,} at once."
        )
    if len(body) > REQUEST_BYTES_MAX:
        raise BatchTooLarge(
            f"Batch is {len(body):,} bytes; a RocketMQ broker takes {REQUEST_BYTES_MAX:,}."
        )
    unique = unique_key(header)
    properties = b"%b\x01%d\x02%b\x011\x02" % (INNER_NUM, count, WHOLE)
    if unique is not None:
        properties += b"%b\x01%b\x02%b\x01%d\x02" % (UNIQUE, unique, COUNT, count)
    return AloneMessage(body, properties.decode())


def count_of(properties: bytes) -> int:
    """How many offsets a message takes."""
    found = _count(properties)
    count = int(found[1]) if found else 1
    if not 0 < count <= MESSAGES_MAX:
        raise EntryError(f"message takes {count} offsets")
    return count


def read_inner(message: memoryview, offset: int) -> InnerBatch:
    """Return the record batch of a message that takes several offsets; EntryError if damaged."""
    entry = envelope.read(message)
    properties = bytes(message[entry.properties_at : entry.properties_at + entry.properties_size])
    count = count_of(properties)
    body = message[entry.body_at : entry.body_at + entry.body_size]
    data = _stored(body, count) if _is_whole(properties) else _made(body, count, entry.born_ms)
    batches.stamp(data, offset, 0)
    return InnerBatch(data, offset, offset + count)


def _stored(body: memoryview, count: int) -> bytearray:
    try:
        header = batches.check(body)
    except MalformedBatch as damage:
        raise EntryError(f"message holds no record batch: {damage}") from None
    if header.record_count != count:
        raise EntryError(f"message takes {count} offsets and holds {header.record_count} records")
    return bytearray(body)


def _made(body: Buffer, count: int, born_ms: int) -> bytearray:
    """A batch of what a producer of RocketMQ sent in one request."""
    try:
        contents = decode_batch(body)
    except MalformedContent as damage:
        raise EntryError(f"message holds no messages: {damage}") from None
    if len(contents.bodies) != count:
        raise EntryError(f"message takes {count} offsets and holds {len(contents.bodies)}")
    records = []
    rows = zip(contents.bodies, contents.properties, strict=True)
    for at, (value, packed) in enumerate(rows):
        words = read_message(bytes(packed), _HIDDEN)
        headers = tuple(
            (name.decode("utf-8", "replace"), content) for name, content in words.headers
        )
        whole = None if words.is_null else bytes(value)
        records.append(Record(at, born_ms, words.key, whole, headers))
    return build_batch(records, base_offset=0)
