"""Read access to a queue: its offsets and their log positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rockgate.store.queues.queueindex import Unit, UnitFields


class QueueView(Protocol):
    """One queue of a topic. Whoever holds it sees it grow; only the store feeds it.

    It is told from others by identity, and may be a key.
    """

    @property
    def topic(self) -> bytes:
        """The topic's name, as entries have it."""

    @property
    def topic_id(self) -> bytes:
        """The topic's id."""

    @property
    def queue_id(self) -> int:
        """Its number in the topic."""

    @property
    def log_start(self) -> int:
        """The first offset that may be read; it only grows."""

    @property
    def next_offset(self) -> int:
        """The offset that the next entry will take."""

    @property
    def is_sync(self) -> bool:
        """Whether readers see, and producers are answered for, only what is on disk."""

    @property
    def visible_end(self) -> int:
        """An offset up to which a sync queue is known to be on disk, or was seen before."""

    @property
    def last_position(self) -> int:
        """The position of its newest entry; -1 if there is none."""

    def find(self, offset: int) -> Unit | None:
        """Return the unit that holds an offset, or the next one that is there."""

    def walk(self, offset: int) -> Iterator[UnitFields]:
        """Yield units in order from the one that holds an offset on, as plain tuples."""

    def first_at_record_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit whose running maximum of record timestamps reaches a time."""

    def first_at_store_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit that was stored at a time or later."""
