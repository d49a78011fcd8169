"""What an append takes and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rockgate.store.log.draft import Draft
from rockgate.store.queues.view import QueueView


class Appended(NamedTuple):
    """The result of an append."""

    offset: int
    position: int
    end: int
    """The position after the entry: once that is flushed, the entry is on disk."""
    store_ms: int
    queue_id: int = 0


class AppendedMessages(NamedTuple):
    """The result of appending messages together, at consecutive offsets."""

    offset: int
    """Offset of the first one."""
    positions: Sequence[int]
    end: int
    """The position after the last one: once that is flushed, all are on disk."""
    store_ms: int
    queue_id: int


class Intake(NamedTuple):
    """One entry of a group: for a queue, whose next offset it takes, or a state change."""

    queue: QueueView | None
    draft: Draft
