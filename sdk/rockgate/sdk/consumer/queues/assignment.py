"""The queues that a member consumes now, and how they change.

Every member computes its own share, periodically and when brokers notify it. A round takes three
steps, because two of them call a broker and may fail:

    release(topic, wanted)    queues that belong to another member now are dropped at once: whatever
                              a listener still finishes of them changes nothing here. Their offsets
                              are persisted and their locks released; then `released`
    missing(topic, wanted)    queues to acquire. Their locks and offsets are requested; then
                              `acquire`, or nothing: the next round tries again
    truncate(topics)          queues of topics that are no longer subscribed are released as well

A queue that has not been pulled for two minutes has lost its puller, and is released and acquired
again in the same round. So is one that was dropped, could not be released, and is wanted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Generic

from rockgate.sdk.consumer.queues.process_queue import P, ProcessQueue
from rockgate.sdk.results import Queue


class Assignment(Generic[P]):
    """The process queues of one member, by queue."""

    def __init__(self) -> None:
        self._held: dict[Queue, ProcessQueue[P]] = {}

    def __contains__(self, queue: Queue) -> bool:
        return queue in self._held

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def get(self, queue: Queue) -> ProcessQueue[P] | None:
        """The cache of a queue, if it is consumed here."""
        return self._held.get(queue)

    def items(self) -> list[tuple[Queue, ProcessQueue[P]]]:
        """Every queue and its cache."""
        return list(self._held.items())

    def release(self, topic: str, wanted: Collection[Queue], now_s: float) -> list[Queue]:
        """Drop and return the queues of a topic that are not wanted, or no longer pulled."""
        wanted = set(wanted)
        return self._drop(
            queue
            for queue, held in self._held.items()
            if queue.topic == topic
            and (queue not in wanted or held.is_dropped or held.is_pull_expired(now_s))
        )

    def truncate(self, topics: Collection[str]) -> list[Queue]:
        """Drop the queues of every topic but these; they are named."""
        return self._drop(queue for queue in self._held if queue.topic not in topics)

    def drop(self, queue: Queue) -> list[Queue]:
        """Drop one queue, if it is held: its offset was wrong, or was reset."""
        return self._drop(iter([queue] if queue in self._held else []))

    def released(self, queue: Queue) -> None:
        """Its offset is persisted, and its lock given up."""
        del self._held[queue]

    def missing(self, wanted: Collection[Queue]) -> list[Queue]:
        """The queues that are wanted and not held, in order."""
        return sorted(queue for queue in wanted if queue not in self._held)

    def acquire(self, queue: Queue, now_s: float) -> ProcessQueue[P]:
        """Consume a queue from now on."""
        assert queue not in self._held, queue
        held = self._held[queue] = ProcessQueue(now_s)
        return held

    def _drop(self, queues: Iterator[Queue]) -> list[Queue]:
        found = sorted(queues)
        for queue in found:
            self._held[queue].is_dropped = True
        return found
