"""The snapshot file: written once from front to back, verified byte by byte when read.

docs/internals/state.md specifies it.

    header    magic, format version, header size, replay_from, needs, created ms, the folds
              with their slice counts and sizes, and a CRC-32 of all that
    slices    one fold after the other; each slice is size, CRC-32, bytes
    trailer   file size, a CRC-32 of all slices and then the header, magic

The header is written last, over zeros reserved for it: an unfinished file has no magic. Magic,
version, header size and the header's CRC have the same places in every version, so that a file of a
later release is not taken for a damaged one.

This module does not know what a slice contains, where the file is or when it is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from zlib import crc32

from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.files.interface import File

MAGIC: Final = b"ROCKSNAP"
END_MAGIC: Final = b"SNAPDONE"
VERSION: Final = 1

_HEAD: Final = struct.Struct(">8sHHIqqqH")
_COUNTS: Final = struct.Struct(">IQ")
_CRC: Final = struct.Struct(">I")
_FRAME: Final = struct.Struct(">II")
_TRAILER: Final = struct.Struct(">QI8s")

HEAD_SIZE: Final = _HEAD.size
FRAME_SIZE: Final = _FRAME.size
TRAILER_SIZE: Final = _TRAILER.size
NAME_SIZE_MAX: Final = 255
HEADER_SIZE_MAX: Final = 1 << 16
SLICE_SIZE_MAX: Final = 64 << 20

_WRITE_BYTES: Final = 1 << 20
_SYNC_BYTES: Final = 8 << 20


class Section(NamedTuple):
    """One fold's part of the file."""

    name: str
    slice_count: int
    size: int


class Header(NamedTuple):
    """The header of a snapshot."""

    replay_from: int
    needs: int
    created_ms: int
    sections: tuple[Section, ...]
    size: int
    """The header's own size."""


def header_size(names: Sequence[str]) -> int:
    """Return the size of a header with these folds."""
    return HEAD_SIZE + sum(1 + len(n.encode()) + _COUNTS.size for n in names) + _CRC.size


def pack_header(
    replay_from: int, needs: int, created_ms: int, sections: Sequence[Section]
) -> bytes:
    """Return a header with its checksum."""
    size = header_size([section.name for section in sections])
    assert size <= HEADER_SIZE_MAX, "the folds' names fill the header"
    head = _HEAD.pack(MAGIC, VERSION, 0, size, replay_from, needs, created_ms, len(sections))
    parts = [head]
    for section in sections:
        name = section.name.encode()
        assert 0 < len(name) <= NAME_SIZE_MAX, "a fold's name takes 1 to 255 bytes"
        parts.append(bytes((len(name),)) + name)
        parts.append(_COUNTS.pack(section.slice_count, section.size))
    covered = b"".join(parts)
    return covered + _CRC.pack(crc32(covered))


def read_header(file: File) -> Header:
    """Read and verify the header; StoreCorrupt if it is damaged, FormatTooNew if it is newer."""
    head = file.read(0, HEAD_SIZE)
    if len(head) < HEAD_SIZE:
        raise StoreCorrupt(file.name, 0, f"only {len(head)} bytes")
    magic, version, _, size, replay_from, needs, created_ms, count = _HEAD.unpack(head)
    if magic != MAGIC:
        raise StoreCorrupt(file.name, 0, "not a snapshot")
    if not HEAD_SIZE + _CRC.size <= size <= HEADER_SIZE_MAX:
        raise StoreCorrupt(file.name, 0, f"header size {size} is out of range")
    header = file.read(0, size)
    if len(header) < size or crc32(header[: -_CRC.size]) != _CRC.unpack(header[-_CRC.size :])[0]:
        raise StoreCorrupt(file.name, 0, "header checksum mismatch")
    if version > VERSION:
        raise FormatTooNew(file.name, f"has format {version}; the newest supported is {VERSION}")
    sections = tuple(_read_sections(file.name, header, count))
    return Header(replay_from, needs, created_ms, sections, size)


def _read_sections(name: str, header: bytes, count: int) -> Iterator[Section]:
    at, end = HEAD_SIZE, len(header) - _CRC.size
    for _ in range(count):
        name_end = at + 1 + header[at]
        if name_end + _COUNTS.size > end:
            raise StoreCorrupt(name, at, "list of folds exceeds the header")
        slice_count, size = _COUNTS.unpack_from(header, name_end)
        yield Section(header[at + 1 : name_end].decode("utf-8", "replace"), slice_count, size)
        at = name_end + _COUNTS.size
    if at != end:
        raise StoreCorrupt(name, at, "list of folds does not fill the header")


