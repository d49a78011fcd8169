"""Timing rivals against each other on a machine that is never quiet.

Rivals take turns in short bursts, so whatever else the machine does hits all of them alike; the
ratio of their medians is then worth more than any number alone. Steps that hold an event loop are
timed on the thread's own clock: what other processes took is not theirs.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping

Work = Callable[[], object]

BURST_SECONDS = 0.0005
WARM_UP_SECONDS = 0.05


def race(rivals: Mapping[str, Work], rounds: int) -> dict[str, list[float]]:
    """Microseconds per call of each rival: one sample for each of `rounds` bursts."""
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


def steps_ms(steps: Callable[[], Iterator[Work]], rounds: int) -> list[float]:
    """Milliseconds of the longest step: one sample for each of `rounds` runs of all the steps.

    What exists already is hidden from the garbage collector first, as a server does after its
    start: otherwise a full collection, which can come at any step, is all that would be measured.
    """
    longest = []
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        worst = 0.0
        for step in steps():
            start = time.thread_time()
            step()
            worst = max(worst, time.thread_time() - start)
        longest.append(round(worst * 1e3, 3))
    gc.unfreeze()
    return longest


def ratio(samples: Mapping[str, list[float]], ours: str, theirs: str) -> float:
    """How much of their time we take, by the medians."""
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
