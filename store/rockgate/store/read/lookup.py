"""Looking up entries by position or by key, as far as a reader of their queue sees them.

Positions and keys come from clients and from an index that may be damaged, so everything is
compared with the log and the queue before it is returned.
"""

from __future__ import annotations

from rockgate.protocol.entry import Entry, EntryError
from rockgate.store.keys.entrykeys import BatchKeys, loader
from rockgate.store.keys.keyindex import FOREVER_MS, KeyIndex
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.read.reader import Reader
from rockgate.store.read.slices import Slice
from rockgate.store.state.topics import Topics
from rockgate.store.write.dispatch import owner_of


class Lookup:
    """Finds entries. Owned by the store, and stateless."""

    def __init__(
        self,
        *,
        log: CommitLog,
        topics: Topics,
        queues: QueueTable,
        reader: Reader,
        keys: KeyIndex | None,
    ) -> None:
        self._log = log
        self._topics = topics
        self._queues = queues
        self._reader = reader
        self._keys = keys

    def entry(self, position: int) -> tuple[Queue, Slice] | None:
        """Return the entry that starts at a position, and its queue; None if none is visible there.

        Any number is accepted. The first offsets of a batch may be deleted, and the visible ones
        end at the high watermark: the caller checks the offset it needs.
        """
        try:
            found = self._log.read(position) if position >= 0 else None
        except EntryError:
            return None
        if found is None:
            return None
        view, entry = found
        visible = self._visible(view, entry)
        if visible is None:
            return None
        queue, unit = visible
        return queue, Slice(unit, view[entry.start : entry.end])

    def stored_ms(self, position: int) -> int | None:
        """Return when the entry at a position was stored, of any kind; None if there is none."""
        found = self._log.read(position)
        return None if found is None else found[1].store_ms

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
        """Return positions of entries with a unique key or one of KEYS, newest first.

        `batch_keys` returns the keys of a batch at a position; without it, batches are decoded.
        """
        if self._keys is None:
            return []
        load = loader(
            self._log,
            self._log.end,
            lambda view, entry: self._visible(view, entry) is not None,
            self._keys.record_keys,
            batch_keys,
        )
        return self._keys.query(
            topic, key, load=load, limit=limit, begin_ms=begin_ms, end_ms=end_ms
        )

    def _visible(self, view: memoryview, entry: Entry) -> tuple[Queue, Unit] | None:
        """Return queue and unit of an entry if it is the one that a reader of the queue gets."""
        topic = owner_of(self._topics, view, entry)
        queue = self._queues.find(topic.id, entry.queue_id) if topic is not None else None
        if queue is None:
            return None
        offset = entry.queue_offset
        if offset + entry.offset_count <= queue.log_start:
            return None
        if offset >= self._reader.high_watermark(queue):
            return None
        # While an entry and its relocated copy both exist, only one of them counts.
        unit = queue.find(max(offset, queue.log_start))
        if unit is None or unit.position != entry.position:
            return None
        return queue, unit
