"""The timing wheel: finds the next due unit without visiting the others.

docs/internals/delay.md describes it: rows of units for minutes, rows for the seconds of what comes
soon, and a heap for what is nearly due. A row is the number of its first unit; all work is done a
little at a time, and the caller says how much.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from typing import Final

from rockgate.store.delay.times import DUE_MAX, MINUTE_MS
from rockgate.store.delay.units import NONE, Units

MINUTES: Final = 366 * 24 * 60
SECONDS: Final = 256
"""Rows for seconds; of these at most a minute and LEAD_SECONDS are used."""
LEAD_SECONDS: Final = 20
"""How long before it begins a minute's row is taken apart."""
NEAR_MAX: Final = 4096
"""With so many that are due in the heap no row is taken apart: others need not be in memory yet."""
_EMPTY_ROWS: Final = 8
"""Empty rows that are passed for the work of one unit."""
_LINK_BITS: Final = 32
_UNIT_MASK: Final = (1 << _LINK_BITS) - 1
_DUE_SHIFT: Final = 96
_SEQUENCE_MASK: Final = (1 << 64) - 1


class Wheel:
    """Rows of units and the near window. Owned by the fold."""

    def __init__(self, units: Units, now_ms: int, minutes: int = MINUTES) -> None:
        self._units = units
        self._length = minutes
        self._minutes = array("I", [NONE]) * minutes
        self._seconds = array("I", [NONE]) * SECONDS
        self._minute = now_ms // MINUTE_MS
        """The first minute whose row was not taken apart."""
        self._second = self._minute * 60
        """The first second whose row was not taken into the heap."""
        self._taken: list[tuple[int, int]] = []
        """Rows that are being taken apart: the earliest time in it, and its next unit."""
        self._near: list[int] = []

    def add(self, when: int, sequence: int, offset: int, queue: int) -> None:
        """Fill a unit and put it where it will be found at its time."""
        minute = (when & DUE_MAX) // MINUTE_MS
        if self._minute <= minute < self._minute + self._length:
            at = minute % self._length
            rows = self._minutes
            rows[at] = self._units.add(when, sequence, offset, queue, rows[at])
        else:
            self.put(self._units.add(when, sequence, offset, queue), when & DUE_MAX, sequence)

    def add_all(
        self,
        whens: Sequence[int],
        sequences: Sequence[int],
        offsets: Sequence[int],
        queues: Sequence[int],
    ) -> None:
        """Do what `add` does for many, which is much less work if units were never freed yet."""
        low, length = self._minute, self._length
        dues_ms = whens
        if max(whens, default=0) > DUE_MAX:
            dues_ms = [when & DUE_MAX for when in whens]
        first = min(dues_ms, default=0) // MINUTE_MS
        last = max(dues_ms, default=0) // MINUTE_MS
        if first < low or last >= low + length:
            for each in zip(whens, sequences, offsets, queues, strict=True):
                self.add(*each)
            return
        rows, begin = self._minutes, len(self._units)
        if first == last:
            # Each stands in front of the one before it, as if they had come one by one.
            at, end = first % length, begin + len(dues_ms)
            following = [rows[at], *range(begin, end - 1)]
            rows[at] = end - 1
        else:
            following = []
            for unit, due_ms in enumerate(dues_ms, begin):
                at = due_ms // MINUTE_MS % length
                following.append(rows[at])
                rows[at] = unit
        self._units.fill(whens, sequences, offsets, queues, following)

    def put(self, unit: int, at_ms: int, sequence: int) -> None:
        """Put a unit where it will be found at a time; what is past is found next."""
        second = at_ms // 1000
        if second < self._second:
            key = max(at_ms, 0) << _DUE_SHIFT | sequence << _LINK_BITS | unit
            heapq.heappush(self._near, key)
            return
        if second < self._minute * 60:
            rows, at = self._seconds, second % SECONDS
        else:
            # What is beyond the wheel's reach waits in its last row, and comes back from there.
            minute = min(at_ms // MINUTE_MS, self._minute + self._length - 1)
            rows, at = self._minutes, minute % self._length
        self._units.link(unit, rows[at])
        rows[at] = unit

    def turn(self, now_ms: int, work: int) -> bool:
        """Take apart what comes near, so many units at most; say whether there is more to do."""
        soon = now_ms // 1000 + 1
        work *= _EMPTY_ROWS
        while work > 0:
            if self._taken:
                work -= self._take_apart(-(-work // _EMPTY_ROWS)) * _EMPTY_ROWS
            elif len(self._near) >= NEAR_MAX and self._near[0] >> _DUE_SHIFT <= now_ms:
                return True
            elif self._second <= soon and self._second < self._minute * 60:
                self._take(self._seconds, self._second % SECONDS, self._second * 1000)
                self._second += 1
                work -= 1
            elif soon + LEAD_SECONDS >= self._minute * 60:
                self._take_minute(soon)
                work -= 1
            else:
                return False
        return True

    def _take_minute(self, soon: int) -> None:
        at, start = self._minute % self._length, self._minute * 60
        if self._minutes[at] == NONE and self._second == start and start + 60 <= soon:
            # Nothing lies in a minute that is over: its seconds need not be looked at.
            self._second += 60
        self._take(self._minutes, at, start * 1000)
        self._minute += 1

    def _take(self, rows: array[int], at: int, start_ms: int) -> None:
        if rows[at] != NONE:
            self._taken.append((start_ms, rows[at]))
            rows[at] = NONE

    def _take_apart(self, work: int) -> int:
        start_ms, unit = self._taken.pop()
        done = 0
        while unit != NONE and done < work:
            when, sequence, _, _, following = self._units.read(unit)
            self.put(unit, when & DUE_MAX, sequence)
            unit = following
            done += 1
        if unit != NONE:
            self._taken.append((start_ms, unit))
        return done

    def pop(self, now_ms: int) -> int | None:
        """Return the next unit that is due, which then is in no row; None if none is.

        Nor while something earlier may still be in a row: `turn` first.
        """
        near = self._near
        if not near:
            return None
        due_ms = near[0] >> _DUE_SHIFT
        if due_ms > now_ms or not self.has_seen(due_ms):
            return None
        return heapq.heappop(near) & _UNIT_MASK

    @property
    def first(self) -> tuple[int, int] | None:
        """Time and sequence of the first in the near window; None if nothing is there."""
        if not self._near:
            return None
        key = self._near[0]
        return key >> _DUE_SHIFT, key >> _LINK_BITS & _SEQUENCE_MASK

    def has_seen(self, due_ms: int) -> bool:
        """Whether everything that is due by a time is in the heap."""
        if self._second * 1000 <= due_ms:
            return False
        return not self._taken or all(start_ms > due_ms for start_ms, _ in self._taken)

    @property
    def next_ms(self) -> int:
        """The time at which something may be due, or a row is to be taken apart."""
        near = (self._near[0] >> _DUE_SHIFT) if self._near else 1 << 62
        row = (self._second - 1) * 1000
        if self._second >= self._minute * 60:
            row = (self._minute * 60 - LEAD_SECONDS - 1) * 1000
        return min(near, row)
