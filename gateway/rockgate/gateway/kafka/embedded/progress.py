"""Committed offsets of groups in the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rockgate.gateway.kafka.groups.progress import CommittedOffset, NewOffset
from rockgate.store.api.progress import Commit, Key, Progress


class StoreProgress:
    """Everything is immediate; a commit is in the log when it returns."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def has(self, group: str) -> bool:
        """Whether a group has committed anything."""
        return next(self._progress.fetch_group(group), None) is not None

    def groups(self) -> Iterator[str]:
        """The groups that have committed anything; valid until the next change."""
        return self._progress.groups()

    def count(self, group: str, count_max: int) -> int:
        """How many offsets a group has; it stops counting above `count_max`."""
        return self._progress.count(group, count_max)

    def fetch(
        self, group: str, topic_id: bytes, partitions: Sequence[int]
    ) -> list[CommittedOffset | None]:
        """What a group has committed in partitions of a topic, in their order."""
        fetch = self._progress.fetch
        return [fetch(group, topic_id, partition) for partition in partitions]

    def partitions_of(self, group: str) -> Iterator[tuple[bytes, list[int]]]:
        """The topics that a group has committed in; the walk may pause."""
        progress = self._progress
        for topic_id in progress.topics_of(group):
            yield topic_id, sorted(progress.queues_of(group, topic_id))

    def commit(self, group: str, offsets: Sequence[NewOffset]) -> None:
        """Commit offsets."""
        self._progress.commit(group, [Commit(*offset) for offset in offsets])

    def remove(self, group: str, partitions: Sequence[tuple[bytes, int]]) -> None:
        """Delete the offsets of a group in partitions."""
        self._progress.remove([Key(group, *partition) for partition in partitions])

    def delete(self, groups: Sequence[str]) -> None:
        """Delete all offsets of groups."""
        self._progress.delete_groups(groups)
