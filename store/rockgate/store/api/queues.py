"""Queues: their offsets, and the log position of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rockgate.protocol.entry.tagcode import tag_code
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.view import QueueView as Queue

__all__ = ["Queue", "Queues", "Unit", "tag_code"]


class Queues(Protocol):
    """The queues by topic id and queue id."""

    def of(self, topic_id: bytes, /) -> Sequence[Queue]:
        """Return a topic's queues by queue id; empty for an unknown topic."""

    def find(self, topic_id: bytes, queue_id: int) -> Queue | None:
        """Return a queue; None if its topic was deleted, or has no such queue."""
