"""All consume queues, and their index files.

The table is derived from the log: `dispatch` adds an entry. On the append path the store adds to a
queue directly, with the same result.

Indexing has four steps, so that the store's thread never waits for a disk and never works for long:
`plan` (store's thread) returns the range that is due, `write` (worker thread) writes its file from
slices of the queues' arrays, `adopt` (store's thread, some queues at a time) releases the memory
that a sealed file replaces, and `clean` (worker thread) removes obsolete files.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rockgate.protocol.entry import Entry
from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import Directory
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import (
    IndexDamaged,
    IndexFile,
    Run,
    Unit,
    index_name,
    parse_name,
    write_index,
)
from rockgate.store.queues.queueruns import Indexes

_log = logging.getLogger(__name__)

_TAILS_MAX = 8
_ADOPT_COUNT = 256

Rescan = Callable[[int, int], object]
"""Adds every entry of a range of the log, which is known to be flushed, to the table."""


class Stretch(NamedTuple):
    """A range of the log whose units must be written, and the queues that may have some."""

    start: int
    end: int
    is_segment: bool
    queues: list[Queue]


class _Adoption:
    """A sealed file that queues are being switched to."""

    def __init__(self, index: IndexFile) -> None:
        self.index = index
        self.runs: dict[tuple[bytes, int], list[Run]] = {}
        for run in index.runs():
            self.runs.setdefault((run.topic_id, run.queue_id), []).append(run)
        self.done_count = 0


class _QueuesByTopic(dict[bytes, list[Queue]]):
    def __missing__(self, topic_id: bytes) -> list[Queue]:
        return []


class QueueTable:
    """The queues by topic id and queue id."""

    def __init__(self, directory: Directory, segment_size: int) -> None:
        self._directory = directory
        self._segment_size = segment_size
        self._topics = _QueuesByTopic()
        self.of = self._topics.__getitem__
        """Return a topic's queues by queue id; empty for an unknown topic.

        The dictionary's own method, because every request calls it for each topic.
        """
        self._indexes = Indexes()
        self._tails: list[str] = []
        self._dirty: list[Queue] = []
        self._recent: dict[Queue, None] = {}
        self._adoption: _Adoption | None = None
        # Filled on the store's thread and emptied on a worker thread.
        self._unneeded: deque[str] = deque()
        self.indexed = 0
        """The position up to which units are in index files, so that a start need not scan."""
        self.sealed = 0
        """Segments before this position have their index files; only these may be dropped."""

    # Queues

    def create(self, topic: bytes, topic_id: bytes, queue_count: int) -> list[Queue]:
        """Create a topic's queues, or add more."""
        queues = self._topics.setdefault(topic_id, [])
        for queue_id in range(len(queues), queue_count):
            queues.append(Queue(topic, topic_id, queue_id, self._indexes))
        return queues

    def advance(self, topic_id: bytes, starts: Mapping[int, int]) -> None:
        """Advance the log starts of a topic's queues, by queue id; they never decrease."""
        queues = self.of(topic_id)
        for queue_id, offset in starts.items():
            queue = queues[queue_id]
            queue.log_start = max(queue.log_start, offset)
            queue.next_offset = max(queue.next_offset, queue.log_start)

    def remove(self, topic_id: bytes) -> None:
        """Remove a topic's queues; their units in index files are never read again."""
        self._topics.pop(topic_id, None)

    def find(self, topic_id: bytes, queue_id: int) -> Queue | None:
        """Return a queue; None if its topic was deleted, or has no such queue."""
        queues = self._topics.get(topic_id, [])
        return queues[queue_id] if 0 <= queue_id < len(queues) else None

    def __contains__(self, queue: Queue) -> bool:
        return self.find(queue.topic_id, queue.queue_id) is queue

    def __iter__(self) -> Iterator[Queue]:
        for queues in list(self._topics.values()):
            yield from queues

    # Adding entries

    def note(self, queue: Queue) -> None:
        """Record that a queue has a new unit since the last index was written."""
        queue.is_dirty = True
        self._dirty.append(queue)

    def dispatch(self, queue: Queue, entry: Entry, tag_code: int) -> None:
        """Add an entry as its append did; skip it if the queue has it already."""
        if entry.queue_offset < queue.next_offset:
            return
        queue.next_offset = entry.queue_offset
        queue.add(
            entry.position,
            entry.total_size,
            entry.offset_count,
            entry.store_ms,
            entry.born_ms,
            tag_code,
        )
        if not queue.is_dirty:
            self.note(queue)

    def dispatch_moved(self, queue: Queue, entry: Entry, max_ms: int, tag_code: int) -> None:
        """Add a relocated entry: it has an old offset and a new position."""
        self.put_moved(
            queue,
            Unit(
                entry.queue_offset,
                entry.position,
                entry.total_size,
                entry.offset_count,
                entry.store_ms,
                max_ms,
                tag_code,
            ),
        )

    def put_moved(self, queue: Queue, unit: Unit) -> None:
        """Replace the unit of an entry that was relocated."""
        queue.add_moved(unit)
        if not queue.is_dirty:
            self.note(queue)

    def index(self, segment_start: int) -> IndexFile:
        """Return the index file of a sealed segment."""
        return self._indexes[segment_start]

    # Writing index files

    def plan(self, log_end: int) -> Stretch | None:
        """Return what to write up to a flushed position; the rest of a segment comes first."""
        segment_end = self.sealed + self._segment_size
        if log_end >= segment_end:
            self._recent.update(dict.fromkeys(self._take_dirty(segment_end)))
            return Stretch(self.sealed, segment_end, True, list(self._recent))
        if log_end <= self.indexed:
            return None
        queues = self._take_dirty(log_end)
        self._recent.update(dict.fromkeys(queues))
        if len(self._tails) < _TAILS_MAX:
            return Stretch(self.indexed, log_end, False, queues)
        # A slow log would accumulate thousands of small files before its segment is full.
        return Stretch(self.sealed, log_end, False, list(self._recent))

    def _take_dirty(self, end: int) -> list[Queue]:
        """Return the queues with new units; those with units after the end stay dirty."""
        dirty, self._dirty = self._dirty, []
        for queue in dirty:
            if queue.last_position < end:
                queue.is_dirty = False
            else:
                self._dirty.append(queue)
        return dirty

    def write(self, stretch: Stretch) -> None:
        """Write the file of a range durably, on a worker thread."""
        start, end, is_segment, queues = stretch
        runs = (run for queue in queues for run in queue.packed_between(start, end))
        write_index(self._directory, start, end, runs)
        if is_segment:
            index = IndexFile(self._directory, index_name(start, end), whole=False)
            self._adoption = _Adoption(index)

    def give_back(self, stretch: Stretch) -> None:
        """Record that a file could not be written: its queues must still be indexed."""
        for queue in stretch.queues:
            if not queue.is_dirty:
                self.note(queue)

    def adopt(self, stretch: Stretch) -> bool:
        """Register a written file; say whether to call again, for more queues.

        A sealed file replaces memory, and the tail files of its segment.
        """
        if stretch.is_segment and self._seal_some(stretch):
            return True
        if stretch.is_segment:
            # A queue with units after the segment's end is dirty, so it is not lost.
            self._recent = {}
            self.sealed = stretch.end
        if stretch.start <= self.sealed:
            self._unneeded += self._tails
            self._tails = []
        if not stretch.is_segment:
            self._tails.append(index_name(stretch.start, stretch.end))
        self.indexed = max(self.indexed, stretch.end)
        return False

    def _seal_some(self, stretch: Stretch) -> bool:
        adoption = self._adoption
        assert adoption is not None, "a stretch is written before it is adopted"
        self._indexes[stretch.start] = adoption.index
        queues = stretch.queues[adoption.done_count : adoption.done_count + _ADOPT_COUNT]
        for queue in queues:
            runs = adoption.runs.get((queue.topic_id, queue.queue_id), [])
            queue.seal(stretch.start, stretch.end, runs)
        adoption.done_count += len(queues)
        if adoption.done_count < len(stretch.queues):
            return True
        self._adoption = None
        return False

    def clean(self) -> None:
        """Remove obsolete or damaged files, on a worker thread."""
        names = []
        while self._unneeded:
            names.append(self._unneeded.popleft())
        for index in list(self._indexes.values()):
            if index.is_damaged and not index.is_removed:
                # The next start rebuilds it; open files stay open.
                index.is_removed = True
                names.append(index.name)
        self._remove(names)

    def _remove(self, names: list[str]) -> None:
        for name in names:
            self._directory.remove(name)
        if names:
            self._directory.sync()

    def drop_segment(self, start: int) -> None:
        """Drop the oldest segment, whose file is deleted already; `clean` removes its index."""
        assert start + self._segment_size <= self.sealed, "a segment is sealed before it goes"
        index = self._indexes.pop(start, None)
        self._indexes.gone_before = start + self._segment_size
        if index is not None:
            index.close()
            if not index.is_removed:
                self._unneeded.append(index.name)

    # Starting

    def load(self, log_start: int, flushed: int, rescan: Rescan | None = None) -> int:
        """Read every index that matches the log, and return the position to scan from.

        If the index of a segment is missing or damaged, `rescan` adds its entries and it is written
        again before the next one is read, because the order matters. Without `rescan`, that is the
        position to scan from. Indexes that exceed the flushed position are removed, because they
        may contain entries that were lost.
        """
        found = self._find_files(log_start, flushed)
        self._indexes.gone_before = self.sealed = self.indexed = log_start
        while True:
            segment_end = self.sealed + self._segment_size
            if self._load_at(self.indexed, segment_end, found):
                continue
            if rescan is None or segment_end > flushed:
                break
            # The new file may get the name of a damaged one.
            self.clean()
            rescan(self.indexed, segment_end)
            stretch = self.plan(segment_end)
            assert stretch is not None, "a segment that was scanned is due"
            try:
                self.write(stretch)
            except StoreFull as error:
                # A checkpoint writes it once there is space; until then its units are in memory.
                _log.warning("Queue index is not written until there is space: %s", error)
                self.give_back(stretch)
                break
            while self.adopt(stretch):
                pass
        self._unneeded += [name for ends in found.values() for _, name in ends]
        self.clean()
        return self.indexed

    def _find_files(self, log_start: int, flushed: int) -> dict[int, list[tuple[int, str]]]:
        """Return usable files by start, longest last; others of ours become obsolete."""
        found: dict[int, list[tuple[int, str]]] = {}
        for name in self._directory.names():
            stretch = parse_name(name.removesuffix(".new"))
            if stretch is None:
                continue
            if name.endswith(".new") or stretch[0] < log_start or stretch[1] > flushed:
                self._unneeded.append(name)
            else:
                found.setdefault(stretch[0], []).append((stretch[1], name))
        for ends in found.values():
            ends.sort()
        return found

    def _load_at(
        self, position: int, segment_end: int, found: dict[int, list[tuple[int, str]]]
    ) -> bool:
        """Load the longest valid index that starts at a position; say whether there was one."""
        files = found.get(position, [])
        while files:
            end, name = files.pop()
            is_segment = (position, end) == (self.sealed, segment_end)
            if (end >= segment_end and not is_segment) or not self._load_one(name, is_segment):
                self._unneeded.append(name)
                continue
            self.indexed = end
            if is_segment:
                self._unneeded += self._tails
                self._tails = []
                self._recent = {}
                self.sealed = end
            else:
                self._tails.append(name)
            return True
        return False

    def _load_one(self, name: str, is_segment: bool) -> bool:
        try:
            index = IndexFile(self._directory, name, whole=not is_segment)
        except IndexDamaged:
            return False
        if is_segment:
            self._indexes[index.start] = index
        for run in index.runs():
            queues = self._topics.get(run.topic_id)
            # The topic, or this incarnation of it, was deleted.
            if queues is None or not 0 <= run.queue_id < len(queues):
                continue
            queue = queues[run.queue_id]
            if is_segment:
                queue.add_run(index.start, run)
            else:
                queue.load(index.units(run.at, run.unit_count), is_moved=run.is_moved)
                self._recent[queue] = None
        if not is_segment:
            index.close()
        return True

    def close(self) -> None:
        """Release every index file."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()
