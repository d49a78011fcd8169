"""Compression of message bodies and broker registrations: zlib always, lz4 and zstd if installed.

The type of compression is in a message's sysFlag. zlib is the standard library's; the others come
with cramjam, which is required for the server and optional for the SDK. The output is bounded by
the caller, and memory grows with the output, not with the size that the input claims.
"""

import zlib
from enum import IntEnum
from typing import Any, Final

from rockgate.protocol.entry import COMPRESSED
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.errors import ContentTooLarge, MalformedContent

try:
    import cramjam

    _cramjam: Any = cramjam
except ImportError:
    _cramjam = None

SIZE_MAX: Final = 64 * 1024 * 1024
"""How much one body may decompress to, unless the caller says otherwise."""
KIND_MASK: Final = 7 << 8
_STEP: Final = 64 * 1024


class Compression(IntEnum):
    """The types, in bits 8 to 10 of a sysFlag; no bits set means zlib."""

    ZLIB_OF_OLD = 0
    LZ4 = 1 << 8
    ZSTD = 2 << 8
    ZLIB = 3 << 8


def compression_of(sys_flag: int) -> Compression | None:
    """How a body with this sysFlag is compressed, if it is."""
    if not sys_flag & COMPRESSED:
        return None
    try:
        return Compression(sys_flag & KIND_MASK)
    except ValueError:
        raise MalformedContent(f"Unknown compression type {sys_flag >> 8 & 7}.") from None


def decompress(data: Buffer, kind: Compression, *, size_max: int = SIZE_MAX) -> bytes:
    """The decompressed data, at most `size_max` bytes, or MalformedContent."""
    if kind in (Compression.ZLIB, Compression.ZLIB_OF_OLD):
        return _inflate(data, size_max)
    if _cramjam is None:
        raise MalformedContent(f"{kind.name} requires cramjam, which is not installed.")
    return _by_cramjam(data, kind, size_max)


def compress(data: Buffer, kind: Compression, level: int = 5) -> bytes:
    """`data` compressed; the level applies to zlib only."""
    if kind in (Compression.ZLIB, Compression.ZLIB_OF_OLD):
        return zlib.compress(data, level)
    if _cramjam is None:
        raise MalformedContent(f"{kind.name} requires cramjam, which is not installed.")
    if kind is Compression.LZ4:
        stream = _cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        stream.compress(bytes(data))
        return bytes(stream.finish())
    return bytes(_cramjam.zstd.compress(data))


def _inflate(data: Buffer, size_max: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        # One byte more than allowed: zlib would take a bound of 0 as no bound.
        out = stream.decompress(data, size_max + 1)
    except zlib.error as wrong:
        raise MalformedContent(f"Invalid zlib data: {wrong}.") from None
    if len(out) > size_max:
        raise ContentTooLarge(f"Decompressed zlib data exceeds the maximum of {size_max:,} bytes.")
    if not stream.eof:
        raise MalformedContent("Invalid zlib data: truncated stream.")
    return out


def _by_cramjam(data: Buffer, kind: Compression, size_max: int) -> bytes:
    codec = _cramjam.lz4 if kind is Compression.LZ4 else _cramjam.zstd
    size = min(size_max, max(_STEP, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written: int = codec.decompress_into(data, out)
        except (_cramjam.DecompressionError, OSError, ValueError) as wrong:
            # Only the message distinguishes a full buffer from bad input.
            if "failed to write whole buffer" not in str(wrong):
                raise MalformedContent(f"Invalid {kind.name.lower()} data: {wrong}.") from None
            if size >= size_max:
                name = kind.name.lower()
                raise ContentTooLarge(
                    f"Decompressed {name} data exceeds the maximum of {size_max:,} bytes."
                ) from None
            size = min(size_max, size * 4)
        else:
            return bytes(memoryview(out)[:written])
