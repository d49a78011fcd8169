"""Drafts: entries to be appended, and how a group of them is encoded into the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    BLANK_SIZE,
    CONTINUES,
    MAGIC_V1,
    MAGIC_V2,
    TOPIC_SIZE_V1_MAX,
    Buffer,
    Contents,
)
from rockgate.store.errors import EntryTooLarge

Stamp = Callable[[memoryview, int], None]
"""Called with the body in the mapped log, and its offset, before the checksum is computed."""

MOVED_SIZE = 128
"""Bytes that an entry may grow by when it is relocated; the first append leaves room for them."""
PROPERTIES_SIZE_MAX = envelope.PROPERTIES_SIZE_MAX - envelope.CHECKSUM_SIZE - MOVED_SIZE

NO_HOST = bytes(8)
Shape = tuple[int, int, bytes, int]
"""Size, magic, properties and flags of an entry, as determined by the log."""

_new = tuple.__new__  # skips the call of NamedTuple._make


class Draft(NamedTuple):
    """An entry to be appended: everything that the caller decides."""

    topic: bytes
    queue_id: int
    offset: int
    body: Buffer
    properties: bytes = b""
    """Encoded, each ending with its separator; the log prepends a batch's INNER_NUM."""
    batch_count: int = 0
    """0 for a message entry; otherwise the number of offsets in the batch entry."""
    born_ms: int = 0
    born_host: bytes = NO_HOST
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_offset: int = 0
    store_ms: int = 0
    """0 for the current time. A relocated entry retains the time of its first append."""
    stamp: Stamp | None = None
    store_host: bytes = b""
    """Empty for this server. A relocated entry retains the host of its first append."""


NOTHING_ELSE = Draft(b"", 0, 0, b"")[11:]
"""The fields of a draft after `reconsume_times`, with their defaults."""


ORDINARY = NOTHING_ELSE[1:]
"""The fields of a draft after `prepared_offset`, with their defaults."""


class Written(NamedTuple):
    """Where and when an entry was appended."""

    position: int
    size: int
    store_ms: int


def shape_of(draft: Draft, host_flag: int, segment_size: int) -> Shape:
    """Return an entry's size, magic, properties and flags; EntryTooLarge if over a limit."""
    topic, properties = draft.topic, draft.properties
    if len(topic) > envelope.TOPIC_SIZE_MAX:
        raise EntryTooLarge("Topic name", len(topic), envelope.TOPIC_SIZE_MAX)
    if draft.batch_count:
        magic = envelope.MAGIC_BATCH
        properties = envelope.batch_properties(draft.batch_count, draft.offset, properties)
    else:
        magic = MAGIC_V1 if len(topic) <= TOPIC_SIZE_V1_MAX else MAGIC_V2
    tail = envelope.tail_size(topic, properties, magic)
    flags = draft.sys_flag if draft.store_host else draft.sys_flag | host_flag
    growth = 0 if flags & envelope.MOVED else MOVED_SIZE
    if len(properties) + growth > PROPERTIES_SIZE_MAX + MOVED_SIZE:
        raise EntryTooLarge("Properties", len(properties), PROPERTIES_SIZE_MAX)
    size = envelope.head_size(flags) + len(draft.body) + tail
    size_max = segment_size - BLANK_SIZE - growth
    if size > size_max:
        raise EntryTooLarge("Entry", size, size_max)
    return size, magic, properties, flags


def message_sizes(topic: bytes, contents: Contents, flags: int, segment_size: int) -> list[int]:
    """Return the sizes of message entries; EntryTooLarge if one exceeds a limit."""
    if len(topic) > envelope.TOPIC_SIZE_MAX:
        raise EntryTooLarge("Topic name", len(topic), envelope.TOPIC_SIZE_MAX)
    fixed = envelope.envelope_size(topic, flags)
    size_max = segment_size - BLANK_SIZE - MOVED_SIZE
    _, bodies, properties, is_alike = contents
    count = len(bodies)
    if is_alike:
        bodies, properties = bodies[:1], properties[:1]
    properties_size = max(map(len, properties))
    if properties_size > PROPERTIES_SIZE_MAX:
        raise EntryTooLarge("Properties", properties_size, PROPERTIES_SIZE_MAX)
    sizes = [fixed + each for each in map(add, map(len, bodies), map(len, properties))]
    if max(sizes) > size_max:
        raise EntryTooLarge("Entry", max(sizes), size_max)
    return sizes * count if is_alike else sizes


def enclosed(
    draft: Draft,
    shape: Shape,
    body: Buffer,
    position: int,
    continues: int,
    store_ms: int,
    store_host: bytes,
) -> tuple[bytes, bytes]:
    """Return the bytes before a draft's body in the log, and those after it.

    `body` is passed as it will be stored, stamped if necessary.
    """
    total, magic, properties, flags = shape
    # Groups belong to the log: a client's flags never link an entry to the next one.
    flags = flags & ~CONTINUES | continues
    if draft.batch_count:
        flags |= envelope.INNER_BATCH
    body_size = len(body)
    head = envelope.pack_head(
        total,
        magic,
        envelope.body_checksum(body) if body_size else 0,
        draft.queue_id,
        draft.flag,
        draft.offset,
        position,
        flags,
        draft.born_ms,
        draft.born_host,
        store_ms,
        draft.store_host or store_host,
        draft.reconsume_times,
        draft.prepared_offset,
        body_size,
    )
    return head, envelope.pack_tail(head, draft.topic, properties, magic)


def pack_group(
    drafts: Sequence[Draft],
    shapes: Sequence[Shape],
    position: int,
    now_ms: int,
    store_host: bytes,
) -> tuple[bytes, list[Written]]:
    """Return the bytes of an atomic group of entries, and where each one is.

    None of them may have a stamp.
    """
    pieces: list[Buffer] = []
    written: list[Written] = []
    last = len(drafts) - 1
    for index, (draft, shape) in enumerate(zip(drafts, shapes, strict=True)):
        store_ms = draft.store_ms or now_ms
        continues = CONTINUES if index < last else 0
        head, tail = enclosed(draft, shape, draft.body, position, continues, store_ms, store_host)
        pieces += (head, draft.body, tail)
        total = shape[0]
        written.append(_new(Written, (position, total, store_ms)))
        position += total
    return b"".join(pieces), written
