"""Splits a batch by its records' headers: the matching records, and a batch of the rest.

A batch is decompressed once and its records are skipped by their lengths. Only records that contain
a hint (bytes that a wanted header's name must have) are decoded, so a batch without any costs one
search, and one with a few little more. The work is done in steps, so that an event loop can do a
few at a time.

The rest looks as after compaction: the other records have their old offsets, and the batch its
range, producer and codec. Without other records it is a header alone.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records import compression as codecs
from rockgate.protocol.kafka.records.batch import BatchHeader, Buffer, Compression, TimestampType
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import (
    NO_TIMESTAMP,
    Header,
    Overlong,
    Record,
    long_varint,
    open_records,
    walk_records,
)

STEP_RECORDS: Final = 250
"""Records of one step: about a quarter of a millisecond if all of them are read."""
BAD_MAX: Final = 10_000
"""The most invalid records that are reported; a producer sees the others after fixing these."""
_LOOK_BYTES: Final = 1 << 10
"""How much of a header is read: the wanted ones are shorter, and copying takes time."""
_NOWHERE: Final = 1 << 62
_HINT_SIZE_MAX: Final = 16
"""The longest that a hint matches."""

T = TypeVar("T")
Wanted = Callable[[tuple[Header, ...]], T | None]
"""What is wanted of a record with these headers, or None. ValueError if they are invalid."""


class Sifter(Generic[T]):
    """One batch under way. Call `step` until it returns False."""

    def __init__(
        self,
        view: Buffer,
        header: BatchHeader,
        hint: re.Pattern[bytes],
        wanted: Wanted[T],
        *,
        bounds: Bounds = BOUNDS,
        data: Plain | None = None,
    ) -> None:
        """Decompress a batch, or take its decompressed records."""
        self.header = header
        self.data = open_records(view, header, bounds=bounds) if data is None else data
        self._wanted = wanted
        self._bounds = bounds
        self._headers_left = bounds.headers_max
        self._hits = _hits(hint, self.data)
        self._hit = next(self._hits, _NOWHERE)
        self._bad: list[tuple[int, str]] = []
        self._at = 0
        self._index = 0
        self.has_hint = self._hit != _NOWHERE
        """Whether any record can be wanted; if not, there is nothing to decode."""
        self.indexes = array("I")
        """Indexes of the records that were wanted."""
        self.found: list[T] = []
        """What was wanted of each of them."""
        self._starts = array("I")
        self._ends = array("I")
        self.rest_max_ms = NO_TIMESTAMP
        """The largest timestamp of the others."""

    def run(self) -> None:
        """Run all steps."""
        while self.step():
            pass

    def step(self, count: int = STEP_RECORDS) -> bool:
        """Process some records; return whether there are more."""
        if not self.has_hint:
            return False
        header, data, at, hit = self.header, self.data, self._at, self._hit
        size, base_ms, max_ms = len(data), header.base_timestamp, self.rest_max_ms
        index = first = self._index
        try:
            for index in range(first, min(first + count, header.record_count)):
                start = at
                n = data[at]
                at += 1
                if n > 127:
                    n, at = long_varint(data, at, n)
                end = at + (n >> 1)
                if n & 1 or end > size:
                    raise MalformedBatch("Invalid record length.", index=index)
                if hit < end:
                    is_taken = self._look(index, start, end)
                    while hit < end:
                        hit = next(self._hits, _NOWHERE)
                else:
                    is_taken = False
                if not is_taken:
                    n = data[at + 1]
                    if n > 127:
                        n, _ = long_varint(data, at + 2, n, 64)
                    time_ms = base_ms + ((n >> 1) ^ -(n & 1))
                    if time_ms > max_ms:
                        max_ms = time_ms
                at = end
        except IndexError:
            raise MalformedBatch("The batch ends inside the record.", index=index) from None
        except Overlong as error:
            raise MalformedBatch(str(error), index=index) from None
        self._at, self._hit, self.rest_max_ms = at, hit, max_ms
        self._index = min(first + count, header.record_count)
        if self._index < header.record_count:
            return True
        if at != size:
            raise MalformedBatch(f"{size - at} bytes follow the last record.")
        if self._bad:
            index, reason = self._bad[0]
            raise MalformedBatch(reason, index=index, bad=self._bad)
        return False

    def _look(self, index: int, start: int, end: int) -> bool:
        """Decode one record, and return whether it is wanted."""
        record = next(
            walk_records(
                self.data,
                self.header,
                at=start,
                first=index,
                bounds=self._bounds,
                whole_max=_LOOK_BYTES,
            )
        )
        self._headers_left -= len(record.headers)
        if self._headers_left < 0:
            raise BatchTooLarge(
                f"Batch has more than {self._bounds.headers_max:,} headers.", index=index
            )
        try:
            found = self._wanted(record.headers)
        except ValueError as error:
            if len(self._bad) < BAD_MAX:
                self._bad.append((index, str(error)))
            return False
        if found is None:
            return False
        if record.offset - self.header.base_offset != index:
            raise MalformedBatch("Offset does not match the record's index.", index=index)
        self.indexes.append(index)
        self._starts.append(start)
        self._ends.append(end)
        self.found.append(found)
        return True

    def record(self, index: int) -> Record | None:
        """Return a record that was wanted; None for another index."""
        at = bisect_left(self.indexes, index)
        if at == len(self.indexes) or self.indexes[at] != index:
            return None
        return next(
            walk_records(
                self.data, self.header, at=self._starts[at], first=index, bounds=self._bounds
            )
        )

    def span(self, index: int) -> tuple[int, int]:
        """Return the place of a wanted record in the data; an empty range for another index."""
        at = bisect_left(self.indexes, index)
        if at == len(self.indexes) or self.indexes[at] != index:
            return 0, 0
        return self._starts[at], self._ends[at]

    @property
    def rest_count(self) -> int:
        """How many records were not wanted."""
        return self.header.record_count - len(self.indexes)

    def rest_data(self) -> Plain:
        """Return the records that were not wanted, joined."""
        wanted_size = sum(self._ends) - sum(self._starts)
        return codecs.joined(self._gaps(), len(self.data) - wanted_size)

    def _gaps(self) -> Iterator[memoryview]:
        view, at = memoryview(self.data), 0
        for start, end in zip(self._starts, self._ends, strict=True):
            yield view[at:start]
            at = end
        yield view[at:]

    def rest(self) -> bytearray:
        """Return the batch without the wanted records, compressed with its codec."""
        header, data = self.header, self.rest_data()
        attributes = header.attributes
        # No records are not compressed: an empty batch is its header alone, with any codec.
        codec = header.compression if data else Compression.NONE
        payload = memoryview(data)
        if codec is Compression.NONE:
            attributes &= ~batch.COMPRESSION_MASK
        else:
            payload = memoryview(codecs.compress(data, codec))
        max_ms = header.max_timestamp
        if self.rest_count and header.timestamp_type is TimestampType.CREATE_TIME:
            max_ms = self.rest_max_ms
        size = batch.HEADER_SIZE + len(payload)
        out = bytearray(size)
        changed = header._replace(
            length=size - batch.PREFIX_SIZE,
            attributes=attributes,
            max_timestamp=max_ms,
            record_count=self.rest_count,
        )
        batch.HEADER.pack_into(out, 0, *changed)
        out[batch.HEADER_SIZE :] = payload
        batch.seal(out)
        return out


def _hits(hint: re.Pattern[bytes], data: Plain) -> Iterator[int]:
    """Yield where the hint is, searching piece by piece: a search does not release the GIL."""
    at, size = 0, len(data)
    while at < size:
        hit = hint.search(data, at, min(size, at + codecs.PIECE + _HINT_SIZE_MAX))
        if hit is None:
            at += codecs.PIECE
        else:
            yield hit.start()
            at = hit.end()
