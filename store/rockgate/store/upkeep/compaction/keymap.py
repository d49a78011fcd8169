"""The keys of a cleaning: which records later ones supersede.

Every record adds a row: its key in 16 bytes and its offset with two flags. Rows are divided among
buckets by their key. A bucket's rows are in blocks, which go to a scratch file as they fill, so
that memory holds one block per bucket. Then one bucket after the other is read, some blocks at a
time in the order in which they were added, and of the rows with one key all but the last are
superseded. So memory holds the keys of one bucket, a thousandth of all, however often each is
updated.

A key of up to 15 bytes is its own row, padded; of a longer one it is a hash of 120 bits.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Final

from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import Directory, File
from rockgate.store.upkeep.compaction.bodies import EXPIRED, PINNED
from rockgate.store.workers import Jobs, run_job

BUCKETS: Final = 1024
BLOCK_ROWS: Final = 64
STEP_ROWS: Final = 250
"""Rows between two pauses."""
STEP_LAST: Final = 2_000
"""Keys between two pauses, of those that are compared already."""
_ROW: Final = struct.Struct(">16sQ")
_BLOCK_BYTES: Final = BLOCK_ROWS * _ROW.size
_WRITE_BLOCKS: Final = 256
_READ_BLOCKS: Final = 256
_NAME: Final = "keys"
_PLAIN_MAX: Final = 15
_HASHED: Final = b"\xff"


def row_key(key: bytes) -> bytes:
    """Return a key in 16 bytes: padded with its length, or hashed."""
    size = len(key)
    if size <= _PLAIN_MAX:
        return key.ljust(_PLAIN_MAX, b"\0") + bytes((size,))
    return blake2b(key, digest_size=_PLAIN_MAX).digest() + _HASHED


class KeyMap:
    """The rows of one cleaning. `close` removes the scratch file."""

    def __init__(self, directory: Callable[[], Directory], has_room: Callable[[], bool]) -> None:
        """`has_room` says whether the disk has space for scratch files."""
        self._directory = directory
        self._has_room = has_room
        self._open: list[bytearray] = [bytearray() for _ in range(BUCKETS)]
        self._blocks: list[array[int]] = [array("I") for _ in range(BUCKETS)]
        self._block_count = 0
        self._written_count = 0
        self._pending: list[bytes] = []
        self._file: File | None = None
        self.row_count = 0

    def add(self, key: bytes, offset: int, flags: int) -> None:
        """Add a record."""
        number = hash(key) & BUCKETS - 1
        rows = self._open[number]
        rows += _ROW.pack(key, offset << 2 | flags)
        self.row_count += 1
        if len(rows) >= _BLOCK_BYTES:
            self._open[number] = bytearray()
            self._blocks[number].append(self._block_count)
            self._block_count += 1
            self._pending.append(bytes(rows))

    @property
    def wants_write(self) -> bool:
        """Whether enough blocks are in memory to write them."""
        return len(self._pending) >= _WRITE_BLOCKS

    def write(self) -> None:
        """Write the blocks that are full, on a worker thread; nothing is added meanwhile."""
        if not self._has_room():
            raise StoreFull("Compaction needs disk space for the keys of a queue.")
        if self._file is None:
            self._file = self._directory().create(_NAME)
        self._file.write(self._written_count * _BLOCK_BYTES, b"".join(self._pending))
        self._written_count += len(self._pending)
        self._pending = []

    def supersede(self, jobs: Callable[[], Jobs], drop: OffsetSet) -> Iterator[bool]:
        """Add every superseded offset to a set, with a pause after every slice."""
        if self._file is not None and self._pending:
            yield from run_job(jobs(), self.write)
        cost = 0
        for number in range(BUCKETS):
            last: dict[bytes, int] = {}
            pinned: set[bytes] = set()
            for blocks in self._parts(number):
                read: list[bytes] = []
                if blocks:
                    yield from run_job(jobs(), partial(self._read, blocks, read))
                else:
                    read.append(bytes(self._open[number]))
                rows = b"".join(read)
                for at in range(0, len(rows), STEP_ROWS * _ROW.size):
                    part = rows[at : at + STEP_ROWS * _ROW.size]
                    _compare(part, last, pinned, drop)
                    cost += len(part) // _ROW.size
                    if cost >= STEP_ROWS:
                        yield True
                        cost = 0
            self._open[number] = bytearray()
            for count, (key, value) in enumerate(last.items(), 1):
                if value & EXPIRED and not value & PINNED and key not in pinned:
                    drop.add(value >> 2)
                if count % STEP_LAST == 0:
                    yield True

    def _parts(self, number: int) -> Iterator[array[int]]:
        """Yield the blocks of a bucket, some at a time; at last none, for the one that is open."""
        blocks = self._blocks[number]
        for at in range(0, len(blocks), _READ_BLOCKS):
            yield blocks[at : at + _READ_BLOCKS]
        yield array("I")

    def _read(self, blocks: array[int], into: list[bytes]) -> None:
        """Read blocks, on a worker thread."""
        file = self._file
        for block in blocks:
            if file is None:
                # None was written: they are all in memory.
                into.append(self._pending[block])
            else:
                into.append(file.read(block * _BLOCK_BYTES, _BLOCK_BYTES))

    def close(self) -> None:
        """Remove the scratch file."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._directory().remove(_NAME)


def _compare(part: bytes, last: dict[bytes, int], pinned: set[bytes], drop: OffsetSet) -> None:
    for key, value in _ROW.iter_unpack(part):
        before = last.get(key)
        if before is not None:
            if before & PINNED:
                pinned.add(key)
            else:
                drop.add(before >> 2)
        last[key] = value
