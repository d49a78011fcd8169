"""Every metric that the server has, by name. docs/reference/metrics.md is made of it.

A source that gives a value names its metric from here, so that nothing is told that is not
described, and nothing described is forgotten (a test looks).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a metric's number means, in Prometheus' words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()


_COUNTER, _GAUGE, _HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

INFO = Metric("rockgate_info", _GAUGE, "Always 1; its label says which version runs.", ("version",))
CPU = Metric("process_cpu_seconds_total", _COUNTER, "Processor time, user and system together.")
MEMORY = Metric("process_resident_memory_bytes", _GAUGE, "Resident memory, mapped log included.")
ANONYMOUS = Metric(
    "rockgate_anonymous_memory_bytes", _GAUGE, "Resident memory that no file is behind."
)
FILES = Metric("process_open_fds", _GAUGE, "Open file descriptors.")
STARTED = Metric("process_start_time_seconds", _GAUGE, "When the process began, since the epoch.")
LATENESS = Metric(
    "rockgate_loop_lateness_seconds",
    _HISTOGRAM,
    "How late the loop's turns come: looked at ten times a second. Stalls are its upper buckets.",
)
SCRAPE = Metric(
    "rockgate_scrape_seconds", _GAUGE, "How long it took to put the last page like this together."
)

REQUESTS = Metric(
    "rockgate_kafka_request_seconds",
    _HISTOGRAM,
    "Time from the start of a request to its answer, by API; waiting (Fetch, JoinGroup) included.",
    ("api",),
)
ERRORS = Metric(
    "rockgate_kafka_errors_total",
    _COUNTER,
    "Answers that tell of an error, by API and the first error in them.",
    ("api", "error"),
)
REQUEST_BYTES = Metric(
    "rockgate_kafka_request_bytes_total", _COUNTER, "Bytes of answered requests, by API.", ("api",)
)
ANSWER_BYTES = Metric(
    "rockgate_kafka_answer_bytes_total", _COUNTER, "Bytes of answers, by API.", ("api",)
)
CONNECTIONS = Metric("rockgate_kafka_connections", _GAUGE, "Connections open now.")
CONNECTIONS_MADE = Metric(
    "rockgate_kafka_connections_total", _COUNTER, "Connections since the start, refused ones too."
)
HELD = Metric(
    "rockgate_kafka_held_bytes", _GAUGE, "Request bytes received and not answered, of all clients."
)
THROTTLED = Metric(
    "rockgate_throttled_total",
    _COUNTER,
    "Answers that told a client to wait, and connections turned away, by quota.",
    ("quota",),
)
THROTTLED_SECONDS = Metric(
    "rockgate_throttled_seconds_total", _COUNTER, "For how long clients had to wait.", ("quota",)
)

REMOTING_REQUESTS = Metric(
    "rockgate_remoting_request_seconds",
    _HISTOGRAM,
    "Time from the start of a request to its answer, by code; long pulls included.",
    ("listener", "request"),
)
REMOTING_ERRORS = Metric(
    "rockgate_remoting_errors_total",
    _COUNTER,
    "Answers with a code that is not SUCCESS, nor that of a pull that found nothing.",
    ("listener", "request", "code"),
)
REMOTING_REQUEST_BYTES = Metric(
    "rockgate_remoting_request_bytes_total",
    _COUNTER,
    "Bytes of answered requests, by code.",
    ("listener", "request"),
)
REMOTING_ANSWER_BYTES = Metric(
    "rockgate_remoting_answer_bytes_total", _COUNTER, "Bytes of answers.", ("listener", "request")
)
REMOTING_CONNECTIONS = Metric(
    "rockgate_remoting_connections", _GAUGE, "Connections open now.", ("listener",)
)
REMOTING_CONNECTIONS_MADE = Metric(
    "rockgate_remoting_connections_total",
    _COUNTER,
    "Connections since the start, refused ones too.",
    ("listener",),
)
REMOTING_HELD = Metric(
    "rockgate_remoting_held_bytes",
    _GAUGE,
    "Request bytes received and not answered, of all clients.",
    ("listener",),
)
REMOTING_GROUPS = Metric(
    "rockgate_remoting_groups", _GAUGE, "Groups with connected members.", ("kind",)
)
MAPPED_BYTES = Metric(
    "rockgate_mapped_bytes",
    _GAUGE,
    "Batches of Kafka's clients kept open for RocketMQ's, in bytes.",
)
PULL_HITS = Metric(
    "rockgate_pull_hits_total", _COUNTER, "Reads for RocketMQ's pulls that found messages."
)
PULL_MISSES = Metric(
    "rockgate_pull_misses_total",
    _COUNTER,
    "Reads for RocketMQ's pulls that found none: at the end, outside of the queue, or filtered.",
)
PULL_LONGEST = Metric(
    "rockgate_pull_longest_seconds", _GAUGE, "The longest read for a pull since the start."
)
MAPPED_HITS = Metric(
    "rockgate_mapped_hits_total", _COUNTER, "Reads of such a batch that found it open."
)
MAPPED_MISSES = Metric(
    "rockgate_mapped_misses_total", _COUNTER, "Reads of such a batch that had to open it."
)
TOO_LARGE = Metric(
    "rockgate_batches_too_large_total",
    _COUNTER,
    "Record batches that a reader passed over, each counted once: opened, they would be more than "
    "the settings under `batches` allow.",
)
UNREADABLE = Metric(
    "rockgate_mapped_unreadable_total",
    _COUNTER,
    "Batches that could not be read to their end as messages, each counted once.",
)
HALVES = Metric("rockgate_half_messages", _GAUGE, "Half messages that nobody has decided.")
HALVES_ENDED = Metric(
    "rockgate_half_messages_ended_total",
    _COUNTER,
    "Half messages that ended since the start.",
    ("outcome",),
)
HALF_CHECKS = Metric(
    "rockgate_half_message_checks_total", _COUNTER, "Questions to producers about half messages."
)
RETRIES = Metric(
    "rockgate_retries_total", _COUNTER, "Messages that consumers gave back for another try."
)
DEAD_LETTERS = Metric(
    "rockgate_dead_letters_total",
    _COUNTER,
    "Messages that became dead letters since the start.",
    ("reason",),
)
DEAD_LETTERS_RESENT = Metric(
    "rockgate_dead_letters_resent_total", _COUNTER, "Dead letters that an operator sent again."
)

LOG_START = Metric("rockgate_log_start_position", _GAUGE, "The first position of the log.")
LOG_END = Metric("rockgate_log_end_position", _GAUGE, "The position behind the last entry.")
LOG_FLUSHED = Metric("rockgate_log_flushed_position", _GAUGE, "What lies before it is on disk.")
FLUSH_WAITING = Metric(
    "rockgate_flush_waiting", _GAUGE, "Answers that wait for the disk now, under sync flush."
)
FSYNCS = Metric("rockgate_fsync_seconds", _HISTOGRAM, "Time of each fsync of the log.")
SEGMENTS = Metric("rockgate_segments", _GAUGE, "Files of the log.")
SEGMENT_BYTES = Metric("rockgate_segment_bytes", _GAUGE, "Size of the log's files.")
LIVE_BYTES = Metric(
    "rockgate_segment_live_bytes", _GAUGE, "What is still needed of the sealed files weighed."
)
DEAD_BYTES = Metric(
    "rockgate_segment_dead_bytes", _GAUGE, "What is no longer needed of the sealed files weighed."
)
UNWEIGHED = Metric(
    "rockgate_segments_unweighed", _GAUGE, "Sealed files whose use is not known at the moment."
)
DISK_FAILED = Metric(
    "rockgate_disk_failed",
    _GAUGE,
    "1 after an fsync failed: nothing is written until the server is started again.",
)
UPKEEP_FAILURES = Metric(
    "rockgate_upkeep_failures_total",
    _COUNTER,
    "Times that a step of upkeep failed; it is tried again, and the others go on.",
    ("step",),
)
DISK = Metric("rockgate_disk_used_ratio", _GAUGE, "How full the disk is that holds the log.")

DELAY_WAITING = Metric("rockgate_delay_waiting", _GAUGE, "Messages that wait for their time.")
DELAY_BYTES = Metric(
    "rockgate_delay_schedule_bytes", _GAUGE, "Bytes of the files that hold when messages are due."
)
DELAY_LATE = Metric(
    "rockgate_delay_late_seconds",
    _GAUGE,
    "How long the first message that is to be delivered is due; 0 if none is.",
)
DELAY_DELIVERED = Metric(
    "rockgate_delay_delivered_total", _COUNTER, "Messages delivered at their time since the start."
)
DELAY_PUT_OFF = Metric(
    "rockgate_delay_put_off_total", _COUNTER, "Deliveries that were refused and are tried again."
)
DELAY_DROPPED = Metric(
    "rockgate_delay_dropped_total", _COUNTER, "Messages whose topic was gone when they were due."
)
DELAY_LOST = Metric(
    "rockgate_delay_lost_total", _COUNTER, "Messages that waited and cannot be found any more."
)

TOPICS = Metric("rockgate_topics", _GAUGE, "Topics.")
PARTITIONS = Metric("rockgate_partitions", _GAUGE, "Partitions of all topics.")
TOPICS_HIDDEN = Metric(
    "rockgate_topics_not_shown", _GAUGE, "Topics without series: more than `metrics.topics_max`."
)
TOPIC_MESSAGES = Metric(
    "rockgate_topic_messages_total",
    _COUNTER,
    "Offsets given out in all partitions of a topic; its rate is what comes in.",
    ("topic",),
)
TOPIC_BYTES = Metric(
    "rockgate_topic_bytes", _GAUGE, "What a topic takes in the log, envelopes included.", ("topic",)
)
TOPIC_FETCHED = Metric(
    "rockgate_topic_fetched_bytes_total",
    _COUNTER,
    "Bytes of records sent to Kafka's consumers since the start.",
    ("topic",),
)

PRODUCERS_REMEMBERED = Metric(
    "rockgate_producers_remembered",
    _GAUGE,
    "Idempotent producers whose last batches are known, counted by partition; they expire.",
)
TRANSACTIONAL_IDS = Metric(
    "rockgate_transactional_ids", _GAUGE, "Transactional ids that are known; they expire."
)
COMMITTED_OFFSETS = Metric(
    "rockgate_committed_offsets",
    _GAUGE,
    "Pairs of group and topic with committed offsets; they expire.",
)
GROUPS = Metric("rockgate_groups", _GAUGE, "Groups by state.", ("state",))
GROUP_LAG = Metric(
    "rockgate_group_lag",
    _GAUGE,
    "Records behind what a group has committed that it can read, by topic; the largest of all.",
    ("group", "topic"),
)
GROUP_LAG_OFFSETS = Metric(
    "rockgate_group_lag_offsets",
    _GAUGE,
    "Offsets between what a group has committed and the end, by topic, with those that hold "
    "nothing: where a delayed record was sent, and where a transaction ended.",
    ("group", "topic"),
)
LAG = Metric("rockgate_lag", _GAUGE, "The records that all groups together can still read.")
LAG_OFFSETS = Metric(
    "rockgate_lag_offsets", _GAUGE, "The offsets that all groups together are behind."
)
LAGS_HIDDEN = Metric(
    "rockgate_group_lags_not_shown",
    _GAUGE,
    "Pairs of group and topic without series: more than `metrics.groups_max`.",
)

_ALL = (
    INFO,
    CPU,
    MEMORY,
    ANONYMOUS,
    FILES,
    STARTED,
    LATENESS,
    SCRAPE,
    REQUESTS,
    ERRORS,
    REQUEST_BYTES,
    ANSWER_BYTES,
    CONNECTIONS,
    CONNECTIONS_MADE,
    HELD,
    THROTTLED,
    THROTTLED_SECONDS,
    REMOTING_REQUESTS,
    REMOTING_ERRORS,
    REMOTING_REQUEST_BYTES,
    REMOTING_ANSWER_BYTES,
    REMOTING_CONNECTIONS,
    REMOTING_CONNECTIONS_MADE,
    REMOTING_HELD,
    REMOTING_GROUPS,
    MAPPED_BYTES,
    PULL_HITS,
    PULL_MISSES,
    PULL_LONGEST,
    MAPPED_HITS,
    MAPPED_MISSES,
    TOO_LARGE,
    UNREADABLE,
    HALVES,
    HALVES_ENDED,
    HALF_CHECKS,
    RETRIES,
    DEAD_LETTERS,
    DEAD_LETTERS_RESENT,
    LOG_START,
    LOG_END,
    LOG_FLUSHED,
    FLUSH_WAITING,
    FSYNCS,
    SEGMENTS,
    SEGMENT_BYTES,
    LIVE_BYTES,
    DEAD_BYTES,
    UNWEIGHED,
    DISK_FAILED,
    UPKEEP_FAILURES,
    DISK,
    DELAY_WAITING,
    DELAY_BYTES,
    DELAY_LATE,
    DELAY_DELIVERED,
    DELAY_PUT_OFF,
    DELAY_DROPPED,
    DELAY_LOST,
    TOPICS,
    PARTITIONS,
    TOPICS_HIDDEN,
    TOPIC_MESSAGES,
    TOPIC_BYTES,
    TOPIC_FETCHED,
    PRODUCERS_REMEMBERED,
    TRANSACTIONAL_IDS,
    COMMITTED_OFFSETS,
    GROUPS,
    GROUP_LAG,
    GROUP_LAG_OFFSETS,
    LAG,
    LAG_OFFSETS,
    LAGS_HIDDEN,
)

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
