"""Puts the figures on the store together."""

import contextlib

from bench.measure import pagecache
from bench.measure.results import Report
from bench.store import append, floor, memory, recovery, stalls
from bench.store.sizes import sizes

_QUESTION = "how fast are appends and starts, and how long do they hold the loop?"


def run() -> Report:
    """Measure everything but the big log."""
    report = Report(name="store", question=_QUESTION, peers={"pwritev": "os.pwritev"})
    report.notes["quick"] = sizes().is_quick
    with contextlib.ExitStack() as whole:
        if not sizes().is_quick:
            # What is compared with a plain write is charged for no memory but a broker's.
            whole.enter_context(pagecache.filled(lambda text: None))
        append.measure(report)
        floor.measure(report)
    # A loop beside full memory waits for its own pages to come back from disk.
    for measure in (memory.measure, recovery.measure, stalls.measure):
        measure(report)
    return report


def run_big() -> Report:
    """Measure a start with a log of 10 GB."""
    question = "how long does a start take after kill -9 with a log of 10 GB?"
    report = Report(name="store-big", question=question, peers={})
    report.notes["quick"] = sizes().is_quick
    recovery.measure_big(report)
    return report
