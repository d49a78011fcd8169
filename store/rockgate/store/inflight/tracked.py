"""What the fold of windows needs of a window, however it holds its offsets.

Two kinds exist, for two policies: `Window` knows each offset, for pop, whose clients acknowledge
one by one; `ShareWindow` knows runs of offsets, for share groups, whose clients acquire and
acknowledge by ranges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rockgate.store.inflight.changes import Acquire, Extend

Key = tuple[str, bytes, int]
"""Group, topic id, queue id."""


class Tracked(ABC):
    """What one group has in flight in one queue."""

    __slots__ = ("bucket", "end", "followed_ms", "key", "place", "position")

    def __init__(self, key: Key, end: int, position: int) -> None:
        self.key = key
        self.end = end
        """From here on nothing was acquired."""
        self.position = position
        """Position of the last change."""
        self.place = -1
        self.followed_ms = 0
        """By how much its deadlines have followed the clock, as the fold counts it."""
        self.bucket: int | None = None
        """Where the fold has it among what is due."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many offsets are in flight."""

    @abstractmethod
    def next_deadline(self, after_ms: int = -1) -> int | None:
        """Return the earliest deadline after a time; None without any."""

    # Changes: only the fold makes them

    @abstractmethod
    def acquired(self, change: Acquire) -> None:
        """Put offsets in flight, or deliver some again."""

    @abstractmethod
    def extended(self, change: Extend) -> None:
        """Set another deadline for offsets."""

    @abstractmethod
    def ended(self, runs: Sequence[int]) -> None:
        """Remove runs of offsets."""

    @abstractmethod
    def shift(self, by_ms: int) -> None:
        """Move all deadlines."""

    @abstractmethod
    def reset(self, offset: int) -> None:
        """Start at another offset, with nothing in flight."""

    # Snapshots

    @abstractmethod
    def packed(self) -> bytes:
        """Return what a snapshot has of its offsets."""

    @abstractmethod
    def unpack(self, data: bytes) -> None:
        """Put in flight what a snapshot has; ValueError if that is too much."""
