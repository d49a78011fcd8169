"""Compressing and decompressing the records of a batch: gzip, snappy, lz4, zstd by cramjam.

Decompression is bounded: no input yields more than `size_max` bytes (BatchTooLarge), and memory is
taken as the codec fills it, so a batch that claims gigabytes costs only what it contains. Any other
failure is a MalformedBatch that names the codec.

The codecs release the GIL while they work, and so must everything around them: clearing or copying
64 MB would block every other thread for 70 ms. Large output therefore goes to an anonymous mapping,
whose pages are allocated as they are written.

Two details are Java's. Snappy is written in the framing of its snappy library (xerial: a header of
16 bytes, then blocks of at most 32 KiB, each preceded by its length), and read in that framing and
raw, as librdkafka sends it. LZ4 frames are written with independent blocks: Java's reader rejects
linked ones.
"""

import mmap
import struct
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import cramjam

from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import Buffer, Compression

SIZE_MAX: Final = 64 * 1024 * 1024
"""How much one batch may decompress to, unless the caller says otherwise."""

Plain: TypeAlias = bytes | mmap.mmap
"""Uncompressed records; large ones are in a mapping. Both are indexed and sliced alike."""
PIECE: Final = 1 << 20
"""How much is cleared or copied at once; more is done piece by piece."""

_GUESS_MIN: Final = 16 * 1024
_GROWTH: Final = 4
_BUFFER_FULL: Final = "failed to write whole buffer"

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_LENGTH: Final = struct.Struct(">i")
# Snappy's densest element encodes 64 bytes in 3; a larger claim is false.
_SNAPPY_RATIO_MAX: Final = 22


def compress(data: Buffer | mmap.mmap, codec: Compression) -> bytes:
    """`data` as the records of a batch with this codec."""
    match codec:
        case Compression.NONE:
            return bytes(memoryview(data))
        case Compression.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case Compression.SNAPPY:
            return _compress_xerial(data)
        case Compression.LZ4:
            stream = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
            view = memoryview(data)
            for at in range(0, len(view), PIECE):
                stream.compress(bytes(view[at : at + PIECE]))
            return bytes(stream.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def decompress(data: Buffer, codec: Compression, *, size_max: int = SIZE_MAX) -> Plain:
    """The records in `data`, at most `size_max` bytes of them, or a MalformedBatch."""
    match codec:
        case Compression.NONE:
            if len(data) > size_max:
                raise BatchTooLarge(f"Batch is {len(data):,} bytes; the maximum is {size_max:,}.")
            return joined([memoryview(data)], len(data))
        case Compression.GZIP:
            return _inflate(cramjam.gzip.decompress_into, data, "gzip", size_max)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), size_max)
        case Compression.LZ4:
            return _inflate(cramjam.lz4.decompress_into, data, "lz4", size_max)
        case Compression.ZSTD:
            return _inflate(cramjam.zstd.decompress_into, data, "zstd", size_max)


def _inflate(
    decompress_into: Callable[[Buffer, bytearray | mmap.mmap], int],
    data: Buffer,
    name: str,
    size_max: int,
) -> Plain:
    """Decompress into a buffer that grows fourfold until the output fits or the bound is reached.

    After the first attempt it is a mapping of the whole bound: unwritten pages take no memory.
    """
    size = min(size_max, max(_GUESS_MIN, _GROWTH * len(data)))
    while True:
        if size > PIECE:
            size = size_max
        out = bytearray(size) if size <= PIECE else room(size)
        try:
            written = decompress_into(data, out)
        except (cramjam.DecompressionError, OSError, ValueError) as error:
            if isinstance(out, mmap.mmap):
                out.close()  # a stored error references this frame, and so the memory
            # Only the message distinguishes a full buffer from bad input; bad input is not retried,
            # or one wrong byte would cost `size_max`.
            if _BUFFER_FULL not in str(error):
                raise MalformedBatch(f"Invalid {name} data: {error}.") from None
            if size >= size_max:
                raise BatchTooLarge(
                    f"Decompressed {name} data exceeds the maximum of {size_max:,} bytes."
                ) from None
            size = min(size_max, size * _GROWTH)
        else:
            return cut(out, written)


def room(size: int) -> mmap.mmap:
    """Memory whose pages are allocated when they are first written."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def cut(out: bytearray | mmap.mmap, size: int) -> Plain:
    """The written part of a buffer."""
    if isinstance(out, bytearray) or size <= PIECE:
        return bytes(memoryview(out)[:size])
    if size < len(out):
        out.resize(size)
    return out


def joined(parts: Iterable[memoryview], size: int) -> Plain:
    """Join parts of this total size; large ones are copied piece by piece."""
    if size <= PIECE:
        return b"".join(parts)
    out, to = room(size), 0
    for part in parts:
        for at in range(0, len(part), PIECE):
            piece = part[at : at + PIECE]
            out[to : to + len(piece)] = piece
            to += len(piece)
    return out


def _compress_xerial(data: Buffer | mmap.mmap) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for at in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_SIZE]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(view: memoryview, size_max: int) -> Plain:
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(view, size_max)
    # The version is not checked: there has only ever been 1, and Java ignores it as well.
    at, end, size = len(_XERIAL_HEADER), len(view), 0
    if at > end:
        raise MalformedBatch("Invalid snappy data: truncated framing header.")
    blocks: list[memoryview] = []
    while at < end:
        if bytes(view[at : at + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            # Streams may be concatenated, each with its header.
            at += len(_XERIAL_HEADER)
            continue
        if end - at < _LENGTH.size:
            raise MalformedBatch(f"Invalid snappy data: truncated block length at byte {at}.")
        (length,) = _LENGTH.unpack_from(view, at)
        at += _LENGTH.size
        if not 0 <= length <= end - at:
            raise MalformedBatch(
                f"Invalid snappy data: block of {length} bytes at byte {at}, {end - at} left."
            )
        block = _decompress_block(view[at : at + length], size_max - size)
        size += len(block)
        blocks.append(memoryview(block))
        at += length
    return joined(blocks, size)


def _decompress_block(block: memoryview, size_max: int) -> Plain:
    """One raw snappy block; the size that it declares is checked before it is used."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _SNAPPY_RATIO_MAX * len(block):
            raise MalformedBatch(
                f"Invalid snappy data: {len(block):,} bytes declare {size:,} decompressed."
            )
        if size > size_max:
            raise BatchTooLarge(
                f"Snappy block of {len(block):,} bytes declares {size:,} decompressed; the maximum "
                f"is {size_max:,}."
            )
        out = bytearray(size) if size <= PIECE else room(size)
        written = cramjam.snappy.decompress_raw_into(block, out)
    except (cramjam.DecompressionError, OSError, ValueError) as error:
        raise MalformedBatch(f"Invalid snappy data: {error}.") from None
    return cut(out, written)
