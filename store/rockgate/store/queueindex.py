"""Index files: the consume-queue units of one stretch of the log, for all queues.

docs/consume-queue.md is this module's twin. One format serves two purposes:

- a *sealed* index covers a whole segment; it is written when the segment is full, read in place
  from then on, and deleted with the segment;
- a *tail* index covers a stretch of the segment that is still being written; it is read once, at
  the next start, so that only the log behind it must be scanned.

    header      52   magic, version, queue count, log start, log end, unit count, three checksums
    directory   48 x queue count, sorted by topic id and queue id
    runs        48 x unit count, each queue's units together, sorted by base offset

An index is derived: one that is missing or damaged is rebuilt from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from rockgate.store.files import Directory, Mapping

UNIT = struct.Struct(">qQiiqqq")
UNIT_SIZE = UNIT.size

_MAGIC = b"RGQINDEX"
_VERSION = 1
_HEADER = struct.Struct(">8sIIQQQIII")
_ENTRY = struct.Struct(">16siIqqQ")
_HEADER_CHECKED = _HEADER.size - 4


class Unit(NamedTuple):
    """One entry of a queue: `offset_count` offsets from `base` on, at a position of the log."""

    base: int
    position: int
    size: int
    offset_count: int
    store_ms: int
    max_ms: int
    """Running maximum of record timestamps: never less than the unit's before it."""
    tag_code: int


class Run(NamedTuple):
    """A queue's units in one index file."""

    topic_id: bytes
    queue_id: int
    unit_count: int
    first: int
    end: int
    """The offset behind the last unit's."""
    at: int
    """Where in the file the first unit lies."""


class IndexDamaged(Exception):
    """The file is not a whole index; it can be rebuilt from the log."""


def index_name(start: int, end: int) -> str:
    """Return an index file's name: the stretch of the log that it covers."""
    return f"{start:020d}-{end:020d}"


def parse_name(name: str) -> tuple[int, int] | None:
    """Return the stretch that a file name stands for."""
    start, dash, end = name.partition("-")
    if dash and start.isdigit() and end.isdigit() and len(start) == len(end) == 20:
        return int(start), int(end)
    return None


def write_index(
    directory: Directory,
    start: int,
    end: int,
    runs: Iterable[tuple[bytes, int, bytes]],
) -> None:
    """Write the index of a stretch durably; `runs` are topic id, queue id and packed units."""
    ordered = sorted(run for run in runs if run[2])
    at = _HEADER.size + _ENTRY.size * len(ordered)
    entries = []
    runs_crc = 0
    for topic_id, queue_id, units in ordered:
        first = UNIT.unpack_from(units, 0)[0]
        last = UNIT.unpack_from(units, len(units) - UNIT_SIZE)
        count = len(units) // UNIT_SIZE
        entries.append(_ENTRY.pack(topic_id, queue_id, count, first, last[0] + last[3], at))
        runs_crc = crc32(units, runs_crc)
        at += len(units)
    listing = b"".join(entries)
    unit_count = (at - _HEADER.size - len(listing)) // UNIT_SIZE
    fields = (_MAGIC, _VERSION, len(ordered), start, end, unit_count, crc32(listing), runs_crc)
    header = _HEADER.pack(*fields, 0)[:_HEADER_CHECKED]
    header += struct.pack(">I", crc32(header))

    name = index_name(start, end)
    file = directory.create(f"{name}.new")
    try:
        file.write(0, header + listing)
        at = len(header) + len(listing)
        # Few large writes instead of one per queue.
        pending: list[bytes] = []
        pending_size = 0
        for _, _, units in ordered:
            pending.append(units)
            pending_size += len(units)
            if pending_size >= 1 << 20:
                file.write(at, b"".join(pending))
                at += pending_size
                pending, pending_size = [], 0
        if pending:
            file.write(at, b"".join(pending))
        file.sync()
    finally:
        file.close()
    directory.rename(f"{name}.new", name)
    directory.sync()


class IndexFile:
    """An index file, open for reading."""

    def __init__(self, directory: Directory, name: str, *, whole: bool) -> None:
        """Open and check it: header and directory always, the runs as well if `whole`."""
        stretch = parse_name(name)
        if stretch is None:
            raise IndexDamaged(f"{name} is not the name of an index")
        self.name = name
        self.start, self.end = stretch
        try:
            self._mapping: Mapping = directory.map(name, writable=False)
        except ValueError as error:
            raise IndexDamaged(f"{name} is empty") from error
        self.view = self._mapping.view
        self._queue_count = self._check(whole=whole)

    def _check(self, *, whole: bool) -> int:
        view = self.view
        if len(view) < _HEADER.size:
            raise IndexDamaged(f"{self.name} has {len(view)} bytes, less than its header")
        fields = _HEADER.unpack_from(view)
        magic, version, queue_count, start, end, unit_count, listing_crc, runs_crc, crc = fields
        if magic != _MAGIC or crc32(view[:_HEADER_CHECKED]) != crc:
            raise IndexDamaged(f"{self.name} has a damaged header")
        if version != _VERSION:
            raise IndexDamaged(f"{self.name} has version {version}, known is {_VERSION}")
        if (start, end) != (self.start, self.end):
            raise IndexDamaged(f"{self.name} covers {start} to {end}")
        runs_at = _HEADER.size + _ENTRY.size * queue_count
        if len(view) != runs_at + UNIT_SIZE * unit_count:
            raise IndexDamaged(f"{self.name} has {len(view)} bytes for {unit_count} units")
        if crc32(view[_HEADER.size : runs_at]) != listing_crc:
            raise IndexDamaged(f"{self.name} has a damaged directory")
        if whole and crc32(view[runs_at:]) != runs_crc:
            raise IndexDamaged(f"{self.name} has damaged units")
        return int(queue_count)

    def runs(self) -> Iterator[Run]:
        """Yield the directory."""
        end = _HEADER.size + _ENTRY.size * self._queue_count
        for fields in _ENTRY.iter_unpack(self.view[_HEADER.size : end]):
            yield Run._make(fields)

    def units(self, run: Run) -> memoryview:
        """Return a run's packed units."""
        return self.view[run.at : run.at + run.unit_count * UNIT_SIZE]

    def close(self) -> None:
        """Let go of the file."""
        self.view = memoryview(b"")
        self._mapping.close()
