"""An LRU cache bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by key, evicted when all of them together take more than `bytes_max`.

    The newest stays even if it alone is larger: its caller is about to read it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        # The size is the one that was counted: a value may grow while it is in use.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0
        """Bytes of all values, as counted when they were put."""
        self.hit_count = 0
        self.miss_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """Return a value, which becomes the one evicted last; None if it is not cached."""
        found = self._entries.get(key)
        if found is None:
            self.miss_count += 1
            return None
        self.hit_count += 1
        self._entries.move_to_end(key)
        return found[0]

    def clear(self) -> None:
        """Remove everything."""
        self._entries.clear()
        self.size = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Cache a value of that many bytes, or update the size of one that has grown."""
        known = self._entries.pop(key, None)
        if known is not None:
            self.size -= known[1]
        self._entries[key] = (value, size)
        self.size += size
        while self.size > self._bytes_max and len(self._entries) > 1:
            _, (_, evicted) = self._entries.popitem(last=False)
            self.size -= evicted

    def remove(self, key: K) -> None:
        """Drop a value, if it is cached."""
        known = self._entries.pop(key, None)
        if known is not None:
            self.size -= known[1]
