"""The reserve: disk space for writes that must succeed when others are rejected.

    free space      what may still create a segment
    enough          all writes
    below `low`     changes by clients (commits, groups, topics, transactions), and upkeep
    below `least`   upkeep only: what frees space, finishes an operation, or starts the server

`least` is what it takes to free space on a full disk: two segments for log starts and relocated
entries, half of one for the queue index, two more snapshots, a file of the key index. On a disk
that is small relative to its segments, a quarter is reserved, and an eighth on top for `low`.
"""

from __future__ import annotations

from rockgate.store.keys.keyfile import Shape
from rockgate.store.state.snapshots import Snapshots


class Reserve:
    """How much space is reserved, and for which writes."""

    def __init__(self, segment_size: int, snapshots: Snapshots, keys: Shape | None) -> None:
        self._segment_size = segment_size
        self._snapshots = snapshots
        self._keys_size = 0 if keys is None else keys.size

    def least(self, total: int) -> int:
        """Bytes reserved for upkeep."""
        newest = self._snapshots.newest
        state_size = 0 if newest is None else 2 * newest.size
        return min(total // 4, self._segment_size * 5 // 2 + state_size + self._keys_size)

    def low(self, total: int) -> int:
        """Bytes not available to messages: a segment of state changes, and the part for upkeep."""
        return self.least(total) + min(total // 8, self._segment_size)
