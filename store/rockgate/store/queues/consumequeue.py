"""Consume queues: for each queue of a topic, the log position of its offsets.

docs/internals/consume-queue.md specifies it. A queue is derived from the log. Its units of the
active segment are in memory (the tail); those of sealed segments are read in place from index
files, so 10,000 queues cost a constant number of files. The units of a queue are ordered by base
offset; a unit covers `count` offsets.

A relocated entry, appended again so that its old segment can be deleted, moves an old offset to a
new position. Its unit is stored beside the tail and replaces the original one.

All methods run on the store's thread, except `packed_between`, which the indexing thread calls: it
only slices arrays that grow at their end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from rockgate.protocol.entry import NO_FRAME
from rockgate.store.queues.movedunits import MovedUnits, Replaced
from rockgate.store.queues.queueindex import (
    UNIT,
    UNIT_SIZE,
    PackedRun,
    Run,
    Unit,
    UnitFields,
    pack_units,
)
from rockgate.store.queues.queueruns import (
    MAX_MS,
    STORE_MS,
    Indexes,
    Runs,
    SealedRun,
    Source,
    first_reaching,
    merge,
)

_PIECE_UNITS = 64
_pack_unit = UNIT.pack
_MAX_MS = itemgetter(5)  # of a unit's fields
_new = tuple.__new__  # skips the call of NamedTuple._make


class _Tail:
    """The units in memory as a source."""

    def __init__(self, units: bytearray) -> None:
        self._units = units
        self.unit_count = len(units) // UNIT_SIZE
        self.first = self.unit(0)[0] if self.unit_count else 0

    def unit(self, index: int) -> UnitFields:
        return UNIT.unpack_from(self._units, index * UNIT_SIZE)


class Queue:
    """One queue of one incarnation of a topic."""

    __slots__ = (
        "_bases",
        "_moved",
        "_runs",
        "_tail",
        "frame",
        "is_dirty",
        "is_sync",
        "last_position",
        "log_start",
        "max_ms",
        "next_offset",
        "put_bytes",
        "put_count",
        "put_times",
        "queue_id",
        "topic",
        "topic_id",
        "visible_end",
    )

    def __init__(self, topic: bytes, topic_id: bytes, queue_id: int, indexes: Indexes) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.queue_id = queue_id
        self.next_offset = 0
        self.frame = NO_FRAME
        """The envelope of batches appended here; renewed by appends."""
        self.log_start = 0
        """The first offset that can be read; it only increases."""
        self.max_ms = -1
        self.is_dirty = False
        """Whether units were added since the indexing thread last took them."""
        self.is_sync = False
        """Whether only flushed entries are visible to readers and acknowledged to producers."""
        self.visible_end = 0
        """The offset up to which a sync queue is known to be visible; it never decreases."""
        self.last_position = -1
        """The position of the newest entry added; -1 if there is none."""
        self.put_times = 0
        """Appends since the start; a batch is one, whatever it holds."""
        self.put_count = 0
        """Messages or records appended since the start."""
        self.put_bytes = 0
        """Size of the entries appended since the start."""
        self._bases = array("q")
        self._tail = bytearray()
        self._runs = Runs(indexes)
        self._moved: MovedUnits | None = None

    @property
    def tail_count(self) -> int:
        """How many units are in memory."""
        return len(self._bases)

    def turn(self, *, is_sync: bool) -> None:
        """Make only flushed entries visible from now on, or all of them."""
        if is_sync and not self.is_sync:
            self.visible_end = self.next_offset
        self.is_sync = is_sync

    # Feeding

    def add(
        self, position: int, size: int, count: int, store_ms: int, record_ms: int, tag_code: int = 0
    ) -> None:
        """Add the unit of an entry that takes the next offsets."""
        if record_ms > self.max_ms:
            self.max_ms = record_ms
        base = self.next_offset
        # The indexing thread counts the units of the tail, so the tail comes last.
        self._bases.append(base)
        self._tail += _pack_unit(base, position, size, count, store_ms, self.max_ms, tag_code)
        self.next_offset = base + count
        self.last_position = position

    def add_messages(
        self,
        positions: Sequence[int],
        sizes: Sequence[int],
        store_ms: int,
        record_ms: int,
        tag_codes: Sequence[int],
    ) -> None:
        """Add the units of message entries that take the next offsets, one each."""
        if record_ms > self.max_ms:
            self.max_ms = record_ms
        base = self.next_offset
        bases = array("q", range(base, base + len(positions)))
        units = pack_units(bases, positions, sizes, store_ms, self.max_ms, tag_codes)
        # As in `add`: the tail comes last.
        self._bases.extend(bases)
        self._tail += units
        self.next_offset = base + len(positions)
        self.last_position = positions[-1]

    def add_moved(self, unit: Unit) -> None:
        """Add the unit of a relocated entry, which replaces the one with the same offsets."""
        if self._moved is None:
            self._moved = MovedUnits()
        self._moved.put(unit)
        self.next_offset = max(self.next_offset, unit.base + unit.offset_count)
        self.last_position = max(self.last_position, unit.position)

    def load(self, units: memoryview, *, is_moved: bool) -> None:
        """Add the units of a tail index's run."""
        rows = list(UNIT.iter_unpack(units))
        if is_moved:
            for fields in rows:
                self.add_moved(Unit._make(fields))
        elif rows:
            # A start waits for this, and a segment may have half a million units.
            self._bases.extend([fields[0] for fields in rows])
            self._tail += units
            last = Unit._make(rows[-1])
            self.next_offset = last.base + last.offset_count
            self.max_ms = max(self.max_ms, max(map(_MAX_MS, rows)))
            self.last_position = last.position

    # Sealing

    def packed_between(self, start: int, end: int) -> Iterator[PackedRun]:
        """Yield the units in memory of a range of the log: first appends, then relocated ones."""
        tail = self._tail
        count = len(tail) // UNIT_SIZE
        first = self._index_at(start, count)
        last = self._index_at(end, count)
        units = bytes(tail[first * UNIT_SIZE : last * UNIT_SIZE])
        yield PackedRun(self.topic_id, self.queue_id, False, units)
        moved = self._moved
        if moved is not None:
            there = list(moved.units.values())
            mine = sorted(unit for unit in there if start <= unit.position < end)
            packed = b"".join(UNIT.pack(*unit) for unit in mine)
            yield PackedRun(self.topic_id, self.queue_id, True, packed)

    def _index_at(self, position: int, count: int) -> int:
        """Return the index of the tail's first unit at or after a position."""
        tail = self._tail
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if UNIT.unpack_from(tail, middle * UNIT_SIZE)[1] < position:
                low = middle + 1
            else:
                high = middle
        return low

    def seal(self, segment_start: int, segment_end: int, runs: list[Run]) -> None:
        """Release the units in memory of a segment whose index file has them now."""
        last = self._index_at(segment_end, len(self._bases))
        del self._bases[:last]
        del self._tail[: last * UNIT_SIZE]
        if self._moved is not None:
            left = [u for u in self._moved.units.values() if u.position >= segment_end]
            self._moved = None
            for unit in left:
                self.add_moved(unit)
        for run in runs:
            self.add_run(segment_start, run)

    def add_run(self, segment_start: int, run: Run) -> None:
        """Add a sealed run, whose index file must be among the shared ones."""
        self._runs.add(segment_start, run)
        if run.end > self.next_offset:
            self.next_offset = run.end
        if run.max_ms > self.max_ms:
            self.max_ms = run.max_ms

    # Reading

    def end_before(self, position: int) -> int:
        """Return the end offset of the entries before a position: the high watermark there.

        Units that are not in memory are before any position that is passed: only flushed segments
        are sealed.
        """
        tail = self._tail
        if not tail:
            return self.next_offset
        _, at, size, *_ = UNIT.unpack_from(tail, len(tail) - UNIT_SIZE)
        if at + size <= position:
            return self.next_offset
        low, high = 0, len(self._bases) - 1
        while low < high:
            middle = (low + high) >> 1
            _, at, size, *_ = UNIT.unpack_from(tail, middle * UNIT_SIZE)
            if at + size <= position:
                low = middle + 1
            else:
                high = middle
        return self._bases[low]

    def units(self, offset: int, size_max: int, position_max: int) -> list[Unit]:
        """Return units from the one that holds `offset` on, limited by size and position.

        The first one is returned whatever its size. If the offset's unit no longer exists, the next
        existing one comes first.
        """
        found: list[Unit] = []
        left = size_max
        for fields in self.walk(offset):
            left -= fields[2]
            if fields[1] >= position_max or (left < 0 and found):
                break
            found.append(_new(Unit, fields))
        return found

    def segments(self, first: int, end: int) -> list[int]:
        """Return the starts of the sealed segments that may hold any of these offsets."""
        return [segment_start for segment_start, _ in self._runs.overlapping(first, end)]

    def replaced(self, segment_start: int, units: Sequence[UnitFields]) -> set[int]:
        """Return the bases of those of a sealed segment's units that later entries replace.

        Those were relocated, or compacted: one later entry may replace many. `units` are in order.
        """
        if not self._is_merged:
            return set()
        found = Replaced(units)
        for start, run in self._runs.overlapping(found.first, found.end):
            if start >= segment_start:
                found.compare(run)
        if self._moved is not None:
            found.compare(self._moved)
        return found.bases

    def find(self, offset: int) -> Unit | None:
        """Return the unit that holds an offset, or the next existing one."""
        bases = self._bases
        if bases and offset >= bases[0] and not self._is_merged:
            # The newest entries are read most, and their units are in memory.
            at = (bisect_right(bases, offset) - 1) * UNIT_SIZE
            newest = UNIT.unpack_from(self._tail, at)
            if offset < newest[0] + newest[3]:
                return _new(Unit, newest)
        fields = next(self.walk(offset), None)
        return None if fields is None else Unit._make(fields)

    @property
    def _is_merged(self) -> bool:
        return self._moved is not None or self._runs.is_overlapping

    def walk(self, offset: int) -> Iterator[UnitFields]:
        """Yield units in order, from the one that holds an offset on, as plain tuples."""
        if self._is_merged:
            yield from merge(self._sources(offset), offset)
            return
        bases = self._bases
        if not bases or offset < bases[0]:
            for run in self._runs.behind(offset):
                for sealed in run.pieces(run.find(offset)):
                    yield from UNIT.iter_unpack(sealed)
        index = max(0, bisect_right(bases, offset) - 1)
        tail = self._tail
        if index < len(bases):
            base, _, _, count, *_ = UNIT.unpack_from(tail, index * UNIT_SIZE)
            if base + count <= offset:
                index += 1
        # A copy of some units at a time: an iterator over the tail itself would lock its size.
        while piece := tail[index * UNIT_SIZE : (index + _PIECE_UNITS) * UNIT_SIZE]:
            yield from UNIT.iter_unpack(piece)
            index += _PIECE_UNITS

    def _sources(self, offset: int) -> list[Source]:
        sources: list[Source] = list(self._runs.behind(offset))
        if self._tail:
            sources.append(_Tail(self._tail))
        if self._moved is not None:
            sources.append(self._moved)
        return sources

    # Searching by time

    def first_at_record_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit whose running maximum of record timestamps reaches a time."""
        return self._first_by(MAX_MS, timestamp_ms)

    def first_at_store_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit that was stored at a time or later."""
        return self._first_by(STORE_MS, timestamp_ms)

    def _first_by(self, field: int, wanted: int) -> Unit | None:
        best: UnitFields | None = None
        for source in self._sources_reaching(field, wanted):
            index = first_reaching(source, field, wanted)
            if index == source.unit_count:
                continue
            fields = source.unit(index)
            if best is None or (fields[0], -fields[1]) < (best[0], -best[1]):
                best = fields
        if best is None:
            return None
        if best[0] + best[3] <= self.log_start:
            # Units below the log start do not count, and what follows is not earlier.
            return self.find(self.log_start)
        return Unit._make(best)

    def _sources_reaching(self, field: int, wanted: int) -> list[Source]:
        if self._is_merged:
            return self._sources(self.log_start)
        run: SealedRun | None = self._runs.reaching(field, wanted)
        return [_Tail(self._tail)] if run is None else [run]
