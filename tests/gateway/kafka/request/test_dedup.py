from operator import itemgetter

from rockgate.gateway.kafka.request.chunked import at_once
from rockgate.gateway.kafka.request.dedup import PIECE_COUNT, distinct_in_steps, once, once_in_steps

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


def test_in_steps_it_is_the_same_and_no_step_is_long() -> None:
    for items in (["a1", "b2"], ["b1", "a2", "b3", "c4", "c5", "c6"], []):
        found, repeated = at_once(once_in_steps(items, KEY))
        assert (list(found), repeated) == (list(once(items, KEY)[0]), once(items, KEY)[1])
    many = [(number,) for number in range(10 * PIECE_COUNT)]
    # As many steps to find them as to free them.
    assert sum(1 for _ in once_in_steps(many, KEY)) == 20


def test_each_key_is_kept_once_in_its_order() -> None:
    assert list(at_once(distinct_in_steps(iter("abcab")))) == ["a", "b", "c"]
    assert sum(1 for _ in distinct_in_steps(range(10 * PIECE_COUNT))) == 10
