"""Records of a produced batch as the messages of one batch send (320), without the store.

    Kafka                     in the message
    key, headers, null        properties, by `dictionary`
    timestamp                 the request's born time, and `__KAFKA_MS`, the difference if any
    producer, sequence        `UNIQ_KEY` of the batch's first record, and `__KAFKA_COUNT`, its
                              records; the others have neither

Producers send long stretches of records whose parts have the same sizes. Those are taken apart and
put together again by columns, which takes a third of the time of a loop over records; everything
else goes through that loop. A test compares the two.

A batch becomes messages as a whole or not at all: RocketMQ 5.5 counts the messages of a request in
a signed short, and what would not fit into the properties of a message is not dropped but refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from typing import Final, NamedTuple

from rockgate.gateway.transcode.dictionary import DROPPED, is_word, pack_record, pack_usual
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import (
    Header,
    Overlong,
    long_varint,
    skip_records,
    varint,
    walk_records,
)

MESSAGES_MAX: Final = 32_767
"""Messages of one request: 5.5 confirms more and then has a negative offset."""
REQUEST_BYTES_MAX: Final = 4 << 20
OFFSET_MS: Final = b"__KAFKA_MS"
"""The record's time minus the request's born time, in milliseconds."""
UNIQUE: Final = b"UNIQ_KEY"
COUNT: Final = b"__KAFKA_COUNT"
"""Records of a producer's batch, beside its UNIQ_KEY: where the next one has to continue."""

_HEAD: Final = struct.Struct(">iIIii")
_SIZE: Final = struct.Struct(">H")
_HEAD_SIZE: Final = _HEAD.size + _SIZE.size
_is_short_word: Final = re.compile(rb"[\x21-\x7e]{1,1024}").fullmatch
_STRETCH_MIN: Final = 16
_STRETCH_MAX: Final = 4096
"""Records that are tried as one stretch, and then as a loop; each doubles while it continues."""


class AloneMessage(NamedTuple):
    """A message that is sent by itself."""

    body: bytes
    properties: str


class SentRecords(NamedTuple):
    """A batch as a part of a request's body."""

    body: bytes
    record_count: int
    alone: tuple[AloneMessage, ...] = ()
    """Those of its messages that have a request each, and are not in the body."""
    whole: AloneMessage | None = None
    """The one message that the batch is, as it came."""


class _Layout(NamedTuple):
    """The sizes of the parts of a record."""

    total: int
    parts: struct.Struct
    head: bytes
    """Length and attributes."""
    time_size: int
    place_size: int
    key_size: bytes
    has_key: bool
    value_size: bytes
    value_bytes: int
    tail: bytes
    """The count of its headers, and they."""


def to_messages(
    data: Plain,
    header: BatchHeader,
    *,
    born_ms: int,
    unique: bytes | None = None,
    bounds: Bounds = BOUNDS,
) -> SentRecords:
    """Return the uncompressed records of a batch as messages of a request with this born time.

    `unique` is the UNIQ_KEY of the first. MalformedBatch if a record is invalid, BatchTooLarge if
    the batch does not fit into a request.
    """
    count = header.record_count
    if count > MESSAGES_MAX:
        raise BatchTooLarge(
            f"Batch has {count:,} records; a RocketMQ broker takes {MESSAGES_MAX:,} at once."
        )
    parts: list[bytes] = []
    made = _Made(data, header, born_ms, bounds, parts)
    at = index = 0
    if count:
        at, index = made.loop(0, 0, 1, unique)
    stretch = pause = _STRETCH_MIN
    while index < count:
        before = index
        at, index = made.columns(at, index, min(count, index + stretch))
        if index - before == stretch:
            stretch, pause = min(2 * stretch, _STRETCH_MAX), _STRETCH_MIN
            continue
        if index < count:
            # One that differs: it and some behind it are compared one by one.
            some = 1 if index - before >= _STRETCH_MIN else pause
            at, index = made.loop(at, index, min(count, index + some))
            pause = _STRETCH_MIN if some == 1 else min(2 * pause, _STRETCH_MAX)
            stretch = _STRETCH_MIN if some > 1 else stretch
    if at != len(data):
        raise MalformedBatch(f"{len(data) - at} bytes follow the last of {count} records.")
    body = b"".join(parts)
    if len(body) > REQUEST_BYTES_MAX:
        raise BatchTooLarge(
            f"Batch takes {len(body):,} bytes as messages; a RocketMQ broker takes at most "
            f"{REQUEST_BYTES_MAX:,} at once."
        )
    return SentRecords(body, count)


