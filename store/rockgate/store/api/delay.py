"""Delayed messages: which are pending, which are held, and how they are delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from rockgate.store.api.append import Appended, Draft, Intake
from rockgate.store.api.queues import Queue
from rockgate.store.delay.changes import DELAY_TOPIC, DelayChangeKind, decode, due_after, due_at
from rockgate.store.delay.changes import FORMAT as DELAY_FORMAT
from rockgate.store.delay.early_delivery import Arrival
from rockgate.store.delay.fold import Listed
from rockgate.store.delay.given import ORIGIN, Opening, Redeliver
from rockgate.store.delay.held import (
    HELD_TOPIC,
    NO_OWNER,
    UNDECIDED,
    Held,
    HeldChangeKind,
    Hold,
    Scheduled,
    encode,
)
from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.read.slices import Slice
from rockgate.store.workers import Jobs

__all__ = [
    "DELAY_FORMAT",
    "DELAY_TOPIC",
    "HELD_TOPIC",
    "NO_OWNER",
    "ORIGIN",
    "UNDECIDED",
    "Arrival",
    "DelayChangeKind",
    "Delays",
    "Deliveries",
    "EarlyDeliveries",
    "Held",
    "HeldChangeKind",
    "HeldEntries",
    "Hold",
    "Jobs",
    "Listed",
    "OffsetSet",
    "Redeliver",
    "Scheduled",
    "decode",
    "due_after",
    "due_at",
    "encode",
]


class Delays(Protocol):
    """The delayed messages."""

    @property
    def waiting_count(self) -> int:
        """How many messages are delayed."""

    def is_waiting(self, topic_id: bytes, queue_id: int, offset: int) -> bool:
        """Say whether an item is pending."""

    def recall(self, topic_id: bytes, queue_id: int, offset: int) -> bool:
        """End an item's delay if it is pending; the outcome is final when this returns."""

    def part(self, start: int, count: int, offset: int = -1) -> tuple[list[Listed], int]:
        """Return the pending items from a number on, and the number to continue from, or -1.

        Reads a limited number of units; with an offset, returns only items at that offset.
        """

    @property
    def part_end(self) -> int:
        """The number at which the last `part` ends, as of now."""


class Deliveries(Protocol):
    """Schedules delayed messages, and delivers them."""

    @property
    def jobs(self) -> Callable[[], Jobs]:
        """Returns where slow work currently runs."""

    def now_ms(self) -> int:
        """Return the time at which new delays start."""

    def append(self, queue: Queue, draft: Draft, waits: Sequence[tuple[int, int]]) -> Appended:
        """Append an entry with delayed offsets, given as (index in the entry, due time)."""

    def intakes(self, queue: Queue, draft: Draft, waits: Sequence[tuple[int, int]]) -> list[Intake]:
        """Return the entry and its schedule, to be appended first in an atomic group."""

    def schedule(
        self, key: tuple[bytes, int], waits: Sequence[tuple[int, int]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that schedule offsets of a held entry, to be appended atomically."""


class EarlyDeliveries(Protocol):
    """Delivers single messages before they are due."""

    def prepare(self, entry: Slice, offset: int) -> Opening | None:
        """Return the work that a thread must do first, as for any delivery."""

    def deliver(self, queue: Queue, entry: Slice, offset: int) -> Arrival | None:
        """Deliver an item if it is pending; the outcome is final when this returns.

        StoreError, with the item pending as before, if it cannot be delivered now.
        """


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
