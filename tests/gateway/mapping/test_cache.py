from __future__ import annotations

from typing import cast

from rockgate.gateway.mapping.cache import MessageCache
from rockgate.gateway.mapping.messages import Messages


class Sized:
    """Something of a size, in place of an opened batch."""

    def __init__(self, size: int) -> None:
        self.size = size


def batch(size: int) -> Messages:
    return cast(Messages, Sized(size))


def test_what_was_put_is_found_by_its_position() -> None:
    cache, kept = MessageCache(100), batch(10)
    cache.put(7, kept)
    assert (cache.get(7), cache.get(8)) == (kept, None)
    assert (cache.size, cache.hit_count, cache.miss_count) == (10, 1, 1)


def test_the_one_not_used_for_longest_goes_first() -> None:
    cache = MessageCache(30)
    for position in (1, 2, 3):
        cache.put(position, batch(10))
    cache.get(1)
    cache.put(4, batch(10))
    assert [cache.get(position) is not None for position in (1, 2, 3, 4)] == [
        True,
        False,
        True,
        True,
    ]
    assert cache.size == 30


def test_a_batch_that_grew_is_counted_anew() -> None:
    cache, growing = MessageCache(30), batch(10)
    cache.put(1, batch(10))
    cache.put(2, growing)
    growing.size = 25
    cache.put(2, growing)
    assert (len(cache), cache.size) == (1, 25)


def test_one_larger_than_the_bound_stays_until_the_next_comes() -> None:
    cache = MessageCache(30)
    cache.put(1, batch(10))
    cache.put(2, batch(1000))
    assert (len(cache), cache.size) == (1, 1000)
    cache.put(3, batch(10))
    assert (len(cache), cache.size) == (1, 10)
