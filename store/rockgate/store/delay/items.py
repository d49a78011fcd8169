"""Snapshot items of delayed entries: 28 bytes each, packed and unpacked by column.

docs/internals/delay.md has the layout. A million of them may be packed every few seconds while as
many arrive, and a start waits until they are unpacked, so nothing here works on one item at a time:
a column is copied by strided assignments of its upper and its lower halves.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Final

ITEM_SIZE: Final = 28
_WORDS: Final = ITEM_SIZE // 4
_WIDE_AT: Final = (0, 2, 4)
"""In words: due time, sequence, offset."""
_INDEX_AT: Final = 6

Items = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]
"""Due times, sequences, offsets, and the indexes of their queues."""


def pack_items(
    dues_ms: Sequence[int],
    sequences: Sequence[int],
    offsets: Sequence[int],
    indexes: Sequence[int],
) -> bytes:
    """Return items in sequence."""
    packed = bytearray(len(dues_ms) * ITEM_SIZE)
    words = memoryview(packed).cast("I")
    for at, column in zip(_WIDE_AT, (dues_ms, sequences, offsets), strict=True):
        halves = memoryview(_swapped(array("q", column))).cast("B").cast("I")
        words[at::_WORDS] = halves[0::2]
        words[at + 1 :: _WORDS] = halves[1::2]
    words[_INDEX_AT::_WORDS] = memoryview(_swapped(array("I", indexes)))
    return bytes(packed)


def unpack_items(packed: bytes) -> Items:
    """Return the columns of items; ValueError if the last one is truncated."""
    if len(packed) % ITEM_SIZE:
        raise ValueError(f"{len(packed)} bytes are not a multiple of {ITEM_SIZE}")
    words = memoryview(packed).cast("I")
    wide = []
    for at in _WIDE_AT:
        column = array("q", bytes(len(packed) // ITEM_SIZE * 8))
        halves = memoryview(column).cast("B").cast("I")
        halves[0::2] = words[at::_WORDS]
        halves[1::2] = words[at + 1 :: _WORDS]
        halves.release()
        wide.append(_swapped(column))
    indexes = array("I", words[_INDEX_AT::_WORDS].tolist())
    return wide[0], wide[1], wide[2], _swapped(indexes)


def _swapped(column: array[int]) -> array[int]:
    """Convert a column between the machine's byte order and the file's."""
    if sys.byteorder == "little":
        column.byteswap()
    return column
