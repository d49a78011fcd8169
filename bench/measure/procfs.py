"""Resource usage of a process as counted by the kernel: CPU time and memory."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process: all threads, user and system."""
    # The second field is the program's name in parentheses, and may contain anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def thread_seconds(pid: int) -> float:
    """Return the CPU time of a process's first thread, more precise than in ticks."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def process_seconds(pid: int) -> float:
    """Return the CPU time of a process's live threads, more precise than in ticks."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def anonymous_bytes(pid: int) -> int:
    """Return the anonymous memory of a process; pages of mapped files are not counted."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024
