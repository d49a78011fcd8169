"""Timing contenders against each other on a machine that is never quiet.

Contenders take turns in short bursts, so that other load affects all of them alike; the ratio of
their medians is then more meaningful than any single number.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping

Work = Callable[[], object]

BURST_SECONDS = 0.0005
WARM_UP_SECONDS = 0.05


def race(rivals: Mapping[str, Work], rounds: int) -> dict[str, list[float]]:
    """Return microseconds per call of each contender: one sample per burst."""
    for work in rivals.values():
        _warm_up(work)
    counts = {name: _calls_in_a_burst(work) for name, work in rivals.items()}
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, work in rivals.items():
            repeats = range(counts[name])
            start = time.perf_counter()
            for _ in repeats:
                work()
            elapsed = time.perf_counter() - start
            samples[name].append(round(elapsed / counts[name] * 1e6, 3))
    return samples


def steps_ms(steps: Callable[[], Iterator[Work]], rounds: int, *, is_calm: bool) -> list[float]:
    """Return milliseconds of the longest step: one sample for each of `rounds` runs of all steps.

    Calm means without external effects: measured on the thread's clock, which does not advance
    while other processes run, and with existing objects frozen for the garbage collector. Otherwise
    on the wall clock, with a collector that may run in any step.
    """
    clock = time.thread_time if is_calm else time.perf_counter
    longest = []
    gc.collect()
    if is_calm:
        gc.freeze()
    for _ in range(rounds):
        worst = 0.0
        for step in steps():
            start = clock()
            step()
            worst = max(worst, clock() - start)
        longest.append(round(worst * 1e3, 3))
    gc.unfreeze()
    return longest


def ratio(samples: Mapping[str, list[float]], ours: str, theirs: str) -> float:
    """Return our time relative to theirs, by the medians."""
    return round(statistics.median(samples[ours]) / statistics.median(samples[theirs]), 3)


def _warm_up(work: Work) -> None:
    end = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < end:
        work()


def _calls_in_a_burst(work: Work) -> int:
    work()
    start = time.perf_counter()
    for _ in range(3):
        work()
    return max(1, int(BURST_SECONDS / ((time.perf_counter() - start) / 3)))
