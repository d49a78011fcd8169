"""Read access to a queue: its offsets and their log positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rockgate.store.queues.queueindex import Unit, UnitFields


class QueueView(Protocol):
    """One queue of a topic. It grows while it is held; only the store adds to it.

    Compared by identity, and usable as a key.
    """

    @property
    def topic(self) -> bytes:
        """The topic's name, encoded as in entries."""

    @property
    def topic_id(self) -> bytes:
        """The topic's id."""

    @property
    def queue_id(self) -> int:
        """Its number in the topic."""

    @property
    def log_start(self) -> int:
        """The first offset that can be read; it only increases."""

    @property
    def next_offset(self) -> int:
        """The offset that the next entry will take."""

    @property
    def is_sync(self) -> bool:
        """Whether only flushed entries are visible to readers and acknowledged to producers."""

    @property
    def visible_end(self) -> int:
        """The offset up to which a sync queue is known to be visible; it never decreases."""

    @property
    def last_position(self) -> int:
        """The position of its newest entry; -1 if there is none."""

    @property
    def put_times(self) -> int:
        """Appends since the start; a batch is one, whatever it holds."""

    @property
    def put_count(self) -> int:
        """Messages or records appended since the start."""

    @property
    def put_bytes(self) -> int:
        """Size of the entries appended since the start."""

    def find(self, offset: int) -> Unit | None:
        """Return the unit that holds an offset, or the next existing one."""

    def walk(self, offset: int) -> Iterator[UnitFields]:
        """Yield units in order, from the one that holds an offset on, as plain tuples."""

    def first_at_record_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit whose running maximum of record timestamps reaches a time."""

    def first_at_store_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit that was stored at a time or later."""
