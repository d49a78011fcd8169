"""Process metrics: CPU time, memory, file descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.telemetry.loop import LoopWatch

_PROC = Path("/proc/self")
_KIB = 1024


class ProcessSource:
    """Metrics of the process and its event loop."""

    def __init__(self, loop: LoopWatch, started: float) -> None:
        self._loop = loop
        self._started = started
        self._version = _installed_version()

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        page.add(metrics.INFO, 1, self._version)
        used = resource.getrusage(resource.RUSAGE_SELF)
        page.add(metrics.CPU, used.ru_utime + used.ru_stime)
        page.add(metrics.STARTED, self._started)
        memory = memory_bytes()
        if memory is not None:
            page.add(metrics.MEMORY, memory[0])
            page.add(metrics.ANONYMOUS, memory[1])
        if (_PROC / "fd").is_dir():
            page.add(metrics.FILES, len(os.listdir(_PROC / "fd")))
        page.add_durations(metrics.EVENT_LOOP_DELAY, self._loop.lateness)
        yield


def memory_bytes() -> tuple[int, int] | None:
    """Resident memory, and its anonymous part; None where the system does not report them."""
    try:
        lines = (_PROC / "status").read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    if "VmRSS" not in found or "RssAnon" not in found:
        return None
    resident, anonymous = (int(found[name].split()[0]) * _KIB for name in ("VmRSS", "RssAnon"))
    return resident, anonymous


def _installed_version() -> str:
    try:
        return version("rockgate")
    except PackageNotFoundError:
        return "unknown"
