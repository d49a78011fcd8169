"""The timing wheel: finds the next due unit without visiting the others.

docs/internals/delay.md describes it: rows of units for minutes, rows for the seconds of what comes
soon, and a heap for what is nearly due. A row is the number of its first unit; all work is done a
little at a time, and the caller says how much.

There are two of them. One is for times of day, driven by the wall clock, and one for delays: it
turns with the time that passes, so a clock that is set moves no delay. Due times of delays in its
units are by that time; everybody else is given them by the time that is believed, and so are log
and snapshot. What goes in and out of `Wheels` is a time of day.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import Final

from rockgate.store.clock import SteadyClock
from rockgate.store.delay.times import DUE_BITS, DUE_MAX, MINUTE_MS, bounded, due_ms, moved
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


BACK_MS: Final = 30 * 86_400_000
"""How far back a wheel begins: what came due while nobody served lies in rows as well."""


class Wheels:
    """All units that wait, and which is due next. Owned by the fold."""

    def __init__(self, units: Units, clock: SteadyClock) -> None:
        self._units = units
        self._clock = clock
        self._day: Wheel | None = None
        self._passing: Wheel | None = None
        # A wheel is made when there is something to wait for.
        self.look()

    def look(self) -> None:
        """Look at the clocks; what follows goes by that."""
        self._now_ms, self._day_ms, passed_ms = self._clock.read()
        self._lead_ms = passed_ms - self._day_ms
        """How far the second wheel is ahead of the first."""
        self._apart_ms = passed_ms - self._now_ms
        """How far it is ahead of what is believed."""

    @property
    def _for_days(self) -> Wheel:
        if self._day is None:
            self._day = Wheel(self._units, self._day_ms - BACK_MS)
        return self._day

    @property
    def _for_delays(self) -> Wheel:
        if self._passing is None:
            self._passing = Wheel(self._units, self._day_ms + self._lead_ms - BACK_MS)
        return self._passing

    def _own(self, when: int) -> int:
        """Return what a unit says of a delay; a clock that was set back makes none longer."""
        return moved(bounded(when, self._now_ms), self._apart_ms)

    def told(self, when: int) -> int:
        """Return of what a unit says what log and snapshot say."""
        return when if when <= DUE_MAX else moved(when, -self._apart_ms)

    def told_ms(self, when: int) -> int:
        """Return the due time of what a unit says."""
        return when if when <= DUE_MAX else due_ms(when) - self._apart_ms

    def told_all(self, whens: Sequence[int]) -> Sequence[int]:
        """Return what `told` does, for many."""
        return whens if not self._apart_ms else [self.told(when) for when in whens]

    def add(self, when: int, sequence: int, offset: int, queue: int) -> None:
        """Fill a unit and put it where it will be found at its time."""
        if when <= DUE_MAX:
            (self._day or self._for_days).add(when, sequence, offset, queue)
            return
        longest_ms = self._now_ms + (when >> DUE_BITS) * MINUTE_MS
        if self._apart_ms or when & DUE_MAX > longest_ms:
            # Nearly always a delay is its own length from now, by a clock that nobody has set.
            when = self._own(when)
        (self._passing or self._for_delays).add(when, sequence, offset, queue)

    def add_all(self, *columns: Sequence[int]) -> None:
        """Do what `add` does for many, given by their columns."""
        delays = [when > DUE_MAX for when in columns[0]]
        if not any(delays):
            self._for_days.add_all(*columns)
            return
        if not all(delays):
            self._for_days.add_all(*(list(compress(each, map(not_, delays))) for each in columns))
        whens, *others = (list(compress(each, delays)) for each in columns)
        self._for_delays.add_all([self._own(when) for when in whens], *others)

    def put(self, unit: int, at_ms: int, sequence: int) -> None:
        """Put a unit where it will be found at a time of day."""
        if self._units.read(unit)[0] <= DUE_MAX:
            self._for_days.put(unit, at_ms, sequence)
        else:
            self._for_delays.put(unit, at_ms + self._lead_ms, sequence)

    def turn(self, now_ms: int, work: int) -> bool:
        """Take apart what comes near, so many units at most; say whether there is more to do."""
        self.look()
        turning = [wheel.turn(now_ms + lead_ms, work) for wheel, lead_ms in self._both()]
        return any(turning)

    def _both(self) -> list[tuple[Wheel, int]]:
        """The wheels that there are, and how far each is ahead of the time of day."""
        both = ((self._day, 0), (self._passing, self._lead_ms))
        return [(wheel, lead_ms) for wheel, lead_ms in both if wheel is not None]

    @property
    def next_ms(self) -> int:
        """The time of day at which something may be due, or a row is to be taken apart."""
        return min((wheel.next_ms - lead_ms for wheel, lead_ms in self._both()), default=1 << 62)

    def late_ms(self) -> int:
        """Return for how long the first item is due; 0 if it is not, or none is near."""
        self.look()
        now_ms = self._day_ms
        firsts = ((wheel.first, lead_ms) for wheel, lead_ms in self._both())
        lates = (
            max(0, now_ms + lead_ms - first[0]) for first, lead_ms in firsts if first is not None
        )
        return max(lates, default=0)

    def pop(self, now_ms: int) -> int | None:
        """Return the unit that is due next, which then is in no row; None if none is."""
        day, passing, lead_ms = self._day, self._passing, self._lead_ms
        if passing is None:
            return None if day is None else day.pop(now_ms)
        if day is None:
            return passing.pop(now_ms + lead_ms)
        first, second = day.first, passing.first
        # Neither while the other wheel may still come to something earlier.
        if second is None or (first is not None and (first[0] + lead_ms, first[1]) < second):
            if first is None or not passing.has_seen(first[0] + lead_ms):
                return None
            return day.pop(now_ms)
        return passing.pop(now_ms + lead_ms) if day.has_seen(second[0] - lead_ms) else None
