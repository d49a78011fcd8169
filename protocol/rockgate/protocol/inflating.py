"""Decompression within a bound: no input makes more than so many bytes, whatever it promises.

Memory is taken in steps that follow what the codec really puts out. Both wires use it.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import cramjam

Buffer: TypeAlias = bytes | bytearray | memoryview

_GUESS_MIN: Final = 16 * 1024
_GROWTH: Final = 4
_BUFFER_FULL: Final = "failed to write whole buffer"


class CannotInflate(ValueError):
    """Bytes that are not what a codec writes, or that come to more than the bound."""


def inflate(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, name: str, size_max: int
) -> bytes:
    """Decompress into a buffer that grows fourfold until the output fits or the bound is met."""
    size = min(size_max, max(_GUESS_MIN, _GROWTH * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = decompress_into(data, out)
        except (cramjam.DecompressionError, OSError, ValueError) as error:
            # Only the text tells a full buffer from bad input; bad input is not tried again,
            # or one wrong byte would cost `size_max`.
            if _BUFFER_FULL not in str(error):
                raise CannotInflate(f"{name}: {error}") from None
            if size >= size_max:
                raise CannotInflate(f"{name}: more than {size_max} bytes") from None
            size = min(size_max, size * _GROWTH)
        else:
            return bytes(memoryview(out)[:written])
