"""Group progress: committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from rockgate.store.progress.records import Commit, Committed, Key, Removed, check_group

__all__ = ["Commit", "Committed", "CommittedOffsets", "Key", "Progress", "Removed", "check_group"]


class CommittedOffsets(Protocol):
    """The committed offsets of groups."""

    def fetch(self, group: str, topic_id: bytes, queue_id: int) -> Committed | None:
        """Return a group's committed offset in a queue, or None."""

    def fetch_group(self, group: str) -> Iterator[tuple[bytes, int, Committed]]:
        """Yield a group's topic ids, queue ids and offsets; consume it before the next change."""

    def topics_of(self, group: str) -> list[bytes]:
        """Return the topics in which a group has committed offsets."""

    def queues_of(self, group: str, topic_id: bytes) -> list[int]:
        """Return the queues of a topic in which a group has committed offsets."""

    def count(self, group: str, most: int) -> int:
        """Return the number of a group's offsets; counting stops above `most`."""

    def groups(self) -> Iterator[str]:
        """Yield the groups with committed offsets; consume it before the next change."""

    def groups_of(self, topic_id: bytes) -> Iterator[str]:
        """Return the groups that have committed offsets in a topic."""

    def page(self, place: int, count: int) -> tuple[int | None, list[tuple[Key, Committed]]]:
        """Return about `count` offsets from a place on, and the next place; None at the end."""

    def page_since(self, place: int, count: int, position: int) -> tuple[int | None, list[Key]]:
        """The same, of offsets that were changed at a position of the log or behind it."""


class Progress(CommittedOffsets, Protocol):
    """The committed offsets of groups, and the only way to change them."""

    on_removed: list[Callable[[Sequence[Removed]], None]]
    """Called with removals: offsets that do not count yet must be removed as well."""
    on_changed: list[Callable[[str, bytes, Iterable[int]], None]]
    """Called with the group, topic id and queue ids of offsets that have changed."""

    def commit(self, group: str, commits: Iterable[Commit], *, acknowledged: bool = True) -> None:
        """Commit offsets; acknowledged ones are appended when this returns."""

    def changes_as_of(
        self, group: str, commits: Sequence[tuple[Commit, int]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that commit offsets as of the positions where they were written."""

    def settle(self, group: str, queues: Iterable[tuple[bytes, int]]) -> None:
        """Append a group's buffered commits of some queues, so that later changes follow them."""

    def delete_groups(self, groups: Iterable[str]) -> None:
        """Remove all progress of groups."""

    def remove(self, keys: Iterable[Key]) -> None:
        """Remove single offsets."""
