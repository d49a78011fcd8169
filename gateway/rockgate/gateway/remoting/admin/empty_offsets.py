"""Counts offsets without a readable record, to compute consumer lag in records."""

from __future__ import annotations

from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.protocol.remoting.bodies.admin import OffsetRange
from rockgate.store.api.queues import Queues


class EmptyOffsetsAdmin:
    """Counts them in ranges of offsets."""

    def __init__(self, queues: Queues, empty: EmptyOffsets) -> None:
        self._queues = queues
        self._empty = empty

    def count(self, asked: OffsetRange) -> int:
        """How many offsets of a range are empty; -1 if there is no such partition."""
        try:
            topic_id = bytes.fromhex(asked.topic_id)
        except ValueError:
            return -1
        queue = self._queues.find(topic_id, asked.queue)
        if queue is None:
            return -1
        first, end = max(asked.first, queue.log_start), min(asked.end, queue.next_offset)
        return self._empty.count(topic_id, asked.queue, first, end)
