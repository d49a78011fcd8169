"""Drafts: entries to be appended, and how a group of them is encoded into the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import CONTINUES, Buffer

Stamp = Callable[[memoryview, int], None]
"""Called with the body as it lies in the log, and its offset, before the checksum is taken."""

NO_HOST = bytes(8)
Shape = tuple[int, int, bytes, int]
"""Size, magic, properties and flags of an entry, as the log has decided them."""

_new = tuple.__new__  # what NamedTuple._make calls, without its own call in between


class Draft(NamedTuple):
    """An entry that is to be appended: all that the caller decides."""

    topic: bytes
    queue_id: int
    offset: int
    body: Buffer
    properties: bytes = b""
    """Packed, each ending with its separator; a batch's INNER_NUM is put in front by the log."""
    batch_count: int = 0
    """0 for a message entry; else how many offsets the batch entry takes."""
    born_ms: int = 0
    born_host: bytes = NO_HOST
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_offset: int = 0
    store_ms: int = 0
    """0: now. A moved entry keeps the time of its first append."""
    stamp: Stamp | None = None
    store_host: bytes = b""
    """Empty: this server. A moved entry keeps the host of its first append."""


NOTHING_ELSE = Draft(b"", 0, 0, b"")[11:]
"""What a draft has behind the count of its retries, as it is unless somebody says otherwise."""


class Written(NamedTuple):
    """Where and when an entry was appended."""

    position: int
    size: int
    store_ms: int


def enclosed(
    draft: Draft,
    shape: Shape,
    body: Buffer,
    position: int,
    continues: int,
    store_ms: int,
    store_host: bytes,
) -> tuple[bytes, bytes]:
    """Return what stands in front of a draft's body in the log, and what behind.

    The body is given as it will lie there: stamped, if it is to be.
    """
    total, magic, properties, flags = shape
    # Groups are the log's own: a client's flags never tie an entry to the next one.
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
    """Return entries one after the other, of which recovery keeps all or none, and their places.

    None of them wants to be stamped.
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
