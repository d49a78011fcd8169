"""A group's progress in this process: the offset to commit of each queue.

Offsets of concurrent listeners only grow; an orderly listener and an offset reset may move them
back. What was persisted is not persisted again until it changes.
"""

from __future__ import annotations

from collections.abc import Collection

from rockgate.sdk.results import Queue


class OffsetTable:
    """The offset of each queue that is consumed here, and whether it was persisted."""

    def __init__(self) -> None:
        self._offsets: dict[Queue, int] = {}
        self._persisted: dict[Queue, int] = {}

    def get(self, queue: Queue) -> int | None:
        """The offset of a queue, if it is known here."""
        return self._offsets.get(queue)

    def update(self, queue: Queue, offset: int, *, increase_only: bool) -> None:
        """Everything below this offset is finished."""
        known = self._offsets.get(queue)
        if known is None or offset > known or not increase_only:
            self._offsets[queue] = offset

    def unpersisted(self, queues: Collection[Queue] | None = None) -> dict[Queue, int]:
        """The unpersisted changes of all queues or of these."""
        return {
            queue: offset
            for queue, offset in self._offsets.items()
            if (queues is None or queue in queues) and self._persisted.get(queue) != offset
        }

    def persisted(self, queue: Queue, offset: int) -> None:
        """A store has taken this offset."""
        if queue in self._offsets:
            self._persisted[queue] = offset

    def remove(self, queue: Queue) -> None:
        """The queue is consumed by another member now."""
        self._offsets.pop(queue, None)
        self._persisted.pop(queue, None)

    def of_topic(self, topic: str) -> dict[Queue, int]:
        """The offsets of one topic."""
        return {queue: offset for queue, offset in self._offsets.items() if queue.topic == topic}

    def all(self) -> dict[Queue, int]:
        """Every offset."""
        return dict(self._offsets)
