import time

import pytest

from rockgate.gateway.runtime import time_slice
from rockgate.gateway.runtime.time_slice import TimeSlice


def test_a_share_is_over_when_this_thread_has_worked_that_long() -> None:
    began = time.thread_time()
    share = TimeSlice(0.002)
    while not share.is_over():
        pass
    assert time.thread_time() - began >= 0.002


def test_time_that_passes_without_work_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    asked: list[float] = []
    monkeypatch.setattr(time_slice, "perf_counter", lambda: now)

    def thread_time() -> float:
        asked.append(now)
        return 0.0

    monkeypatch.setattr(time_slice, "thread_time", thread_time)
    share = TimeSlice(10.0)
    now = 100.0
    assert not share.is_over(), "the cheap clock says so, and this thread's own does not"
    now = 109.0
    assert not share.is_over()
    assert asked == [0.0, 100.0], "the cheap clock is enough again"
