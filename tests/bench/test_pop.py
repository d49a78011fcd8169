"""The benchmark's own arithmetic; no server runs here."""

from __future__ import annotations

from bench.delay import OURS, THEIRS
from bench.measure.results import Report
from bench.measure.run import Sampling
from bench.pop import AT_LEAST, BARRED, FULL, QUICK, SIZE, THREADS, bar, case


def test_the_bar_is_the_ratio_of_the_medians_with_sixteen_threads() -> None:
    sampling = Sampling(Report(name="pop", question="?", peers={}))
    for rate in (10.0, 30.0, 1000.0):
        sampling.note(case(BARRED), OURS, rate)
        sampling.note(case(1), OURS, 1.0)
    for rate in (25.0, 1.0, 20.0):
        sampling.note(case(BARRED), THEIRS, rate)
        sampling.note(case(1), THEIRS, 100.0)
    found = bar(sampling)
    assert (found.measured, found.holds) == (1.5, True)
    for _ in range(5):
        sampling.note(case(BARRED), OURS, 19.0)
    assert not bar(sampling).holds


def test_messages_of_a_kilobyte_are_popped_by_one_thread_and_by_sixteen() -> None:
    assert (THREADS, BARRED, SIZE, AT_LEAST) == ((1, 16), 16, 1024, 1.0)
    assert FULL.rounds >= 3 and QUICK.rounds == 1
    assert set(FULL.messages) == set(QUICK.messages) == set(THREADS)
