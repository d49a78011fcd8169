"""Metrics of the broker's statistics: puts, gets by group, and consumption by pop."""

from __future__ import annotations

from rockgate.gateway.telemetry.metric import Metric, MetricType

_COUNTER, _GAUGE = MetricType.COUNTER, MetricType.GAUGE

PUT_MESSAGES = Metric(
    "rockgate_put_messages_total",
    _COUNTER,
    "Messages and records appended since start, over all topics and both protocols.",
)
PUT_BYTES = Metric(
    "rockgate_put_bytes_total",
    _COUNTER,
    "Size of the entries of these messages and records, including envelopes.",
)
PUT_LONGEST = Metric(
    "rockgate_put_longest_seconds",
    _GAUGE,
    "Longest send of a RocketMQ client since start; 0 if none took a millisecond.",
)
GET_MESSAGES = Metric(
    "rockgate_get_messages_total",
    _COUNTER,
    "Messages returned to RocketMQ consumers since start, by pull and by pop.",
)
GROUP_MESSAGES = Metric(
    "rockgate_group_messages_total",
    _COUNTER,
    "Messages returned to a RocketMQ group since start; as many pairs of group and topic have "
    "series as `metrics.groups_max` allows, those used last first.",
    ("group", "topic"),
)
GROUP_BYTES = Metric(
    "rockgate_group_bytes_total",
    _COUNTER,
    "Size of the messages returned to a RocketMQ group since start.",
    ("group", "topic"),
)
GROUP_LAG_BYTES = Metric(
    "rockgate_group_lag_bytes",
    _GAUGE,
    "Bytes of the log from the next message of a group in a topic to its end, for the queue "
    "furthest behind.",
    ("group", "topic"),
)
STATISTICS_LABELS = Metric(
    "rockgate_statistics_labels",
    _GAUGE,
    "Labels in use, by table of statistics.",
    ("table",),
)
STATISTICS_REFUSED = Metric(
    "rockgate_statistics_labels_refused_total",
    _COUNTER,
    "Times a new label was counted without a name because of `remoting.statistics_labels_max`.",
    ("table",),
)
POP_IN_FLIGHT = Metric(
    "rockgate_pop_in_flight", _GAUGE, "Messages handed out by pop and not yet acknowledged."
)
POP_WINDOWS = Metric(
    "rockgate_pop_windows", _GAUGE, "Pairs of a group and a queue that pop keeps state of."
)
POP_MESSAGES = Metric(
    "rockgate_pop_messages_total", _COUNTER, "Messages handed out by pop since start."
)
POP_ACKS = Metric(
    "rockgate_pop_acks_total", _COUNTER, "Messages acknowledged after a pop since start."
)
POP_STALE_ACKS = Metric(
    "rockgate_pop_stale_acks_total",
    _COUNTER,
    "Acknowledgements without effect since start: the message was no longer in flight.",
)
POP_RETRIES = Metric(
    "rockgate_pop_retries_total",
    _COUNTER,
    "Messages moved to a retry topic since start because they were not acknowledged in time.",
)
SHARE_GROUPS = Metric("rockgate_share_groups", _GAUGE, "Share groups, by state.", ("state",))
SHARE_IN_FLIGHT = Metric(
    "rockgate_share_in_flight",
    _GAUGE,
    "Records that share groups have acquired and not finished, including released ones.",
)
SHARE_WINDOWS = Metric(
    "rockgate_share_windows", _GAUGE, "Pairs of a share group and a partition that it reads."
)
SHARE_SESSIONS = Metric("rockgate_share_sessions", _GAUGE, "Open share sessions.")
SHARE_RECORDS = Metric(
    "rockgate_share_records_total",
    _COUNTER,
    "Records that members of share groups acquired since start; one that comes again counts again.",
)
SHARE_ACKS = Metric(
    "rockgate_share_acknowledgements_total",
    _COUNTER,
    "Records that members of share groups acknowledged since start, by type.",
    ("type",),
)
SHARE_LATE = Metric(
    "rockgate_share_lock_timeouts_total",
    _COUNTER,
    "Records of share groups whose acquisition lock expired since start.",
)
SHARE_ARCHIVED = Metric(
    "rockgate_share_archived_total",
    _COUNTER,
    "Records of share groups archived since start because they reached the delivery limit.",
)

BROKER_METRICS = (
    PUT_MESSAGES,
    PUT_BYTES,
    PUT_LONGEST,
    GET_MESSAGES,
    GROUP_MESSAGES,
    GROUP_BYTES,
    GROUP_LAG_BYTES,
    STATISTICS_LABELS,
    STATISTICS_REFUSED,
    POP_IN_FLIGHT,
    POP_WINDOWS,
    POP_MESSAGES,
    POP_ACKS,
    POP_STALE_ACKS,
    POP_RETRIES,
    SHARE_GROUPS,
    SHARE_IN_FLIGHT,
    SHARE_WINDOWS,
    SHARE_SESSIONS,
    SHARE_RECORDS,
    SHARE_ACKS,
    SHARE_LATE,
    SHARE_ARCHIVED,
)
