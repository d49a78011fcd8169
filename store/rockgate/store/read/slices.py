"""What reads return.

Everything is a view of the log: nothing is copied, and a view keeps its segment mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rockgate.protocol.entry import (
    BORN_HOST_V6,
    COMPRESSED,
    MOVED,
    STORE_HOST_V6,
)
from rockgate.store.queues.queueindex import Unit

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
