"""An LRU cache by log position, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class PositionCache(Generic[T]):
    """A cache. The newest stays even if it is larger than the bound: somebody is about to ask."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[int, tuple[T, int]] = OrderedDict()
        self.size = 0

    def __contains__(self, position: int) -> bool:
        return position in self._kept

    def get(self, position: int) -> T | None:
        """Return what is kept for a position."""
        found = self._kept.get(position)
        if found is None:
            return None
        self._kept.move_to_end(position)
        return found[0]

    def put(self, position: int, thing: T, size: int) -> None:
        """Keep a thing of so many bytes; older ones go to make room."""
        known = self._kept.pop(position, None)
        if known is not None:
            self.size -= known[1]
        self._kept[position] = (thing, size)
        self.size += size
        while self.size > self._bytes_max and len(self._kept) > 1:
            _, (_, gone) = self._kept.popitem(last=False)
            self.size -= gone
