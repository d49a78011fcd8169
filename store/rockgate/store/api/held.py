"""Batches with delayed records: held until their due times are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rockgate.store.delay.held import (
    HELD_TOPIC,
    NOBODY,
    UNDECIDED,
    Held,
    HeldChangeKind,
    Hold,
    Scheduled,
    encode,
)

__all__ = [
    "HELD_TOPIC",
    "NOBODY",
    "UNDECIDED",
    "Held",
    "HeldChangeKind",
    "HeldEntries",
    "Hold",
    "Scheduled",
    "encode",
]


class HeldEntries(Protocol):
    """The batches whose schedule is still to be made."""

    def __len__(self) -> int: ...

    def next_ready(self) -> Held | None:
        """Return the item that is to be scheduled next."""

    def put_last(self, item: Held) -> None:
        """Let an item that cannot be scheduled now wait behind the others that are ready."""

    def decisions(
        self, keys: Iterable[tuple[bytes, int]], owner: int, *, is_commit: bool, now_ms: int
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes by which an owner decides of what it has in some queues."""
