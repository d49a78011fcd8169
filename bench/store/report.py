"""Puts the figures on the store together."""

import contextlib
from collections.abc import Callable

from bench import pagecache
from bench.results import Report
from bench.store import append, floor, memory, recovery, stalls
from bench.store.sizes import sizes

_QUESTION = "how fast are appends and starts, and how long do they hold the loop?"


def run() -> Report:
    """Measure everything but the big log."""
    report = Report(name="store", question=_QUESTION, peers={"pwritev": "os.pwritev"})
    report.notes["quick"] = sizes().is_quick
    _in_full_memory(append.measure, report)
    _in_full_memory(floor.measure, report)
    memory.measure(report)
    recovery.measure(report)
    _in_full_memory(stalls.measure, report)
    return report


def _in_full_memory(measure: Callable[[Report], None], report: Report) -> None:
    """Measure with memory as a broker finds it: what the case before it freed is cache again."""
    with contextlib.ExitStack() as whole:
        if not sizes().is_quick:
            whole.enter_context(pagecache.filled(lambda text: None))
        measure(report)


def run_big() -> Report:
    """Measure a start with a log of 10 GB."""
    question = "how long does a start take after kill -9 with a log of 10 GB?"
    report = Report(name="store-big", question=question, peers={})
    report.notes["quick"] = sizes().is_quick
    recovery.measure_big(report)
    return report
