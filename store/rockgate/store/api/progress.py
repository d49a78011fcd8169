"""Group progress: committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from rockgate.store.progress.records import Commit, Committed, Key, Removed, check_group

__all__ = ["Commit", "Committed", "CommittedOffsets", "Key", "Progress", "Removed", "check_group"]


class CommittedOffsets(Protocol):
    """What groups have committed."""

    def fetch(self, group: str, topic_id: bytes, queue_id: int) -> Committed | None:
        """Return what a group has committed in a queue, or None."""

    def fetch_group(self, group: str) -> Iterator[tuple[bytes, int, Committed]]:
        """Return a group's topic ids, queue ids and offsets; read it before the next change."""

    def topics_of(self, group: str) -> list[bytes]:
        """Return the topics that a group has committed in."""

    def queues_of(self, group: str, topic_id: bytes) -> list[int]:
        """Return the queues of a topic that a group has committed in."""

    def count(self, group: str, most: int) -> int:
        """Return how many offsets a group has; it stops to count above `most`."""

    def groups(self) -> Iterator[str]:
        """Return the groups that have committed anything; read it before the next change."""

    def groups_of(self, topic_id: bytes) -> Iterator[str]:
        """Return the groups that have committed offsets in a topic."""

    def page(self, place: int, count: int) -> tuple[int | None, list[tuple[Key, Committed]]]:
        """Return about `count` offsets from a place on, and the next place, or None at the end."""


class Progress(CommittedOffsets, Protocol):
    """What groups have committed, and the only way to change it."""

    on_removed: list[Callable[[Sequence[Removed]], None]]
    """Notified of removals: offsets that do not count yet are to go with them."""

    def commit(self, group: str, commits: Iterable[Commit], *, acknowledged: bool = True) -> None:
        """Commit offsets; when it returns, acknowledged ones are appended."""

    def changes_as_of(
        self, group: str, commits: Sequence[tuple[Commit, int]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that commit offsets as of the positions where they were written."""

    def settle(self, group: str, queues: Iterable[tuple[bytes, int]]) -> None:
        """Append what waits for some queues of a group, so that what is written next is later."""

    def delete_groups(self, groups: Iterable[str]) -> None:
        """Remove all progress of groups."""

    def remove(self, keys: Iterable[Key]) -> None:
        """Remove single offsets."""
