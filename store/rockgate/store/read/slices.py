"""What reads return, and how a unit is verified against its entry.

Everything is a view of the log: nothing is copied, and a view keeps its segment mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rockgate.protocol.entry import (
    BORN_HOST_V6,
    COMPRESSED,
    HEAD_SIZE_V4,
    MOVED,
    STORE_HOST_V6,
    identify,
)
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.view import QueueView

UNUSUAL = COMPRESSED | MOVED | BORN_HOST_V6 | STORE_HOST_V6
"""Flags of a message that cannot be returned unchanged, or has a different header."""


class Slice(NamedTuple):
    """One entry in the mapped log."""

    unit: Unit
    entry: memoryview


class Batches(NamedTuple):
    """A run of batch entries."""

    bodies: list[memoryview]
    size: int
    next_offset: int
    """The offset after the run."""
    is_at_message: bool
    """Whether a message entry ended it."""
    is_at_delayed: bool = False
    """Whether a batch with delayed records ended it."""


class Alike(NamedTuple):
    """Messages whose bodies have one size and whose properties have one size, none unusual."""

    first: Unit
    last: Unit
    offsets: Sequence[int]
    born_ms: Sequence[int]
    bodies: Sequence[bytes]
    properties: Sequence[bytes]


class MessageRun(NamedTuple):
    """Message entries of one queue."""

    buffers: list[memoryview]
    size: int
    message_count: int
    next_offset: int
    """The offset to continue from, after everything that was examined."""
    batch: Slice | None
    """The batch entry that ended the run."""


def entry_of(log: CommitLog, queue: QueueView, unit: Unit) -> Slice:
    """Return the entry of a unit, visible or not; StoreCorrupt if another entry is there.

    Sealed units are read without a checksum, so each one is compared with its entry.
    """
    view = log.slice(unit.position, unit.size)
    if view is None or len(view) < HEAD_SIZE_V4:
        raise misplaced(queue, unit.base, unit.position)
    size, _, queue_id, offset = identify(view, 0)
    if size != unit.size or queue_id != queue.queue_id or offset != unit.base:
        raise misplaced(queue, unit.base, unit.position)
    return Slice(unit, view)


def misplaced(queue: QueueView, offset: int, position: int) -> StoreCorrupt:
    """Return the error for a unit that does not point to its entry."""
    return StoreCorrupt(
        f"Index of queue {queue.queue_id} of {queue.topic.decode()}",
        position,
        f"no entry for offset {offset}; to rebuild the index, remove queueindex/ and restart",
    )
