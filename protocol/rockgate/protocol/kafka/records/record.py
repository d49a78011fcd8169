"""The records inside a batch: varints, lengths, keys, values and headers.

    length varint | attributes 1 | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value
    | header count varint, { key length varint, key | value length varint, value }*

A length of -1 is null; a header's key is never null. Varints are zig-zag, at most 5 bytes (10 for
the timestamp). Few paths decode a batch at all (delay, compaction, reading it as RocketMQ
messages); those that do get tuples of plain bytes. Every byte of the batch must be accounted for:
whatever is truncated, left over or out of range is a MalformedBatch that names the record.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records import compression as codecs
from rockgate.protocol.kafka.records.batch import (
    BatchHeader,
    Buffer,
    Compression,
    TimestampType,
)
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain

Header = tuple[str, bytes | None]

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

_SHORT: Final = tuple(bytes((n,)) for n in range(128))
_new_record: Final = tuple.__new__
_WHOLE: Final = 1 << 62
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)


class Record(NamedTuple):
    """One record with its own offset and timestamp. A tuple, because a batch holds thousands."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


# Reading


def read_records(view: Buffer, *, bounds: Bounds = BOUNDS) -> list[Record]:
    """All records of the batch that fills `view`; see `iterate_records`."""
    return list(iterate_records(view, bounds=bounds))


def iterate_records(view: Buffer, *, bounds: Bounds = BOUNDS) -> Iterator[Record]:
    """The records of the batch that fills `view`, one by one, after decompressing them together.

    The header must have been checked (`batch.check`); the records themselves are not trusted.
    BatchTooLarge if they exceed `bounds`.
    """
    header = batch.read_header(view)
    return walk_records(open_records(view, header, bounds=bounds), header, bounds=bounds)


def open_records(view: Buffer, header: BatchHeader, *, bounds: Bounds = BOUNDS) -> Plain:
    """The uncompressed records of a batch, for `walk_records`."""
    bounds.check_count(header)
    return codecs.decompress(
        memoryview(view)[batch.HEADER_SIZE :],
        header.compression,
        size_max=bounds.inflated_bytes_max,
    )


def skip_records(data: Plain, at: int, count: int) -> int:
    """The position after `count` records that start at `at`; only their lengths are read."""
    try:
        for _ in range(count):
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
            if n & 1:
                raise MalformedBatch(f"Record at byte {at} has length {_signed(n)}.")
            at += n >> 1
    except (IndexError, Overlong):
        raise MalformedBatch("The batch ends inside a record.") from None
    return at


