"""Rewrites a batch for compaction: some of its records, in the old places.

The other records keep their offsets, and the batch its range, producer, codec and epoch. A delete
horizon (KIP-534) is the time from when on records without a value may go; it takes the place of the
base timestamp, so that every record's timestamp is encoded anew.

Records are added in order, some at a time; compressing comes last and may be left to a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records import compression as codecs
from rockgate.protocol.kafka.records.batch import BatchHeader, Compression, TimestampType
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import (
    NO_TIMESTAMP,
    build_batch,
    is_delta,
    long_varint,
    varint,
)
from rockgate.protocol.kafka.records.skimming import Keyed

_HORIZON_BIT: Final = 0x40


class Compacting:
    """A batch while the records that stay are picked."""

    def __init__(self, data: Plain, header: BatchHeader, horizon_ms: int | None = None) -> None:
        """With a horizon, it is set."""
        self._data = data
        self._header = header
        self._horizon_ms = horizon_ms
        self._spans: list[tuple[int, int]] = []
        self._encoded: list[bytes] = []
        self._size = 0
        self.max_ms = NO_TIMESTAMP
        """The largest timestamp of the records that stay."""
        self.count = 0
        """How many stay."""

    def keep(self, record: Keyed) -> None:
        """Keep a record; those that are not passed are dropped."""
        self.count += 1
        if record.timestamp > self.max_ms:
            self.max_ms = record.timestamp
        if self._horizon_ms is not None:
            encoded = _with_base(self._data, record, self._horizon_ms)
            self._encoded.append(encoded)
            self._size += len(encoded)
            return
        self._size += record.end - record.start
        spans = self._spans
        if spans and spans[-1][1] == record.start:
            spans[-1] = spans[-1][0], record.end
        else:
            spans.append((record.start, record.end))

    @property
    def size(self) -> int:
        """The bytes of the records that stay, before compression."""
        return self._size

    def build(self) -> bytearray:
        """Return the batch. At least one record stays."""
        header = self._header
        payload = codecs.joined(self._pieces(), self._size)
        if header.compression is not Compression.NONE:
            payload = codecs.compress(payload, header.compression)
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.max_ms = header.max_timestamp
        size = batch.HEADER_SIZE + len(payload)
        changed = header._replace(
            length=size - batch.PREFIX_SIZE,
            max_timestamp=self.max_ms,
            record_count=self.count,
        )
        if self._horizon_ms is not None:
            changed = changed._replace(
                attributes=header.attributes | _HORIZON_BIT, base_timestamp=self._horizon_ms
            )
        out = bytearray(size)
        batch.HEADER.pack_into(out, 0, *changed)
        out[batch.HEADER_SIZE :] = memoryview(payload)
        batch.seal(out)
        return out

    def _pieces(self) -> Iterator[memoryview]:
        if self._horizon_ms is not None:
            for encoded in self._encoded:
                yield memoryview(encoded)
            return
        view = memoryview(self._data)
        for start, end in self._spans:
            yield view[start:end]


def has_room_for(header: BatchHeader, horizon_ms: int) -> bool:
    """Whether the timestamps of a batch can be encoded relative to a horizon."""
    return is_delta(header.max_timestamp - horizon_ms) and is_delta(
        header.base_timestamp - horizon_ms
    )


def empty_batch(base_offset: int, count: int, leader_epoch: int) -> bytearray:
    """Return a batch that covers some offsets and has no record."""
    return build_batch(
        (),
        base_offset=base_offset,
        last_offset_delta=count - 1,
        leader_epoch=leader_epoch,
    )


def _with_base(data: Plain, record: Keyed, base_ms: int) -> bytes:
    """Return a record whose timestamp is encoded relative to another base."""
    at = record.start
    if data[at] > 127:
        _, at = long_varint(data, at + 1, data[at])
    else:
        at += 1
    attributes, at = data[at : at + 1], at + 1
    n = data[at]
    at += 1
    if n > 127:
        _, at = long_varint(data, at, n, 64)
    time = varint(record.timestamp - base_ms)
    size = varint(len(attributes) + len(time) + record.end - at)
    return b"".join((size, attributes, time, data[at : record.end]))
