"""Attachments: the callbacks that others register with a store, in one list.

Each may be attached once in a store's lifetime. The store works without any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypedDict

from rockgate.store.delay.delivery import Deliveries
from rockgate.store.delay.fold import Delay
from rockgate.store.delay.given import Records, Redeliver
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.flusher import Flusher
from rockgate.store.log.page_allocation import Allocator
from rockgate.store.queues.view import QueueView
from rockgate.store.upkeep.compaction.bodies import Bodies
from rockgate.store.upkeep.compaction.cleaner import Cleaner
from rockgate.store.upkeep.retention import Retention
from rockgate.store.write.append import Appender


class Attachments(TypedDict, total=False):
    """All attachments, by name."""

    redeliver: Redeliver
    """Converts a delayed message for delivery; without it nothing is delivered."""
    records: Records
    """Converts delayed records of a batch for delivery."""
    on_sooner: Callable[[], None]
    """Called when something is scheduled that is due before the next delivery check."""
    on_append: Callable[[QueueView], None]
    """Called with every queue that got entries."""
    on_flushed: Callable[[int], None]
    """Called with the flushed position after every flush: more of sync queues is visible."""
    on_stalled: Callable[[bool], None]
    """Called when appends have to wait for a file or for pages, and when they no longer have to;

    once it is attached, an append that must not wait is rejected as busy.
    """
    on_synced: Callable[[float], None]
    """Called with the duration of each fsync, on the thread that waited for it."""
    bodies: Bodies
    """Opens bodies for compaction; without it nothing is compacted."""
    on_compacted: Callable[[], None]
    """Called after a queue was compacted: what was made of its messages may be outdated."""
    pinned: Callable[[], int]
    """Returns a position from which on replicas still read: segments from there on stay."""
    keys_later: Callable[[Callable[[], None]], object]
    """Runs work on the key index a little later, so that it does not delay a response."""


class Parts(Protocol):
    """The parts of a store that call attachments."""

    deliveries: Deliveries
    delay: Delay
    appender: Appender
    allocator: Allocator
    flusher: Flusher
    keys: KeyIndex | None
    cleaner: Cleaner
    retention: Retention
    on_flushed: Callable[[int], None]


def attach(parts: Parts, taken: set[str], given: Attachments) -> None:
    """Pass attachments to the parts; ValueError for those attached before."""
    if again := taken & given.keys():
        raise ValueError(f"Already attached: {', '.join(sorted(again))}.")
    taken.update(given)
    if "redeliver" in given:
        parts.deliveries.redeliver = given["redeliver"]
    if "records" in given:
        parts.deliveries.records = given["records"]
    if "on_sooner" in given:
        parts.delay.on_sooner = given["on_sooner"]
    if "on_append" in given:
        parts.appender.on_append = given["on_append"]
    if "on_flushed" in given:
        parts.on_flushed = given["on_flushed"]
    if "on_stalled" in given:
        parts.allocator.notify(given["on_stalled"])
    if "on_synced" in given:
        parts.flusher.on_synced = given["on_synced"]
    if "bodies" in given:
        parts.cleaner.bodies = given["bodies"]
    if "on_compacted" in given:
        parts.cleaner.on_compacted = given["on_compacted"]
    if "pinned" in given:
        parts.retention.pinned = given["pinned"]
    if "keys_later" in given and parts.keys is not None:
        parts.keys.later = given["keys_later"]
