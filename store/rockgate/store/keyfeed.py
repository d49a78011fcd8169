"""Catching up with the key index after there was no room for it, or too much to read at a start."""

from __future__ import annotations

from rockgate.store.commitlog import CommitLog
from rockgate.store.entrykeys import entry_keys
from rockgate.store.keyindex import KeyIndex, Missed


def catch_up(log: CommitLog, keys: KeyIndex, size_max: int) -> bool:
    """Index some of what was missed; say whether there is more."""
    if keys.missed_from is None or not keys.has_room:
        # Without room nothing can be done here, and nothing is gained by asking again soon.
        return False
    start = max(keys.missed_from, log.start)
    missed: list[Missed] = []
    end = log.end
    for view, entry in log.walk(start):
        if entry.position - start >= size_max:
            end = entry.position
            break
        found = entry_keys(view, entry, keys.record_keys)
        if found:
            missed.append((entry.topic, found, entry.position, entry.store_ms))
    keys.catch_up(missed, end=end, is_all=end == log.end)
    return keys.missed_from is not None
