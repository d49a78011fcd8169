"""What others hang on to a store: everything that it calls and did not make, in one list.

Each may be attached once in a store's life. Without one the store works, and notifies no one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypedDict

from rockgate.store.delay.delivery import Deliveries
from rockgate.store.delay.fold import Delay
from rockgate.store.delay.given import Records, Redeliver
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.flusher import Flusher
from rockgate.store.queues.view import QueueView
from rockgate.store.write.append import Appender


class Attachments(TypedDict, total=False):
    """All of them, by name."""

    redeliver: Redeliver
    """Says what becomes of a message that waited; without it nothing is delivered."""
    records: Records
    """Says what becomes of records of a batch that waited."""
    on_sooner: Callable[[], None]
    """Notified when something is scheduled that is due before the next delivery check."""
    on_append: Callable[[QueueView], None]
    """Notified of every queue that got something."""
    on_flushed: Callable[[int], None]
    """Notified of the flushed position after every flush: more of sync queues is visible."""
    on_synced: Callable[[float], None]
    """Notified of the duration of each fsync, by the thread that waited for it."""
    keys_later: Callable[[Callable[[], None]], object]
    """Runs work on the key index a little later, so that it does not hold up an answer."""


class Parts(Protocol):
    """The parts of a store that call others."""

    deliveries: Deliveries
    delay: Delay
    appender: Appender
    flusher: Flusher
    keys: KeyIndex | None
    on_flushed: Callable[[int], None]


def attach(parts: Parts, taken: set[str], given: Attachments) -> None:
    """Hang what is given on to the parts; ValueError for what was attached before."""
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
    if "on_synced" in given:
        parts.flusher.on_synced = given["on_synced"]
    if "keys_later" in given and parts.keys is not None:
        parts.keys.later = given["keys_later"]
