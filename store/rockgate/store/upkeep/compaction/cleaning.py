"""One cleaning of one queue: survey, compare, sweep.

docs/internals/compaction.md specifies it. The survey reads every entry and notes the keys of its
records; comparing them yields the offsets to drop; the sweep rewrites the entries that hold some,
in the order of their offsets. What the sweep appends are relocated entries, each complete in
itself, so a crash between any two leaves a queue that holds a little more than it has to.

Between two pauses the queue may grow, be expired from its front, be relocated by retention, or be
deleted: entries are found by their offsets, and never by where they were before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Final, NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import INDEXED, MOVED, Entry, EntryError
from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.commitlog import CommitLog, Draft, Written
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.read.reader import entry_of
from rockgate.store.state.epochs import Epochs
from rockgate.store.upkeep.compaction.bodies import Bodies, Rewritten, Steps, T, Terms
from rockgate.store.upkeep.compaction.keymap import STEP_ROWS, KeyMap, row_key
from rockgate.store.upkeep.relocation import Keys, marks_of, moved_draft, own_properties
from rockgate.store.upkeep.usage import Usage
from rockgate.store.workers import Jobs, run_job
from rockgate.store.write.dispatch import EPOCH

FETCH_BYTES: Final = 1 << 20
FETCH_COUNT: Final = 256
ENTRY_COST: Final = 10
"""What an entry costs besides its records, as a number of records."""
COUNT_MAX: Final = (1 << 31) - 1
"""The most offsets that one entry covers."""
HOLE_ENTRIES: Final = 500
"""The most entries that one without records takes the place of, in one cleaning."""


class Changed(Exception):
    """The queue changed in a way that ends the cleaning; a later one starts over."""


class Parts(NamedTuple):
    """The parts of a store that a cleaning uses."""

    log: CommitLog
    queues: QueueTable
    usage: Usage
    epochs: Epochs
    keys: Keys | None
    jobs: Callable[[], Jobs]
    append: Callable[[Draft], Written]
    may_append: Callable[[], bool]
    """Whether nothing is relocated just now, so that an entry can be replaced."""
    key_map: Callable[[], KeyMap]


class _Hole:
    """Neighbouring entries without any record."""

    def __init__(self, unit: Unit, entry: Entry, epoch: int) -> None:
        self.base = unit.base
        self.epoch = epoch
        self.host = entry.store_host
        self.units: list[Unit] = []
        self.is_new = False

    def add(self, unit: Unit, *, is_new: bool) -> None:
        self.units.append(unit)
        self.is_new = self.is_new or is_new

    @property
    def end(self) -> int:
        last = self.units[-1]
        return last.base + last.offset_count


class Cleaning:
    """A cleaning under way. `run` pauses after every slice."""

    def __init__(self, parts: Parts, bodies: Bodies, queue: Queue, end: int, terms: Terms) -> None:
        self._parts = parts
        self._bodies = bodies
        self.queue = queue
        self.end = end
        self._reading = bodies.reading(queue, terms)
        self._drop = OffsetSet()
        self._revisit = OffsetSet()
        self._holes = OffsetSet()
        self._pinned = OffsetSet()
        self._map: KeyMap | None = None
        self._cost = 0
        self._hole: _Hole | None = None
        self.read_bytes = 0
        self.written_bytes = 0
        self.rewritten_count = 0
        self.dropped_count = 0

    def run(self) -> Iterator[bool]:
        """Clean the queue, with a pause after every slice."""
        self._map = key_map = self._parts.key_map()
        try:
            yield from self._survey(key_map)
            yield from key_map.supersede(self._parts.jobs, self._drop)
        finally:
            key_map.close()
        self.dropped_count = len(self._drop)
        yield from self._sweep()

    # Noting: the survey's sink.

    def key(self, key: bytes, offset: int, flags: int) -> None:
        """Note the key of a record."""
        assert self._map is not None, "a survey is under way"
        self._map.add(row_key(key), offset, flags)
        self._cost += 1

    def drop(self, offset: int) -> None:
        """Note a record that goes."""
        self._drop.add(offset)
        self._cost += 1

    def drop_range(self, first: int, end: int) -> None:
        """Note records that go."""
        self._drop.add_all(range(first, end))
        self._cost += (end - first) // ENTRY_COST

    def revisit(self, base: int) -> None:
        """Note an entry to be rewritten."""
        self._revisit.add(base)

    def hole(self, base: int) -> None:
        """Note an entry without records."""
        self._holes.add(base)

    # Surveying

    def _survey(self, key_map: KeyMap) -> Iterator[bool]:
        for units in self._pieces():
            yield from self._load(units)
            for unit in units:
                found = self._find(unit)
                if found is None:
                    continue
                unit, view, entry = found
                end = unit.base + unit.offset_count
                is_pinned = self._parts.usage.is_wanted(self.queue, unit.base, end)
                if is_pinned:
                    self._pinned.add(unit.base)
                yield from self._driven(self._reading.survey(view, entry, self, is_pinned), [])
                self.read_bytes += unit.size
                self._cost += ENTRY_COST
                if key_map.wants_write:
                    yield from run_job(self._parts.jobs(), key_map.write)
                if self._cost >= STEP_ROWS:
                    yield True
                    self._cost = 0

    def _pieces(self) -> Iterator[list[Unit]]:
        """Yield the units up to the end, some at a time; the caller may pause."""
        offset = self.queue.log_start
        while offset < self.end:
            units: list[Unit] = []
            size = 0
            for fields in islice(self.queue.walk(offset), FETCH_COUNT):
                if fields[0] + fields[3] > self.end or size > FETCH_BYTES:
                    break
                units.append(Unit._make(fields))
                size += fields[2]
            if not units:
                return
            yield units
            offset = units[-1].base + units[-1].offset_count

    def _load(self, units: list[Unit]) -> Iterator[bool]:
        """Have a worker thread load entries, so that the store's thread does not wait for them."""
        log = self._parts.log

        def load() -> None:
            for unit in units:
                segment = log.segment_at(unit.position)
                if segment is not None:
                    segment.mapping.prefetch(unit.position - segment.start, unit.size)

        yield from run_job(self._parts.jobs(), load)

    def _find(self, unit: Unit) -> tuple[Unit, memoryview, Entry] | None:
        """Return an entry where it is now; None if it expired."""
        queue = self.queue
        if queue not in self._parts.queues:
            raise Changed
        if unit.base + unit.offset_count <= queue.log_start:
            return None
        current = queue.find(max(unit.base, queue.log_start))
        if current is None or current.base != unit.base:
            raise Changed
        view = entry_of(self._parts.log, queue, current).entry
        return current, view, envelope.read(view)

    def _driven(self, steps: Steps[T], result: list[T], cost: int = 0) -> Iterator[bool]:
        """Run steps, of this cost each, and have a thread do what takes long."""
        while True:
            try:
                work = next(steps)
            except StopIteration as end:
                result.append(end.value)
                return
            if work is not None:
                yield from run_job(self._parts.jobs(), work)
                continue
            self._cost += cost
            if self._cost >= STEP_ROWS:
                yield True
                self._cost = 0

    # Sweeping

    def _sweep(self) -> Iterator[bool]:
        for units in self._pieces():
            wanted = [unit for unit in units if self._is_wanted(unit)]
            if wanted:
                yield from self._load(wanted)
            self._cost += len(units)
            for unit in units:
                if not self._is_wanted(unit):
                    yield from self._fill()
                else:
                    yield from self._rewrite(unit)
                if self._cost >= STEP_ROWS:
                    yield True
                    self._cost = 0
        yield from self._fill()

    def _is_wanted(self, unit: Unit) -> bool:
        base = unit.base
        if base in self._pinned:
            return False
        return (
            base in self._holes
            or base in self._revisit
            or self._drop.has_any(base, base + unit.offset_count)
        )

    def _rewrite(self, unit: Unit) -> Iterator[bool]:
        found = self._find(unit)
        if found is None:
            return
        unit, view, entry = found
        self._cost += ENTRY_COST
        self.read_bytes += unit.size
        if unit.base in self._holes:
            yield from self._join(unit, view, entry, is_new=False)
            return
        try:
            envelope.check(view, entry)
        except EntryError as error:
            where = f"Queue {self.queue.queue_id} of {self.queue.topic.decode()}"
            raise StoreCorrupt(where, unit.position, error.reason) from error
        if self._drop.count(unit.base, unit.base + unit.offset_count) == unit.offset_count:
            yield from self._join(unit, view, entry, is_new=True)
            return
        result: list[Rewritten | bool] = []
        is_revisited = unit.base in self._revisit
        steps = self._reading.rewrite(view, entry, self._drop.__contains__, is_revisited)
        yield from self._driven(steps, result, min(STEP_ROWS, unit.offset_count))
        rewritten = result[0]
        if rewritten is True:
            yield from self._join(unit, view, entry, is_new=True)
            return
        yield from self._fill()
        if isinstance(rewritten, Rewritten):
            yield from self._replace(unit, view, entry, rewritten)

    def _replace(
        self, unit: Unit, view: memoryview, entry: Entry, rewritten: Rewritten
    ) -> Iterator[bool]:
        """Append an entry with fewer records."""
        properties = own_properties(view, entry)
        if not entry.sys_flag & MOVED:
            epoch = self._parts.epochs.at(entry.position)
            properties += marks_of(self.queue, epoch, unit.max_ms)
        draft = moved_draft(view, entry, properties)._replace(
            body=rewritten.body,
            born_ms=rewritten.born_ms,
            sys_flag=(entry.sys_flag | MOVED) & ~(rewritten.cleared_flags | envelope.CONTINUES),
        )
        written = yield from self._append(draft, unit, [unit])
        if written is not None and entry.sys_flag & INDEXED and self._parts.keys is not None:
            body = memoryview(rewritten.body)
            self._parts.keys.put_batch(self.queue.topic, body, written.position, unit.store_ms)

    # Holes

    def _join(self, unit: Unit, view: memoryview, entry: Entry, *, is_new: bool) -> Iterator[bool]:
        """Add an entry without records to those before it."""
        epoch = self._epoch_of(view, entry)
        hole = self._hole
        if hole is not None and (
            hole.epoch != epoch
            or hole.end != unit.base
            or len(hole.units) >= HOLE_ENTRIES
            or unit.base + unit.offset_count - hole.base > COUNT_MAX
        ):
            yield from self._fill()
            hole = None
        if hole is None or self._hole is None:
            hole = self._hole = _Hole(unit, entry, epoch)
        hole.add(unit, is_new=is_new)

    def _epoch_of(self, view: memoryview, entry: Entry) -> int:
        if entry.sys_flag & MOVED:
            stored = envelope.get_property(envelope.properties_of(view, entry), EPOCH)
            if stored is not None:
                return int(stored)
        return self._parts.epochs.at(entry.position)

    def _fill(self) -> Iterator[bool]:
        """Append one entry in place of neighbouring ones without records."""
        hole, self._hole = self._hole, None
        if hole is None or not (hole.is_new or len(hole.units) > 1):
            return
        last, count = hole.units[-1], hole.end - hole.base
        draft = Draft(
            topic=self.queue.topic,
            queue_id=self.queue.queue_id,
            offset=hole.base,
            body=self._bodies.hole(hole.base, count, hole.epoch),
            properties=marks_of(self.queue, hole.epoch, last.max_ms),
            batch_count=count,
            born_ms=-1,
            sys_flag=MOVED,
            store_ms=last.store_ms,
            store_host=hole.host,
        )
        yield from self._append(draft, last, hole.units)

    def _append(
        self, draft: Draft, last: Unit, replaced: list[Unit]
    ) -> Generator[bool, None, Written | None]:
        """Append what replaces some entries; None if they expired meanwhile."""
        parts, queue = self._parts, self.queue
        while not parts.may_append():
            yield True
        if queue not in parts.queues:
            raise Changed
        count = draft.batch_count
        if draft.offset + count <= queue.log_start:
            return None
        written = parts.append(draft)
        unit = Unit(
            draft.offset, written.position, written.size, count, last.store_ms, last.max_ms, 0
        )
        for each in replaced:
            segment = parts.log.segment_at(each.position)
            if segment is not None:
                parts.usage.discard(segment.start)
        parts.queues.put_moved(queue, unit)
        self.rewritten_count += 1
        self.written_bytes += written.size
        self._cost += ENTRY_COST + written.size // FETCH_COUNT
        return written
