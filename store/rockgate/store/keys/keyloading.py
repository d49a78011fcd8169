"""Loads the entries that the key index points to, so that a query can compare the real key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from rockgate.protocol.entry import Entry, EntryError
from rockgate.store.keys.entrykeys import RecordKeys, entry_keys, found_now, no_keys


class Loaded(NamedTuple):
    """What the log holds at a position."""

    topic: bytes
    keys: Sequence[bytes]
    store_ms: int


class Log(Protocol):
    """The commit log, as a loader uses it."""

    def read(self, position: int) -> tuple[memoryview, Entry] | None:
        """Return the bytes around a position and the entry there; EntryError if it is none."""


Load = Callable[[int], Loaded | None]
"""Returns the entry that starts at a position; None if there is none, or none to be shown."""


BatchKeys = Callable[[int, memoryview], Sequence[bytes]]
"""Returns the keys of the records in a batch that lies at a position."""


def no_batch_keys(position: int, body: memoryview) -> Sequence[bytes]:
    """Return no keys: for whoever looks for messages only."""
    return ()


def loader(
    log: Log,
    end: int,
    is_shown: Callable[[memoryview, Entry], bool] = lambda view, entry: True,
    record_keys: RecordKeys = no_keys,
    batch_keys: BatchKeys | None = None,
) -> Load:
    """Return a loader for `query`: the entries in front of `end` that may be shown.

    Any position may be asked for, also one in the middle of an entry: there is nothing there.
    """

    def load(position: int) -> Loaded | None:
        try:
            found = log.read(position) if position < end else None
        except EntryError:
            return None
        if found is None:
            return None
        view, entry = found
        if entry.position != position or not is_shown(view, entry):
            return None
        ask = record_keys if batch_keys is None else partial(batch_keys, position)
        keys = found_now(entry_keys(view, entry, ask))
        return Loaded(entry.topic, keys, entry.store_ms)

    return load
