"""The timing wheel: finds the next due unit without visiting the others.

docs/internals/delay.md describes it: lists of units per minute, lists per second for the near
future, and a heap for what is nearly due. A list is the number of its first unit; all work is done
a little at a time, and the caller limits it.

There are two wheels. One is for times of day, driven by the wall clock; the other is for delays,
driven by elapsed time, so that setting the clock moves no delay. The due times of delays in its
units are in elapsed time; log, snapshot and everyone else see them in steady wall time. `Wheels`
takes and returns times of day.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import Final

from rockgate.store.clock import SteadyClock
from rockgate.store.delay.changes import DUE_BITS, DUE_MAX, MINUTE_MS, bounded, due_ms, moved
from rockgate.store.delay.units import NONE, Units

MINUTES: Final = 366 * 24 * 60
SECONDS: Final = 256
"""Number of second lists; at most a minute and LEAD_SECONDS of them are in use."""
LEAD_SECONDS: Final = 20
"""How long before its start a minute's list is distributed."""
NEAR_MAX: Final = 4096
"""With this many due units in the heap no list is distributed: more need not be in memory yet."""
_EMPTY_ROWS: Final = 8
"""Empty lists that cost as much work as one unit."""
_LINK_BITS: Final = 32
_UNIT_MASK: Final = (1 << _LINK_BITS) - 1
_DUE_SHIFT: Final = 96
_SEQUENCE_MASK: Final = (1 << 64) - 1


