"""The log below all queues: positions, what is committed, and what is resident."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from rockgate.store.log.page_residency import Place

__all__ = ["Committing", "Epochs", "Log", "OnCommitted", "PageResidency", "Place"]

OnCommitted = Callable[[Exception | None], None]
"""Called once a position is committed, or with the error that says it may never be."""


class Log(Protocol):
    """Every entry, in the order in which it was accepted."""

    @property
    def start(self) -> int:
        """The first position that is still in the log."""

    @property
    def end(self) -> int:
        """The position at which the next entry will start."""


class Committing(Protocol):
    """How far the log can no longer be undone: on a node by itself, how far it is on disk."""

    @property
    def position(self) -> int:
        """Everything before this position is committed."""

    def when_committed(self, position: int, callback: OnCommitted) -> None:
        """Call `callback` once everything before a position is committed."""


class PageResidency(Protocol):
    """Which entries must be loaded from disk before they are read."""

    def resident_from(self, log_end: int) -> int:
        """Return the position from which on everything is resident."""

    def is_cold(self, position: int, size: int) -> bool:
        """Whether an entry before `resident_from` must be loaded first."""

    def plan(self, places: Sequence[Place], log_end: int) -> list[int]:
        """Return the chunks to load for these entries, with read-ahead if they are dense."""

    def note(self, chunks: Iterable[int]) -> None:
        """Record that chunks were loaded just now."""

    def fault_in(self, chunks: Iterable[int]) -> None:
        """Load chunks from disk, on any thread."""


class Epochs(Protocol):
    """The epochs of the log: each run of the server begins one."""

    @property
    def current(self) -> int:
        """The newest epoch, which may belong to an entry to come; 0 before the first."""

    def at(self, position: int) -> int:
        """Return the epoch in which a position of the log was written."""
