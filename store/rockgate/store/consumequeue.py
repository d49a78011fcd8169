"""Consume queues: for each queue of a topic, which offsets lie where in the log.

A queue is derived from the log. Its units of unsealed segments are in memory (the tail); those of
sealed segments stay in their index files and are read in place, so 10,000 queues cost a constant
number of files. Units of a queue follow each other by base offset; a unit takes `count` offsets.

An entry that was appended again so that its first segment could go (a moved entry) brings an old
offset to a new position. Its unit is kept beside the tail, and a queue that has such units looks
through its runs newest first, because a moved unit replaces the one it came from.

All methods run on the store's one thread, except `units_between`, which the indexing thread
calls: it takes slices of arrays that only grow at their end, and nothing else.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from rockgate.store.queueindex import UNIT, UNIT_SIZE, IndexFile, Run, Unit

_RUN_FIELDS = 5  # segment start, first, end, at, unit count


class Queue:
    """One queue of one topic's life."""

    __slots__ = (
        "_bases",
        "_indexes",
        "_is_interleaved",
        "_moved",
        "_runs",
        "_tail",
        "is_dirty",
        "is_sync",
        "log_start",
        "max_ms",
        "next_offset",
        "queue_id",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: bytes, topic_id: bytes, queue_id: int, indexes: dict[int, IndexFile]
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.queue_id = queue_id
        self.next_offset = 0
        self.log_start = 0
        """The first offset that may be read; it only grows."""
        self.max_ms = -1
        self.is_dirty = False
        """Whether units were added since the indexing thread last took them."""
        self.is_sync = False
        """Whether readers see, and producers are answered for, only what is on disk."""
        self._indexes = indexes
        self._bases = array("q")
        self._tail = bytearray()
        self._runs = array("q")
        self._moved: dict[int, Unit] | None = None
        self._is_interleaved = False
        """Whether a sealed run holds moved units, and so begins before the run before it ends."""

    # Feeding

    def add(
        self, position: int, size: int, count: int, store_ms: int, record_ms: int, tag_code: int = 0
    ) -> None:
        """Add the unit of an entry that takes the next offsets."""
        if record_ms > self.max_ms:
            self.max_ms = record_ms
        base = self.next_offset
        self._bases.append(base)
        self._tail += UNIT.pack(base, position, size, count, store_ms, self.max_ms, tag_code)
        self.next_offset = base + count

    def add_moved(self, unit: Unit) -> None:
        """Let a unit replace the one of the same offsets."""
        if self._moved is None:
            self._moved = {}
        self._moved[unit.base] = unit

    def load(self, units: memoryview) -> None:
        """Add the units of a tail index: those behind the end here, the others as moved."""
        for fields in UNIT.iter_unpack(units):
            unit = Unit._make(fields)
            if unit.base < self.next_offset:
                self.add_moved(unit)
                continue
            self._bases.append(unit.base)
            self._tail += UNIT.pack(*unit)
            self.next_offset = unit.base + unit.offset_count
            self.max_ms = max(self.max_ms, unit.max_ms)

    # Sealing

    def units_between(self, start: int, end: int) -> bytes:
        """Return the packed units in memory of a stretch of the log, sorted by base offset."""
        count = len(self._bases)
        first = self._tail_index_at(start, count)
        last = self._tail_index_at(end, count)
        units = bytes(self._tail[first * UNIT_SIZE : last * UNIT_SIZE])
        moved = self._moved
        if not moved:
            return units
        mine = [unit for unit in list(moved.values()) if start <= unit.position < end]
        if not mine:
            return units
        mine.extend(Unit._make(fields) for fields in UNIT.iter_unpack(units))
        mine.sort()
        return b"".join(UNIT.pack(*unit) for unit in mine)

    def _tail_index_at(self, position: int, count: int) -> int:
        """Return the index of the first unit in memory that lies at or behind a position."""
        tail = self._tail
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if UNIT.unpack_from(tail, middle * UNIT_SIZE)[1] < position:
                low = middle + 1
            else:
                high = middle
        return low

    def seal(self, segment_start: int, segment_end: int, run: Run | None) -> None:
        """Let go of the units in memory of a segment whose index file holds them now."""
        last = self._tail_index_at(segment_end, len(self._bases))
        del self._bases[:last]
        del self._tail[: last * UNIT_SIZE]
        if self._moved:
            left = {b: u for b, u in self._moved.items() if u.position >= segment_end}
            self._moved = left or None
        if run is not None:
            self.add_run(segment_start, run)

    def add_run(self, segment_start: int, run: Run) -> None:
        """Add a sealed run, behind those of earlier segments."""
        runs = self._runs
        if runs and run.first < max(runs[2::_RUN_FIELDS]):
            self._is_interleaved = True
        runs.extend((segment_start, run.first, run.end, run.at, run.unit_count))
        self.next_offset = max(self.next_offset, run.end)
        last = UNIT.unpack_from(
            self._indexes[segment_start].view, run.at + (run.unit_count - 1) * UNIT_SIZE
        )
        self.max_ms = max(self.max_ms, last[5])

    def drop_segment(self, segment_start: int) -> None:
        """Forget the run of a segment that is gone."""
        for index in range(0, len(self._runs), _RUN_FIELDS):
            if self._runs[index] == segment_start:
                del self._runs[index : index + _RUN_FIELDS]
                break
        end = 0
        self._is_interleaved = False
        for index in range(0, len(self._runs), _RUN_FIELDS):
            self._is_interleaved |= self._runs[index + 1] < end
            end = max(end, self._runs[index + 2])

    @property
    def last_position(self) -> int:
        """The position of the newest unit in memory; -1 if there is none."""
        tail = self._tail
        last = UNIT.unpack_from(tail, len(tail) - UNIT_SIZE)[1] if tail else -1
        return max(last, max(u.position for u in self._moved.values())) if self._moved else last

    # Reading

    @property
    def has_tail(self) -> bool:
        """Whether units are in memory."""
        return bool(self._bases or self._moved)

    def end_before(self, position: int) -> int:
        """Return the end of what lies wholly before a position: the high watermark there."""
        tail = self._tail
        index = len(self._bases) - 1
        end = self.next_offset
        while index >= 0:
            base, at, size, *_ = UNIT.unpack_from(tail, index * UNIT_SIZE)
            if at + size <= position:
                break
            end = base
            index -= 1
        return end

    def units(self, offset: int, size_max: int, position_max: int) -> list[Unit]:
        """Return units from the one that holds `offset` on, by size and position.

        The first is returned whatever its size. Where the offset's own unit is gone, the next
        one that is there comes first.
        """
        found: list[Unit] = []
        left = size_max
        for unit in self._walk(offset):
            left -= unit.size
            if (found and left < 0) or unit.position >= position_max:
                break
            found.append(unit)
        return found

    def find(self, offset: int) -> Unit | None:
        """Return the unit that holds an offset, or the next one that is there."""
        return next(self._walk(offset), None)

    def _walk(self, offset: int) -> Iterator[Unit]:
        if self._moved is not None or self._is_interleaved:
            yield from self._walk_interleaved(offset)
            return
        bases = self._bases
        if not bases or offset < bases[0]:
            for segment_start, first, end, at, count in self._run_tuples():
                if end <= offset:
                    continue
                view = self._indexes[segment_start].view
                index = _find(view, at, count, first, end, offset)
                for fields in UNIT.iter_unpack(
                    view[at + index * UNIT_SIZE : at + count * UNIT_SIZE]
                ):
                    yield Unit._make(fields)
        index = max(0, bisect_right(bases, offset) - 1)
        tail = self._tail
        while index < len(bases):
            unit = Unit._make(UNIT.unpack_from(tail, index * UNIT_SIZE))
            if unit.base + unit.offset_count > offset:
                yield unit
            index += 1

    def _run_tuples(self) -> Iterator[tuple[int, int, int, int, int]]:
        runs = self._runs
        for index in range(0, len(runs), _RUN_FIELDS):
            yield tuple(runs[index : index + _RUN_FIELDS])  # type: ignore[misc]  # five fields

    def _walk_interleaved(self, offset: int) -> Iterator[Unit]:
        while (unit := self._next_interleaved(offset)) is not None:
            yield unit
            offset = unit.base + unit.offset_count

    def _next_interleaved(self, offset: int) -> Unit | None:
        """Return the first unit that ends behind an offset, the newest of those that are equal."""
        best: Unit | None = None
        for unit in self._candidates(offset):
            if best is None or (unit.base, -unit.position) < (best.base, -best.position):
                best = unit
        return best

    def _candidates(self, offset: int) -> Iterator[Unit]:
        for segment_start, first, end, at, count in self._run_tuples():
            if end > offset:
                view = self._indexes[segment_start].view
                index = _find(view, at, count, first, end, offset)
                yield Unit._make(UNIT.unpack_from(view, at + index * UNIT_SIZE))
        if self._moved:
            behind = [u for u in self._moved.values() if u.base + u.offset_count > offset]
            if behind:
                yield min(behind)
        index = max(0, bisect_right(self._bases, offset) - 1)
        while index < len(self._bases):
            unit = Unit._make(UNIT.unpack_from(self._tail, index * UNIT_SIZE))
            if unit.base + unit.offset_count > offset:
                yield unit
                return
            index += 1

    # Searching by time

    def first_at_record_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit whose running maximum of record timestamps reaches a time."""
        return self._first_by(5, timestamp_ms)

    def first_at_store_time(self, timestamp_ms: int) -> Unit | None:
        """Return the first unit that was stored at a time or later."""
        return self._first_by(4, timestamp_ms)

    def _first_by(self, field: int, wanted: int) -> Unit | None:
        if self._moved is not None or self._is_interleaved:
            for unit in self._walk_interleaved(self.log_start):
                if unit[field] >= wanted:
                    return unit
            return None
        for segment_start, _, _, at, count in self._run_tuples():
            view = self._indexes[segment_start].view
            if UNIT.unpack_from(view, at + (count - 1) * UNIT_SIZE)[field] >= wanted:
                return _first_in(view, at, count, field, wanted)
        return _first_in(self._tail, 0, len(self._bases), field, wanted)


def _find(view: memoryview, at: int, count: int, first: int, end: int, offset: int) -> int:
    """Return the index, in a run, of the first unit that ends behind an offset."""
    if offset <= first:
        return 0
    if end - first == count:
        # Every count is 1 and nothing is missing: the place is computed, not searched.
        return offset - first
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        base, _, _, length, _, _, _ = UNIT.unpack_from(view, at + middle * UNIT_SIZE)
        if base + length > offset:
            high = middle
        else:
            low = middle + 1
    return low


def _first_in(
    view: memoryview | bytearray, at: int, count: int, field: int, wanted: int
) -> Unit | None:
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if UNIT.unpack_from(view, at + middle * UNIT_SIZE)[field] >= wanted:
            high = middle
        else:
            low = middle + 1
    return Unit._make(UNIT.unpack_from(view, at + low * UNIT_SIZE)) if low < count else None
