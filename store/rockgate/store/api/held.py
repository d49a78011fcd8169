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
    """The batches that are not scheduled yet."""

    def __len__(self) -> int: ...

    def next_ready(self) -> Held | None:
        """Return the item to schedule next."""

    def put_last(self, item: Held) -> None:
        """Move an item that cannot be scheduled now behind the other ready ones."""

    def decisions(
        self, keys: Iterable[tuple[bytes, int]], owner: int, *, is_commit: bool, now_ms: int
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that record an owner's outcome for its entries in some queues."""
