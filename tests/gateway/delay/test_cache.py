from rockgate.gateway.delay.cache import PositionCache


def test_what_was_used_last_stays_longest() -> None:
    kept: PositionCache[str] = PositionCache(10)
    kept.put(1, "a", 4)
    kept.put(2, "b", 4)
    assert kept.get(1) == "a"
    kept.put(3, "c", 4)
    assert (kept.get(1), kept.get(2), kept.get(3)) == ("a", None, "c")
    assert kept.size == 8


def test_the_newest_stays_whatever_its_size() -> None:
    kept: PositionCache[str] = PositionCache(10)
    kept.put(1, "a", 4)
    kept.put(2, "b", 40)
    assert 1 not in kept
    assert kept.get(2) == "b"
    kept.put(2, "b", 3)
    assert kept.size == 3
