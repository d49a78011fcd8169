"""Compressed message bodies: which codec the flags name, and the body in plain.

    sysFlag bit 0     the body is compressed
            bits 8-10 how: 0 and 3 zlib, 1 lz4 (frame), 2 zstd

Clients of 4.x write zlib and no codec; those of 5.x write all three.
"""

from typing import Final, TypeAlias

import cramjam

from rockgate.protocol.inflating import CannotInflate, inflate

Buffer: TypeAlias = bytes | bytearray | memoryview

SIZE_MAX: Final = 64 * 1024 * 1024
"""How much one body may decompress to, unless the caller says otherwise."""

CODEC_SHIFT: Final = 8
CODEC_MASK: Final = 0x7 << CODEC_SHIFT
_CODECS: Final = {
    0: ("zlib", cramjam.zlib.decompress_into),
    1: ("lz4", cramjam.lz4.decompress_into),
    2: ("zstd", cramjam.zstd.decompress_into),
    3: ("zlib", cramjam.zlib.decompress_into),
}


def decompress(body: Buffer, sys_flag: int, *, size_max: int = SIZE_MAX) -> bytes:
    """Return a compressed body in plain; CannotInflate if it is not one, or too large."""
    codec = (sys_flag & CODEC_MASK) >> CODEC_SHIFT
    known = _CODECS.get(codec)
    if known is None:
        raise CannotInflate(f"compression {codec} is not defined")
    name, decompress_into = known
    return inflate(decompress_into, body, name, size_max)
