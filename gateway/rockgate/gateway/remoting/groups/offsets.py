"""Committed offsets for RocketMQ clients: the same that Kafka clients see.

A one-way commit is buffered and appended within a second; one that is a request is appended, and
flushed where the setting says so, before it is answered. A lower offset is accepted, with a
warning: a group may be set back, or two of its members think that a queue is theirs. For a group
that has Kafka members only those may commit.

A consumer has its own position: it would continue from there and commit that after its group was
reset. So members are notified by the next pull of the queue: PULL_OFFSET_MOVED with the new offset,
after which RocketMQ's clients drop what they hold of the queue and start there. Until then what
they commit for it is ignored. RocketMQ 5's brokers do the same. Pending resets are in memory only:
the new offset itself is committed, and members that return later read it from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.store.api.progress import Commit, Progress
from rockgate.store.api.queues import Queue
from rockgate.store.api.topics import Topic

log = logging.getLogger(__name__)


Key = tuple[str, bytes, int]
"""A group in the store's form, a topic's id, a queue."""


class Resets:
    """New offsets of which members have yet to be notified."""

    def __init__(self, wake: Callable[[Queue], None]) -> None:
        self._wake = wake
        self.pending: dict[Key, int] = {}
        """Every pull checks whether there are any; nearly always there are none."""

    def set(self, group: str, queue: Queue, offset: int) -> None:
        """Answer a group's next pull of a queue with this offset; a pull that waits is woken."""
        self.pending[group, queue.topic_id, queue.queue_id] = offset
        self._wake(queue)

    def is_pending(self, group: str, queue: Queue) -> bool:
        """Whether a group's member of a queue has yet to be notified."""
        return (group, queue.topic_id, queue.queue_id) in self.pending

    def take(self, group: str, queue: Queue) -> int | None:
        """Return the offset to answer with, once; None if there is none."""
        return self.pending.pop((group, queue.topic_id, queue.queue_id), None)

    def forget(self, group: str) -> None:
        """The last member of a group has left: there is none to notify."""
        if self.pending:
            for key in [key for key in self.pending if key[0] == group]:
                del self.pending[key]


class Owners(Protocol):
    """The protocol of a group's members."""

    def is_foreign(self, group: str) -> bool:
        """Whether a group has Kafka members."""


class ConsumerOffsets:
    """Reads and commits offsets of groups, by the store's names of them."""

    def __init__(self, progress: Progress, owners: Owners, resets: Resets) -> None:
        self._progress = progress
        self._owners = owners
        self.resets = resets

    def committed(self, group: str, topic: Topic, queue_id: int) -> int | None:
        """The committed offset of a group, if any."""
        found = self._progress.fetch(group, topic.id, queue_id)
        return None if found is None else found.offset

    def check_owner(self, group: str) -> None:
        """Reject changes to a group that has Kafka members."""
        if self._owners.is_foreign(group):
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"Group '{group}' has Kafka members; only they can commit its offsets.",
            )

    def commit(self, group: str, queue: Queue, offset: int, *, acknowledged: bool) -> None:
        """Commit an offset of one queue."""
        self.check_owner(group)
        if offset < 0:
            raise Refused(ResponseCode.INVALID_PARAMETER, f"Offset {offset} must not be negative.")
        if self.resets.pending and self.resets.is_pending(group, queue):
            # It predates the reset of the group's offset.
            return
        known = self._progress.fetch(group, queue.topic_id, queue.queue_id)
        if known is not None and offset < known.offset:
            log.warning(
                "committed offset moved back group=%s topic=%s queue=%d from=%d to=%d",
                quoted(group),
                quoted(queue.topic.decode()),
                queue.queue_id,
                known.offset,
                offset,
            )
        self._progress.commit(
            group, (Commit(queue.topic_id, queue.queue_id, offset),), acknowledged=acknowledged
        )
