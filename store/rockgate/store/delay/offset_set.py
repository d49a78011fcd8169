"""A compact bit set of offsets: a tenth of a byte each where they are dense."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final

CHUNK_BITS: Final = 4096
_BYTES: Final = CHUNK_BITS // 8
_NOTHING: Final = bytes(_BYTES)


class OffsetSet:
    """Offsets of one queue."""

    __slots__ = ("_chunks", "_size")

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, offset: int) -> bool:
        chunk = self._chunks.get(offset >> 12)
        return chunk is not None and bool(chunk[(offset & 4095) >> 3] & 1 << (offset & 7))

    def add(self, offset: int) -> bool:
        """Add an offset; say whether it was new."""
        chunk = self._chunks.get(offset >> 12)
        if chunk is None:
            chunk = self._chunks[offset >> 12] = bytearray(_BYTES)
        at, bit = (offset & 4095) >> 3, 1 << (offset & 7)
        if chunk[at] & bit:
            return False
        chunk[at] |= bit
        self._size += 1
        return True

    def which(self, offsets: Sequence[int]) -> list[bool]:
        """Say for each offset whether it is in the set."""
        if _is_row(offsets) and self._has_all(offsets[0], offsets[-1] + 1):
            return [True] * len(offsets)
        get = self._chunks.get
        return [
            bool(get(offset >> 12, _NOTHING)[(offset & 4095) >> 3] & 1 << (offset & 7))
            for offset in offsets
        ]

    def _has_all(self, first: int, end: int) -> bool:
        for number in range(first >> 12, (end + 4095) >> 12):
            low = max(0, first - (number << 12))
            high = min(CHUNK_BITS, end - (number << 12))
            wanted = (1 << high) - (1 << low)
            if int.from_bytes(self._chunks.get(number, b""), "little") & wanted != wanted:
                return False
        return True

    def add_all(self, offsets: Sequence[int]) -> None:
        """Add many offsets: `add` with less work for each."""
        if _is_row(offsets):
            self._add_range(offsets[0], offsets[-1] + 1)
        else:
            self._add_each(offsets)

    def _add_range(self, first: int, end: int) -> None:
        for number in range(first >> 12, (end + 4095) >> 12):
            chunk = self._chunks.setdefault(number, bytearray(_BYTES))
            low = max(0, first - (number << 12))
            high = min(CHUNK_BITS, end - (number << 12))
            had = int.from_bytes(chunk, "little")
            has = had | (1 << high) - (1 << low)
            self._size += has.bit_count() - had.bit_count()
            chunk[:] = has.to_bytes(_BYTES, "little")

    def _add_each(self, offsets: Iterable[int]) -> None:
        chunks = self._chunks
        touched: dict[int, bytearray] = {}
        number, chunk = -1, bytearray()
        for offset in offsets:
            if offset >> 12 != number:
                number = offset >> 12
                if number not in touched:
                    self._size -= self._count(number)
                    touched[number] = chunks.setdefault(number, bytearray(_BYTES))
                chunk = touched[number]
            chunk[(offset & 4095) >> 3] |= 1 << (offset & 7)
        self._size += sum(map(self._count, touched))

    def _count(self, number: int) -> int:
        return int.from_bytes(self._chunks.get(number, b""), "little").bit_count()

    def discard(self, offset: int) -> bool:
        """Remove an offset; say whether it was in the set."""
        chunk = self._chunks.get(offset >> 12)
        at, bit = (offset & 4095) >> 3, 1 << (offset & 7)
        if chunk is None or not chunk[at] & bit:
            return False
        chunk[at] &= ~bit
        self._size -= 1
        if not chunk[at] and not any(chunk):
            del self._chunks[offset >> 12]
        return True

    def has_any(self, first: int, end: int) -> bool:
        """Say whether there is any offset from `first` up to, but excluding, `end`."""
        chunks = self._chunks
        numbers = range(first >> 12, (end + 4095) >> 12)
        wanted = (n for n in chunks if n in numbers) if len(numbers) > len(chunks) else numbers
        for number in wanted:
            chunk = chunks.get(number)
            if chunk is None:
                continue
            low = max(0, first - (number << 12))
            high = min(CHUNK_BITS, end - (number << 12))
            bits = int.from_bytes(chunk, "little") >> low
            if bits & ((1 << (high - low)) - 1):
                return True
        return False

    def count(self, first: int, end: int) -> int:
        """Return the number of offsets from `first` up to, but excluding, `end`."""
        chunks = self._chunks
        numbers = range(first >> 12, (end + 4095) >> 12)
        wanted = (n for n in chunks if n in numbers) if len(numbers) > len(chunks) else numbers
        found = 0
        for number in wanted:
            chunk = chunks.get(number)
            if chunk is not None:
                low = max(0, first - (number << 12))
                high = min(CHUNK_BITS, end - (number << 12))
                bits = int.from_bytes(chunk, "little") >> low
                found += (bits & ((1 << (high - low)) - 1)).bit_count() if high > low else 0
        return found

    def forget_before(self, offset: int) -> None:
        """Remove whole chunks in which every offset is before this one."""
        for number in [each for each in self._chunks if (each + 1) << 12 <= offset]:
            self._size -= self._count(number)
            del self._chunks[number]

    def numbers(self) -> list[int]:
        """Return the numbers of the chunks that are not empty."""
        return list(self._chunks)

    def chunk(self, number: int) -> bytes:
        """Return a chunk's bits; zeros if it does not exist."""
        return bytes(self._chunks.get(number, _NOTHING))

    def add_chunk(self, number: int, bits: bytes) -> None:
        """Add the bits of a `chunk`; ValueError if their length is wrong."""
        if len(bits) != _BYTES:
            raise ValueError(f"chunk must be {_BYTES} bytes, not {len(bits)}")
        self._size -= self._count(number)
        both = int.from_bytes(self._chunks.get(number, b""), "little") | int.from_bytes(
            bits, "little"
        )
        self._chunks[number] = bytearray(both.to_bytes(_BYTES, "little"))
        self._size += both.bit_count()


def _is_row(offsets: Sequence[int]) -> bool:
    """Whether the offsets are consecutive."""
    if not offsets or offsets[-1] + 1 - offsets[0] != len(offsets):
        return False
    return array("q", offsets) == array("q", range(offsets[0], offsets[-1] + 1))
