"""Offsets of a group in this process: they only grow, unless they are reset."""

import pytest

from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.results import Queue

FIRST, SECOND = Queue("orders", "a", 0), Queue("orders", "a", 1)


def table_of(**offsets: int) -> OffsetTable:
    table = OffsetTable()
    for name, offset in offsets.items():
        table.update({"first": FIRST, "second": SECOND}[name], offset, increase_only=True)
    return table


@pytest.mark.row("OFF-2")
def test_an_offset_moves_back_only_if_that_is_said() -> None:
    table = table_of(first=10)
    table.update(FIRST, 9, increase_only=True)
    assert table.get(FIRST) == 10
    table.update(FIRST, 11, increase_only=True)
    assert table.get(FIRST) == 11
    table.update(FIRST, 3, increase_only=False)
    assert table.get(FIRST) == 3


def test_whoever_resets_a_group_may_set_it_back() -> None:
    table = table_of(first=10)
    table.update(FIRST, 3, increase_only=False)
    assert table.get(FIRST) == 3


def test_only_what_changed_is_persisted_again() -> None:
    table = table_of(first=10, second=20)
    assert table.unpersisted() == {FIRST: 10, SECOND: 20}
    table.persisted(FIRST, 10)
    assert table.unpersisted() == {SECOND: 20}
    assert table.unpersisted([FIRST]) == {}
    table.update(FIRST, 11, increase_only=True)
    assert table.unpersisted([FIRST]) == {FIRST: 11}


def test_what_changed_while_it_was_persisted_is_persisted_again() -> None:
    table = table_of(first=10)
    table.update(FIRST, 12, increase_only=True)
    table.persisted(FIRST, 10)
    assert table.unpersisted() == {FIRST: 12}


def test_a_queue_that_was_removed_is_forgotten() -> None:
    table = table_of(first=10, second=20)
    table.remove(FIRST)
    table.persisted(FIRST, 10)
    assert table.get(FIRST) is None
    assert table.all() == {SECOND: 20}
    table.update(FIRST, 10, increase_only=True)
    assert table.unpersisted([FIRST]) == {FIRST: 10}


def test_offsets_are_reported_by_topic() -> None:
    table = table_of(first=10)
    table.update(Queue("other", "a", 0), 5, increase_only=True)
    assert table.of_topic("orders") == {FIRST: 10}
