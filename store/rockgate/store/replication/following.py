"""Following: bytes of the primary's log, written at their positions, checked, and applied.

docs/internals/replication.md specifies it. Nothing is applied that was not checked as recovery
checks it, and the end of the log advances by whole groups of entries. What arrived beyond that lies
behind the end, as after a crash; the next connection overwrites it, and a stop zeroes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from rockgate.protocol.entry import CONTINUES
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.beginning import Beginning
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.flusher import Flusher
from rockgate.store.log.page_allocation import Allocator
from rockgate.store.log.recovery import zero
from rockgate.store.log.segments import Segments
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.replication.checking import checked_to, written_to
from rockgate.store.state.epochs import Epochs
from rockgate.store.state.fold import State
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.topics import Topics
from rockgate.store.write.append import Appender
from rockgate.store.write.dispatch import Derived, QueueFeed, StateFeed, follow

APPLIED_BYTES: Final = 64 << 10
"""How much is applied between two pauses."""


class Parts(Protocol):
    """The parts of a store that a replica writes to and feeds."""

    log: CommitLog
    allocator: Allocator
    flusher: Flusher
    commit: Commit
    appender: Appender
    state: State
    topics: Topics
    queues: QueueTable
    keys: KeyIndex | None
    epochs: Epochs
    snapshots: Snapshots
    beginning: Beginning
    on_flushed: Callable[[int], None]

    @property
    def segments(self) -> Segments:
        """The log's files."""


class Following:
    """The log of a replica. Used on the store's thread; the store has no epoch of its own."""

    def __init__(self, parts: Parts) -> None:
        """Take over a store that was opened to read; StoreFull without space for `abort`."""
        assert parts.appender.is_read_only, "a replica appends nothing"
        self._parts = parts
        self._log, self._segments = parts.log, parts.segments
        parts.beginning.step()
        self.directory = parts.beginning.directory
        self.received = self.checked = self._written = parts.log.end
        self._announced = 0
        self._changed: dict[Queue, None] = {}
        feed = QueueFeed(parts.topics, parts.queues, self._note)
        parts.topics.on_created.append(feed.forget)
        parts.topics.on_deleted.append(feed.forget)
        parts.topics.on_grown.append(lambda topic, had: feed.forget(topic))
        self._derived: list[Derived] = [StateFeed(parts.state), feed]
        parts.commit.replicate(_known_committed(parts))

    def _note(self, queue: Queue) -> None:
        self._changed[queue] = None

    @property
    def applied(self) -> int:
        """The end of the log: everything before it is in folds and queues."""
        return self._log.end

    @property
    def on_disk(self) -> int:
        """Everything before this position is on disk."""
        return self._parts.flusher.flushed

    # Receiving

    def begin(self) -> None:
        """Expect the bytes from the end of the log on: a connection begins."""
        while self.apply():
            pass
        self.received = self.checked = self._log.end

    def receive(self, position: int, data: memoryview) -> bool:
        """Write bytes that follow what was received; say whether that was possible now.

        It is not while the segment before is not applied. StoreCorrupt for bytes of another place
        or across the end of a segment, StoreFull without space for the next segment.
        """
        segment = self._segments.active
        if position == self.received == segment.end and data:
            if self._log.end < position:
                return False
            segment = self._segments.roll()
        self.received = written_to(segment, position, self.received, data)
        self._written = max(self._written, self.received)
        self.checked = checked_to(segment, self.checked, self.received)
        return True

    # Applying

    def apply(self, size_max: int = APPLIED_BYTES) -> bool:
        """Apply about as many bytes of what is checked; say whether there are more."""
        log, start = self._log, self._log.end
        if start >= self.checked:
            return False
        keys = self._parts.keys
        if keys is not None and keys.missed_from is None:
            # The index catches up in upkeep: batches may be slow to decode.
            keys.missed_from = start
        walk = log.walk(start, self.checked)
        end = start
        for view, entry in walk:
            follow(self._derived, view, entry)
            log.last_store_ms = max(log.last_store_ms, entry.store_ms)
            if not entry.sys_flag & CONTINUES:
                end = entry.position + entry.total_size
                if end - start >= size_max:
                    break
        else:
            end = self.checked  # behind a filler, where no entry ends
        log.end = end
        if end >= self._segments.prepare_at:
            self._parts.allocator.wake()
        changed, self._changed = self._changed, {}
        for queue in changed:
            self._parts.appender.on_append(queue)
        self._commit()
        return end < self.checked

    def committed(self, position: int) -> None:
        """Show what the primary says is committed, as far as it is applied."""
        self._announced = max(self._announced, position)
        self._commit()

    def _commit(self) -> None:
        parts = self._parts
        if parts.commit.advance(min(self._announced, self._log.end)):
            parts.on_flushed(parts.commit.position)

    # Ending

    def stop(self) -> None:
        """Apply what is checked, and zero the rest durably: a clean start does not look there."""
        while self.apply():
            pass
        segment = self._segments.active
        if segment.end > self._log.end and self._written > self._log.end:
            at = max(0, self._log.end - segment.start)
            zero(segment.mapping, at, min(segment.size, self._written - segment.start))
        self._written = self.received = self.checked = self._log.end


def _known_committed(parts: Parts) -> int:
    """Return what is known to be committed before a primary says so.

    A snapshot has its name and units are in an index file only once they are.
    """
    newest = parts.snapshots.newest
    known = max(parts.queues.indexed, 0 if newest is None else newest.replay_from)
    return min(parts.log.end, known)
