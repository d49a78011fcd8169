import pytest
from bench.measure import pagecache
from bench.measure.pagecache import filled, free_bytes


def test_free_memory_is_what_the_kernel_says() -> None:
    assert free_bytes() > 0


def test_filling_tells_how_far_it_is_and_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagecache, "free_bytes", lambda: pagecache.LEFT_FREE + (128 << 20))
    told: list[str] = []
    with filled(told.append):
        assert told == ["filling the page cache: 0 of 0 GiB"]
