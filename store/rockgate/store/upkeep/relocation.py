"""Relocation: appends live entries again, so that their segment can be deleted.

A relocated entry is the old one at another position: offset, times, hosts, flags, body and
properties are unchanged. Three properties are added, which are not known otherwise once the old
segment is deleted: the id of the topic's incarnation, the epoch of the first append, and the unit's
running maximum of record timestamps.

Every entry is verified first: one whose checksums do not match stops the relocation, because a copy
would get valid ones. A job loads entries from disk before they are touched on the store's thread,
and they are appended a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import CONTINUES, INDEXED, MOVED, Entry, EntryError
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.commitlog import Draft, Written
from rockgate.store.log.segments import Segment
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit, UnitFields
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.state.epochs import Epochs
from rockgate.store.upkeep.usage import Usage
from rockgate.store.workers import Jobs, run_job
from rockgate.store.write.dispatch import EPOCH, MAX_MS, TOPIC_ID

SLICE_BYTES: Final = 256 << 10
SLICE_COUNT: Final = 25
"""Limits of what is relocated between two pauses: under a millisecond of work."""
_FETCH_BYTES: Final = 1 << 20
_FETCH_COUNT: Final = 256


class Keys(Protocol):
    """The key index, as relocation uses it."""

    def put_entry(self, topic: bytes, properties: bytes, position: int, store_ms: int) -> None:
        """Index an entry's keys."""

    def put_batch(self, topic: bytes, body: memoryview, position: int, store_ms: int) -> None:
        """Index a batch's records by their keys."""


class _Picked(NamedTuple):
    queue: Queue
    unit: UnitFields


class Mover:
    """Empties segments. Owned by retention, and used on its thread."""

    def __init__(
        self,
        *,
        queues: QueueTable,
        usage: Usage,
        epochs: Epochs,
        keys: Keys | None,
        jobs: Callable[[], Jobs],
        path: Callable[[Segment], str],
        append: Callable[[Draft], Written],
    ) -> None:
        self._append = append
        self._queues = queues
        self._usage = usage
        self._epochs = epochs
        self._keys = keys
        self._jobs = jobs
        self._path = path
        self.moved_count = 0
        self.moved_bytes = 0

    def empty(self, segment: Segment) -> Iterator[bool]:
        """Append the live entries of a sealed segment again, with a pause after every slice."""
        picked: list[_Picked] = []
        size = 0
        index = self._queues.index(segment.start)
        for run in index.runs():
            for live in self._usage.live(index, run):
                for unit in live.units:
                    picked.append(_Picked(live.queue, unit))
                    size += unit[2]
                    if size >= _FETCH_BYTES or len(picked) >= _FETCH_COUNT:
                        yield from self._move_all(segment, picked)
                        picked, size = [], 0
        yield from self._move_all(segment, picked)

    def _move_all(self, segment: Segment, picked: list[_Picked]) -> Iterator[bool]:
        if not picked:
            return
        places = [(unit[1] - segment.start, unit[2]) for _, unit in picked]
        yield from run_job(self._jobs(), lambda: _prefetch(segment, places))
        size = count = 0
        for queue, unit in picked:
            # It may have expired during a pause.
            if self._usage.is_live(queue, unit):
                self.move_entry(segment, queue, unit)
                size += unit[2]
                count += 1
            if size >= SLICE_BYTES or count >= SLICE_COUNT:
                yield True
                size = count = 0

    def move_entry(self, segment: Segment, queue: Queue, unit: UnitFields) -> None:
        """Append a live entry again; a damaged one stays where it is."""
        base, position, _, _, store_ms, max_ms, tag_code = unit
        view = segment.mapping.view
        try:
            entry = envelope.read(view, position - segment.start, segment.size)
            envelope.check(view, entry)
        except EntryError as error:
            raise StoreCorrupt(self._path(segment), position, error.reason) from error
        if (entry.queue_offset, entry.queue_id) != (base, queue.queue_id):
            reason = f"no entry for offset {base} of queue {queue.queue_id}"
            raise StoreCorrupt(self._path(segment), position, reason)
        properties = own_properties(view, entry)
        if not entry.sys_flag & MOVED:
            properties += marks_of(queue, self._epochs.at(entry.position), max_ms)
        written = self._append(moved_draft(view, entry, properties))
        moved = Unit(
            base, written.position, written.size, entry.offset_count, store_ms, max_ms, tag_code
        )
        self._queues.put_moved(queue, moved)
        if self._keys is not None:
            if not entry.is_batch:
                self._keys.put_entry(queue.topic, properties, written.position, store_ms)
            elif entry.sys_flag & INDEXED:
                body = view[entry.body_at : entry.body_at + entry.body_size]
                self._keys.put_batch(queue.topic, body, written.position, store_ms)
        self.moved_count += 1
        self.moved_bytes += written.size


def marks_of(queue: Queue, epoch: int, max_ms: int) -> bytes:
    """Return the properties of a relocated entry that an original does not have."""
    return b"%b\x01%b\x02%b\x01%d\x02%b\x01%d\x02" % (
        TOPIC_ID,
        queue.topic_id.hex().encode(),
        MAX_MS,
        max_ms,
        EPOCH,
        epoch,
    )


def _prefetch(segment: Segment, places: list[tuple[int, int]]) -> None:
    for at, size in places:
        segment.mapping.prefetch(at, size)


def own_properties(view: memoryview, entry: Entry) -> bytes:
    """Return the properties without those that the log adds."""
    properties = envelope.properties_of(view, entry)
    if entry.is_batch:
        return properties[len(envelope.batch_properties(entry.offset_count, entry.queue_offset)) :]
    return properties


def moved_draft(view: memoryview, entry: Entry, properties: bytes) -> Draft:
    """Return an entry as it is appended again."""
    return Draft(
        topic=entry.topic,
        queue_id=entry.queue_id,
        offset=entry.queue_offset,
        body=view[entry.body_at : entry.body_at + entry.body_size],
        properties=properties,
        batch_count=entry.offset_count if entry.is_batch else 0,
        born_ms=entry.born_ms,
        born_host=entry.born_host,
        flag=entry.flag,
        # The group was complete: its entries are independent now.
        sys_flag=entry.sys_flag & ~CONTINUES | MOVED,
        reconsume_times=entry.reconsume_times,
        prepared_offset=entry.prepared_offset,
        store_ms=entry.store_ms,
        store_host=entry.store_host,
    )
