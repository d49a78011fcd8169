"""The writers and readers of all queues that are in use; those that are idle are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rockgate.gateway.rocketmq.cluster.brokers import DataBrokers, QueueName
from rockgate.gateway.rocketmq.members.leadership import Leadership
from rockgate.gateway.rocketmq.queues.history import CaughtUp, QueueHistory
from rockgate.gateway.rocketmq.queues.messages import OpeningThreads
from rockgate.gateway.rocketmq.queues.reader import STRIDE, Cache, QueueReader
from rockgate.gateway.rocketmq.queues.writer import QueueWriter
from rockgate.gateway.transcode.remote.pulled_messages import PulledMessages

IDLE_S: Final = 120.0
"""How long an unused reader is retained: longer than a fetch may wait at one."""
CACHE_BYTES_MAX: Final = 64 << 20
"""Batches of all queues."""


class ClusterQueues:
    """One of each for a queue, made when it is first needed."""

    def __init__(
        self,
        brokers: DataBrokers,
        threads: OpeningThreads,
        leadership: Leadership,
        fence: CaughtUp,
        *,
        group: str,
        now_ms: Callable[[], int],
        pull_count: Callable[[str], int] = lambda broker: STRIDE,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> None:
        self._brokers = brokers
        self._threads = threads
        self._leadership = leadership
        leadership.watch(self)
        self._fence = fence
        self._now_ms = now_ms
        self._pull_count = pull_count
        self._group = group
        self._messages = PulledMessages()
        self._cache: Cache = Cache(cache_bytes_max)
        self._writers: dict[QueueName, QueueWriter] = {}
        self._readers: dict[QueueName, QueueReader] = {}

    def writer(self, queue: QueueName) -> QueueWriter:
        """The writer of a queue; it refuses batches while another gateway leads it."""
        found = self._writers.get(queue)
        if found is None:
            found = self._writers[queue] = QueueWriter(
                queue,
                self._brokers,
                self._threads,
                QueueHistory(
                    queue, self._brokers, self._fence, group=self._group, now_ms=self._now_ms
                ),
                lease=lambda: self._leadership.lease(queue),
                on_confirmed=lambda offset: self._confirmed(queue, offset),
            )
        return found

    def reader(self, queue: QueueName) -> QueueReader:
        """The reader of a queue."""
        found = self._readers.get(queue)
        if found is None:
            found = self._readers[queue] = QueueReader(
                queue,
                self._brokers,
                group=self._group,
                messages=self._messages,
                cache=self._cache,
                pull_count=self._pull_count,
            )
            found.confirmed(self.confirmed(queue))
        return found

    @property
    def cached_bytes(self) -> int:
        """The size of the batches that are cached."""
        return self._cache.size

    def is_served(self, queue: QueueName) -> bool:
        """Whether this gateway serves clients of a queue now."""
        return self._leadership.lease(queue).is_served

    def gained(self, queue: QueueName) -> None:
        """A term begins; its writer sees it with the next batch."""

    def lost(self, queue: QueueName) -> None:
        """A term has ended: drop waiting batches."""
        writer = self._writers.get(queue)
        if writer is not None:
            writer.lose("Another gateway leads this partition now.")

    def confirmed(self, queue: QueueName) -> int:
        """The offset after what this gateway has stored in a queue; 0 for nothing."""
        writer = self._writers.get(queue)
        return 0 if writer is None else writer.confirmed

    def sweep(self) -> None:
        """Close readers that were not used for a while."""
        now = asyncio.get_running_loop().time()
        for queue, reader in list(self._readers.items()):
            if now - reader.read_at > IDLE_S:
                reader.close()
                del self._readers[queue]

    def forget(self, topic: str) -> None:
        """Close what belongs to a topic that was deleted."""
        for queue in [queue for queue in self._readers if queue.topic == topic]:
            reader = self._readers.pop(queue)
            reader.close()
            # Another topic of this name has other messages at its offsets.
            reader.drop()
        for queue in [queue for queue in self._writers if queue.topic == topic]:
            del self._writers[queue]

    async def close(self) -> None:
        """Close all of them, after what is under way."""
        for reader in self._readers.values():
            reader.close()
        await asyncio.gather(*(writer.close() for writer in self._writers.values()))

    def _confirmed(self, queue: QueueName, offset: int) -> None:
        reader = self._readers.get(queue)
        if reader is not None:
            reader.confirmed(offset)
