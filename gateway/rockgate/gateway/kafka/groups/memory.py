"""The saved state of groups, while they have no members and across restarts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup


class Record(NamedTuple):
    """The saved state of a group."""

    store_ms: int
    """When."""
    group: SavedGroup


class GroupMemory(Protocol):
    """Groups as they were last written down."""

    def names(self) -> Iterable[str]:
        """All names; read it before the next change."""
        ...

    def find(self, name: str) -> Record | None:
        """The saved bytes of a group, or None."""
        ...

    def save(self, name: str, group: SavedGroup) -> None:
        """Write a group down; StoreError if it cannot be."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Forget groups."""
        ...
