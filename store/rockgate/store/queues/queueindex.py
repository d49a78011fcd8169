"""Index files: the consume-queue units of one range of the log, for all queues.

docs/internals/consume-queue.md specifies it. One format serves two purposes:

- a *sealed* index covers a whole segment; it is written when the segment is full, read in place
  from then on, and deleted with the segment;
- a *tail* index covers a range of the segment that is still being written; it is read once, at
  the next start, so that only the log after it must be scanned.

    header      52   magic, version, run count, log start, log end, unit count, three checksums
    directory   52 x run count, sorted by topic id, queue id and kind
    units       48 x unit count, each run's units together, sorted by base offset
    checksums    4 x block count, of every 256 units

A queue has at most two runs in a file: one of entries that were first appended there, and one of
entries that were relocated there. An index is derived: a missing or damaged one is rebuilt from the
log. Header and directory are verified when a file is opened, and the units of a sealed index block
by block before their first use, so that no start reads every index completely.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import Directory, Mapping

UNIT = struct.Struct(">qQiiqqq")
UNIT_SIZE = UNIT.size
_WORDS = UNIT_SIZE // 8
UnitFields = tuple[int, int, int, int, int, int, int]

_MAGIC = b"RGQINDEX"
_VERSION = 1
HEADER = struct.Struct(">8sIIQQQIII")
ENTRY = struct.Struct(">16siIIqqq")
_CHECKSUM = struct.Struct(">I")
_HEADER_CHECKED = HEADER.size - _CHECKSUM.size
BLOCK_UNITS = 256
_BLOCK_SIZE = BLOCK_UNITS * UNIT_SIZE
_WRITE_SIZE = 1 << 20


def pack_units(
    bases: array[int],
    positions: Sequence[int],
    sizes: Sequence[int],
    store_ms: int,
    max_ms: int,
    tag_codes: Sequence[int],
) -> array[int]:
    """Return the units of entries with one offset each, packed like `UNIT` but word by word."""
    units = array("q", (0, 0, 0, store_ms, max_ms, 0)) * len(bases)
    units[0::_WORDS] = bases
    units[1::_WORDS] = array("q", positions)
    units[2::_WORDS] = array("q", [size << 32 | 1 for size in sizes])
    if any(tag_codes):
        units[5::_WORDS] = array("q", tag_codes)
    if sys.byteorder == "little":
        units.byteswap()
    return units


class Unit(NamedTuple):
    """One entry of a queue: `offset_count` offsets from `base` on, at a position of the log."""

    base: int
    position: int
    size: int
    offset_count: int
    store_ms: int
    max_ms: int
    """Running maximum of record timestamps: never less than that of the previous unit."""
    tag_code: int


class PackedRun(NamedTuple):
    """A queue's units of one range, packed and in order, ready for an index file."""

    topic_id: bytes
    queue_id: int
    is_moved: bool
    units: bytes


class Run(NamedTuple):
    """A queue's units in one index file, as listed in its directory."""

    topic_id: bytes
    queue_id: int
    is_moved: bool
    unit_count: int
    first: int
    end: int
    """The offset after the last unit's."""
    max_ms: int
    """The running maximum of record timestamps at its last unit."""
    at: int
    """The index of its first unit in the file."""


class IndexDamaged(Exception):
    """The file is not a valid index; it can be rebuilt from the log."""


def index_name(start: int, end: int) -> str:
    """Return an index file's name: the range of the log that it covers."""
    return f"{start:020d}-{end:020d}"


def parse_name(name: str) -> tuple[int, int] | None:
    """Return the range in a file name; None if it is not an index file's."""
    start, dash, end = name.partition("-")
    if dash and start.isdigit() and end.isdigit() and len(start) == len(end) == 20:
        return int(start), int(end)
    return None


def write_index(directory: Directory, start: int, end: int, runs: Iterable[PackedRun]) -> None:
    """Write the index of a range durably; runs without units are skipped."""
    ordered = sorted(run for run in runs if run.units)
    listing = b"".join(_directory_entry(run) for run in ordered)
    name = index_name(start, end)
    file = directory.create(f"{name}.new")
    try:
        at = HEADER.size + len(listing)
        checksums = bytearray()
        unit_count = 0
        for piece in _pieces(ordered):
            # Every piece but the last consists of whole blocks.
            for block in range(0, len(piece), _BLOCK_SIZE):
                checksums += _CHECKSUM.pack(crc32(piece[block : block + _BLOCK_SIZE]))
            file.write(at, piece)
            at += len(piece)
            unit_count += len(piece) // UNIT_SIZE
        file.write(at, checksums)
        counts = (len(ordered), start, end, unit_count)
        fields = (_MAGIC, _VERSION, *counts, crc32(listing), crc32(checksums), 0)
        header = HEADER.pack(*fields)[:_HEADER_CHECKED]
        file.write(0, header + _CHECKSUM.pack(crc32(header)) + listing)
        file.sync()
    finally:
        file.close()
    directory.rename(f"{name}.new", name)
    directory.sync()


