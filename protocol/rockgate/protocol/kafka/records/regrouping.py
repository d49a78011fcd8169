"""Combines records of several batches into a new one without decoding them.

A record is copied without decoding: key, value and the remaining headers are slices of its batch,
and only the fields before them are rewritten. So a record of megabytes is copied only once, in
pieces that do not block the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.batch import BatchHeader, Compression, TimestampType
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain, compress, joined
from rockgate.protocol.kafka.records.record import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Overlong,
    is_delta,
    long_varint,
    varint,
)

_NAME_SIZE_MAX: Final = 1 << 10
"""How much of a header's name is compared; the names to drop are shorter."""


class Raw(NamedTuple):
    """One record: its timestamp, and everything after its offset delta, in pieces."""

    timestamp: int
    pieces: list[memoryview]
    size: int


def raw_record(
    data: Plain,
    header: BatchHeader,
    at: int,
    end: int,
    dropped: frozenset[str],
    bounds: Bounds = BOUNDS,
) -> Raw:
    """Return the record between two positions, without the headers of some names."""
    view = memoryview(data)
    try:
        _, at = _number(data, at)
        delta, at = _number(data, at + 1, 64)
        _, at = _number(data, at)
        first = at
        for _ in ("key", "value"):
            size, at = _number(data, at)
            at += max(0, size)
        pieces, remaining = [view[first:at]], []
        count, at = _number(data, at)
        if count > bounds.record_headers_max:
            raise BatchTooLarge(
                f"Record has {count:,} headers; the maximum is {bounds.record_headers_max:,}."
            )
        for _ in range(count):
            start = at
            size, at = _number(data, at)
            name = data[at : at + min(size, _NAME_SIZE_MAX)].decode("utf-8", "replace")
            size, at = _number(data, at + size)
            at += max(0, size)
            if name not in dropped:
                remaining.append(view[start:at])
    except IndexError:
        raise MalformedBatch("The batch ends inside a record.") from None
    except Overlong as error:
        raise MalformedBatch(f"Invalid record: {error}") from None
    if at != end:
        raise MalformedBatch(f"Length of a record is off by {abs(end - at)} bytes.")
    pieces += [memoryview(varint(len(remaining))), *remaining]
    timestamp = header.base_timestamp + delta
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        timestamp = header.max_timestamp
    return Raw(timestamp, pieces, sum(map(len, pieces)))


def regrouped(records: Sequence[Raw], codec: Compression) -> bytearray:
    """Return a complete batch of records from offset 0 on, without a producer id.

    The difference of each timestamp to the first must fit an int64.
    """
    base_ms = records[0].timestamp
    assert all(is_delta(each.timestamp - base_ms) for each in records), (
        "timestamps that fit a delta"
    )
    fronts = [
        b"\0" + varint(each.timestamp - base_ms) + varint(index)
        for index, each in enumerate(records)
    ]
    fronts = [
        varint(len(front) + each.size) + front for front, each in zip(fronts, records, strict=True)
    ]
    size = sum(map(len, fronts)) + sum(each.size for each in records)
    data = joined(_pieces(fronts, records), size)
    payload = memoryview(data if codec is Compression.NONE else compress(data, codec))
    whole = batches.HEADER_SIZE + len(payload)
    out = bytearray(whole)
    batches.HEADER.pack_into(
        out,
        0,
        0,
        whole - batches.PREFIX_SIZE,
        NO_LEADER_EPOCH,
        batches.MAGIC,
        0,
        batches.attributes_of(codec),
        len(records) - 1,
        base_ms,
        max(each.timestamp for each in records),
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        len(records),
    )
    out[batches.HEADER_SIZE :] = payload
    batches.seal(out)
    return out


def _pieces(fronts: Sequence[bytes], records: Sequence[Raw]) -> Iterator[memoryview]:
    for front, each in zip(fronts, records, strict=True):
        yield memoryview(front)
        yield from each.pieces


def _number(data: Plain, at: int, bits: int = 32) -> tuple[int, int]:
    n = data[at]
    at += 1
    if n > 127:
        n, at = long_varint(data, at, n, bits)
    return (n >> 1) ^ -(n & 1), at
