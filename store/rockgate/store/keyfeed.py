"""Feeding the key index where appending did not: at a start, and after there was no room for it."""

from __future__ import annotations

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import TRANSACTION_ROLLBACK, Entry, EntryError
from rockgate.store.commitlog import CommitLog
from rockgate.store.keyindex import KeyIndex, Loaded, Missed, keys_of


class KeyFeed:
    """Reads the log for the key index."""

    def __init__(self, log: CommitLog, keys: KeyIndex) -> None:
        self._log = log
        self._keys = keys

    def dispatch(self, view: memoryview, entry: Entry) -> None:
        """Index a message entry by its keys; a batch's records are not looked into."""
        if entry.queue_offset >= 0 and not entry.is_batch:
            properties = envelope.properties_of(view, entry)
            self._keys.put_entry(
                entry.topic, properties, entry.position, entry.store_ms, entry.sys_flag
            )

    def catch_up(self, size_max: int) -> bool:
        """Index some of what was missed; say whether there is more."""
        start = self._keys.missed_from
        if start is None:
            return False
        missed: list[Missed] = []
        end = self._log.end
        for view, entry in self._log.walk(max(start, self._log.start)):
            if entry.position - start >= size_max:
                end = entry.position
                break
            found = _keys(view, entry)
            if found:
                missed.append((entry.topic, found, entry.position, entry.store_ms))
        self._keys.catch_up(missed, end=end, is_all=end == self._log.end)
        return self._keys.missed_from is not None

    def load(self, position: int) -> Loaded | None:
        """Return what the log holds at a position, for a query to compare the real key."""
        try:
            found = self._log.read(position)
        except EntryError:
            # A damaged index may point anywhere; what is not an entry is no answer.
            return None
        if found is None or found[1].position != position:
            return None
        view, entry = found
        return Loaded(entry.topic, _keys(view, entry), entry.store_ms)


def _keys(view: memoryview, entry: Entry) -> list[bytes]:
    if entry.queue_offset < 0 or entry.is_batch:
        return []
    if entry.sys_flag & TRANSACTION_ROLLBACK == TRANSACTION_ROLLBACK:
        return []
    return keys_of(envelope.properties_of(view, entry))
