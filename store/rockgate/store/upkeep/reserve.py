"""The reserve: disk space for writes that must succeed when others are rejected.

    free space      who may still have a new segment made
    much            all writes
    below `low`     changes that clients want (commits, groups, topics, transactions), and upkeep
    below `least`   upkeep alone: what frees space, ends what was begun, or starts the server

`least` is what the work needs that gets a full log going again: two segments for log starts and
moved entries, half of one for the queues' index, two more snapshots, a file of the key index. Of a
disk that is small for its segments a fourth is kept, and an eighth more before that.
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
        """Bytes that are for upkeep alone."""
        newest = self._snapshots.newest
        state_size = 0 if newest is None else 2 * newest.size
        return min(total // 4, self._segment_size * 5 // 2 + state_size + self._keys_size)

    def low(self, total: int) -> int:
        """Bytes that are not for messages: a segment's worth of state, and what is for upkeep."""
        return self.least(total) + min(total // 8, self._segment_size)
