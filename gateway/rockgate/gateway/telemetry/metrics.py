"""The table of metrics: name, type, help and labels.

Sources take their metrics from here, so every exported metric is documented; a test checks that
every documented one is exported. docs/reference/metrics.md is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rockgate.gateway.telemetry.broker_metrics import BROKER_METRICS
from rockgate.gateway.telemetry.client_metrics import CLIENT_METRICS
from rockgate.gateway.telemetry.cluster_metrics import CLUSTER_METRICS
from rockgate.gateway.telemetry.metric import Metric, MetricType

_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

INFO = Metric("rockgate_info", _GAUGE, "Build information; the value is always 1.", ("version",))
CPU = Metric(
    "process_cpu_seconds_total", _COUNTER, "Total user and system CPU time spent, in seconds."
)
MEMORY = Metric(
    "process_resident_memory_bytes",
    _GAUGE,
    "Resident memory, including mapped log segments, in bytes.",
)
ANONYMOUS = Metric(
    "rockgate_anonymous_memory_bytes", _GAUGE, "Resident memory not backed by a file, in bytes."
)
FILES = Metric("process_open_fds", _GAUGE, "Number of open file descriptors.")
STARTED = Metric(
    "process_start_time_seconds",
    _GAUGE,
    "Start time of the process as a Unix timestamp, in seconds.",
)
EVENT_LOOP_DELAY = Metric(
    "rockgate_event_loop_delay_seconds", _HISTOGRAM, "Event-loop delay, sampled at 10 Hz."
)
SCRAPE = Metric("rockgate_scrape_seconds", _GAUGE, "Time taken to build this page.")

REQUESTS = Metric(
    "rockgate_kafka_request_seconds",
    _HISTOGRAM,
    "Request latency by API, including long polls (Fetch) and rebalances (JoinGroup).",
    ("api",),
)
ERRORS = Metric(
    "rockgate_kafka_errors_total",
    _COUNTER,
    "Responses with an error, by API and first error code.",
    ("api", "error"),
)
REQUEST_BYTES = Metric(
    "rockgate_kafka_request_bytes_total", _COUNTER, "Size of completed requests, by API.", ("api",)
)
ANSWER_BYTES = Metric(
    "rockgate_kafka_response_bytes_total", _COUNTER, "Size of responses, by API.", ("api",)
)
CONNECTIONS = Metric("rockgate_kafka_connections", _GAUGE, "Open connections.")
CONNECTIONS_MADE = Metric(
    "rockgate_kafka_connections_total",
    _COUNTER,
    "Connections accepted since start, including those rejected at the limit.",
)
REQUEST_BYTES_IN_FLIGHT = Metric(
    "rockgate_kafka_request_bytes_in_flight",
    _GAUGE,
    "Size of requests received but not yet answered, over all connections.",
)
THROTTLED = Metric(
    "rockgate_throttled_total",
    _COUNTER,
    "Throttled responses and connections, by quota.",
    ("quota",),
)
THROTTLED_SECONDS = Metric(
    "rockgate_throttled_seconds_total", _COUNTER, "Total throttle time, by quota.", ("quota",)
)

REMOTING_REQUESTS = Metric(
    "rockgate_remoting_request_seconds",
    _HISTOGRAM,
    "Request latency by request code, including suspended pulls.",
    ("listener", "request"),
)
REMOTING_ERRORS = Metric(
    "rockgate_remoting_errors_total",
    _COUNTER,
    "Responses with a code other than SUCCESS; pulls that found no message are not counted.",
    ("listener", "request", "code"),
)
REMOTING_HOOK_FAILURES = Metric(
    "rockgate_remoting_hook_failures_total",
    _COUNTER,
    "Calls of a hook that raised an exception; the requests were not affected.",
    ("hook",),
)
REMOTING_REQUEST_BYTES = Metric(
    "rockgate_remoting_request_bytes_total",
    _COUNTER,
    "Size of completed requests, by request code.",
    ("listener", "request"),
)
REMOTING_ANSWER_BYTES = Metric(
    "rockgate_remoting_response_bytes_total",
    _COUNTER,
    "Size of responses, by request code.",
    ("listener", "request"),
)
REMOTING_CONNECTIONS = Metric(
    "rockgate_remoting_connections", _GAUGE, "Open connections.", ("listener",)
)
REMOTING_CONNECTIONS_MADE = Metric(
    "rockgate_remoting_connections_total",
    _COUNTER,
    "Connections accepted since start, including those rejected at the limit.",
    ("listener",),
)
REMOTING_HELD = Metric(
    "rockgate_remoting_request_bytes_in_flight",
    _GAUGE,
    "Size of requests received but not yet answered, over all connections.",
    ("listener",),
)
REMOTING_GROUPS = Metric(
    "rockgate_remoting_groups", _GAUGE, "Groups with connected clients.", ("kind",)
)
MAPPED_BYTES = Metric(
    "rockgate_batch_cache_bytes",
    _GAUGE,
    "Size of the cache of Kafka record batches decoded for RocketMQ consumers.",
)
PULL_HITS = Metric("rockgate_pull_hits_total", _COUNTER, "Pull reads that returned messages.")
PULL_MISSES = Metric(
    "rockgate_pull_misses_total",
    _COUNTER,
    "Pull reads that returned no message: at the end of the queue, out of range, or filtered out.",
)
PULL_LONGEST = Metric("rockgate_pull_longest_seconds", _GAUGE, "Longest pull read since start.")
MAPPED_HITS = Metric(
    "rockgate_batch_cache_hits_total", _COUNTER, "Reads of a record batch found in the cache."
)
MAPPED_MISSES = Metric(
    "rockgate_batch_cache_misses_total", _COUNTER, "Reads of a record batch that had to be decoded."
)
TOO_LARGE = Metric(
    "rockgate_batches_too_large_total",
    _COUNTER,
    "Record batches skipped because decoding them would exceed a limit under `batches`; each "
    "is counted once.",
)
UNREADABLE = Metric(
    "rockgate_batches_unreadable_total",
    _COUNTER,
    "Record batches that could not be decoded into messages; each is counted once.",
)
HALVES = Metric("rockgate_half_messages", _GAUGE, "Half messages not yet committed or rolled back.")
HALVES_ENDED = Metric(
    "rockgate_half_messages_ended_total",
    _COUNTER,
    "Half messages resolved since start, by outcome.",
    ("outcome",),
)
HALF_CHECKS = Metric(
    "rockgate_half_message_checks_total", _COUNTER, "Transaction checks sent to producers."
)
RETRIES = Metric(
    "rockgate_retries_total", _COUNTER, "Messages sent back by consumers for redelivery."
)
DEAD_LETTERS = Metric(
    "rockgate_dead_letters_total",
    _COUNTER,
    "Messages moved to a dead-letter topic since start, by reason.",
    ("reason",),
)
DEAD_LETTERS_RESENT = Metric(
    "rockgate_dead_letters_resent_total", _COUNTER, "Dead letters resent by an operator."
)

LOG_START = Metric("rockgate_log_start_position", _GAUGE, "First position in the log.")
LOG_END = Metric("rockgate_log_end_position", _GAUGE, "Position after the last entry in the log.")
LOG_FLUSHED = Metric(
    "rockgate_log_flushed_position", _GAUGE, "Position up to which the log is flushed to disk."
)
FLUSH_WAITING = Metric(
    "rockgate_flush_waiting", _GAUGE, "Responses waiting for an fsync (`store.flush=sync`)."
)
FSYNCS = Metric("rockgate_fsync_seconds", _HISTOGRAM, "Latency of log fsyncs.")
SEGMENTS = Metric("rockgate_segments", _GAUGE, "Log segments.")
SEGMENT_BYTES = Metric("rockgate_segment_bytes", _GAUGE, "Total size of the log segments.")
LIVE_BYTES = Metric(
    "rockgate_segment_live_bytes", _GAUGE, "Live bytes in sealed segments that have been accounted."
)
DEAD_BYTES = Metric(
    "rockgate_segment_dead_bytes", _GAUGE, "Dead bytes in sealed segments that have been accounted."
)
UNWEIGHED = Metric(
    "rockgate_segments_unaccounted",
    _GAUGE,
    "Sealed segments whose live bytes have not been counted yet.",
)
COMPACTIONS = Metric(
    "rockgate_compactions_total", _COUNTER, "Queues that were compacted from start to end."
)
COMPACTION_DROPPED = Metric(
    "rockgate_compaction_dropped_records_total", _COUNTER, "Records dropped by compaction."
)
COMPACTION_READ = Metric(
    "rockgate_compaction_read_bytes_total", _COUNTER, "Bytes of entries read by compaction."
)
COMPACTION_WRITTEN = Metric(
    "rockgate_compaction_written_bytes_total",
    _COUNTER,
    "Bytes of entries that compaction appended again.",
)
COMPACTION_DAMAGED = Metric(
    "rockgate_compaction_damaged_queues",
    _GAUGE,
    "Queues that are not compacted until the next start, because an entry is damaged.",
)
DISK_FAILED = Metric(
    "rockgate_disk_failed",
    _GAUGE,
    "1 after a failed fsync: the server is read-only until it is restarted.",
)
UPKEEP_FAILURES = Metric(
    "rockgate_upkeep_failures_total",
    _COUNTER,
    "Failed maintenance tasks, by step; each is retried.",
    ("step",),
)
DISK = Metric("rockgate_disk_used_ratio", _GAUGE, "Used fraction of the log's file system.")

DELAY_WAITING = Metric("rockgate_delay_waiting", _GAUGE, "Delayed messages not yet delivered.")
DELAY_BYTES = Metric(
    "rockgate_delay_schedule_bytes", _GAUGE, "Size of the delivery schedule on disk."
)
DELAY_LATE = Metric(
    "rockgate_delay_late_seconds",
    _GAUGE,
    "Age of the oldest overdue message; 0 if none is overdue.",
)
DELAY_DELIVERED = Metric(
    "rockgate_delay_delivered_total", _COUNTER, "Delayed messages delivered since start."
)
DELAY_PUT_OFF = Metric(
    "rockgate_delay_retries_total",
    _COUNTER,
    "Failed delivery attempts of delayed messages; each is retried.",
)
DELAY_DROPPED = Metric(
    "rockgate_delay_dropped_total",
    _COUNTER,
    "Delayed messages dropped because their topic was deleted.",
)
DELAY_LOST = Metric(
    "rockgate_delay_lost_total", _COUNTER, "Delayed messages whose entry is no longer in the log."
)

TOPICS = Metric("rockgate_topics", _GAUGE, "Topics.")
PARTITIONS = Metric("rockgate_partitions", _GAUGE, "Partitions over all topics.")
TOPICS_WITHOUT_SERIES = Metric(
    "rockgate_topics_without_series",
    _GAUGE,
    "Topics without series of their own because of `metrics.topics_max`.",
)
TOPIC_MESSAGES = Metric(
    "rockgate_topic_messages_total",
    _COUNTER,
    "Offsets assigned, over all partitions of a topic.",
    ("topic",),
)
TOPIC_BYTES = Metric(
    "rockgate_topic_bytes",
    _GAUGE,
    "Size of a topic in the log, including entry envelopes.",
    ("topic",),
)
TOPIC_FETCHED = Metric(
    "rockgate_topic_fetched_bytes_total",
    _COUNTER,
    "Size of the records returned to Kafka consumers since start.",
    ("topic",),
)

PRODUCERS_REMEMBERED = Metric(
    "rockgate_idempotent_producers",
    _GAUGE,
    "Idempotent producers whose state is retained, counted per partition.",
)
TRANSACTIONAL_IDS = Metric(
    "rockgate_transactional_ids", _GAUGE, "Transactional ids that have not expired."
)
COMMITTED_OFFSETS = Metric(
    "rockgate_committed_offsets",
    _GAUGE,
    "Group and topic pairs with committed offsets that have not expired.",
)
GROUPS = Metric("rockgate_groups", _GAUGE, "Groups, by state.", ("state",))
GROUP_LAG = Metric(
    "rockgate_group_lag",
    _GAUGE,
    "Consumer lag in readable records, by group and topic; only the largest lags have series.",
    ("group", "topic"),
)
GROUP_LAG_OFFSETS = Metric(
    "rockgate_group_lag_offsets",
    _GAUGE,
    "Consumer lag in offsets, by group and topic, including offsets without a readable "
    "record (delayed records, transaction markers).",
    ("group", "topic"),
)
LAG = Metric("rockgate_lag", _GAUGE, "Total consumer lag of all groups, in readable records.")
LAG_OFFSETS = Metric(
    "rockgate_lag_offsets", _GAUGE, "Total consumer lag of all groups, in offsets."
)
LAGS_HIDDEN = Metric(
    "rockgate_group_lags_without_series",
    _GAUGE,
    "Group and topic pairs without series of their own because of `metrics.groups_max`.",
)

STALLED = Metric(
    "rockgate_store_stalled", _GAUGE, "1 while appends wait for the disk, otherwise 0."
)
STALLS = Metric(
    "rockgate_store_stalls_total", _COUNTER, "Times that appends had to wait for the disk."
)
STALLED_SECONDS = Metric(
    "rockgate_store_stalled_seconds_total", _COUNTER, "Time that appends waited for the disk."
)
SLOW_APPENDS = Metric(
    "rockgate_slow_appends_total",
    _COUNTER,
    "Sends and Produce requests whose append took over half a second, waiting included.",
)
FAILED_APPENDS = Metric(
    "rockgate_failed_appends_total",
    _COUNTER,
    "Appends of messages that the store rejected, or that failed.",
)
SENDS_WAITING = Metric(
    "rockgate_remoting_sends_waiting", _GAUGE, "RocketMQ sends that wait for the disk."
)
REMOTING_IN_FLIGHT = Metric(
    "rockgate_remoting_in_flight",
    _GAUGE,
    "RocketMQ requests that wait for their response, by kind.",
    ("kind",),
)
REMOTING_REFUSED = Metric(
    "rockgate_remoting_refused_total",
    _COUNTER,
    "RocketMQ requests refused by overload protection, by kind and reason.",
    ("kind", "reason"),
)

CLUSTER_ROLE = Metric(
    "rockgate_cluster_role", _GAUGE, "1 for what this server is: primary or standby.", ("role",)
)
CLUSTER_EPOCH = Metric("rockgate_cluster_epoch", _GAUGE, "Newest epoch of the log.")
CLUSTER_COMMITTED = Metric(
    "rockgate_cluster_committed_position", _GAUGE, "Position up to which the log is committed."
)
CLUSTER_LAG = Metric(
    "rockgate_cluster_lag_bytes", _GAUGE, "Bytes of log that a standby has not applied.", ("node",)
)
CLUSTER_FOLLOWING = Metric(
    "rockgate_cluster_following", _GAUGE, "1 while this standby is connected to its primary."
)

REPLICATION_METRICS = (
    CLUSTER_ROLE,
    CLUSTER_EPOCH,
    CLUSTER_COMMITTED,
    CLUSTER_LAG,
    CLUSTER_FOLLOWING,
)
"""Those that only a primary with standbys, or a standby, has."""

METRICS: Mapping[str, Metric] = {
    each.name: each
    for each in (*globals().values(), *BROKER_METRICS, *CLIENT_METRICS, *CLUSTER_METRICS)
    if isinstance(each, Metric)
}
