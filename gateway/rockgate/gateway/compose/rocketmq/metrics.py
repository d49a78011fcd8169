"""Metrics of a gateway to a RocketMQ cluster: its brokers, its part of them, and its requests."""

from __future__ import annotations

from collections.abc import Iterator

from rockgate.gateway.compose.rocketmq.table import GatewayServices
from rockgate.gateway.rocketmq.cluster.client import LOST, ClusterClient
from rockgate.gateway.rocketmq.members.cluster_member import ClusterMember
from rockgate.gateway.telemetry import cluster_metrics as metrics
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.protocol.remoting.codes import request_name, response_name

_PIECE = 1_000
"""Topics counted before other work gets its turn."""


class ClusterSource:
    """Metrics of the cluster as this gateway sees it."""

    def __init__(
        self, cluster: ClusterClient, member: ClusterMember, services: GatewayServices
    ) -> None:
        self._cluster = cluster
        self._member = member
        self._services = services

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        page.add(metrics.BROKERS, len(self._cluster.masters))
        page.add(metrics.BROKERS_SLAVED, len(self._cluster.readable))
        page.add(metrics.GATEWAYS, len(self._member.terms.all_gateways()))
        page.add(metrics.SLOTS_HELD, self._member.slots.held_count)
        page.add(metrics.SESSIONS, len(self._services.fetch_sessions))
        page.add(metrics.CACHED_BYTES, self._services.queues.cached_bytes)
        topics = partitions = 0
        for topic in list(self._services.catalog):
            topics += 1
            partitions += topic.queue_count
            if topics % _PIECE == 0:
                yield
        page.add(metrics.CLUSTER_TOPICS, topics)
        page.add(metrics.CLUSTER_PARTITIONS, partitions)
        for code, stats in sorted(self._cluster.stats.apis.items()):
            request = request_name(code)
            page.add_durations(metrics.REQUESTS, stats, request)
            for error, count in sorted(stats.errors.items()):
                named = "lost" if error == LOST else response_name(error)
                page.add(metrics.FAILURES, count, request, named)
            yield
