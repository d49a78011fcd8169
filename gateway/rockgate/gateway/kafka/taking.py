"""Taking a produced batch in: what a topic's settings ask of it before it may be appended.

Nearly every batch passes through untouched: its header is checked, its CRC compared, and that is
all. Only LogAppendTime, a `compression.type` other than the producer's, compacted topics and
`validate.batches` open or rewrite it, and say so here.
"""

from __future__ import annotations

from typing import NamedTuple

from rockgate.gateway.kafka.errors import RequestError
from rockgate.gateway.kafka.topicsettings import TopicSettings
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import (
    BatchHeader,
    Compression,
    TimestampType,
    check_produced,
)
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records

Buffer = bytes | bytearray | memoryview
_TIMESTAMP_TYPE_BIT = 1 << 3


class Taken(NamedTuple):
    """A batch that may be appended, with its header as it now is."""

    body: Buffer
    header: BatchHeader


def take(records: Buffer | None, version: int, settings: TopicSettings, now_ms: int) -> Taken:
    """Check a produced batch and bring it into the form that its topic wants.

    Raises MalformedBatch or RequestError with the code that its partition is answered.
    """
    header = check_produced(records, version)
    assert records is not None, "a batch that was checked is there"
    if len(records) > settings.message_bytes_max:
        raise RequestError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {len(records)} bytes, max.message.bytes is "
            f"{settings.message_bytes_max}",
        )
    attributes = header.attributes
    if attributes & _TIMESTAMP_TYPE_BIT:
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP, "producers may not set the timestamp type of a batch"
        )
    if not settings.is_append_time and (
        header.max_timestamp > now_ms + settings.timestamp_after_ms_max
        or now_ms - header.max_timestamp > settings.timestamp_before_ms_max
    ):
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp} is too far from the server's {now_ms}",
        )
    if settings.opens_batches:
        return _open(records, header, settings)
    return Taken(records, header)


def _open(records: Buffer, header: BatchHeader, settings: TopicSettings) -> Taken:
    """Look into the batch, and compress it anew if the topic says how."""
    opened = read_records(records)
    for index, record in enumerate(opened):
        if record.offset != index:
            raise MalformedBatch(f"offset {record.offset} is not {index}", index=index)
        if settings.needs_keys and record.key is None:
            raise MalformedBatch("a compacted topic takes no record without a key", index=index)
    if len(opened) != header.record_count:
        raise MalformedBatch(f"{header.record_count} records declared, {len(opened)} present")
    wanted = settings.compression
    if wanted is None or wanted is header.compression:
        return Taken(records, header)
    return _recompress(opened, header, wanted)


def _recompress(opened: list[Record], header: BatchHeader, codec: Compression) -> Taken:
    body = build_batch(
        opened,
        base_offset=0,
        last_offset_delta=header.last_offset_delta,
        compression=codec,
        timestamp_type=TimestampType.CREATE_TIME,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    return Taken(body, header)
