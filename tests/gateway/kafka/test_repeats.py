from operator import itemgetter

from rockgate.gateway.kafka.repeats import once

KEY = itemgetter(0)


def test_items_that_come_once_are_left_as_they_are() -> None:
    items = ["a1", "b2"]
    found, repeated = once(items, KEY)
    assert found is items
    assert repeated == frozenset()


def test_items_that_come_more_often_are_kept_once_in_order_and_named() -> None:
    found, repeated = once(["b1", "a2", "b3", "c4", "c5", "c6"], KEY)
    assert [each[0] for each in found] == ["b", "a", "c"]
    assert repeated == {"b", "c"}


def test_no_items_are_none() -> None:
    assert list(once([], KEY)[0]) == []
