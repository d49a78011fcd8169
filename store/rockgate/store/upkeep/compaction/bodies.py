"""What compaction needs of those who know the bodies of entries, which the store does not open.

Reading and rewriting a body are sequences of steps: each yields None where the caller may pause,
and work that takes long for a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, NamedTuple, Protocol, TypeVar

from rockgate.protocol.entry import Buffer, Entry
from rockgate.store.queues.view import QueueView
from rockgate.store.workers import Work

T = TypeVar("T")
Steps = Generator[Work | None, None, T]
"""Work in steps, and what it results in."""

EXPIRED: Final = 1
"""Flag of a key: the record deletes it, and its own time is over too."""
PINNED: Final = 2
"""Flag of a key: the record stays, whatever supersedes it."""


class Terms(NamedTuple):
    """What a cleaning goes by."""

    now_ms: int
    delete_retention_ms: int
    cleaned_to: int
    """The offset up to which an earlier cleaning came to its end."""


class Survey(Protocol):
    """What the entries of a queue hold, noted while they are read in order."""

    def key(self, key: bytes, offset: int, flags: int) -> None:
        """Note the key of a record, which supersedes earlier ones with the same key."""

    def drop(self, offset: int) -> None:
        """Note a record that goes in any case."""

    def drop_range(self, first: int, end: int) -> None:
        """Note a few thousand records at most that go in any case."""

    def revisit(self, base: int) -> None:
        """Note an entry that has to be rewritten even if all its records stay."""

    def hole(self, base: int) -> None:
        """Note an entry without any record."""


class Rewritten(NamedTuple):
    """An entry's new body."""

    body: Buffer
    born_ms: int
    """The largest time of the records that are left."""
    cleared_flags: int
    """Flags that the entry no longer has."""


class Reading(Protocol):
    """Reads the entries of one queue for one cleaning, in order."""

    def survey(
        self, view: memoryview, entry: Entry, survey: Survey, is_pinned: bool
    ) -> Steps[None]:
        """Note what an entry holds; one that is pinned is not going to be rewritten."""

    def rewrite(
        self, view: memoryview, entry: Entry, is_dropped: Callable[[int], bool], is_revisited: bool
    ) -> Steps[Rewritten | bool]:
        """Return the entry's new body; False if it stays as it is, True if no record is left."""


class Bodies(Protocol):
    """Opens bodies, and knows what of a queue is final."""

    def stable_end(self, queue: QueueView) -> int:
        """Return the offset before which every record is decided: those supersede others."""

    def reading(self, queue: QueueView, terms: Terms) -> Reading:
        """Begin to read a queue."""

    def hole(self, base: int, count: int, epoch: int) -> Buffer:
        """Return the body of a batch entry that covers offsets and has no record."""
