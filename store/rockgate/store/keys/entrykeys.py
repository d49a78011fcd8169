"""The keys of an entry: those of a message, or those of the records in a batch.

The store cannot decode batches; whoever opens it passes a function that can. A query compares the
actual keys, so it loads entries with their keys from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from rockgate.protocol.entry import (
    INDEXED,
    TRANSACTION_ROLLBACK,
    Entry,
    EntryError,
    get_property,
    properties_of,
)

Found = Sequence[bytes] | Callable[[], Sequence[bytes]]
"""Keys, or a function that finds them but is too slow for the store's thread."""
RecordKeys = Callable[[memoryview], Found]
"""Returns the keys of the records in a batch's body; deterministic."""


_ID: Final = b"UNIQ_KEY\x01"


def keys_of(properties: bytes) -> list[bytes]:
    """Return the keys of a message: its unique key, then each part of its KEYS."""
    keys = []
    unique = get_property(properties, b"UNIQ_KEY")
    if unique:
        keys.append(unique)
    parts = get_property(properties, b"KEYS") if b"KEYS\x01" in properties else None
    if parts:
        keys += [key for key in parts.split(b" ") if key]
    return keys


def keys_of_all(
    properties: Sequence[bytes], positions: Sequence[int]
) -> tuple[Sequence[bytes], Sequence[int]]:
    """Return the keys of messages, and for each key its message's position."""
    ids = _ids(properties)
    if ids is not None:
        return ids, positions
    keys: list[bytes] = []
    places: list[int] = []
    for each, position in zip(properties, positions, strict=True):
        found = keys_of(each) if each else ()
        keys += found
        places += [position] * len(found)
    return keys, places


def _ids(properties: Sequence[bytes]) -> Sequence[bytes] | None:
    """Return the message ids that a client assigned, if they are the only keys.

    Messages of one client start with their id, all of the same length (32 digits, or 56 for a
    client with an IPv6 address), and usually continue alike: one pass over all of them is enough.
    """
    rest_at = properties[0].find(b"\x02")
    if rest_at <= len(_ID) or len(set(map(len, properties))) > 1:
        return None
    rest_size = len(properties[0]) - rest_at
    parts = struct.iter_unpack(
        f"{len(_ID)}s{rest_at - len(_ID)}s{rest_size}s", b"".join(properties)
    )
    names, ids, rests = zip(*parts, strict=True)
    if names.count(_ID) != len(names) or b"\x02" in b"".join(ids):
        return None
    # Usually the rest is the same too.
    unlike = set(rests) if rests.count(rests[0]) != len(rests) else rests[:1]
    if any(rest[0] != 2 or b"KEY" in rest for rest in unlike):
        return None
    return ids


def no_keys(body: memoryview) -> Sequence[bytes]:
    """Return no keys: for stores that index no batches."""
    return ()


def entry_keys(view: memoryview, entry: Entry, record_keys: RecordKeys) -> Found:
    """Return all keys by which an entry is found.

    State entries and rollbacks of transactions have none. A flag of a batch says whether its
    records are indexed, because the topic's config may have changed since.
    """
    if entry.queue_offset < 0:
        return ()
    if entry.is_batch:
        body = view[entry.body_at : entry.body_at + entry.body_size]
        return record_keys(body) if entry.sys_flag & INDEXED else ()
    if entry.sys_flag & TRANSACTION_ROLLBACK == TRANSACTION_ROLLBACK:
        return ()
    return keys_of(properties_of(view, entry))


def found_now(found: Found) -> Sequence[bytes]:
    """Return keys, however long it takes to find them."""
    return found() if callable(found) else found


class Loaded(NamedTuple):
    """The entry at a position."""

    topic: bytes
    keys: Sequence[bytes]
    store_ms: int


class Log(Protocol):
    """The commit log, as a loader uses it."""

    def read(self, position: int) -> tuple[memoryview, Entry] | None:
        """Return the bytes around a position and the entry there; EntryError if it is invalid."""


Load = Callable[[int], Loaded | None]
"""Returns the entry that starts at a position; None if there is none, or it is not visible."""


BatchKeys = Callable[[int, memoryview], Sequence[bytes]]
"""Returns the keys of the records in the batch at a position."""


def no_batch_keys(position: int, body: memoryview) -> Sequence[bytes]:
    """Return no keys: for lookups of messages only."""
    return ()


def loader(
    log: Log,
    end: int,
    is_visible: Callable[[memoryview, Entry], bool] = lambda view, entry: True,
    record_keys: RecordKeys = no_keys,
    batch_keys: BatchKeys | None = None,
) -> Load:
    """Return a loader for `query`: the visible entries before `end`.

    Any position may be asked for; inside an entry there is nothing.
    """

    def load(position: int) -> Loaded | None:
        try:
            found = log.read(position) if position < end else None
        except EntryError:
            return None
        if found is None:
            return None
        view, entry = found
        if entry.position != position or not is_visible(view, entry):
            return None
        ask = record_keys if batch_keys is None else partial(batch_keys, position)
        keys = found_now(entry_keys(view, entry, ask))
        return Loaded(entry.topic, keys, entry.store_ms)

    return load
