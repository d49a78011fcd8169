"""The machine: interpreter, event loop, open files, memory, clock."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rockgate.cli.doctor.finding import Finding, ok, warning
from rockgate.cli.text.values import size_text

OPEN_FILES_WANTED: Final = 65_536
MEMORY_WANTED: Final = 512 << 20
_TIMEX_BYTES: Final = 1024
"""More than the kernel's struct timex has; all zeros asks and changes nothing."""
_UNSYNCHRONIZED: Final = 5


def check(meminfo: Path = Path("/proc/meminfo")) -> Iterator[Finding]:
    """All of it."""
    yield interpreter()
    yield open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield memory(_meminfo(meminfo))
    yield clock(_clock_state())


def interpreter() -> Finding:
    """Python, and the event loop that the server was measured with."""
    version = ".".join(map(str, sys.version_info[:3]))
    if find_spec("uvloop") is None:
        return warning(
            "python",
            f"Python {version} without uvloop.",
            "Install rockgate[server]: without uvloop the server needs more CPU time.",
        )
    return ok("python", f"Python {version} with uvloop.")


def open_files(limit: int) -> Finding:
    """Every connection and every segment of the log is an open file."""
    if limit != resource.RLIM_INFINITY and limit < OPEN_FILES_WANTED:
        return warning(
            "open files",
            f"The limit is {limit:,}, and each connection needs one.",
            f"Raise it to {OPEN_FILES_WANTED:,}: LimitNOFILE= of a systemd unit, or `ulimit -Hn`.",
        )
    text = "unlimited" if limit == resource.RLIM_INFINITY else f"{limit:,}"
    return ok("open files", f"The limit is {text}.")


def memory(meminfo: Mapping[str, int]) -> Finding:
    """The server itself takes little; the log is read through the page cache."""
    available = meminfo.get("MemAvailable")
    if available is None:
        return ok("memory", "Unknown on this system.")
    if available < MEMORY_WANTED:
        return warning(
            "memory",
            f"{size_text(available)} are available.",
            f"Leave at least {size_text(MEMORY_WANTED)} for the server and the page cache.",
        )
    return ok("memory", f"{size_text(available)} are available.")


def clock(state: int | None) -> Finding:
    """Delays, retention and time stamps follow the clock of the machine."""
    if state is None:
        return ok("clock", "Whether it is synchronized is not known on this system.")
    if state == _UNSYNCHRONIZED:
        return warning(
            "clock",
            "It is not synchronized.",
            "Run chrony or systemd-timesyncd: delayed messages and retention follow the clock.",
        )
    return ok("clock", "It is synchronized.")


def _meminfo(path: Path) -> dict[str, int]:
    """Bytes by name; empty where there is no such file."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    fields = (line.split() for line in lines)
    return {each[0].rstrip(":"): int(each[1]) << 10 for each in fields if len(each) > 1}


def _clock_state() -> int | None:
    """What adjtimex returns; None where there is none."""
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else int(state)