class SnapshotBuilder:
    """Writes one snapshot file: `add` slices in the order of the folds, then `finish`."""

    def __init__(self, file: File, names: Sequence[str], replay_from: int, created_ms: int) -> None:
        self._file = file
        self._names = names
        self._counts = [[0, 0] for _ in names]
        self._replay_from = replay_from
        self._created_ms = created_ms
        self._at = header_size(names)
        self._parts: list[bytes] = []
        self._waiting = 0
        self._unsynced = 0
        self._last = 0
        self._checksum = 0

    def add(self, fold_index: int, data: bytes) -> None:
        """Write one slice of a fold."""
        assert fold_index >= self._last, "slices come in the folds' order"
        assert len(data) <= SLICE_SIZE_MAX, "a slice is a small piece of work"
        self._last = fold_index
        frame = _FRAME.pack(len(data), crc32(data))
        self._checksum = crc32(data, crc32(frame, self._checksum))
        count = self._counts[fold_index]
        count[0] += 1
        count[1] += len(frame) + len(data)
        self._write(frame, data)
        if self._waiting >= _WRITE_BYTES:
            self._drain()

    def finish(self, needs: int) -> int:
        """Write trailer and header, fsync the file, and return its size."""
        sections = [
            Section(name, slices, size)
            for name, (slices, size) in zip(self._names, self._counts, strict=True)
        ]
        header = pack_header(self._replay_from, needs, self._created_ms, sections)
        size = len(header) + sum(section.size for section in sections) + TRAILER_SIZE
        self._write(_TRAILER.pack(size, crc32(header, self._checksum), END_MAGIC))
        self._drain()
        self._file.write(0, header)
        self._file.sync()
        return size

    def _write(self, *parts: bytes) -> None:
        self._parts += parts
        self._waiting += sum(map(len, parts))

    def _drain(self) -> None:
        self._file.write(self._at, b"".join(self._parts))
        self._at += self._waiting
        self._unsynced += self._waiting
        self._parts = []
        self._waiting = 0
        if self._unsynced >= _SYNC_BYTES:
            # One large fsync at the end would delay those of the log on the same disk.
            self._file.sync()
            self._unsynced = 0


class SnapshotReader:
    """Reads one snapshot file, and verifies each slice before it is returned."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.header = read_header(file)
        self._at = self.header.size
        self._end = self._at + sum(section.size for section in self.header.sections)
        self._checksum = 0
        size = file.size()
        if size != self._end + TRAILER_SIZE:
            raise StoreCorrupt(file.name, size, f"file size is not {self._end + TRAILER_SIZE}")

    def __enter__(self) -> SnapshotReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def sections(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield each fold's name and slices; slices that the caller skips are verified too."""
        for section in self.header.sections:
            slices = self._slices(section)
            yield section.name, slices
            for _ in slices:
                pass

    def _slices(self, section: Section) -> Iterator[bytes]:
        end = self._at + section.size
        for _ in range(section.slice_count):
            yield self._next_slice(end)
        if self._at != end:
            raise StoreCorrupt(
                self._file.name, self._at, f"section {section.name} has an unexpected length"
            )

    def _next_slice(self, end: int) -> bytes:
        at = self._at
        if end - at < FRAME_SIZE:
            raise StoreCorrupt(self._file.name, at, "slice frame exceeds its section")
        frame = self._file.read(at, FRAME_SIZE)
        size, checksum = _FRAME.unpack(frame)
        if size > min(SLICE_SIZE_MAX, end - at - FRAME_SIZE):
            raise StoreCorrupt(self._file.name, at, f"slice size {size} exceeds its section")
        data = self._file.read(at + FRAME_SIZE, size)
        if len(data) != size or crc32(data) != checksum:
            raise StoreCorrupt(self._file.name, at, "slice checksum mismatch")
        self._checksum = crc32(data, crc32(frame, self._checksum))
        self._at = at + FRAME_SIZE + size
        return data

    def check_end(self) -> None:
        """Verify the trailer, after all sections were read."""
        trailer = self._file.read(self._end, TRAILER_SIZE)
        checksum = crc32(self._file.read(0, self.header.size), self._checksum)
        if trailer != _TRAILER.pack(self._end + TRAILER_SIZE, checksum, END_MAGIC):
            raise StoreCorrupt(self._file.name, self._end, "trailer mismatch")
