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
        """Return an outcome; None if the message is undecided, never existed, or is too old."""

    def all(self) -> list[Half]:
        """Return all undecided ones as of now, in the order of their offsets."""

    def walk(self) -> Iterator[Half | None]:
        """Yield all undecided ones, unordered, and None for empty slots."""
