"""Delayed messages: what is pending, and how it is delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rockgate.store.api.append import Appended, Draft, Intake
from rockgate.store.api.queues import Queue
from rockgate.store.delay.changes import DELAY_TOPIC, DelayChangeKind, decode
from rockgate.store.delay.changes import FORMAT as DELAY_FORMAT
from rockgate.store.delay.fold import Listed
from rockgate.store.delay.given import ORIGIN, Redeliver
from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.delay.times import after as due_after
from rockgate.store.delay.times import at as due_at
from rockgate.store.workers import Jobs

__all__ = [
    "DELAY_FORMAT",
    "DELAY_TOPIC",
    "ORIGIN",
    "DelayChangeKind",
    "Delays",
    "Deliveries",
    "Jobs",
    "Listed",
    "OffsetSet",
    "Redeliver",
    "decode",
    "due_after",
    "due_at",
]


class Delays(Protocol):
    """What waits for its time."""

    @property
    def waiting_count(self) -> int:
        """How many messages wait."""

    def is_waiting(self, topic_id: bytes, queue_id: int, offset: int) -> bool:
        """Say whether an item waits."""

    def recall(self, topic_id: bytes, queue_id: int, offset: int) -> bool:
        """End the waiting of an item, if it waits; by the time this returns it is decided."""

    def part(self, start: int, count: int, offset: int = -1) -> tuple[list[Listed], int]:
        """Return what waits from a number on, and the number to go on from, or -1.

        Reads a limited number of places; with an offset, returns only what waits at that one.
        """

    @property
    def part_end(self) -> int:
        """The number at which the last `part` ends, as of now."""


class Deliveries(Protocol):
    """Schedules what is to wait, and delivers it."""

    @property
    def jobs(self) -> Callable[[], Jobs]:
        """Where slow work goes at present."""

    def now_ms(self) -> int:
        """Return the time that delays are counted from."""

    def append(self, queue: Queue, draft: Draft, waits: Sequence[tuple[int, int]]) -> Appended:
        """Append an entry of which offsets wait, given as (index in the entry, due time)."""

    def intakes(self, queue: Queue, draft: Draft, waits: Sequence[tuple[int, int]]) -> list[Intake]:
        """Return entry and schedule, to be appended at once and first in their group."""

    def schedule(
        self, key: tuple[bytes, int], waits: Sequence[tuple[int, int]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the changes that let offsets of a marked entry wait, to be appended at once."""
