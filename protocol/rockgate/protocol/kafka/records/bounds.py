"""Limits on a batch that is decoded: size, records and headers.

Three kilobytes may decompress to gigabytes, or to one record with fifteen million headers. So a
batch is decoded within bounds, which are checked twice: against what it declares (its size, its
record count, the sizes that its codec claims) beforehand, and against the actual output while it is
decoded. A batch that exceeds them is a BatchTooLarge.

Batches within LIGHT take a millisecond or two and are decoded on the event loop. Heavier ones are
decoded by a thread, within the server's own bounds; batches beyond those are not decoded at all.

The decompressed size is found without decompressing where the format allows. Snappy's blocks
declare their decompressed size and cannot exceed it. Blocks of LZ4 and zstd have a maximum size, so
counting them gives a bound. Gzip declares its size at its end, which is easily forged: data that
claims to be small is decompressed up to the limit.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import cramjam

from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    Compression,
    read_header,
)

_MIB: Final = 1 << 20

_CODECS: Final = frozenset(Compression)
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE: Final = 16
_BIG: Final = struct.Struct(">I")
_LITTLE: Final = struct.Struct("<I")

_GZIP_RATIO_MAX: Final = 1032
"""Deflate's densest code: 258 bytes for two bits."""
_LZ4_RATIO_MAX: Final = 255
_LZ4_MAGIC: Final = 0x184D2204
_LZ4_BLOCK_SIZES: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LZ4_HAS_DICTIONARY, _LZ4_HAS_CHECKSUM, _LZ4_HAS_SIZE, _LZ4_HAS_BLOCK_CHECKSUMS = 1, 4, 8, 16
_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_BLOCK_SIZE: Final = 128 << 10
_ZSTD_RLE, _ZSTD_COMPRESSED, _ZSTD_RESERVED = 1, 2, 3
_SKIPPED: Final = range(0x184D2A50, 0x184D2A60)
"""Magics of frames that hold no content, of LZ4 and zstd alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits on one batch."""

    compressed_bytes_max: int = 1 << 40
    """Size of a batch that is compressed."""
    inflated_bytes_max: int = 64 * _MIB
    """Bytes of all its records, uncompressed."""
    records_max: int = 1_000_000
    record_headers_max: int = 10_000
    """Headers of one record."""
    headers_max: int = 1_000_000
    """Headers of all records together."""

    def check_declared(self, body: Buffer, header: BatchHeader) -> None:
        """BatchTooLarge if a batch declares more than is allowed."""
        self.check_count(header)
        if header.attributes & COMPRESSION_MASK and len(body) > self.compressed_bytes_max:
            raise BatchTooLarge(
                f"Compressed batch is {len(body):,} bytes; the maximum is "
                f"{self.compressed_bytes_max:,}."
            )
        if inflates_beyond(body, header, self.inflated_bytes_max):
            raise self.too_many_bytes()

    def check_count(self, header: BatchHeader) -> None:
        """BatchTooLarge if there are too many records."""
        if header.record_count > self.records_max:
            raise BatchTooLarge(
                f"Batch has {header.record_count:,} records; the maximum is {self.records_max:,}."
            )

    def too_many_bytes(self) -> BatchTooLarge:
        """Return the error for too many bytes."""
        return BatchTooLarge(
            f"Decompressed batch exceeds the maximum of {self.inflated_bytes_max:,} bytes."
        )


BOUNDS: Final = Bounds()
"""The server's defaults: no batch of an ordinary client comes near them."""
LIGHT: Final = Bounds(
    compressed_bytes_max=32 << 10,
    inflated_bytes_max=_MIB,
    records_max=1_000,
    record_headers_max=1_000,
    headers_max=1_000,
)
"""The limits for decoding on the event loop."""
WIDEST: Final = Bounds(
    inflated_bytes_max=1 << 30,
    records_max=10_000_000,
    record_headers_max=1_000_000,
    headers_max=10_000_000,
)
"""The most that settings allow, and so the bounds of batches accepted under other settings."""


def is_heavy(body: Buffer) -> bool:
    """Whether a batch declares that it takes long to decode; malformed ones are checked elsewhere.

    A batch that declares less may still be heavy, so it is decoded within LIGHT.
    """
    if len(body) < HEADER_SIZE:
        return False
    try:
        LIGHT.check_declared(body, read_header(body))
    except BatchTooLarge:
        return True
    return False


# The decompressed size


