"""Two timing wheels: one for times of day, driven by the wall clock, and one for delays.

docs/internals/delay.md describes them. The second turns with the time that passes, so a clock that
is set moves no delay. Due times of delays in its units are by that time; everybody else is told
them by the time that is believed, and so are log and snapshot. What goes in and out here is a time
of day.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import Final

from rockgate.store.delay.steady_clock import SteadyClock
from rockgate.store.delay.times import DUE_BITS, DUE_MAX, MINUTE_MS, bounded, due_ms, moved
from rockgate.store.delay.units import Units
from rockgate.store.delay.wheel import Wheel

_BACK_MS: Final = 30 * 86_400_000
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
            self._day = Wheel(self._units, self._day_ms - _BACK_MS)
        return self._day

    @property
    def _for_delays(self) -> Wheel:
        if self._passing is None:
            self._passing = Wheel(self._units, self._day_ms + self._lead_ms - _BACK_MS)
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
