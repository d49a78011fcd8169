"""Half messages: undecided until they are committed or rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rockgate.store.half import (
    HALF_TOPIC,
    MESSAGES,
    Checked,
    Decided,
    Half,
    Outcome,
    Prepared,
    encode,
)

__all__ = [
    "HALF_TOPIC",
    "MESSAGES",
    "Checked",
    "Decided",
    "Half",
    "HalfMessages",
    "Outcome",
    "Prepared",
    "encode",
]


class HalfMessages(Protocol):
    """All undecided half messages, by their offsets."""

    def __len__(self) -> int: ...

    def find(self, offset: int) -> Half | None:
        """Return an undecided half message."""

    def outcome(self, offset: int) -> Outcome | None:
        """Return how one ended; None of one that is undecided, was never there, or is too old."""

    def all(self) -> list[Half]:
        """Return all that are undecided, as they are now, in the order of their offsets."""

    def walk(self) -> Iterator[Half | None]:
        """Yield all that are undecided, in no order, and None for what was passed over."""