def walk_records(
    data: Plain,
    header: BatchHeader,
    *,
    at: int = 0,
    first: int = 0,
    bounds: Bounds = BOUNDS,
    whole_max: int = _WHOLE,
) -> Iterator[Record]:
    """The records of a batch from the one with index `first` on, which starts at `at`.

    Keys and headers longer than `whole_max` are truncated, and values are views of the data: for
    callers that do not need them, and should not pay for copying them.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    last_delta, previous_delta = header.last_offset_delta, first - 1
    index = first
    each_max, left = bounds.record_headers_max, bounds.headers_max
    # One-byte varints are read in place: a call for each would double the time of the loop.
    try:
        for index in range(first, header.record_count):
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
            end = at + (n >> 1)
            if n & 1 or end > len(data):
                raise _malformed(
                    index, f"Length {_signed(n)} exceeds the {len(data) - at} bytes left."
                )
            # One byte of attributes; all bits are unused.
            n = data[at + 1]
            at += 2
            if n > 127:
                n, at = long_varint(data, at, n, 64)
            timestamp = header.max_timestamp if append_time else base_timestamp + _signed(n)
            if not _INT64_MIN <= timestamp <= _INT64_MAX:
                raise _malformed(index, f"Timestamp {timestamp} is out of range.")
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
            delta = n >> 1
            if n & 1 or not previous_delta < delta <= last_delta:
                raise _malformed(
                    index,
                    f"Offset delta is {_signed(n)}; expected {previous_delta + 1} to {last_delta}.",
                )
            previous_delta = delta
            key, at = _read_bytes(data, at, end, index, "Key", whole_max)
            value, at = _read_bytes(data, at, end, index, "Value", whole_max)
            headers: tuple[Header, ...] = ()
            if data[at]:
                headers, at = _read_headers(data, at, end, index, min(each_max, left), whole_max)
                left -= len(headers)
            else:
                at += 1
            if at != end:
                raise _malformed(index, f"Length is off by {abs(end - at)} bytes.")
            yield _new_record(Record, (base_offset + delta, timestamp, key, value, headers))
    except IndexError:
        raise _malformed(index, "The batch ends inside the record.") from None
    except Overlong as error:
        raise _malformed(index, str(error)) from None
    if at != len(data):
        raise MalformedBatch(
            f"{len(data) - at} bytes follow the last of {header.record_count} records."
        )


def _read_bytes(
    data: Plain, at: int, end: int, index: int, what: str, whole_max: int
) -> tuple[bytes | None, int]:
    n = data[at]
    at += 1
    if n > 127:
        n, at = long_varint(data, at, n)
    if n & 1:
        if n != 1:
            raise _malformed(index, f"{what} has length {_signed(n)}.")
        return None, at
    following = at + (n >> 1)
    if following > end:
        raise _malformed(index, f"{what} of {n >> 1} bytes exceeds the {max(0, end - at)} left.")
    if n >> 1 > whole_max:
        if what == "Value":
            view = memoryview(data)[at:following]
            return view, following  # type: ignore[return-value]  # only by whoever asked for it
        return data[at : at + whole_max], following
    return data[at:following], following


def _read_headers(
    data: Plain, at: int, end: int, index: int, count_max: int, whole_max: int
) -> tuple[tuple[Header, ...], int]:
    n = data[at]
    at += 1
    if n > 127:
        n, at = long_varint(data, at, n)
    count = n >> 1
    # A header takes two bytes at least, so a larger count is rejected before the loop.
    if n & 1 or 2 * count > end - at:
        raise _malformed(index, f"{_signed(n)} headers cannot fit in {max(0, end - at)} bytes.")
    if count > count_max:
        raise BatchTooLarge(
            f"{count:,} headers exceed the remaining limit of {count_max:,}.", index=index
        )
    headers: list[Header] = []
    for _ in range(count):
        key, at = _read_bytes(data, at, end, index, "Header key", whole_max)
        if key is None:
            raise _malformed(index, "Header key is null.")
        value, at = _read_bytes(data, at, end, index, "Header value", whole_max)
        # As in Java: a bad sequence becomes U+FFFD and does not invalidate the record.
        headers.append((key.decode("utf-8", "replace"), value))
    return tuple(headers), at


class Overlong(Exception):
    """The error for a varint that is too long."""


def long_varint(data: Plain, at: int, first: int, bits: int = 32) -> tuple[int, int]:
    """The unsigned value of a varint whose first byte had its top bit set, and the place after."""
    n = data[at]
    if n < 128:
        return first & 127 | n << 7, at + 1
    value, shift = first & 127 | (n & 127) << 7, 14
    while shift < bits:
        at += 1
        n = data[at]
        value |= (n & 127) << shift
        if n < 128:
            if value >> bits:
                break
            return value, at + 1
        shift += 7
    raise Overlong(f"Varint exceeds {bits} bits.")


def _signed(n: int) -> int:
    return (n >> 1) ^ -(n & 1)


def _malformed(index: int, reason: str) -> MalformedBatch:
    return MalformedBatch(reason, index=index)


# Building


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int,
    last_offset_delta: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    max_timestamp: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """A complete batch of `records`, whose offsets ascend from `base_offset` or later.

    `last_offset_delta` is needed when records are missing at the end of the batch, or when there
    are none. `max_timestamp` is the largest of the records unless given; with LOG_APPEND_TIME it is
    the time of all of them.
    """
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=batch.MAGIC,
        crc=0,
        attributes=batch.attributes_of(
            compression, timestamp_type, is_transactional=is_transactional, is_control=is_control
        ),
        last_offset_delta=last_offset_delta,
        base_timestamp=records[0].timestamp if records else max_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return _assemble(header, records)


def rebuild_batch(header: BatchHeader, records: Sequence[Record]) -> bytearray:
    """The batch of `header` with only `records` left, as after compaction.

    Offsets, range, producer, attributes and codec stay, so a consumer skips the missing records.
    """
    if records and header.timestamp_type is TimestampType.CREATE_TIME:
        header = header._replace(max_timestamp=max(record.timestamp for record in records))
    return _assemble(header._replace(record_count=len(records)), records)


def _assemble(header: BatchHeader, records: Sequence[Record]) -> bytearray:
    assert len(records) <= header.last_offset_delta + 1, "more records than offsets"
    payload = _encode_records(records, header.base_offset, header.base_timestamp)
    if records and header.compression is not Compression.NONE:
        payload = codecs.compress(payload, header.compression)
    else:
        # No records are not compressed: an empty batch is its header alone, with any codec.
        header = header._replace(attributes=header.attributes & ~batch.COMPRESSION_MASK)
    size = batch.HEADER_SIZE + len(payload)
    out = bytearray(size)
    batch.HEADER.pack_into(out, 0, *header._replace(length=size - batch.PREFIX_SIZE))
    out[batch.HEADER_SIZE :] = payload
    batch.seal(out)
    return out


def _encode_records(
    records: Iterable[Record], base_offset: int, base_timestamp: int
) -> bytes | bytearray:
    out = bytearray()
    for offset, timestamp, key, value, headers in records:
        parts = [b"\x00", varint(timestamp - base_timestamp), varint(offset - base_offset)]
        for data in (key, value):
            if data is None:
                parts.append(b"\x01")
            else:
                parts += (varint(len(data)), data)
        parts.append(varint(len(headers)))
        for name, content in headers:
            key_bytes = name.encode()
            parts += (varint(len(key_bytes)), key_bytes)
            if content is None:
                parts.append(b"\x01")
            else:
                parts += (varint(len(content)), content)
        body = b"".join(parts)
        out += varint(len(body))
        out += body
    return out


def is_delta(difference: int) -> bool:
    """Whether a difference of two timestamps can be encoded: it is an int64, as they are."""
    return _INT64_MIN <= difference <= _INT64_MAX


def varint(value: int) -> bytes:
    """The shortest zig-zag varint of an int64."""
    n = value << 1 if value >= 0 else ~value << 1 | 1
    if n < 128:
        return _SHORT[n]
    if n < 16384:
        return bytes((n & 127 | 128, n >> 7))
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)
