"""How long a second client waits for ApiVersions while something happens to a server.

The machine may be busy: a wait only counts as far as the server's own threads ran during it, by the
kernel's accounting, and the best of several tries is used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer

STALL_SECONDS_MAX = 0.050
"""The bar: no request blocks the event loop for longer."""


def stall_seconds(server: RunningServer, work: Callable[[], object], *, tries: int = 3) -> float:
    """The longest wait of a bystander while `work` runs, in the best of some tries."""
    best = float("inf")
    for _ in range(tries):
        best = min(best, _one(server, work))
        if best < STALL_SECONDS_MAX:
            break
    return best


def _one(server: RunningServer, work: Callable[[], object]) -> float:
    over = threading.Event()
    worst = 0.0

    def ask() -> None:
        nonlocal worst
        with RawClient(server) as client:
            while not over.is_set():
                began, ran = time.monotonic(), ran_seconds(server.pid)
                client.api_versions()
                waited = min(time.monotonic() - began, ran_seconds(server.pid) - ran)
                worst = max(worst, waited)
                over.wait(0.001)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        work()
    finally:
        over.set()
        asking.join()
    return worst


def ran_seconds(pid: int) -> float:
    """The CPU time of a process's threads."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


def forget_peak(pid: int) -> None:
    """Reset the kernel's memory peak of a process."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_bytes(pid: int) -> int:
    """The memory peak since then."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel tells no peak")
