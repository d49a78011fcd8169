"""The verdict on a run: what it finds, and what it excuses."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.chaos.writers import WINDOW_S, Acknowledged, Place, Verdict, Window, judge

VALUES = [b"p0-%d" % n for n in range(4)]


@dataclass
class Known:
    """A producer that sent a value a second, each confirmed half a second later."""

    number: int = 0
    known: Acknowledged = field(default_factory=Acknowledged)

    def __post_init__(self) -> None:
        for n, value in enumerate(VALUES):
            self.known.sent_at.append(float(n))
            self.known.ended_at[value] = n + 0.5
            self.known.places[value] = (0, n)


def verdict(order: list[bytes], *windows: Window, key: bytes = b"k") -> Verdict:
    """On a partition that has these values."""
    found: dict[Place, tuple[bytes, bytes]] = {
        (0, at): (key, value) for at, value in enumerate(order)
    }
    return judge(found, [Known()], [], windows)


def test_what_was_stored_once_and_in_order_is_well() -> None:
    found = verdict(VALUES)
    assert found.acknowledged == 4
    assert not (found.lost or found.overtaken or found.twice or found.moved or found.in_windows)


def test_what_is_not_where_it_was_confirmed_is_lost() -> None:
    assert verdict(VALUES[:3]).lost == [VALUES[3]]
    assert verdict([VALUES[0], VALUES[1], b"s-1", VALUES[3]]).lost == [VALUES[2]]


def test_a_first_copy_before_that_of_an_earlier_value_has_overtaken_it() -> None:
    assert verdict([VALUES[1], VALUES[0]]).overtaken == [(VALUES[0], VALUES[1])]
    # A repeat behind the others has not.
    assert verdict([*VALUES, VALUES[0]]).overtaken == []


def test_what_is_twice_without_a_window_is_an_error() -> None:
    before = Window("stop_gateway", -60.0, -WINDOW_S - 0.1)
    after = Window("cut_gateway", 0.6, 5.0)
    found = verdict([*VALUES, VALUES[0]], before, after)
    assert found.twice == [VALUES[0]]
    assert not found.in_windows


def test_what_is_twice_while_a_window_was_open_is_counted_by_its_fault() -> None:
    window = Window("cut_gateway", 0.4, 0.5)
    found = verdict([*VALUES, VALUES[0], VALUES[1]], window)
    assert not found.twice
    assert found.in_windows == {"cut_gateway": 2}


def test_a_key_in_two_partitions_has_moved() -> None:
    found: dict[Place, tuple[bytes, bytes]] = {(0, 0): (b"k", VALUES[0]), (1, 0): (b"k", VALUES[1])}
    assert judge(found, [Known()], []).moved == [b"k"]
