"""Committed offsets of groups, as Kafka's handlers and the coordinator see and change them.

A partition is named by its topic's id. Offsets may be stored on other servers, and are then read
and committed there; which groups have any is known without a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from rockgate.gateway.kafka.request.now import Now
from rockgate.protocol.kafka.errors import ErrorCode


class NewOffset(NamedTuple):
    """An offset to be committed."""

    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    expire_ms: int
    """When it expires; -1 for the server's setting."""


class CommittedOffset(Protocol):
    """The committed offset of a group in a partition."""

    @property
    def offset(self) -> int:
        """The offset to resume from."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The epoch of the last record before it; -1 if unknown."""
        ...

    @property
    def metadata(self) -> str:
        """The metadata of the commit."""
        ...


class GroupProgress(Protocol):
    """The offsets of all groups."""

    # Groups with offsets

    def has(self, group: str) -> bool:
        """Whether a group has committed anything."""
        ...

    def groups(self) -> Iterable[str]:
        """The groups that have committed anything; valid until the next change."""
        ...

    def count(self, group: str, count_max: int) -> int:
        """Approximate number of a group's offsets; it stops counting above `count_max`.

        It only decides how a response is sliced.
        """
        ...

    # Offsets

    def fetch(
        self, group: str, topic_id: bytes, partitions: Sequence[int]
    ) -> Now[list[CommittedOffset | None]]:
        """What a group has committed in partitions of a topic, in their order."""
        ...

    def partitions_of(self, group: str) -> Now[Iterable[tuple[bytes, Sequence[int]]]]:
        """The topics that a group has committed in, each with its partitions in order."""
        ...

    def commit(self, group: str, offsets: Sequence[NewOffset]) -> Now[Sequence[ErrorCode] | None]:
        """Commit offsets; an error code for each of them, or None if all are committed."""
        ...

    def remove(self, group: str, partitions: Sequence[tuple[bytes, int]]) -> Now[None]:
        """Delete the offsets of a group in partitions, by topic id and number."""
        ...

    def delete(self, groups: Sequence[str]) -> Now[None]:
        """Delete all offsets of groups."""
        ...


class TransactionalOffsets(Protocol):
    """Offsets that open transactions would commit."""

    def has(self, group: str) -> bool:
        """Whether a group has any."""
        ...

    def groups(self) -> Iterable[str]:
        """The groups that have any; valid until the next change."""
        ...

    def has_at(self, group: str, topic_id: bytes, partition: int, /) -> bool:
        """Whether a group has one in a partition."""
        ...
