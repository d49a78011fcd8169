"""What a process costs, as the kernel counts it: processor time and memory."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all its threads, user and system."""
    # The second field is the program's name in brackets, and may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def thread_seconds(pid: int) -> float:
    """Processor time that a process's first thread has used, finer than in ticks."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def process_seconds(pid: int) -> float:
    """Processor time that a process has used, all threads that live, finer than in ticks."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def anonymous_bytes(pid: int) -> int:
    """Memory of its own that a process holds; pages of files it has mapped are not counted."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024