class _Made:
    """The messages of one batch while they are made."""

    __slots__ = ("_born_ms", "_bounds", "_data", "_header", "_parts")

    def __init__(
        self,
        data: Plain,
        header: BatchHeader,
        born_ms: int,
        bounds: Bounds,
        parts: list[bytes],
    ) -> None:
        self._data = data
        self._header = header
        self._born_ms = born_ms
        self._bounds = bounds
        self._parts = parts

    def loop(self, at: int, first: int, end: int, unique: bytes | None = None) -> tuple[int, int]:
        """Add records one by one; return where the next one is, and its index."""
        parts, born_ms = self._parts, self._born_ms
        header = self._header._replace(base_offset=0)
        records = walk_records(self._data, header, at=at, first=first, bounds=self._bounds)
        pack_head, pack_size, index = _HEAD.pack, _SIZE.pack, first
        leads: dict[int, bytes] = {born_ms: b""}
        for offset, timestamp, key, value, headers in islice(records, end - first):
            if offset != index:
                raise MalformedBatch(f"Offset delta is {offset}; expected {index}.", index=index)
            lead = leads.get(timestamp)
            if lead is None:
                lead = leads[timestamp] = _offset_ms(timestamp - born_ms)
            if unique is not None:
                count = header.record_count
                lead = b"%b\x01%b\x02%b\x01%d\x02%b" % (UNIQUE, unique, COUNT, count, lead)
                unique = None
            if headers or value is None or (key is not None and not _is_short_word(key)):
                properties = lead + properties_of(key, headers, value is None, len(lead), index)
                value = value or b""
            else:
                properties = lead if key is None else b"%bKEYS\x01%b\x02" % (lead, key)
            body_size, size = len(value), len(properties)
            parts += (
                pack_head(_HEAD_SIZE + body_size + size, 0, 0, 0, body_size),
                value,
                pack_size(size),
                properties,
            )
            index += 1
        return skip_records(self._data, at, end - first), end

    def columns(self, at: int, first: int, end: int) -> tuple[int, int]:
        """Add as many records as have the same sizes as the first; none, if that is unusual."""
        data = self._data
        layout = _layout(data, at)
        if layout is None:
            return at, first
        end = min(end, _same_size_end(first), first + (len(data) - at) // layout.total)
        count = end - first
        rows = layout.parts.iter_unpack(memoryview(data)[at : at + count * layout.total])
        heads, times, places, key_sizes, keys, value_sizes, values, tails = zip(*rows, strict=True)
        expected = list(map(varint, range(first, end)))
        if (
            heads.count(layout.head) != count
            or key_sizes.count(layout.key_size) != count
            or value_sizes.count(layout.value_size) != count
            or tails.count(layout.tail) != count
            or list(places) != expected
        ):
            columns = zip(heads, key_sizes, value_sizes, tails, places, expected, strict=True)
            count = _agreeing(layout, columns)
            if count < _STRETCH_MIN:
                return at, first
            times, keys, values = times[:count], keys[:count], values[:count]
        known = self._times(times)
        if known is None or (layout.has_key and not is_word(b"".join(keys))):
            return at, first
        self._add(layout, times, keys, values, known, self._headers(at, first))
        return at + count * layout.total, first + count

    def _add(
        self,
        layout: _Layout,
        times: tuple[bytes, ...],
        keys: tuple[bytes, ...],
        values: tuple[bytes, ...],
        known: dict[bytes, bytes],
        headers: bytes,
    ) -> None:
        fronts: dict[bytes, bytes] = {}
        tails: dict[bytes, bytes] = {}
        name, end = (b"KEYS\x01", b"\x02" + headers) if layout.has_key else (b"", headers)
        for time, lead in known.items():
            size = len(lead) + len(name) + len(keys[0]) + len(end)
            total = _HEAD_SIZE + layout.value_bytes + size
            fronts[time] = _HEAD.pack(total, 0, 0, 0, layout.value_bytes)
            tails[time] = _SIZE.pack(size) + lead + name + (b"" if layout.has_key else end)
        front: Iterable[bytes]
        tail: Iterable[bytes]
        if len(known) == 1:
            front, tail = repeat(fronts[times[0]]), repeat(tails[times[0]])
        else:
            front, tail = map(fronts.__getitem__, times), map(tails.__getitem__, times)
        rows = (
            zip(front, values, tail, keys, repeat(end), strict=False)
            if layout.has_key
            else zip(front, values, tail, strict=False)
        )
        self._parts.append(b"".join(chain.from_iterable(rows)))

    def _times(self, times: tuple[bytes, ...]) -> dict[bytes, bytes] | None:
        """Return the property of each time; None if one of them is not a varint of its size."""
        known: dict[bytes, bytes] = {}
        for time in set(times):
            try:
                n, end = time[0], 1
                if n > 127:
                    n, end = long_varint(time, 1, n, 64)
            except (IndexError, Overlong):
                return None
            timestamp = self._header.base_timestamp + ((n >> 1) ^ -(n & 1))
            if end != len(time) or not -(1 << 63) <= timestamp < 1 << 63:
                return None
            late = timestamp - self._born_ms
            known[time] = _offset_ms(late) if late else b""
        return known

    def _headers(self, at: int, first: int) -> bytes:
        """Return the properties of the headers that all records of a stretch have."""
        header = self._header._replace(base_offset=0)
        records = walk_records(self._data, header, at=at, first=first, bounds=self._bounds)
        headers = next(records).headers
        return properties_of(None, headers, False, 0, first) if headers else b""


def properties_of(
    key: bytes | None, headers: tuple[Header, ...], is_null: bool, lead_size: int, index: int
) -> bytes:
    """Return the properties of a record; BatchTooLarge if a message does not hold all of them."""
    packed = None if is_null else pack_usual(key, headers)
    if packed is None:
        packed = pack_record(key, headers, is_null)
        last = packed.rfind(b"\x02", 0, -1) + 1
        if packed.startswith(DROPPED + b"\x01", last):
            raise BatchTooLarge(
                "Key and headers do not fit into the properties of a RocketMQ message.",
                index=index,
            )
    assert len(packed) + lead_size < 1 << 15, "there is room for what the gateway adds"
    return packed


def _offset_ms(late: int) -> bytes:
    return b"%b\x01%d\x02" % (OFFSET_MS, late)


def _same_size_end(index: int) -> int:
    """Return the first index after this one whose varint has another size."""
    return next((end for end in (64, 8192, 1 << 20) if index < end), 1 << 27)


def _agreeing(layout: _Layout, columns: Iterator[tuple[bytes, ...]]) -> int:
    """Return how many records from the first on have its layout."""
    same = (layout.head, layout.key_size, layout.value_size, layout.tail)
    count = 0
    for *sizes, place, expected in columns:
        if tuple(sizes) != same or place != expected:
            break
        count += 1
    return count


def _layout(data: Plain, at: int) -> _Layout | None:
    """Return the sizes of a record's parts; None if it is not usual, or not a record."""
    try:
        length, after = _number(data, at)
        head_end, end = after + 1, after + (length >> 1)
        _, time_end = _number(data, head_end, 64)
        _, place_end = _number(data, time_end)
        key_n, key_at = _number(data, place_end)
        key_end = key_at + (0 if key_n == 1 else key_n >> 1)
        value_n, value_at = _number(data, key_end)
        value_end = value_at + (value_n >> 1)
    except (IndexError, Overlong):
        return None
    if length & 1 or value_n & 1 or (key_n & 1 and key_n != 1) or key_n == 0 or value_end >= end:
        return None
    if end > len(data):
        return None
    sizes = (
        *(head_end - at, time_end - head_end, place_end - time_end, key_at - place_end),
        *(key_end - key_at, value_at - key_end, value_end - value_at, end - value_end),
    )
    return _Layout(
        total=end - at,
        parts=struct.Struct("".join(f"{size}s" for size in sizes)),
        head=bytes(data[at:head_end]),
        time_size=time_end - head_end,
        place_size=place_end - time_end,
        key_size=bytes(data[place_end:key_at]),
        has_key=key_n != 1,
        value_size=bytes(data[key_end:value_at]),
        value_bytes=value_end - value_at,
        tail=bytes(data[value_end:end]),
    )


def _number(data: Plain, at: int, bits: int = 32) -> tuple[int, int]:
    n = data[at]
    return (n, at + 1) if n < 128 else long_varint(data, at + 1, n, bits)


def unique_key(header: BatchHeader) -> bytes | None:
    """Return the UNIQ_KEY of a producer's batch: K, and id, epoch and sequence in hexadecimal."""
    if header.producer_id < 0:
        return None
    return b"K%016X%04X%08X" % (
        header.producer_id,
        header.producer_epoch & 0xFFFF,
        header.base_sequence & 0xFFFFFFFF,
    )
