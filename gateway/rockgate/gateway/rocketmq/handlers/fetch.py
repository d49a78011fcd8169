"""Fetch over a RocketMQ cluster: v4-18.

Behaviour
- The handler of a server's Fetch, with its sessions, over queues of brokers: record batches made of
  what was pulled; none of them is cut at the byte limit.
- Waits for `min_bytes` up to `max_wait_ms`, by a timer of its own.
- An offset below the start or above the end of its queue is OFFSET_OUT_OF_RANGE; a partition whose
  broker has neither master nor slave, or does not answer, is LEADER_NOT_AVAILABLE. A slave is read
  while there is no master, if it lets itself be read (`slaveReadEnable`).
- A session examines all its partitions every second: who leads them may have changed.
- `read_committed` reads everything: half messages have no offset before they are committed.

Versions
- v5: log start offset.  v7: sessions.  v12: flexible.  v13: topics by id.

Departs from Kafka
- Requests by followers are rejected: there are none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, overload

from rockgate.gateway.kafka.fetch.partitions import Read
from rockgate.gateway.kafka.fetch.session import WantedTopic
from rockgate.gateway.kafka.handlers.fetch import Fetch, Fetched
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.rocketmq.members.leadership import Leadership
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.queues.reader import UNKNOWN, QueueReader
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.gateway.rocketmq.topics.topic import ClusterTopic
from rockgate.gateway.storage.long_poll import Watcher
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot import fetch as hot
from rockgate.protocol.kafka.hot.fetch import FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest

PARTITIONS_MAX: Final = 10_000
"""Partitions that one request may name."""
WAIT_MS_MAX: Final = 60_000
EXAMINE_MS: Final = 1_000
"""How often a session examines all its partitions."""


class ClusterFetch:
    """Learns of topics, and has them read."""

    def __init__(self, catalog: ClusterCatalog, fetch: Fetch) -> None:
        self._catalog = catalog
        self._fetch = fetch

    def handle(self, request: FetchRequest, call: Call) -> Fetched | Awaitable[Fetched]:
        """Respond with what is available, or wait until there is enough."""
        if sum(len(topic.partitions) for topic in request.topics) > PARTITIONS_MAX:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        request.max_wait_ms = min(request.max_wait_ms, WAIT_MS_MAX)
        if call.version < hot.TOPIC_IDS:
            learning = self._catalog.learn([topic.topic for topic in request.topics])
            if learning is not None:
                return self._handle_after(learning, request, call)
        return self._fetch.handle(request, call)

    def refuse(self, request: FetchRequest, code: ErrorCode) -> Fetched:
        """Reject every partition, and the whole, with the same error."""
        return self._fetch.refuse(request, code)

    async def _handle_after(
        self, learning: Awaitable[None], request: FetchRequest, call: Call
    ) -> Fetched:
        await learning
        answer = self._fetch.handle(request, call)
        return answer if isinstance(answer, Fetched) else await answer


class ClusterFinder:
    """Finds the readers of a topic's partitions."""

    def __init__(self, catalog: ClusterCatalog, queues: ClusterQueues) -> None:
        self._catalog = catalog
        self._queues = queues

    def queues(self, wanted: WantedTopic, by_id: bool) -> Sequence[QueueReader] | ErrorCode:
        """Return the readers of a topic's partitions, or why they cannot be read."""
        catalog = self._catalog
        topic = catalog.find_id(wanted.topic_id) if by_id else catalog.find(wanted.name)
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.UNKNOWN_TOPIC_ID if by_id else unknown
        return _Readers(topic, self._queues)


class _Readers(Sequence[QueueReader]):
    """The readers of a topic's partitions, each made when it is asked for."""

    __slots__ = ("_queues", "_topic")

    def __init__(self, topic: ClusterTopic, queues: ClusterQueues) -> None:
        self._topic = topic
        self._queues = queues

    def __len__(self) -> int:
        return self._topic.queue_count

    @overload
    def __getitem__(self, index: int) -> QueueReader: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[QueueReader]: ...

    def __getitem__(self, index: int | slice) -> QueueReader | Sequence[QueueReader]:
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        return self._queues.reader(self._topic.queue(index))

    def __iter__(self) -> Iterator[QueueReader]:
        return (self[at] for at in range(len(self)))


class ClusterPartitionReader:
    """Reads one partition of what is cached, where this gateway may serve it."""

    def __init__(self, cluster: Cluster, leadership: Leadership) -> None:
        self._cluster = cluster
        self._leadership = leadership

    def read(
        self,
        queue: QueueReader,
        asked: FetchPartition,
        size_max: int,
        at_least_one: bool,
        is_committed: bool,
        cold: object,
    ) -> Read:
        """Read from the requested offset; what is not cached is pulled, and is news then."""
        error = self._refusal(queue, asked)
        if error is not None:
            return FetchedPartition(asked.partition, error), False, 0
        reading = queue.read(asked.fetch_offset, size_max, at_least_one=at_least_one)
        if reading.error:
            fetched = FetchedPartition(
                asked.partition, reading.error, reading.end, reading.end, reading.start
            )
            return fetched, False, 0
        end = max(reading.end, UNKNOWN)
        fetched = FetchedPartition(
            asked.partition,
            0,
            end,
            end,
            reading.start,
            reading.batches,
            () if is_committed else None,
        )
        return fetched, reading.is_cut, len(reading.batches)

    def _refusal(self, queue: QueueReader, asked: FetchPartition) -> ErrorCode | None:
        name = queue.queue
        if name.broker not in self._cluster.masters and name.broker not in self._cluster.readable:
            return ErrorCode.LEADER_NOT_AVAILABLE
        if self._leadership.is_elsewhere(name):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if asked.current_leader_epoch > 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return None


class WatchedReaders:
    """Changes of readers, for those who watch queues."""

    def watch(self, queue: QueueReader, watcher: Watcher) -> None:
        """Notify a watcher of every change of a queue, until `unwatch`."""
        queue.watch(watcher.noted)

    def unwatch(self, queue: QueueReader, watcher: Watcher) -> None:
        """Stop notifying it."""
        queue.unwatch(watcher.noted)


class NothingCold:
    """There is nothing on this gateway's disk, and no batch with parts that are not due."""

    async def load(self, places: Sequence[Any]) -> None:
        """Nothing is to be loaded."""

    async def prepare(self, places: Any) -> None:
        """Nothing is to be built."""


class NoLimits:
    """No client is limited."""

    is_on = False

    def fetch_bytes_max(self, call: Call, bytes_max: int) -> int:
        """All of it."""
        return bytes_max

    def charge(
        self,
        api_key: int,
        client_id: str | None,
        peer: Peer,
        *,
        request_size: int,
        answer_size: int,
        loop_seconds: float,
    ) -> int:
        """No client has to wait."""
        return 0
