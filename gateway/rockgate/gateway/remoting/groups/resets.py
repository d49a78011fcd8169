"""Offset resets of groups, and how online members are notified.

A consumer knows by itself how far it has come, and would go on from there and commit that, so a
reset of a group with members is told to whoever pulls a queue next: PULL_OFFSET_MOVED with the new
offset, after which RocketMQ's clients drop what they hold of the queue and begin anew. Until then
what they commit for it counts for nothing. RocketMQ 5's brokers do it in this way.

It is kept in memory: the new offset itself is committed, and members that are gone read it from
there when they come back.
"""

from __future__ import annotations

from collections.abc import Callable

from rockgate.store.api.queues import Queue

Key = tuple[str, bytes, int]
"""A group in the store's form, a topic's id, a queue."""


class Resets:
    """Offsets that members are still to be told."""

    def __init__(self, wake: Callable[[Queue], None]) -> None:
        self._wake = wake
        self._pending: dict[Key, int] = {}

    def __bool__(self) -> bool:
        """Whether there are any: pulls ask this first, and nearly always nothing else."""
        return bool(self._pending)

    def set(self, group: str, queue: Queue, offset: int) -> None:
        """Let the next pull of a group at a queue be told an offset; one that waits is woken."""
        self._pending[group, queue.topic_id, queue.queue_id] = offset
        self._wake(queue)

    def is_pending(self, group: str, queue: Queue) -> bool:
        """Whether a group's member at a queue has not been told yet."""
        return (group, queue.topic_id, queue.queue_id) in self._pending

    def take(self, group: str, queue: Queue) -> int | None:
        """Return what is to be told, once; None if there is nothing."""
        return self._pending.pop((group, queue.topic_id, queue.queue_id), None)

    def forget(self, group: str) -> None:
        """The last member of a group is gone: nobody is left to be told."""
        if self._pending:
            for key in [key for key in self._pending if key[0] == group]:
                del self._pending[key]
