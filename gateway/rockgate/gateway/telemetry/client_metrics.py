"""Metrics that clients push (KIP-714), and what is known of their pushes."""

from __future__ import annotations

from rockgate.gateway.telemetry.metric import Metric, MetricType

CLIENT_METRIC = Metric(
    "rockgate_client_metric",
    MetricType.GAUGE,
    "Last value of a metric that a client pushed, with the attributes that it gave (with "
    "`client_metrics.enabled`).",
    ("metric", "client_id", "instance", "attributes"),
)
CLIENTS = Metric(
    "rockgate_client_metrics_clients",
    MetricType.GAUGE,
    "Clients that ask what to push, and were heard within some intervals.",
)
PUSHES = Metric(
    "rockgate_client_metrics_pushes_total",
    MetricType.COUNTER,
    "Pushes of clients since start, by error code.",
    ("error",),
)
HIDDEN = Metric(
    "rockgate_client_metrics_hidden_total",
    MetricType.COUNTER,
    "Pushed values that have no series because of `client_metrics.series_max`.",
)
CLIENT_METRICS = (CLIENT_METRIC, CLIENTS, PUSHES, HIDDEN)
