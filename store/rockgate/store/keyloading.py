"""Loading what the key index points at, so that a query can compare the real key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from rockgate.protocol.entry import Entry, EntryError
from rockgate.store.entrykeys import RecordKeys, entry_keys, no_keys


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


def loader(
    log: Log,
    end: int,
    is_shown: Callable[[memoryview, Entry], bool] = lambda view, entry: True,
    record_keys: RecordKeys = no_keys,
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
        return Loaded(entry.topic, entry_keys(view, entry, record_keys), entry.store_ms)

    return load
