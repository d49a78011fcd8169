"""The keys an entry is found by: those of a message, and those of the records in a batch.

What is in a batch the store does not know; whoever opens it gives a function that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rockgate.protocol.entry import (
    INDEXED,
    TRANSACTION_ROLLBACK,
    Entry,
    get_property,
    properties_of,
)

RecordKeys = Callable[[memoryview], Sequence[bytes]]
"""Returns the keys of the records in a batch's body, the same whenever it is asked."""


def keys_of(properties: bytes) -> list[bytes]:
    """Return the keys a message is found by: its unique key, then each part of its KEYS."""
    keys = []
    unique = get_property(properties, b"UNIQ_KEY")
    if unique:
        keys.append(unique)
    parts = get_property(properties, b"KEYS") if b"KEYS\x01" in properties else None
    if parts:
        keys += [key for key in parts.split(b" ") if key]
    return keys


def no_keys(body: memoryview) -> Sequence[bytes]:
    """Return no keys: for whoever has no batches whose records are indexed."""
    return ()


def entry_keys(view: memoryview, entry: Entry, record_keys: RecordKeys) -> Sequence[bytes]:
    """Return all the keys an entry is found by.

    State entries have none, nor has the rollback of a transaction. A batch says by a flag whether
    the keys of its records count: the topic's config may have been another one since.
    """
    if entry.queue_offset < 0:
        return ()
    if entry.is_batch:
        body = view[entry.body_at : entry.body_at + entry.body_size]
        return record_keys(body) if entry.sys_flag & INDEXED else ()
    if entry.sys_flag & TRANSACTION_ROLLBACK == TRANSACTION_ROLLBACK:
        return ()
    return keys_of(properties_of(view, entry))
