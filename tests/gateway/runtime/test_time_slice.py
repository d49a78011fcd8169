import time

from rockgate.gateway.runtime.time_slice import TimeSlice


def test_a_share_is_over_when_this_thread_has_worked_that_long() -> None:
    began = time.thread_time()
    share = TimeSlice(0.002)
    while not share.is_over():
        pass
    assert time.thread_time() - began >= 0.002


def test_time_that_passes_without_work_does_not_count() -> None:
    share = TimeSlice(10.0)
    share._end = 0.0
    assert not share.is_over(), "the cheap clock says so, and this thread's own does not"
    assert share._end > time.perf_counter()
