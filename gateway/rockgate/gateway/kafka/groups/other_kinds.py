"""Groups of other protocols with members: what the registry of all groups needs to know of them.

Streams groups and share groups have their own coordinators. `Groups` asks the one that a group
has its members with, by these calls, and does not know more about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import Commit
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.consumer.surroundings import ClassicSide
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.protocol.kafka.errors import ErrorCode

KINDS: Final = {
    kind.value: kind for kind in (GroupType.CONSUMER, GroupType.STREAMS, GroupType.SHARE)
}
"""The kinds that a group without members remains of, by the name that is saved."""


class OtherGroups(Protocol):
    """The groups of one kind that have members."""

    @property
    def kind(self) -> GroupType:
        """Their kind."""
        ...

    def __contains__(self, name: str, /) -> bool: ...

    def __len__(self) -> int: ...

    def names(self) -> Iterable[str]:
        """The names of all; valid until the next change."""
        ...

    def attach(self, registry: ClassicSide, /) -> None:
        """Be a part of all groups."""
        ...

    def load(self) -> None:
        """Restore the groups that had members when the server stopped."""
        ...

    def finish(self) -> None:
        """Stop all timers: the server stops."""
        ...

    def view(self, name: str) -> GroupView:
        """Describe a group that has members."""
        ...

    def member_count(self, name: str) -> int:
        """The number of members of a group that has some."""
        ...

    def check_commit(
        self,
        name: str,
        commit: Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
    ) -> ErrorCode:
        """Return whether offsets of a group with members may be committed."""
        ...

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether offsets of a group with members may be fetched."""
        ...

    def forget(self, names: Iterable[str]) -> None:
        """Drop the records of groups without members: they are deleted, or of another kind now."""
        ...


class OtherKinds:
    """The coordinators of all further kinds."""

    def __init__(self, kinds: Iterable[OtherGroups]) -> None:
        self._kinds = tuple(kinds)

    def attach(self, registry: ClassicSide) -> None:
        """Let each be a part of all groups."""
        for each in self._kinds:
            each.attach(registry)

    def find(self, name: str) -> OtherGroups | None:
        """Who serves a group that has members of one of these kinds."""
        return next((each for each in self._kinds if name in each), None)

    def __len__(self) -> int:
        return sum(map(len, self._kinds))

    def load(self) -> None:
        """Restore the groups that had members when the server stopped."""
        for each in self._kinds:
            each.load()

    def finish(self) -> None:
        """Stop all timers: the server stops."""
        for each in self._kinds:
            each.finish()

    def names(self) -> Iterable[str]:
        """The names of all groups; valid until the next change."""
        return (name for each in self._kinds for name in each.names())

    def forget(self, names: Iterable[str]) -> None:
        """Drop the records of groups without members."""
        gone = list(names)
        for each in self._kinds:
            each.forget(gone)
