"""Units of relocated entries: which replace which."""

from __future__ import annotations

from rockgate.store.queues.movedunits import MovedUnits, Replaced
from rockgate.store.queues.queueindex import Unit


def unit(base: int, count: int, position: int) -> Unit:
    return Unit(base, position, 100, count, 1, 1, 0)


def moved(*units: Unit) -> MovedUnits:
    found = MovedUnits()
    for each in units:
        found.put(each)
    return found


def listed(units: MovedUnits) -> list[Unit]:
    return [units.unit(index) for index in range(units.unit_count)]


def test_they_are_in_the_order_of_their_offsets() -> None:
    units = [unit(20, 5, 1), unit(10, 10, 2), unit(0, 10, 3)]
    assert listed(moved(*units)) == units[::-1]


def test_one_that_covers_many_replaces_them() -> None:
    wide = unit(0, 30, 9)
    assert listed(moved(unit(0, 10, 1), unit(10, 10, 2), unit(25, 5, 3), wide)) == [wide]
    assert listed(moved(unit(30, 1, 1), wide)) == [wide, unit(30, 1, 1)]


def test_an_older_one_does_not_replace_what_covers_it() -> None:
    wide = unit(0, 30, 9)
    assert listed(moved(wide, unit(10, 10, 2))) == [wide]


def test_a_unit_is_replaced_by_a_later_one_that_covers_it() -> None:
    units = [unit(0, 10, 1), unit(10, 10, 2), unit(20, 10, 3), unit(30, 10, 20)]
    found = Replaced(units)
    found.compare(moved(unit(0, 20, 10), unit(30, 10, 15)))
    assert found.bases == {0, 10}
    found.compare(moved(*units))
    assert found.bases == {0, 10}, "none replaces itself"
