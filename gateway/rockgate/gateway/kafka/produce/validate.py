"""What the header of a produced batch must say before it may be appended.

Nearly every batch passes through untouched: its header is checked, its CRC compared, and that is
all. LogAppendTime is stamped into the header as well. What opens a batch is in `topic_checks`.
"""

from __future__ import annotations

from rockgate.gateway.kafka.configs.topic_settings import TopicSettings
from rockgate.gateway.kafka.request.errors import RequestError, code_of
from rockgate.protocol.kafka.errors import BatchTooLarge, ErrorCode, MalformedBatch
from rockgate.protocol.kafka.hot.produce import ProducedPartition
from rockgate.protocol.kafka.records.batch import BatchHeader, check_produced
from rockgate.protocol.kafka.records.sifting import BAD_MAX
from rockgate.store.api.queues import Queue

Buffer = bytes | bytearray | memoryview
_TIMESTAMP_TYPE_BIT = 1 << 3


class Appending:
    """What one request carries while its batches are appended: it travels with them."""

    __slots__ = ("durable_at", "now_ms", "transactional_id", "version")

    def __init__(self, version: int, now_ms: int, transactional_id: str | None) -> None:
        self.version = version
        self.now_ms = now_ms
        """The time that its next batch is appended at."""
        self.transactional_id = transactional_id
        self.durable_at = 0
        """Up to where the log must be on disk before the request is answered."""

    def needs(self, position: int) -> None:
        """Have the answer wait for the disk up to a position."""
        if position > self.durable_at:
            self.durable_at = position


def take(append: Appending, records: Buffer | None, settings: TopicSettings) -> BatchHeader:
    """Check a produced batch by its header, and return that.

    Raises MalformedBatch or RequestError with the code that its partition is answered.
    """
    header = check_produced(records, append.version)
    assert records is not None, "a batch that was checked is there"
    if len(records) > settings.message_bytes_max:
        raise too_large(records, settings)
    attributes = header.attributes
    if attributes & _TIMESTAMP_TYPE_BIT:
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP, "producers must not set the timestamp type of a batch"
        )
    now_ms = append.now_ms
    if not settings.is_append_time and (
        header.max_timestamp > now_ms + settings.timestamp_after_ms_max
        or now_ms - header.max_timestamp > settings.timestamp_before_ms_max
    ):
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp} is out of range; the broker's clock is at {now_ms}",
        )
    return header


def too_large(body: Buffer, settings: TopicSettings) -> RequestError:
    """Return the refusal of a batch that its topic's limit does not allow."""
    return RequestError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"batch is {len(body):,} bytes; the maximum (max.message.bytes) is "
        f"{settings.message_bytes_max:,}",
    )


def append_ms_of(queue: Queue, offset: int, header: BatchHeader, is_append_time: bool) -> int:
    """Return the time that a batch which was written before is answered with, as in Kafka."""
    if not is_append_time:
        return header.max_timestamp
    unit = queue.find(offset)
    if unit is None or unit.base != offset:
        return -1
    # The largest up to it, which a record of an earlier setting may have set further ahead.
    return min(unit.max_ms, unit.store_ms)


def refused(index: int, error: Exception) -> ProducedPartition:
    """Return the answer for a partition whose batch was not taken."""
    if isinstance(error, MalformedBatch):
        reason = str(error)
        if (count := len(error.bad)) > 1:
            more = " or more" if count == BAD_MAX else ""
            reason = f"{count}{more} invalid records; the first: {reason}"
        if isinstance(error, BatchTooLarge):
            reason += "; see the settings under `batches`"
        records = tuple(error.bad)
        return ProducedPartition(
            index,
            error.code,
            error_message=f"Record batch rejected: {reason}.",
            record_errors=records,
        )
    code = code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    reason = error.reason if isinstance(error, RequestError) else str(error)
    return ProducedPartition(index, code, error_message=reason)