def may_inflate_beyond(data: Buffer, codec: Compression, limit: int) -> bool:
    """Return whether records may take more than this many bytes when decompressed.

    False for malformed records, as they are not decompressed; where a format gives only an upper
    bound, records slightly below the limit may be reported as exceeding it.
    """
    view = memoryview(data)
    try:
        match codec:
            case Compression.NONE:
                return len(view) > limit
            case Compression.GZIP:
                return _gzip(view, limit)
            case Compression.SNAPPY:
                return _snappy(view) > limit
            case Compression.LZ4:
                return _lz4(view, limit) > limit
            case Compression.ZSTD:
                return _zstd(view, limit) > limit
    except (struct.error, IndexError, MalformedBatch, cramjam.DecompressionError):
        return False


def inflates_beyond(body: Buffer, header: BatchHeader, limit: int) -> bool:
    """Return the same for a whole batch; False for an unknown codec."""
    codec = header.attributes & COMPRESSION_MASK
    if codec not in _CODECS:
        return False
    return may_inflate_beyond(memoryview(body)[HEADER_SIZE:], Compression(codec), limit)


def _gzip(view: memoryview, limit: int) -> bool:
    if len(view) * _GZIP_RATIO_MAX <= limit:
        return False
    (claimed,) = _LITTLE.unpack_from(view, len(view) - 4)
    if claimed > limit:
        return True
    try:
        cramjam.gzip.decompress_into(view, bytearray(limit))
    except (cramjam.DecompressionError, OSError, ValueError) as error:
        return "failed to write whole buffer" in str(error)
    return False


def _snappy(view: memoryview) -> int:
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return int(cramjam.snappy.decompress_raw_len(view))
    at, size = _XERIAL_HEADER_SIZE, 0
    while at < len(view):
        if bytes(view[at : at + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            at += _XERIAL_HEADER_SIZE
            continue
        (length,) = _BIG.unpack_from(view, at)
        at += _BIG.size
        size += int(cramjam.snappy.decompress_raw_len(view[at : at + length]))
        at += length
    return size


def _lz4(view: memoryview, limit: int) -> int:
    """Return a bound, or the first that passes the limit."""
    at = bound = 0
    while at < len(view) and bound <= limit:
        (magic,) = _LITTLE.unpack_from(view, at)
        if magic in _SKIPPED:
            at += 8 + _LITTLE.unpack_from(view, at + 4)[0]
            continue
        if magic != _LZ4_MAGIC:
            raise MalformedBatch(f"Invalid lz4 data: magic {magic:#010x}.")
        flags, block_max = view[at + 4], _LZ4_BLOCK_SIZES.get(view[at + 5] >> 4 & 7, 4 << 20)
        at += 7 + 8 * bool(flags & _LZ4_HAS_SIZE) + 4 * bool(flags & _LZ4_HAS_DICTIONARY)
        after = 4 * bool(flags & _LZ4_HAS_BLOCK_CHECKSUMS)
        while bound <= limit and (word := _LITTLE.unpack_from(view, at)[0]):
            size = word & 0x7FFFFFFF
            is_plain = word >> 31
            bound += size if is_plain else min(block_max, size * _LZ4_RATIO_MAX)
            at += 4 + size + after
        at += 4 + 4 * bool(flags & _LZ4_HAS_CHECKSUM)
    return bound


def _zstd(view: memoryview, limit: int) -> int:
    """Return a bound, or the first that passes the limit."""
    at = bound = 0
    while at < len(view) and bound <= limit:
        (magic,) = _LITTLE.unpack_from(view, at)
        if magic in _SKIPPED:
            at += 8 + _LITTLE.unpack_from(view, at + 4)[0]
            continue
        if magic != _ZSTD_MAGIC:
            raise MalformedBatch(f"Invalid zstd data: magic {magic:#010x}.")
        descriptor = view[at + 4]
        is_single = descriptor >> 5 & 1
        content_size = (is_single, 2, 4, 8)[descriptor >> 6]
        at += 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3] + content_size
        is_last = 0
        while bound <= limit and not is_last:
            header = view[at] | view[at + 1] << 8 | view[at + 2] << 16
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            if kind == _ZSTD_RESERVED:
                raise MalformedBatch("Invalid zstd data: reserved block type.")
            bound += _ZSTD_BLOCK_SIZE if kind == _ZSTD_COMPRESSED else size
            at += 3 + (1 if kind == _ZSTD_RLE else size)
        at += 4 * (descriptor >> 2 & 1)
    return bound
