"""Metrics of the Kafka listener: requests, connections, throttling, topics, groups and lag.

There may be many topics and groups, so they are collected in slices, and only some have series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.server.listener import KafkaConnections
from rockgate.gateway.kafka.server.request_metrics import Traffic
from rockgate.gateway.kafka.share.acknowledgements import AcknowledgeType
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.gateway.kafka.share.sessions import ShareSessions
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.gateway.telemetry import broker_metrics, metrics
from rockgate.gateway.telemetry.config import MetricsConfig
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.protocol.kafka.api import APIS, ApiKey
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.state.topic import Topic
from rockgate.store.store import Store

_PIECE = 100
"""Queues or offsets counted before other work gets its turn."""


class RequestSource:
    """Metrics of requests and connections."""

    def __init__(
        self,
        *,
        stats: RequestStats,
        connections: KafkaConnections,
        throttling: Throttling | None = None,
    ) -> None:
        self._stats = stats
        self._connections = connections
        self._throttling = throttling

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        for key, stats in sorted(self._stats.apis.items()):
            api = APIS[ApiKey(key)].name
            page.add_durations(metrics.REQUESTS, stats, api)
            page.add(metrics.REQUEST_BYTES, stats.request_bytes, api)
            page.add(metrics.ANSWER_BYTES, stats.answer_bytes, api)
            for code, count in sorted(stats.errors.items()):
                page.add(metrics.ERRORS, count, api, _error_name(code))
            yield
        page.add(metrics.CONNECTIONS, self._connections.session_count)
        page.add(metrics.CONNECTIONS_MADE, self._connections.made_count)
        page.add(metrics.REQUEST_BYTES_IN_FLIGHT, self._connections.held_bytes)
        if self._throttling is None:
            return
        for quota, throttled in self._throttling.throttled.items():
            page.add(metrics.THROTTLED, throttled.count, quota)
            page.add(metrics.THROTTLED_SECONDS, throttled.total_ms / 1000, quota)


class TopicSource:
    """Metrics of topics."""

    def __init__(
        self,
        *,
        catalog: StoreCatalog,
        store: Store,
        sizes: QueueSizes,
        traffic: Traffic,
        config: MetricsConfig,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._traffic = traffic
        self._topics_max = config.topics_max
        self._sizes = sizes
        store.topics.on_deleted.append(traffic.forget)

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics, topic by topic."""
        count = 0
        for topic in self._catalog:
            count += 1
            if count <= self._topics_max:
                yield from self._topic(page, topic)
            yield
        page.add(metrics.TOPICS, count)
        page.add(metrics.PARTITIONS, self._catalog.partition_count)
        page.add(metrics.TOPICS_WITHOUT_SERIES, max(0, count - self._topics_max))

    def _topic(self, page: Exposition, topic: Topic) -> Iterator[None]:
        messages = size = 0
        for index, queue in enumerate(self._store.queues.of(topic.id)):
            messages += queue.next_offset
            yield from self._sizes.measure(queue)
            size += self._sizes.size(queue)
            if index % _PIECE == 0:
                yield
        name = names.to_kafka(topic.name)
        page.add(metrics.TOPIC_MESSAGES, messages, name)
        page.add(metrics.TOPIC_BYTES, size, name)
        page.add(metrics.TOPIC_FETCHED, self._traffic.fetched(topic), name)


class _Lag(NamedTuple):
    """The lag of a group in a topic; instances compare by it."""

    records: int
    """Records that the group can still read."""
    offsets: int
    """The distance to the end, which is larger where offsets hold no record."""
    size: int
    """The distance in the log, from the queue furthest behind."""
    group: str
    topic: str


class _Lags:
    """The lags so far: their sum, and the largest."""

    def __init__(self, listed_max: int) -> None:
        self._listed_max = listed_max
        self.count = self.records = self.offsets = 0
        self.largest: list[_Lag] = []
        """A min-heap."""

    def add(self, lag: _Lag) -> None:
        self.count += 1
        self.records += lag.records
        self.offsets += lag.offsets
        if len(self.largest) < self._listed_max:
            heappush(self.largest, lag)
        elif self.largest and lag > self.largest[0]:
            heapreplace(self.largest, lag)


