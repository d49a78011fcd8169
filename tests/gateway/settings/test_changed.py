"""What was changed while a server ran, over its configuration."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.store.journals import MemoryJournal

from rockgate.gateway.settings.changed import ChangeableSetting, ChangedSettings, bounded
from rockgate.store.errors import StoreFull


@dataclass(frozen=True)
class Pair:
    """Two settings that may contradict each other."""

    low: int = 1
    high: int = 5

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


def number(given: object) -> object:
    assert isinstance(given, (int, str))
    return int(given)


class Changes:
    """Changed settings over a journal in memory."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        low = ChangeableSetting(Pair, "low", int, bounded(number), "oldName")
        high = ChangeableSetting(Pair, "high", int, bounded(number), "pair.high")
        self.changed = ChangedSettings(self.journal, {"pair.low": low, "pair.high": high})
        self.journal.attach(self.changed.fold)


def test_what_contradicts_the_configuration_is_left_out() -> None:
    changed = Changes().changed
    changed.put({"pair.low": 4})
    assert changed.over(Pair()) == Pair(4, 5)
    assert changed.over(Pair(high=3)) == Pair(1, 3)


@pytest.mark.row("CFG-1")
def test_the_change_for_one_broker_is_over_that_for_all_and_both_over_the_configuration() -> None:
    changed = Changes().changed
    changed.put({"pair.high": 7}, of_all=True)
    assert changed.over(Pair()) == Pair(1, 7)
    changed.put({"pair.high": 8})
    assert changed.over(Pair()) == Pair(1, 8)
    assert changed.at(of_all=True) == {"pair.high": 7} and changed.at(of_all=False) == {
        "pair.high": 8
    }
    changed.put({"pair.high": None})
    assert changed.over(Pair()) == Pair(1, 7)


def test_who_follows_a_section_hears_of_it_now_and_later_and_of_no_other() -> None:
    changed, heard = Changes().changed, list[Pair]()
    changed.follow(Pair(), heard.append)
    assert heard == [], "nothing was changed yet"
    changed.put({"pair.high": 7, "pair.low": 2})
    assert heard == [Pair(2, 7)]
    late = list[Pair]()
    changed.follow(Pair(), late.append)
    assert late == [Pair(2, 7)]
    changed.put({})
    assert len(heard) == 1


def test_what_cannot_be_written_is_heard_of_by_nobody() -> None:
    world = Changes()
    heard = list[Pair]()
    world.changed.follow(Pair(), heard.append)
    world.journal.failure = StoreFull("no room")
    with pytest.raises(StoreFull):
        world.changed.put({"pair.high": 7})
    assert heard == [] and world.changed.over(Pair()) == Pair()


def test_no_number_is_read_that_a_record_cannot_hold() -> None:
    with pytest.raises(ValueError, match="64-bit"):
        Changes().changed.read("pair.high", "9" * 19)
