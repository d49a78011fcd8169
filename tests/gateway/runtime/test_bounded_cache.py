from rockgate.gateway.runtime.bounded_cache import BoundedCache


def make(bytes_max: int = 30) -> BoundedCache[int, str]:
    return BoundedCache(bytes_max)


def test_a_value_is_found_by_its_key_and_lookups_are_counted() -> None:
    cache = make()
    cache.put(7, "seven", 10)
    assert (cache.get(7), cache.get(8)) == ("seven", None)
    assert (7 in cache, 8 in cache) == (True, False)
    assert (len(cache), cache.size, cache.hit_count, cache.miss_count) == (1, 10, 1, 1)


def test_the_value_not_used_for_longest_is_evicted_first() -> None:
    cache = make()
    for key in (1, 2, 3):
        cache.put(key, str(key), 10)
    cache.get(1)
    cache.put(4, "4", 10)
    assert [cache.get(key) for key in (1, 2, 3, 4)] == ["1", None, "3", "4"]
    assert cache.size == 30


def test_a_value_that_has_grown_is_counted_again() -> None:
    cache = make()
    cache.put(1, "other", 10)
    cache.put(2, "growing", 10)
    cache.put(2, "growing", 25)
    assert (1 in cache, len(cache), cache.size) == (False, 1, 25)


def test_a_value_larger_than_the_bound_stays_until_the_next_one() -> None:
    cache = make()
    cache.put(1, "small", 10)
    cache.put(2, "large", 1_000)
    assert (cache.get(2), len(cache), cache.size) == ("large", 1, 1_000)
    cache.put(3, "small", 10)
    assert (cache.get(2), len(cache), cache.size) == (None, 1, 10)
