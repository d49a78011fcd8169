"""Reading: entries by offset, by position and by key, and what compaction reads of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue, Unit
from rockgate.store.keys.entrykeys import BatchKeys, Found, no_batch_keys
from rockgate.store.keys.keyindex import FOREVER_MS
from rockgate.store.read.reader import BATCHES_MAX
from rockgate.store.read.slices import UNUSUAL, Alike, Batches, MessageRun, Slice
from rockgate.store.upkeep.compaction.bodies import (
    EXPIRED,
    PINNED,
    Bodies,
    Reading,
    Rewritten,
    Steps,
    Survey,
    Terms,
)
from rockgate.store.write.dispatch import EPOCH, MAX_MS, TOPIC_ID

__all__ = [
    "BATCHES_MAX",
    "EPOCH",
    "EXPIRED",
    "FOREVER_MS",
    "MAX_MS",
    "PINNED",
    "TOPIC_ID",
    "UNUSUAL",
    "Alike",
    "Batches",
    "Bodies",
    "EntryReader",
    "Found",
    "Lookup",
    "MessageRun",
    "Reader",
    "Reading",
    "Rewritten",
    "Slice",
    "Steps",
    "Survey",
    "Terms",
    "no_batch_keys",
]


class EntryReader(Protocol):
    """Reads single entries, as far as they are visible."""

    def high_watermark(self, queue: Queue) -> int:
        """Return the offset after the last visible one."""

    def entry(self, queue: Queue, unit: Unit) -> Slice:
        """Return the entry of a unit; OffsetOutOfRange if it is not visible yet."""


class Reader(EntryReader, Protocol):
    """Reads runs of entries, never beyond what is visible, whatever `end` is.

    Cold entries are added to `cold` and not touched, unless that is None.
    """

    def batches(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        *,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> Batches:
        """Return the bodies of batch entries from the one that holds `offset` on.

        Whole batches before the offset `end`, of at most `size_max` bytes in total; with
        `at_least_one` the first one may be larger.
        """

    def messages(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        *,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> list[Slice]:
        """Return message entries from `offset` on, up to a batch entry; limits as in `batches`."""

    def alike(
        self, queue: Queue, offset: int, end: int, size_max: int, *, may_be_cold: bool
    ) -> Alike | None:
        """Return the same as `messages` if they are many, similar, and none is cold; else None."""

    def message_run(
        self,
        queue: Queue,
        offset: int,
        end: int,
        *,
        count_max: int,
        size_max: int,
        accepts_code: Callable[[int], bool] | None = None,
        accepts: Callable[[memoryview], bool | None] | None = None,
        cold: list[Place] | None = None,
    ) -> MessageRun:
        """Return message entries without copying, in as few slices as possible.

        `accepts_code` filters by tag code and `accepts` by entry; None ends the run there.
        """


class Lookup(Protocol):
    """Finds entries by position or by key, as far as a reader of their queue sees them."""

    def entry(self, position: int) -> tuple[Queue, Slice] | None:
        """Return the entry that starts at a position, and its queue; None if none is visible."""

    def stored_ms(self, position: int) -> int | None:
        """Return when the entry at a position was stored, of any kind; None if there is none."""

    def by_key(
        self,
        topic: bytes,
        key: bytes,
        *,
        limit: int,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        batch_keys: BatchKeys | None = None,
    ) -> list[int]:
        """Return positions of entries with a key, newest first.

        `batch_keys` returns the keys of a batch at a position; without it, batches are decoded.
        """
