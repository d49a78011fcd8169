"""All consume queues, and the index files behind them.

The table is an index over the log like any other: `dispatch` feeds it an entry. On the append path
the store feeds a queue directly, which must come to the same.

Indexing is the work of one thread in three steps, so that the loop never waits for a disk:
`plan` (on the loop) says which stretch is due, `write` (in the thread) writes its file from slices
of the queues' arrays, and `adopt` (on the loop) lets go of the memory that a sealed file replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rockgate.protocol.entry import Entry
from rockgate.store.consumequeue import Queue
from rockgate.store.files import Directory
from rockgate.store.queueindex import (
    IndexDamaged,
    IndexFile,
    Unit,
    index_name,
    parse_name,
    write_index,
)


class Stretch(NamedTuple):
    """A stretch of the log whose units are to be written, and the queues that may have some."""

    start: int
    end: int
    is_segment: bool
    queues: list[Queue]


class QueueTable:
    """The queues by topic id and queue id."""

    def __init__(self, directory: Directory, segment_size: int) -> None:
        self._directory = directory
        self._segment_size = segment_size
        self._topics: dict[bytes, list[Queue]] = {}
        self._indexes: dict[int, IndexFile] = {}
        self._tails: list[str] = []
        self._dirty: list[Queue] = []
        self._recent: dict[Queue, None] = {}
        self.indexed = 0
        """The position up to which units lie in index files, so that a start need not scan."""
        self._sealed = 0

    # Queues

    def create(self, topic: bytes, topic_id: bytes, queue_count: int) -> list[Queue]:
        """Make a topic's queues, or more of them."""
        queues = self._topics.setdefault(topic_id, [])
        for queue_id in range(len(queues), queue_count):
            queues.append(Queue(topic, topic_id, queue_id, self._indexes))
        return queues

    def remove(self, topic_id: bytes) -> None:
        """Forget a topic's queues; their units in index files are never looked at again."""
        self._topics.pop(topic_id, None)

    def of(self, topic_id: bytes) -> list[Queue]:
        """Return a topic's queues by queue id; empty for an unknown topic."""
        return self._topics.get(topic_id, [])

    def __iter__(self) -> Iterator[Queue]:
        for queues in list(self._topics.values()):
            yield from queues

    # Feeding

    def note(self, queue: Queue) -> None:
        """Remember that a queue got a unit since the last index was written."""
        queue.is_dirty = True
        self._dirty.append(queue)

    def dispatch(self, queue: Queue, entry: Entry, tag_code: int) -> None:
        """Feed an entry as it was appended; one that the queue has already is passed over."""
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
        """Feed an entry that was appended again: it keeps its offset and changes its position."""
        queue.add_moved(
            Unit(
                entry.queue_offset,
                entry.position,
                entry.total_size,
                entry.offset_count,
                entry.store_ms,
                max_ms,
                tag_code,
            )
        )
        if not queue.is_dirty:
            self.note(queue)

    # Writing index files

    def plan(self, log_end: int) -> Stretch | None:
        """Return what is to be written up to a flushed position: a segment's rest comes first."""
        segment_end = self._sealed + self._segment_size
        if log_end >= segment_end:
            self._recent.update(dict.fromkeys(self._take_dirty(segment_end)))
            return Stretch(self._sealed, segment_end, True, list(self._recent))
        if log_end > self.indexed:
            queues = self._take_dirty(log_end)
            self._recent.update(dict.fromkeys(queues))
            return Stretch(self.indexed, log_end, False, queues)
        return None

    def _take_dirty(self, end: int) -> list[Queue]:
        """Return the queues that got units; one with units behind the end is still to be told."""
        dirty = self._dirty
        self._dirty = [queue for queue in dirty if queue.last_position >= end]
        for queue in dirty:
            queue.is_dirty = False
        for queue in self._dirty:
            queue.is_dirty = True
        return dirty

    def write(self, stretch: Stretch) -> None:
        """Indexing thread: write the file of a stretch durably."""
        start, end = stretch.start, stretch.end
        write_index(
            self._directory,
            start,
            end,
            (
                (queue.topic_id, queue.queue_id, queue.units_between(start, end))
                for queue in stretch.queues
            ),
        )

    def give_back(self, stretch: Stretch) -> None:
        """Take note that a file could not be written: its queues are still to be indexed."""
        for queue in stretch.queues:
            if not queue.is_dirty:
                self.note(queue)

    def adopt(self, stretch: Stretch) -> None:
        """Take note of a written file; a sealed one replaces memory and tails of its segment."""
        name = index_name(stretch.start, stretch.end)
        self.indexed = max(self.indexed, stretch.end)
        if not stretch.is_segment:
            self._tails.append(name)
            return
        index = IndexFile(self._directory, name, whole=False)
        self._indexes[stretch.start] = index
        runs = {(run.topic_id, run.queue_id): run for run in index.runs()}
        for queue in stretch.queues:
            run = runs.get((queue.topic_id, queue.queue_id))
            queue.seal(stretch.start, stretch.end, run)
        # A queue with units behind the segment's end is dirty, so it is not forgotten.
        self._recent = {}
        self._sealed = stretch.end
        self._remove(self._tails)
        self._tails = []

    def _remove(self, names: Iterable[str]) -> None:
        removed = False
        for name in names:
            self._directory.remove(name)
            removed = True
        if removed:
            self._directory.sync()

    def drop_segment(self, start: int) -> None:
        """Forget a segment that is gone, with its index file."""
        index = self._indexes.pop(start, None)
        for queue in self:
            queue.drop_segment(start)
        if index is not None:
            index.close()
            self._remove([index.name])

    # Starting

    def load(self, log_start: int, flushed: int) -> int:
        """Read every index that fits the log, and return the position to scan from.

        Sealed ones must cover the segments from the first on without a gap; what follows a gap,
        passes the flushed position or is damaged is removed, for a scan makes it again.
        """
        found: dict[int, list[tuple[int, str]]] = {}
        stale = []
        for name in self._directory.names():
            stretch = parse_name(name)
            if stretch is None or stretch[0] < log_start or stretch[1] > flushed:
                stale.append(name)
            else:
                found.setdefault(stretch[0], []).append((stretch[1], name))
        position = log_start
        while ends := found.pop(position, None):
            ends.sort(reverse=True)
            whole_segment = ends[0][0] - position == self._segment_size
            if not self._load_one(ends[0][1], whole_segment):
                stale.extend(name for _, name in ends)
                break
            stale.extend(name for _, name in ends[1:])
            if whole_segment:
                self._sealed = ends[0][0]
            else:
                self._tails.append(ends[0][1])
            position = ends[0][0]
        stale.extend(name for ends in found.values() for _, name in ends)
        self._remove(stale)
        self.indexed = position
        self._sealed = position - (position - log_start) % self._segment_size
        return position

    def _load_one(self, name: str, whole_segment: bool) -> bool:
        try:
            index = IndexFile(self._directory, name, whole=not whole_segment)
        except IndexDamaged:
            return False
        if whole_segment:
            self._indexes[index.start] = index
        for run in index.runs():
            queues = self._topics.get(run.topic_id)
            # A topic that is gone, or an earlier life of one: nobody can ask for it.
            if queues is None or run.queue_id >= len(queues):
                continue
            queue = queues[run.queue_id]
            if whole_segment:
                queue.add_run(index.start, run)
            else:
                queue.load(index.units(run))
                self._recent[queue] = None
        if not whole_segment:
            index.close()
        return True

    def close(self) -> None:
        """Let go of every index file."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()
