"""Dispatch: from log entries to everything derived from them.

It replays the log for what appends did not update directly, at a start. Each derived index gets
every entry through one method, in log order; dispatching an entry twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import MAGIC_BATCH, MOVED, Entry
from rockgate.protocol.entry.tagcode import tag_code
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.state.fold import Change, State
from rockgate.store.state.topic import Topic
from rockgate.store.state.topics import Topics

TOPIC_ID = b"__TID"
"""Property of a relocated entry: the id of its topic's incarnation, in hex."""
MAX_MS = b"__RMAX"
"""Property of a relocated entry: its unit's running maximum of record timestamps."""
EPOCH = b"__EPOCH"
"""Property of a relocated entry: the epoch in which it was first appended."""

_LAST = 1 << 62  # after every position


class Derived(Protocol):
    """Anything that is derived from the log."""

    @property
    def wants_batches(self) -> bool:
        """Whether it needs batch entries; a walk skips them if no one does."""

    @property
    def wants_messages(self) -> bool:
        """Whether it needs message entries of queues; state entries are always dispatched."""

    def dispatch(self, view: memoryview, entry: Entry) -> None:
        """Process the next entry; its places are relative to `view`."""


def follow(derived: Sequence[Derived], view: memoryview, entry: Entry) -> None:
    """Dispatch one entry to each."""
    for each in derived:
        each.dispatch(view, entry)


class StateFeed:
    """Dispatches to the folds."""

    wants_messages = False

    def __init__(self, state: State) -> None:
        self._state = state
        self.wants_batches = bool(state.batch_folds)

    def dispatch(self, view: memoryview, entry: Entry) -> None:
        """Apply a state entry, or pass a batch to the folds that read batches."""
        if self._state.wants(entry.topic):
            self._state.apply(_change(view, entry))
        elif entry.is_batch and not entry.sys_flag & MOVED:
            for fold in self._state.batch_folds:
                fold.apply_batch(_change(view, entry))


def _change(view: memoryview, entry: Entry) -> Change:
    return Change(
        entry.position,
        entry.store_ms,
        entry.topic,
        entry.queue_id,
        entry.queue_offset,
        entry.sys_flag,
        envelope.properties_of(view, entry),
        view[entry.body_at : entry.body_at + entry.body_size],
    )


class QueueFeed:
    """Dispatches to the consume queues. Who uses it while topics change says so by `forget`."""

    wants_batches = wants_messages = True

    def __init__(
        self, topics: Topics, queues: QueueTable, on_fed: Callable[[Queue], None] | None = None
    ) -> None:
        """`on_fed` is called with the queue of every entry."""
        self._on_fed = on_fed
        self._topics = topics
        self._queues = queues
        self._found: dict[bytes, tuple[int, list[Queue]]] = {}

    def dispatch(self, view: memoryview, entry: Entry) -> None:
        """Add an entry's unit to its queue; state entries and deleted incarnations have none."""
        if entry.queue_offset < 0:
            return
        found = self._found.get(entry.topic)
        if found is None:
            found = self._found[entry.topic] = self._find(entry.topic)
        created_at, queues = found
        if created_at > entry.position or not 0 <= entry.queue_id < len(queues):
            return
        queue = queues[entry.queue_id]
        if self._on_fed is not None:
            self._on_fed(queue)
        if entry.magic == MAGIC_BATCH and not entry.sys_flag & MOVED:
            self._queues.dispatch(queue, entry, 0)
            return
        properties = envelope.properties_of(view, entry)
        code = 0
        if not entry.is_batch and (tags := envelope.get_property(properties, b"TAGS")):
            code = tag_code(tags)
        if not entry.sys_flag & MOVED:
            self._queues.dispatch(queue, entry, code)
        elif owner_of(self._topics, view, entry) is not None:
            max_ms = int(envelope.get_property(properties, MAX_MS) or entry.born_ms)
            self._queues.dispatch_moved(queue, entry, max_ms, code)

    def forget(self, topic: Topic) -> None:
        """Look a topic up again: it was created, deleted, or got more queues."""
        self._found.pop(topic.encoded, None)

    def _find(self, name: bytes) -> tuple[int, list[Queue]]:
        """Return where a topic's incarnation starts, and its queues."""
        topic = self._topics.owner(name, _LAST)
        return (0, []) if topic is None else (topic.created_position, self._queues.of(topic.id))


def owner_of(topics: Topics, view: memoryview, entry: Entry) -> Topic | None:
    """Return the topic that an entry belongs to; None if that incarnation was deleted."""
    topic = topics.owner(entry.topic, entry.position)
    if topic is None or not entry.sys_flag & MOVED:
        return topic
    life = envelope.get_property(envelope.properties_of(view, entry), TOPIC_ID)
    return topic if life == topic.id.hex().encode() else None
