"""Collects the results on the store."""

import contextlib

from bench.measure import pagecache
from bench.measure.results import Report
from bench.store import append, floor, memory, recovery, stalls
from bench.store.sizes import sizes

_QUESTION = "how fast are appends and starts, and how long do they hold the loop?"


def run() -> Report:
    """Measure everything but the large log."""
    report = Report(name="store", question=_QUESTION, peers={"pwritev": "os.pwritev"})
    report.notes["quick"] = sizes().is_quick
    with contextlib.ExitStack() as whole:
        if not sizes().is_quick:
            # The comparison with a plain write needs memory as a broker finds it.
            whole.enter_context(pagecache.filled(lambda text: None))
        append.measure(report)
        floor.measure(report)
    # With full memory a loop waits for its own pages to be loaded again.
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