class GroupSource:
    """Metrics of groups and their lag."""

    def __init__(
        self, *, groups: Groups, store: Store, empty: EmptyOffsets, config: MetricsConfig
    ) -> None:
        self._groups = groups
        self._empty = empty
        self._store = store
        self._groups_max = config.groups_max

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics, group by group."""
        states = Counter[str]({state.value: 0 for state in GroupState})
        shares = Counter[str]({GroupState.EMPTY.value: 0, GroupState.STABLE.value: 0})
        lags = _Lags(self._groups_max)
        for name in list(self._groups.names()):
            view = self._groups.describe(name)
            if view is None:
                # It was deleted during the collection.
                continue
            states[view.state.value] += 1
            if view.kind is GroupType.SHARE:
                shares[view.state.value] += 1
            yield from self._behind(name, lags)
            yield
        for state, count in states.items():
            page.add(metrics.GROUPS, count, state)
        for state, count in shares.items():
            page.add(broker_metrics.SHARE_GROUPS, count, state)
        page.add(metrics.LAG, lags.records)
        page.add(metrics.LAG_OFFSETS, lags.offsets)
        page.add(metrics.LAGS_HIDDEN, lags.count - len(lags.largest))
        largest_lags: list[_Lag] = []
        while lags.largest:
            largest_lags.append(heappop(lags.largest))
            yield
        for lag in reversed(largest_lags):
            page.add(metrics.GROUP_LAG, lag.records, lag.group, lag.topic)
            page.add(metrics.GROUP_LAG_OFFSETS, lag.offsets, lag.group, lag.topic)
            page.add(broker_metrics.GROUP_LAG_BYTES, lag.size, lag.group, lag.topic)
            yield

    def _behind(self, group: str, lags: _Lags) -> Iterator[None]:
        """Find the lag of a group by topic; offsets in deleted topics do not count.

        Offsets may be committed and topics deleted at every pause.
        """
        store = self._store
        for topic_id in store.progress.topics_of(group):
            topic = store.topics.find_id(topic_id)
            if topic is None:
                continue
            records = offsets = size = 0
            for index, queue_id in enumerate(store.progress.queues_of(group, topic_id)):
                if index % _PIECE == _PIECE - 1:
                    yield
                queue = store.queues.find(topic_id, queue_id)
                committed = store.progress.fetch(group, topic_id, queue_id)
                if queue is None or committed is None:
                    continue
                first, end = max(committed.offset, queue.log_start), queue.next_offset
                if first < end:
                    offsets += end - first
                    records += end - first - self._empty.count(topic_id, queue_id, first, end)
                    unit = queue.find(first)
                    if unit is not None:
                        size = max(size, store.log.end - unit.position)
            lags.add(_Lag(records, offsets, size, group, names.to_kafka(topic.name)))
            yield


class ShareSource:
    """Metrics of the records of share groups."""

    def __init__(self, records: ShareRecords, sessions: ShareSessions) -> None:
        self._records = records
        self._sessions = sessions

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        records = self._records
        page.add(broker_metrics.SHARE_IN_FLIGHT, records.in_flight_count)
        page.add(broker_metrics.SHARE_WINDOWS, records.window_count)
        page.add(broker_metrics.SHARE_SESSIONS, len(self._sessions))
        page.add(broker_metrics.SHARE_RECORDS, records.acquired_count)
        for type_, count in records.acknowledged.items():
            page.add(broker_metrics.SHARE_ACKS, count, AcknowledgeType(type_).name.lower())
        page.add(broker_metrics.SHARE_LATE, records.late_count)
        page.add(broker_metrics.SHARE_ARCHIVED, records.archived_count)
        yield


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
