"""What has changed and is not in Kafka's internal topics yet: keys, each once.

Changes are noted where the folds apply them. After a start the folds are read for what changed
behind the position up to which everything was written, page by page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.store.api.progress import CommittedOffsets, Key

_PAGE: Final = 200


class ChangedOffset(NamedTuple):
    """A committed offset."""

    group: str
    topic_id: bytes
    queue_id: int


class ChangedGroup(NamedTuple):
    """A classic group."""

    name: str


class ChangedId(NamedTuple):
    """A transactional id."""

    id: str


Changed: TypeAlias = ChangedOffset | ChangedGroup | ChangedId


class ChangedKeys:
    """Keys in the order in which they changed first."""

    def __init__(
        self, progress: CommittedOffsets, transactions: Transactions, written_to: int
    ) -> None:
        self._keys: dict[Changed, None] = {}
        self._missed = self._read(progress, transactions, written_to)
        self.is_caught_up = False
        """Whether everything from before the start is among the keys, or written."""

    def __len__(self) -> int:
        return len(self._keys)

    def offsets(self, group: str, topic_id: bytes, queue_ids: Iterable[int]) -> None:
        """Note offsets of a group in a topic."""
        self._keys.update((ChangedOffset(group, topic_id, each), None) for each in queue_ids)

    def group(self, name: str) -> None:
        """Note a classic group."""
        self._keys[ChangedGroup(name)] = None

    def transaction(self, id_: str) -> None:
        """Note a transactional id."""
        self._keys[ChangedId(id_)] = None

    def first(self, count: int) -> list[Changed]:
        """The keys that changed first; they stay until they are written."""
        return list(islice(self._keys, count))

    def written(self, keys: Iterable[Changed]) -> None:
        """Drop keys, which nothing has changed meanwhile."""
        for key in keys:
            del self._keys[key]

    def catch_up(self) -> None:
        """Read a page of what changed before the start."""
        if not self.is_caught_up:
            self.is_caught_up = next(self._missed, None) is None

    def _read(
        self, progress: CommittedOffsets, transactions: Transactions, since: int
    ) -> Iterator[bool]:
        place: int | None = 0
        while place is not None:
            keys: list[Key]
            place, keys = progress.page_since(place, _PAGE, since)
            self._keys.update((ChangedOffset(*key), None) for key in keys)
            yield True
        place = 0
        while place is not None:
            place, found = transactions.page(place, _PAGE)
            self._keys.update(
                (ChangedId(each.id), None) for each in found if each.position >= since
            )
            yield True
