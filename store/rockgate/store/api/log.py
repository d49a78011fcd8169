"""The log below all queues: positions, what is flushed, and what is resident."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from rockgate.store.log.page_residency import Place

__all__ = ["Epochs", "Flushing", "Log", "PageResidency", "Place", "Told"]

Told = Callable[[Exception | None], None]
"""Called once a position is on disk, or with the error that means it may never be."""


class Log(Protocol):
    """Every entry, in the order in which it was accepted."""

    @property
    def start(self) -> int:
        """The first position that is still there."""

    @property
    def end(self) -> int:
        """The position at which the next entry will start."""


class Flushing(Protocol):
    """How far the log is on disk."""

    @property
    def flushed(self) -> int:
        """Everything before this position is on disk."""

    def when_flushed(self, position: int, told: Told) -> None:
        """Call `told` once everything before a position is on disk."""


class PageResidency(Protocol):
    """Which entries must be brought in from disk before anybody touches them."""

    def resident_from(self, log_end: int) -> int:
        """Return the position from which on nothing is cold."""

    def is_cold(self, position: int, size: int) -> bool:
        """Whether an entry before `resident_from` must be brought in first."""

    def plan(self, places: Sequence[Place], log_end: int) -> list[int]:
        """Return the chunks to bring in for these entries, and perhaps for the next."""

    def note(self, chunks: Iterable[int]) -> None:
        """Remember that chunks were brought in just now."""

    def fault_in(self, chunks: Iterable[int]) -> None:
        """Bring chunks in, on any thread."""


class Epochs(Protocol):
    """The runs of the server, as the log counts them."""

    @property
    def current(self) -> int:
        """The newest epoch, which may be that of an entry to come; 0 before the first."""

    def at(self, position: int) -> int:
        """Return the epoch that a position of the log was written in."""