class Wheel:
    """Lists of units and the near window. Owned by the fold."""

    def __init__(self, units: Units, now_ms: int, minutes: int = MINUTES) -> None:
        self._units = units
        self._length = minutes
        self._minutes = array("I", [NONE]) * minutes
        self._seconds = array("I", [NONE]) * SECONDS
        self._minute = now_ms // MINUTE_MS
        """The first minute whose list is not distributed yet."""
        self._second = self._minute * 60
        """The first second whose list is not in the heap yet."""
        self._taken: list[tuple[int, int]] = []
        """Lists being distributed: the earliest time in each, and its next unit."""
        self._near: list[int] = []

    def add(self, when: int, sequence: int, offset: int, queue: int) -> None:
        """Fill a unit and insert it by its due time."""
        minute = (when & DUE_MAX) // MINUTE_MS
        if self._minute <= minute < self._minute + self._length:
            at = minute % self._length
            rows = self._minutes
            rows[at] = self._units.add(when, sequence, offset, queue, rows[at])
        else:
            self.put(self._units.add(when, sequence, offset, queue), when & DUE_MAX, sequence)

    def add_all(
        self,
        due_times: Sequence[int],
        sequences: Sequence[int],
        offsets: Sequence[int],
        queues: Sequence[int],
    ) -> None:
        """Do the same as `add` for many, with much less work if no unit was ever freed."""
        low, length = self._minute, self._length
        dues_ms = due_times
        if max(due_times, default=0) > DUE_MAX:
            dues_ms = [when & DUE_MAX for when in due_times]
        first = min(dues_ms, default=0) // MINUTE_MS
        last = max(dues_ms, default=0) // MINUTE_MS
        if first < low or last >= low + length:
            for each in zip(due_times, sequences, offsets, queues, strict=True):
                self.add(*each)
            return
        rows, begin = self._minutes, len(self._units)
        if first == last:
            # Each one links to the one before it, as if they had been added one by one.
            at, end = first % length, begin + len(dues_ms)
            following = [rows[at], *range(begin, end - 1)]
            rows[at] = end - 1
        else:
            following = []
            for unit, due_ms in enumerate(dues_ms, begin):
                at = due_ms // MINUTE_MS % length
                following.append(rows[at])
                rows[at] = unit
        self._units.fill(due_times, sequences, offsets, queues, following)

    def put(self, unit: int, at_ms: int, sequence: int) -> None:
        """Insert a unit by a time; if that has passed, the unit comes next."""
        second = at_ms // 1000
        if second < self._second:
            key = max(at_ms, 0) << _DUE_SHIFT | sequence << _LINK_BITS | unit
            heapq.heappush(self._near, key)
            return
        if second < self._minute * 60:
            rows, at = self._seconds, second % SECONDS
        else:
            # A time beyond the wheel's range goes into the last list and is inserted again from
            # there.
            minute = min(at_ms // MINUTE_MS, self._minute + self._length - 1)
            rows, at = self._minutes, minute % self._length
        self._units.link(unit, rows[at])
        rows[at] = unit

    def turn(self, now_ms: int, work: int) -> bool:
        """Distribute lists that are near, up to `work` units; say whether there is more to do."""
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
            # A minute that is over and empty: its seconds need not be visited.
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
        """Remove and return the next due unit; None if there is none.

        Also None while a list may still contain an earlier one: call `turn` first.
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
        """Time and sequence of the first unit in the near window; None if it is empty."""
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
        """The time at which something may be due, or a list must be distributed."""
        near = (self._near[0] >> _DUE_SHIFT) if self._near else 1 << 62
        row = (self._second - 1) * 1000
        if self._second >= self._minute * 60:
            row = (self._minute * 60 - LEAD_SECONDS - 1) * 1000
        return min(near, row)


BACK_MS: Final = 30 * 86_400_000
"""How far back a wheel starts: items that became due during a downtime are in lists as well."""


class Wheels:
    """All scheduled units, and which one is due next. Owned by the fold."""

    def __init__(self, units: Units, clock: SteadyClock) -> None:
        self._units = units
        self._clock = clock
        self._day: Wheel | None = None
        self._passing: Wheel | None = None
        # Wheels are created when the first item needs them.
        self.look()

    def look(self) -> None:
        """Read the clocks; later calls use these times."""
        self._now_ms, self._day_ms, passed_ms = self._clock.read()
        self._lead_ms = passed_ms - self._day_ms
        """How far the wheel of delays is ahead of the wheel of times of day."""
        self._apart_ms = passed_ms - self._now_ms
        """How far it is ahead of the steady time."""

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
        """Return a delay as units store it; setting the clock back makes no delay longer."""
        return moved(bounded(when, self._now_ms), self._apart_ms)

    def stored(self, when: int) -> int:
        """Convert a unit's time to that of log and snapshot."""
        return when if when <= DUE_MAX else moved(when, -self._apart_ms)

    def unit_due_ms(self, when: int) -> int:
        """Return the due time of a unit."""
        return when if when <= DUE_MAX else due_ms(when) - self._apart_ms

    def all_stored(self, due_times: Sequence[int]) -> Sequence[int]:
        """Do the same as `stored` for many."""
        return due_times if not self._apart_ms else [self.stored(when) for when in due_times]

    def add(self, when: int, sequence: int, offset: int, queue: int) -> None:
        """Fill a unit and insert it by its due time."""
        if when <= DUE_MAX:
            (self._day or self._for_days).add(when, sequence, offset, queue)
            return
        longest_ms = self._now_ms + (when >> DUE_BITS) * MINUTE_MS
        if self._apart_ms or when & DUE_MAX > longest_ms:
            # Rare: usually the clock was not set, and the delay starts now.
            when = self._own(when)
        (self._passing or self._for_delays).add(when, sequence, offset, queue)

    def add_all(self, *columns: Sequence[int]) -> None:
        """Do the same as `add` for many, given by column."""
        delays = [when > DUE_MAX for when in columns[0]]
        if not any(delays):
            self._for_days.add_all(*columns)
            return
        if not all(delays):
            self._for_days.add_all(*(list(compress(each, map(not_, delays))) for each in columns))
        due_times, *others = (list(compress(each, delays)) for each in columns)
        self._for_delays.add_all([self._own(when) for when in due_times], *others)

    def put(self, unit: int, at_ms: int, sequence: int) -> None:
        """Insert a unit by a time of day."""
        if self._units.read(unit)[0] <= DUE_MAX:
            self._for_days.put(unit, at_ms, sequence)
        else:
            self._for_delays.put(unit, at_ms + self._lead_ms, sequence)

    def turn(self, now_ms: int, work: int) -> bool:
        """Distribute lists that are near, up to `work` units; say whether there is more to do."""
        self.look()
        turning = [wheel.turn(now_ms + lead_ms, work) for wheel, lead_ms in self._both()]
        return any(turning)

    def _both(self) -> list[tuple[Wheel, int]]:
        """The existing wheels, and how far each is ahead of the time of day."""
        both = ((self._day, 0), (self._passing, self._lead_ms))
        return [(wheel, lead_ms) for wheel, lead_ms in both if wheel is not None]

    @property
    def next_ms(self) -> int:
        """The time of day at which something may be due, or a list must be distributed."""
        return min((wheel.next_ms - lead_ms for wheel, lead_ms in self._both()), default=1 << 62)

    def late_ms(self) -> int:
        """Return for how long the first item has been due; 0 if it is not, or none is near."""
        self.look()
        now_ms = self._day_ms
        firsts = ((wheel.first, lead_ms) for wheel, lead_ms in self._both())
        lates = (
            max(0, now_ms + lead_ms - first[0]) for first, lead_ms in firsts if first is not None
        )
        return max(lates, default=0)

    def pop(self, now_ms: int) -> int | None:
        """Remove and return the next due unit; None if there is none."""
        day, passing, lead_ms = self._day, self._passing, self._lead_ms
        if passing is None:
            return None if day is None else day.pop(now_ms)
        if day is None:
            return passing.pop(now_ms + lead_ms)
        first, second = day.first, passing.first
        # Not while the other wheel may still yield something earlier.
        if second is None or (first is not None and (first[0] + lead_ms, first[1]) < second):
            if first is None or not passing.has_seen(first[0] + lead_ms):
                return None
            return day.pop(now_ms)
        return passing.pop(now_ms + lead_ms) if day.has_seen(second[0] - lead_ms) else None
