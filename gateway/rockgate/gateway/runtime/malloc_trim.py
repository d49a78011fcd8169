"""Returns memory to the system that malloc retains after large requests.

malloc retains what was freed for the next request (`tuning.tune_allocator`), and between blocks
that are still used it could not return it by itself anyway: after an answer of 119 MB the server
held 117 MB of unused memory. So a thread checks the private memory of the process periodically.
Where it has grown much since the last trim, it is trimmed, and some more times after that: what
made it grow may have still been in progress.

All of it happens beside the loop and without the interpreter's lock, a few megabytes at a time;
only threads that allocate at the same moment wait, for some milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 2.0
GROWN_BYTES: Final = 16 << 20
"""Growth since the last trim from which on another is worthwhile."""
STEP_BYTES: Final = 8 << 20
STEP_SECONDS: Final = 0.002
QUIET_SHARE: Final = 0.25
"""CPU share below which the process is idle: while a trim runs, allocations wait up to 80 ms."""
PUT_OFF_MAX: Final = 30
"""How many checks a trim is delayed at most while the process is busy."""
ROUNDS: Final = 6
"""How often memory is trimmed after the process has grown."""
_PAGE_SIZE: Final = os.sysconf("SC_PAGESIZE")


def own_bytes() -> int:
    """Anonymous memory of this process; 0 where the system does not report it."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE_SIZE


class _Info(ctypes.Structure):
    """malloc's statistics, in the order of glibc's `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def trim() -> None:
    """Return unused memory of malloc to the system, a little at a time; only with glibc."""
    libc = ctypes.CDLL(None)
    give_back = getattr(libc, "malloc_trim", None)
    look = getattr(libc, "mallinfo2", None)
    if give_back is None or look is None:
        return
    look.restype = _Info
    above = look().keepcost
    while above > STEP_BYTES:
        above -= STEP_BYTES
        give_back(ctypes.c_size_t(above))
        # Let threads that wait for malloc have it first.
        time.sleep(STEP_SECONDS)
    give_back(ctypes.c_size_t(0))


class Trimming:
    """Decides when memory is returned to the system. `step` is one check."""

    def __init__(
        self,
        measure: Callable[[], int] = own_bytes,
        trim: Callable[[], None] = trim,
        *,
        processor: Callable[[], float] = time.process_time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._measure = measure
        self._trim = trim
        self._processor = processor
        self._now = now
        self._looked = (now(), processor())
        self._put_off = 0
        self._least = measure()
        self._rounds = 0

    def step(self) -> None:
        """Trim if the process has grown much."""
        is_quiet = self._is_quiet()
        has = self._measure()
        self._least = min(self._least, has)
        if has - self._least >= GROWN_BYTES and not self._rounds:
            self._rounds = ROUNDS
        if not self._rounds:
            return
        if not is_quiet and self._put_off < PUT_OFF_MAX:
            self._put_off += 1
            return
        self._put_off = 0
        self._trim()
        self._rounds -= 1
        if not self._rounds:
            # What is left after this many trims is in use.
            self._least = self._measure()

    def _is_quiet(self) -> bool:
        """Whether the process has used little CPU since the last check."""
        before, used = self._looked
        self._looked = (self._now(), self._processor())
        passed = self._looked[0] - before
        return self._looked[1] - used <= QUIET_SHARE * passed


class TrimmingThread:
    """Checks periodically, from its creation until it is stopped."""

    def __init__(self, trimming: Trimming, seconds: float = LOOK_SECONDS) -> None:
        self._trimming = trimming
        self._seconds = seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rockgate-trim", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop checking."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._seconds):
            self._trimming.step()
