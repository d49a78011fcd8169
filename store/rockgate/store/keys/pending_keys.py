"""The queue of messages to be added to the key index, in log order.

Producers get their response first. The keys of a batch are added in the next iteration of the event
loop, while the client reads the response; those of single messages within a few milliseconds,
together with others that arrive by then. Messages of one topic and time are queued together and
added in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

WAITING_MAX: Final = 1_000
"""How many single messages may be queued, and how many of a batch are added per iteration: a few
milliseconds of work at most."""
BATCHED_MAX: Final = 16_000
"""How many messages of batches may be queued."""
FEW: Final = 6
"""Up to this many messages, adding each one separately is faster than adding them together."""

Group = tuple[bytes, Sequence[bytes], Sequence[int], int]
"""Topic, properties of each message, position of each message, and their common store time."""

Run = Callable[[Callable[[], None]], object]
"""Runs work on the store's thread at a later time."""


def run(work: Callable[[], None]) -> None:
    """Run work at once: for callers without an event loop."""
    work()


class PendingKeys:
    """The queued messages. Owned by the index; bounded by those who add."""

    __slots__ = ("_groups", "_positions", "_properties", "_shared", "count")

    def __init__(self) -> None:
        self.count = 0
        self._groups: list[Group] = []
        # The group that single messages join while topic and time are the same.
        self._shared: tuple[bytes, int] | None = None
        self._properties: list[bytes] = []
        self._positions: list[int] = []

    def add(self, topic: bytes, properties: bytes, position: int, store_ms: int) -> None:
        """Queue a message."""
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
        """Queue messages that were appended together."""
        self.count += len(positions)
        self._shared = None
        self._groups.append((topic, properties, positions, store_ms))

    def take(self, count_max: int | None = None) -> list[Group]:
        """Remove and return queued messages, oldest first, up to a maximum."""
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
