"""The queue of messages to be added to the key index, in log order.

Whoever sent a message is answered first. The keys of a batch are put in the next turn of the loop,
while the client reads its answer; those of single messages within a few milliseconds, with whatever
else has come by then. Messages of one topic and time wait together and are put in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

WAITING_MAX: Final = 1_000
"""How many single messages may wait, and how many of a batch are put in one turn: what takes a few
milliseconds at most."""
BATCHED_MAX: Final = 16_000
"""How many messages of batches may wait."""
FEW: Final = 6
"""Messages up to which each is put for itself in less time than together."""

Group = tuple[bytes, Sequence[bytes], Sequence[int], int]
"""Topic, the properties of each message, its position, and the store time of all."""

Run = Callable[[Callable[[], None]], object]
"""Runs something by the store's thread, at some time."""


def run(work: Callable[[], None]) -> None:
    """Run it at once: for callers without a loop."""
    work()


class PendingKeys:
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

    def take(self, count_max: int | None = None) -> list[Group]:
        """Return what waits, the oldest first and so many at most; that waits no more."""
        self._shared = None
        if count_max is None or self.count <= count_max:
            groups, self._groups = self._groups, []
            self.count = 0
            return groups
        taken: list[Group] = []
        self.count -= count_max
        while count_max:
            topic, properties, positions, store_ms = self._groups.pop(0)
            taken.append((topic, properties[:count_max], positions[:count_max], store_ms))
            if len(positions) > count_max:
                rest = topic, properties[count_max:], positions[count_max:], store_ms
                self._groups.insert(0, rest)
            count_max = max(0, count_max - len(positions))
        return taken
