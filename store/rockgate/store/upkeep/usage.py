"""Usage: which bytes of a sealed segment are still live.

A unit is live while its topic's incarnation exists, its offsets are not all below the queue's log
start, and no later entry has replaced it (it was not relocated). Below the log start it stays live
while a keeper needs it: a delayed message, an undecided half message. Everything else in a segment
is dead: expired and deleted messages, entries of folded state, which snapshots cover, and the
filler.

A segment is accounted once, and again when something in it may have died: whoever advances a log
start or deletes a topic touches the queues first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from rockgate.store.log.segments import Segment
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import BLOCK_UNITS, UNIT, IndexFile, Run, UnitFields
from rockgate.store.queues.queuetable import QueueTable

_SLICE_COST: Final = 1_000
_RUN_COST: Final = 10
_TOUCH_COST: Final = 5


class Retainer(Protocol):
    """Something that needs messages whatever their age."""

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        """Say whether it needs any offset from `first` up to, but excluding, `end`."""


class Live(NamedTuple):
    """Live units of one queue in a segment."""

    queue: Queue
    units: list[UnitFields]
    is_held: bool
    """Whether a keeper needs one of them."""


class Usage:
    """The live bytes of every sealed segment. Owned by retention, and used on its thread."""

    def __init__(self, queues: QueueTable) -> None:
        self._queues = queues
        self.retainers: list[Retainer] = []
        self._live: dict[int, int] = {}
        self._held: set[int] = set()
        self._touched: dict[Queue, int] = {}
        self._changed: set[int] = set()

    def live_bytes(self, segment: Segment) -> int | None:
        """Return the live bytes as last accounted; None if something changed since."""
        return self._live.get(segment.start)

    # Recording changes

    def touch(self, queue: Queue) -> None:
        """Record a queue whose log start is about to advance, or whose topic is being deleted."""
        self._touched.setdefault(queue, queue.log_start)

    def discard(self, segment_start: int) -> None:
        """Record that an entry of a segment was replaced by a later one."""
        self._live.pop(segment_start, None)
        self._changed.add(segment_start)

    def forget(self, segment: Segment) -> None:
        """Drop a segment."""
        self._live.pop(segment.start, None)
        self._changed.discard(segment.start)
        self._held.discard(segment.start)

    # Accounting

    def weigh(self, segments: Sequence[Segment]) -> Iterator[bool]:
        """Account the segments that were touched or are new, with a pause after every slice."""
        cost = 0
        while self._touched:
            queue, was = self._touched.popitem()
            is_gone = queue not in self._queues
            for start in queue.segments(was, queue.next_offset if is_gone else queue.log_start):
                self._live.pop(start, None)
            cost += _TOUCH_COST
            if cost >= _SLICE_COST:
                yield True
                cost = 0
        for start in self._held:
            self._live.pop(start, None)
        self._held.clear()
        for segment in segments:
            if segment.start not in self._live:
                yield from self._weigh(segment)

    def _weigh(self, segment: Segment) -> Iterator[bool]:
        self._changed.discard(segment.start)
        index = self._queues.index(segment.start)
        index.prefetch()
        yield True
        cost = size = 0
        for run in index.runs():
            cost += _RUN_COST
            for live in self.live(index, run):
                size += sum(fields[2] for fields in live.units)
                cost += BLOCK_UNITS
                if live.is_held:
                    self._held.add(segment.start)
                if cost >= _SLICE_COST:
                    yield True
                    cost = 0
            if cost >= _SLICE_COST:
                yield True
                cost = 0
        if segment.start not in self._changed:
            self._live[segment.start] = size

    def live(self, index: IndexFile, run: Run) -> Iterator[Live]:
        """Yield the live units of a run, a block at a time; the caller may pause."""
        at, end = run.at, run.at + run.unit_count
        while at < end:
            queue = self._queues.find(run.topic_id, run.queue_id)
            if queue is None:
                return
            if not self.retainers:
                at = _first_live(index, at, end, queue.log_start)
            count = min(BLOCK_UNITS, end - at)
            if count:
                units = list(UNIT.iter_unpack(index.units(at, count)))
                yield self._live_of(queue, units, index.start)
            at += count

    def _live_of(self, queue: Queue, units: list[UnitFields], segment_start: int) -> Live:
        log_start = queue.log_start
        is_held = False
        if units[0][0] < log_start:
            live = []
            for unit in units:
                if unit[0] + unit[3] > log_start:
                    live.append(unit)
                elif self._is_wanted(queue, unit):
                    live.append(unit)
                    is_held = True
            units = live
        if units and (replaced := queue.replaced(segment_start, units)):
            units = [unit for unit in units if unit[0] not in replaced]
        return Live(queue, units, is_held)

    def is_live(self, queue: Queue, unit: UnitFields) -> bool:
        """Say whether a unit that was live still is."""
        if queue not in self._queues:
            return False
        return unit[0] + unit[3] > queue.log_start or self._is_wanted(queue, unit)

    def _is_wanted(self, queue: Queue, unit: UnitFields) -> bool:
        first, end = unit[0], unit[0] + unit[3]
        return self.is_wanted(queue, first, end)

    def is_wanted(self, queue: Queue, first: int, end: int) -> bool:
        """Say whether a keeper needs any offset of a range."""
        return any(
            retainer.wants(queue.topic, queue.queue_id, first, end) for retainer in self.retainers
        )


def _first_live(index: IndexFile, at: int, end: int, log_start: int) -> int:
    """Return the first place in a run whose unit ends after a log start."""

    def unit_end(place: int) -> int:
        fields = index.unit(place)
        return fields[0] + fields[3]

    return at + bisect_right(range(at, end), log_start, key=unit_end)


def prefix_to_empty(sizes: Sequence[tuple[int, int]]) -> int:
    """Return how many of the oldest segments to empty, given each one's size and live bytes.

    It is the shortest prefix of which at most half is live: then relocation never appends more than
    is freed, and the log never takes much more than twice its live bytes.
    """
    size = live = 0
    for count, (segment_size, segment_live) in enumerate(sizes, 1):
        size += segment_size
        live += segment_live
        if live * 2 <= size:
            return count
    return 0
