"""The units of relocated entries in memory, and what they replace.

A relocated entry replaces the unit with its base offset. One that compaction wrote may cover the
offsets of many units, and replaces all of them: it never covers only a part of one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from rockgate.store.queues.queueindex import Unit, UnitFields
from rockgate.store.queues.queueruns import Source, first_behind


class MovedUnits:
    """The units of relocated entries in memory, by base offset; none overlap."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self.units: dict[int, Unit] = {}

    def put(self, unit: Unit) -> None:
        """Add a unit; it replaces those that it covers, unless they are newer."""
        bases, units = self._bases, self.units
        base, end = unit.base, unit.base + unit.offset_count
        at = bisect_left(bases, base)
        if at:
            before = units[bases[at - 1]]
            if before.base + before.offset_count >= end and before.position > unit.position:
                return
        stop = bisect_left(bases, end, at)
        if stop - at == 1 and bases[at] == base:
            units[base] = unit
            return
        for covered in bases[at:stop]:
            del units[covered]
        bases[at:stop] = [base]
        units[base] = unit

    @property
    def first(self) -> int:
        """The base of its first unit."""
        return self._bases[0]

    @property
    def unit_count(self) -> int:
        """How many units there are."""
        return len(self._bases)

    def unit(self, index: int) -> Unit:
        """Return one of the units."""
        return self.units[self._bases[index]]


class Replaced:
    """Which of some units, in order of their offsets, later ones replace."""

    def __init__(self, units: Sequence[UnitFields]) -> None:
        self._units = units
        self.first = units[0][0]
        self.end = units[-1][0] + units[-1][3]
        self.bases: set[int] = set()
        """The bases of those that were replaced."""

    def compare(self, source: Source) -> None:
        """Compare them with the units of one source."""
        units = self._units
        index, at = first_behind(source, self.first), 0
        while index < source.unit_count:
            base, position, _, count, *_ = source.unit(index)
            if base >= self.end:
                return
            at = bisect_left(units, base, at, key=_base)
            stop = bisect_right(units, base + count - 1, at, key=_base)
            for unit in units[at:stop]:
                if unit[1] < position:
                    self.bases.add(unit[0])
            at, index = stop, index + 1


def _base(unit: UnitFields) -> int:
    return unit[0]
