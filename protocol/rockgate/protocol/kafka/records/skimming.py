"""Reads only timestamps, keys or a single record of a batch.

Records are skipped by their lengths, and only the beginning of each is read: what follows its key,
a million headers for instance, costs nothing. Parts that are not read are not checked.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader, TimestampType
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import Overlong, Record, long_varint, walk_records


def skim_times(data: Plain, header: BatchHeader) -> Iterator[tuple[int, int]]:
    """Yield the offset delta and the time of each record."""
    for _, _, delta, timestamp, _, _ in _fronts(data, header):
        yield delta, timestamp


def skim_keys(data: Plain, header: BatchHeader) -> Iterator[tuple[int, bytes | None]]:
    """Yield the offset delta and the key of each record."""
    for index, _, delta, _, at, end in _fronts(data, header):
        try:
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
        except (IndexError, Overlong) as error:
            raise MalformedBatch(f"Invalid key: {error}", index=index) from None
        if n & 1:
            yield delta, None
            continue
        if at + (n >> 1) > end:
            raise MalformedBatch(
                f"Key of {n >> 1} bytes exceeds the {max(0, end - at)} left.", index=index
            )
        yield delta, data[at : at + (n >> 1)]


_new: Final = tuple.__new__


class Keyed(NamedTuple):
    """A record as compaction sees it."""

    delta: int
    timestamp: int
    key: bytes | None
    is_null: bool
    """Whether it has no value, and so deletes its key."""
    start: int
    end: int


def skim_keyed(data: Plain, header: BatchHeader) -> Iterator[Keyed]:
    """Yield each record with its key and its place; every byte of the data belongs to one."""
    end = 0
    for index, start, delta, timestamp, at, end in _fronts(data, header):
        key: bytes | None = None
        try:
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
            if not n & 1:
                key = data[at : at + (n >> 1)]
                at += n >> 1
            if at >= end:
                raise MalformedBatch("Key exceeds the record.", index=index)
            is_null = data[at] == 1
        except (IndexError, Overlong) as error:
            raise MalformedBatch(f"Invalid key: {error}", index=index) from None
        yield _new(Keyed, (delta, timestamp, key, is_null, start, end))
    if end != len(data):
        raise MalformedBatch(f"{len(data) - end} bytes follow the last record.")


class Marks(NamedTuple):
    """Positions of every n-th record of a batch, with their offset deltas."""

    places: array[int]
    deltas: array[int]


def mark_records(data: Plain, header: BatchHeader, every: int) -> Marks:
    """Return marks at records; of a damaged batch, only at those before the damage."""
    marks = Marks(array("Q"), array("Q"))
    try:
        for index, start, delta, _, _, _ in _fronts(data, header):
            if not index % every:
                marks.places.append(start)
                marks.deltas.append(delta)
    except MalformedBatch:
        pass
    return marks


def index_of(data: Plain, header: BatchHeader, delta: int, *, first: int, at: int) -> int:
    """Return the index of the first record with an offset delta or a larger one.

    The search starts at the record with index `first`, which starts at `at`.
    """
    for index, _, found, _, _, _ in _fronts(data, header, first, at):
        if found >= delta:
            return index
    return header.record_count


def record_at(
    data: Plain, header: BatchHeader, offset: int, *, bounds: Bounds = BOUNDS
) -> Record | None:
    """Return the record of an offset; None if there is none."""
    wanted = offset - header.base_offset
    for index, start, delta, _, _, _ in _fronts(data, header):
        if delta == wanted:
            return next(walk_records(data, header, at=start, first=index, bounds=bounds))
        if delta > wanted:
            break
    return None


def _fronts(
    data: Plain, header: BatchHeader, first: int = 0, at: int = 0
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield each record's index, position, offset delta and time, where its key is, and its end."""
    base_ms, max_ms = header.base_timestamp, header.max_timestamp
    append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    size, index = len(data), first
    try:
        for index in range(first, header.record_count):
            start = at
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
            end = at + (n >> 1)
            if n & 1 or end > size:
                raise MalformedBatch(
                    f"Length {n >> 1} exceeds the {size - at} bytes left.", index=index
                )
            n = data[at + 1]
            at += 2
            if n > 127:
                n, at = long_varint(data, at, n, 64)
            timestamp = max_ms if append_time else base_ms + ((n >> 1) ^ -(n & 1))
            n = data[at]
            at += 1
            if n > 127:
                n, at = long_varint(data, at, n)
            if n & 1:
                raise MalformedBatch("Offset precedes the base offset of the batch.", index=index)
            yield index, start, n >> 1, timestamp, at, end
            at = end
    except IndexError:
        raise MalformedBatch("The batch ends inside the record.", index=index) from None
    except Overlong as error:
        raise MalformedBatch(str(error), index=index) from None
