"""Metrics of a gateway to a RocketMQ cluster, which a server does not export."""

from __future__ import annotations

from rockgate.gateway.telemetry.metric import Metric, MetricType

_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

BROKERS = Metric("rockgate_cluster_brokers", _GAUGE, "Brokers of the cluster that have a master.")
BROKERS_SLAVED = Metric(
    "rockgate_cluster_brokers_without_master",
    _GAUGE,
    "Brokers with a slave and without a master: they are read and not written.",
)
GATEWAYS = Metric("rockgate_cluster_gateways", _GAUGE, "Gateways that any broker lists.")
SLOTS_HELD = Metric(
    "rockgate_cluster_slots_held", _GAUGE, "Slots of groups that this gateway coordinates, of 64."
)
CLUSTER_TOPICS = Metric("rockgate_cluster_topics", _GAUGE, "Topics of the cluster.")
CLUSTER_PARTITIONS = Metric(
    "rockgate_cluster_partitions", _GAUGE, "Partitions of these topics, whoever leads them."
)
SESSIONS = Metric("rockgate_cluster_fetch_sessions", _GAUGE, "Fetch sessions of clients.")
CACHED_BYTES = Metric(
    "rockgate_cluster_cache_bytes", _GAUGE, "Size of the cache of record batches that were read."
)
REQUESTS = Metric(
    "rockgate_cluster_request_seconds",
    _HISTOGRAM,
    "Latency of requests to brokers by request code, including held pulls.",
    ("request",),
)
FAILURES = Metric(
    "rockgate_cluster_errors_total",
    _COUNTER,
    "Responses of brokers with a code other than SUCCESS, or `lost` where none came.",
    ("request", "code"),
)

CLUSTER_METRICS = (
    BROKERS,
    BROKERS_SLAVED,
    GATEWAYS,
    SLOTS_HELD,
    CLUSTER_TOPICS,
    CLUSTER_PARTITIONS,
    SESSIONS,
    CACHED_BYTES,
    REQUESTS,
    FAILURES,
)
