"""Reads the entries of a queue as the server does: runs of messages, runs of batches."""

from __future__ import annotations

from rockgate.protocol import entry as envelope
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.read.slices import Slice
from rockgate.store.store import Store

END = 1 << 62
"""After everything that could be visible: the store limits the read."""


def entries(store: Store, queue: Queue, offset: int, size_max: int) -> list[Slice]:
    """Return entries from the one that holds `offset` on, whole ones, by total size.

    At least one is returned if there is any. An entry may start before the offset and, where
    offsets are missing, after it.
    """
    found: list[Slice] = []
    left = size_max
    while True:
        run = store.reader.messages(
            queue, offset, END, max(left, 0), at_least_one=not found, cold=None
        )
        run = run or _batch(store, queue, offset)
        for each in run:
            left -= each.unit.size
            if left < 0 and found:
                return found
            found.append(each)
            offset = each.unit.base + each.unit.offset_count
        if not run:
            return found


def _batch(store: Store, queue: Queue, offset: int) -> list[Slice]:
    """The batch that holds an offset, if there is one and it is visible."""
    read = store.reader.batches(queue, offset, END, 0, at_least_one=True, cold=None)
    if not read.bodies and not read.is_at_delayed:
        return []
    unit = queue.find(offset)
    assert unit is not None
    found = store.reader.entry(queue, unit)
    if read.bodies:
        assert envelope.body_of(found.entry) == read.bodies[0]
    return [found]
