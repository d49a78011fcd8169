"""Groups that exist because open transactions have offsets to commit for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class PendingGroups(Protocol):
    """Whoever knows of such groups."""

    def has(self, group: str) -> bool:
        """Whether a group is one of them."""

    def groups(self) -> Iterable[str]:
        """All of them; read it before the next change."""
