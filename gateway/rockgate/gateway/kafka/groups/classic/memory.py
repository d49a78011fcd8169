"""The saved state of groups, while they have no members and across restarts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import CLASSIC, SavedGroup, SavedMember


class Record(NamedTuple):
    """The saved state of a group."""

    store_ms: int
    """When it was saved."""
    group: SavedGroup


class GroupMemory(Protocol):
    """Groups as last saved."""

    def names(self) -> Iterable[str]:
        """All names; valid until the next change."""
        ...

    def find(self, name: str) -> Record | None:
        """The saved bytes of a group, or None."""
        ...

    def save(self, name: str, group: SavedGroup) -> None:
        """Save a group; StoreError if that fails."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Delete groups."""
        ...


def saved_of(group: ClassicGroup) -> SavedGroup:
    """The saved record of a group."""
    if group.state is not GroupState.STABLE:
        return SavedGroup(CLASSIC, group.generation, group.protocol_type)
    return SavedGroup(
        CLASSIC,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.members.leader,
        tuple(SavedMember.of(member) for member in group.members),
    )
