from __future__ import annotations

from typing import cast

from rockgate.gateway.transcode.cache import BatchCache, MessageCache
from rockgate.gateway.transcode.messages import Messages


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


def test_batches_that_were_made_are_kept_within_a_bound_of_bytes() -> None:
    cache = BatchCache(30, batch_bytes_min=5)
    for position in (1, 2, 3):
        cache.put(position, bytearray(10), position + 100)
    cache.put(3, bytearray(8), 99)
    assert cache.size == 28
    assert cache.get(1) == (bytearray(10), 101)
    cache.put(4, bytearray(10), 104)
    kept = [position for position in (1, 2, 3, 4) if cache.get(position) is not None]
    assert (kept, cache.size) == ([1, 3, 4], 28)


def test_batches_that_are_small_or_larger_than_all_room_are_not_kept() -> None:
    cache = BatchCache(30, batch_bytes_min=5)
    cache.put(1, bytearray(4), 2)
    cache.put(2, bytearray(31), 3)
    assert (cache.get(1), cache.get(2), cache.size) == (None, None, 0)
