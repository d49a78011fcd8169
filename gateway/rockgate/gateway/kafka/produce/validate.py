"""A topic's settings for produced batches, and the check of a batch's header.

A topic's config is a mapping of strings that is replaced as a whole when it changes; what was
parsed from it is cached as long as it is the same mapping.

Nearly every batch passes through untouched: its header is checked, its CRC compared, and that is
all. LogAppendTime is stamped into the header as well. What opens a batch is in `topic_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.configs.types import items_of
from rockgate.gateway.kafka.request.errors import RequestError, code_of
from rockgate.protocol.kafka.errors import BatchTooLarge, ErrorCode, MalformedBatch
from rockgate.protocol.kafka.hot.produce import ProducedPartition
from rockgate.protocol.kafka.records.batch import BatchHeader, Compression, check_produced
from rockgate.protocol.kafka.records.sifting import BAD_MAX
from rockgate.store.api.queues import Queue
from rockgate.store.api.topics import Topic

Buffer = bytes | bytearray | memoryview
_TIMESTAMP_TYPE_BIT = 1 << 3
_CODES_WITH_LOG_START = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_RECORD,
)
_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_DELAYING = frozenset(("DELAY", "MIXED"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """One topic's settings for producing."""

    message_bytes_max: int
    timestamp_after_ms_max: int
    timestamp_before_ms_max: int
    is_append_time: bool
    compression: Compression | None
    """The codec of every batch; None for the producer's choice."""
    needs_keys: bool
    """Whether a record without a key is rejected, as compaction requires."""
    is_validating: bool
    """Whether every batch is opened and each of its records checked."""
    is_indexed: bool
    """Whether records are indexed by their key."""
    allows_delay: bool
    """Whether a record's headers may delay it."""

    opens_batches: bool = field(init=False)
    """Whether a batch is examined, or rewritten."""
    examines: bool = field(init=False)
    """Whether a batch cannot simply be appended."""

    def __post_init__(self) -> None:
        opens = self.needs_keys or self.is_validating or self.compression is not None
        object.__setattr__(self, "opens_batches", opens)
        object.__setattr__(self, "examines", self.allows_delay or opens)


class SettingsCache:
    """Settings by topic, parsed once per config."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults
        self._parsed: dict[bytes, tuple[Mapping[str, str], TopicSettings]] = {}
        defaults.on_changed.append(self._parsed.clear)

    def of(self, topic: Topic) -> TopicSettings:
        """Return a topic's settings."""
        known = self._parsed.get(topic.id)
        if known is not None and known[0] is topic.config:
            return known[1]
        settings = self._parse(topic.config)
        self._parsed[topic.id] = (topic.config, settings)
        return settings

    def forget(self, topic: Topic) -> None:
        """Drop the settings of a deleted topic."""
        self._parsed.pop(topic.id, None)

    def _parse(self, config: Mapping[str, str]) -> TopicSettings:
        def text(name: str) -> str:
            return self._defaults.text(config, name)

        return TopicSettings(
            message_bytes_max=int(text("max.message.bytes")),
            timestamp_after_ms_max=int(text("message.timestamp.after.max.ms")),
            timestamp_before_ms_max=int(text("message.timestamp.before.max.ms")),
            is_append_time=text("message.timestamp.type") == "LogAppendTime",
            compression=_CODECS.get(text("compression.type")),
            needs_keys="compact" in items_of(text("cleanup.policy")),
            is_validating=text("validate.batches") == "true",
            is_indexed=text("message.index") == "true",
            allows_delay=text("message.type") in _DELAYING,
        )


class Appending:
    """The state of one request while its batches are appended."""

    __slots__ = ("durable_at", "now_ms", "transactional_id", "version")

    def __init__(self, version: int, now_ms: int, transactional_id: str | None) -> None:
        self.version = version
        self.now_ms = now_ms
        """The append time of its next batch."""
        self.transactional_id = transactional_id
        self.durable_at = 0
        """The position up to which the log must be on disk before the response."""

    def needs(self, position: int) -> None:
        """Delay the response until the log is on disk up to a position."""
        if position > self.durable_at:
            self.durable_at = position


def take(append: Appending, records: Buffer | None, settings: TopicSettings) -> BatchHeader:
    """Check a produced batch by its header, and return that.

    Raises MalformedBatch or RequestError with the error code for its partition.
    """
    header = check_produced(records, append.version)
    assert records is not None, "a batch that was checked is there"
    if len(records) > settings.message_bytes_max:
        raise too_large(records, settings)
    attributes = header.attributes
    if attributes & _TIMESTAMP_TYPE_BIT:
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP, "Producers must not set the timestamp type of a batch."
        )
    now_ms = append.now_ms
    if not settings.is_append_time and (
        header.max_timestamp > now_ms + settings.timestamp_after_ms_max
        or now_ms - header.max_timestamp > settings.timestamp_before_ms_max
    ):
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP,
            f"Timestamp {header.max_timestamp} is out of range; the broker's clock is at {now_ms}.",
        )
    return header


def too_large(body: Buffer, settings: TopicSettings) -> RequestError:
    """Return the error for a batch that exceeds its topic's limit."""
    return RequestError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"Batch is {len(body):,} bytes; the maximum (max.message.bytes) is "
        f"{settings.message_bytes_max:,}.",
    )


def append_ms_of(queue: Queue, offset: int, header: BatchHeader, is_append_time: bool) -> int:
    """Return the append time that is answered for a duplicate batch, as in Kafka."""
    if not is_append_time:
        return header.max_timestamp
    unit = queue.find(offset)
    if unit is None or unit.base != offset:
        return -1
    # The running maximum, which a record under an earlier setting may have set further ahead.
    return min(unit.max_ms, unit.store_ms)


def refused(index: int, error: Exception) -> ProducedPartition:
    """Return the response for a partition whose batch was rejected."""
    if isinstance(error, MalformedBatch):
        summary, reason = "Record batch rejected.", str(error)
        if (count := len(error.bad)) > 1:
            more = " or more" if count == BAD_MAX else ""
            summary = f"Record batch rejected: {count:,}{more} invalid records."
        if isinstance(error, BatchTooLarge):
            reason += " See the settings under `batches`."
        records = tuple(error.bad)
        return ProducedPartition(
            index,
            error.code,
            error_message=f"{summary} {reason}",
            record_errors=records,
        )
    code = code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    reason = error.reason if isinstance(error, RequestError) else str(error)
    return ProducedPartition(index, code, error_message=reason)


def with_log_start(
    append: Appending, queue: Queue, refused: ProducedPartition
) -> ProducedPartition:
    """Add the log start offset, with the errors for which Kafka does."""
    code = refused.error_code
    has_log_start = code in _CODES_WITH_LOG_START or (
        code == ErrorCode.INVALID_PRODUCER_EPOCH and append.transactional_id is None
    )
    return refused._replace(log_start_offset=queue.log_start) if has_log_start else refused