def _directory_entry(run: PackedRun) -> bytes:
    topic_id, queue_id, is_moved, units = run
    (first,) = struct.unpack_from(">q", units)
    last = UNIT.unpack_from(units, len(units) - UNIT_SIZE)
    count = len(units) // UNIT_SIZE
    return ENTRY.pack(topic_id, queue_id, is_moved, count, first, last[0] + last[3], last[5])


def _pieces(runs: list[PackedRun]) -> Iterator[memoryview]:
    """Yield all units in a few large pieces instead of one per queue, split between blocks."""
    pending = bytearray()
    for run in runs:
        pending += run.units
        if len(pending) >= _WRITE_SIZE:
            whole = len(pending) - len(pending) % _BLOCK_SIZE
            yield memoryview(bytes(pending[:whole]))
            del pending[:whole]
    if pending:
        yield memoryview(bytes(pending))


class IndexFile:
    """An index file, open for reading."""

    def __init__(self, directory: Directory, name: str, *, whole: bool) -> None:
        """Open and verify: header and directory always, the units too if `whole`."""
        stretch = parse_name(name)
        if stretch is None:
            raise IndexDamaged(f"{name} is not an index file name")
        self.name = name
        self.path = f"{directory.path}/{name}"
        self.start, self.end = stretch
        self.is_damaged = False
        """Whether a block is damaged: then the file is removed, and the next start rebuilds it."""
        self.is_removed = False
        try:
            self._mapping: Mapping = directory.map(name, writable=False)
        except ValueError as error:
            raise IndexDamaged(f"{name} is empty") from error
        self._view = self._mapping.view
        try:
            self._check_head()
            if whole:
                self._check_blocks(0, self.unit_count)
        except StoreCorrupt as error:
            self.close()
            raise IndexDamaged(str(error)) from error
        except IndexDamaged:
            self.close()
            raise

    def _check_head(self) -> None:
        view, name = self._view, self.name
        if len(view) < HEADER.size:
            raise IndexDamaged(f"{name} is {len(view)} bytes, shorter than its header")
        fields = HEADER.unpack_from(view)
        magic, version, run_count, start, end, unit_count, listing_crc, blocks_crc, crc = fields
        if magic != _MAGIC or crc32(view[:_HEADER_CHECKED]) != crc:
            raise IndexDamaged(f"{name} has a damaged header")
        if version != _VERSION:
            raise IndexDamaged(f"{name} has version {version}; the supported version is {_VERSION}")
        if (start, end) != (self.start, self.end):
            raise IndexDamaged(f"{name} covers {start} to {end}")
        self._units_at = HEADER.size + ENTRY.size * run_count
        blocks_at = self._units_at + UNIT_SIZE * unit_count
        block_count = -(-unit_count // BLOCK_UNITS)
        if len(view) != blocks_at + _CHECKSUM.size * block_count:
            raise IndexDamaged(f"{name} is {len(view)} bytes for {unit_count} units")
        if crc32(view[HEADER.size : self._units_at]) != listing_crc:
            raise IndexDamaged(f"{name} has a damaged directory")
        if crc32(view[blocks_at:]) != blocks_crc:
            raise IndexDamaged(f"{name} has damaged checksums")
        self.unit_count = int(unit_count)
        self._blocks_at = blocks_at
        self._is_checked = bytearray(block_count)

    def prefetch(self) -> None:
        """Have the file loaded from disk soon."""
        self._mapping.prefetch(0, self._mapping.size)

    def runs(self) -> Iterator[Run]:
        """Yield the directory."""
        at = 0
        for fields in ENTRY.iter_unpack(self._view[HEADER.size : self._units_at]):
            topic_id, queue_id, is_moved, unit_count, first, end, max_ms = fields
            yield Run(topic_id, queue_id, bool(is_moved), unit_count, first, end, max_ms, at)
            at += unit_count

    def unit(self, index: int) -> UnitFields:
        """Return one unit; StoreCorrupt if its block is damaged."""
        if not self._is_checked[index // BLOCK_UNITS]:
            self._check_blocks(index, 1)
        return UNIT.unpack_from(self._view, self._units_at + index * UNIT_SIZE)

    def units(self, index: int, count: int) -> memoryview:
        """Return packed units; StoreCorrupt if one of their blocks is damaged."""
        self._check_blocks(index, count)
        at = self._units_at + index * UNIT_SIZE
        return self._view[at : at + count * UNIT_SIZE]

    def _check_blocks(self, index: int, count: int) -> None:
        for block in range(index // BLOCK_UNITS, -(-(index + count) // BLOCK_UNITS)):
            if self._is_checked[block]:
                continue
            start = block * BLOCK_UNITS
            end = min(start + BLOCK_UNITS, self.unit_count)
            at = self._units_at
            found = crc32(self._view[at + start * UNIT_SIZE : at + end * UNIT_SIZE])
            (crc,) = _CHECKSUM.unpack_from(self._view, self._blocks_at + block * _CHECKSUM.size)
            if found != crc:
                self.is_damaged = True
                reason = f"units {start} to {end} are damaged; rebuilt by the next start"
                raise StoreCorrupt(self.path, self.start, reason)
            self._is_checked[block] = 1

    def close(self) -> None:
        """Release the file."""
        self._view = memoryview(b"")
        self._mapping.close()
