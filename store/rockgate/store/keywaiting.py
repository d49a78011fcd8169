"""Messages whose keys wait to be put into the key index, in the order of the log.

Whoever sent a message is answered first; its keys are put in the same turn of the loop, behind the
answer. Messages of one topic and time wait together, so that many of them are put in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence

Group = tuple[bytes, Sequence[bytes], Sequence[int], int]
"""Topic, the properties of each message, its position, and the store time of all."""


class KeysWaiting:
    """What waits. Owned by the index; bounded by whoever adds."""

    __slots__ = ("_groups", "_positions", "_properties", "_shared", "count")

    def __init__(self) -> None:
        self.count = 0
        self._groups: list[Group] = []
        # The group that single messages join, as long as they are of its topic and time.
        self._shared: tuple[bytes, int] | None = None
        self._properties: list[bytes] = []
        self._positions: list[int] = []

    def add(self, topic: bytes, properties: bytes, position: int, store_ms: int) -> None:
        """Let a message wait."""
        self.count += 1
        shared = (topic, store_ms)
        if shared != self._shared:
            self._shared = shared
            self._properties, self._positions = [], []
            self._groups.append((topic, self._properties, self._positions, store_ms))
        self._properties.append(properties)
        self._positions.append(position)

    def add_all(
        self, topic: bytes, properties: Sequence[bytes], positions: Sequence[int], store_ms: int
    ) -> None:
        """Let messages wait that were appended together."""
        self.count += len(positions)
        self._shared = None
        self._groups.append((topic, properties, positions, store_ms))

    def take(self) -> list[Group]:
        """Return all that waits, which then waits no more."""
        groups, self._groups = self._groups, []
        self._shared = None
        self.count = 0
        return groups
