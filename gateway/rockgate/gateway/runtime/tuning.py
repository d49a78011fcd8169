"""Interpreter and malloc settings for a long-running server.

All were measured. Reading frames of up to 1 MB cost 0.50-0.60 s of CPU per GB with malloc's
defaults, which return large blocks to the kernel after each request, and 0.23-0.31 s with these.
What threads have freed could not be given back from heaps of their own, so there is one for all. A
full garbage collection of a server with 10,000 topics took 56-129 ms, in the middle of whatever the
loop was doing; what is there at the start never becomes garbage, so it is left out of them. A
collection of what is younger took 51-72 ms when 400,000 objects were young together, as they are in
a request of 100,000 things; with the thresholds here it visits some 30,000 in a tenth of it. The
loop waited up to 5 ms, Python's default, for threads that compute a little beside it (write a
snapshot's bytes, count what was flushed), and with a millisecond it waits for one.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_MIB = 1 << 20
_SWITCH_SECONDS = 0.001
_YOUNG = 5_000
_MIDDLE = 5
_OLD = 3_200
_YOUNGER = 1
FREEZE_EVERY = 1_000
"""How many new topics make another freeze worthwhile."""


def tune_allocator() -> None:
    """Let malloc retain large blocks for the next request; only with glibc."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, 256 * _MIB)
        libc.mallopt(_M_MMAP_THRESHOLD, 32 * _MIB)
        libc.mallopt(_M_ARENA_MAX, 1)


def tune_threads() -> None:
    """Let a waiting thread have the interpreter after a millisecond."""
    sys.setswitchinterval(_SWITCH_SECONDS)


def tune_collector() -> None:
    """Collect young garbage as usual and old garbage rarely; existing objects are frozen."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.collect()
    gc.freeze()


class Freezer:
    """Freezes again whenever there are many more topics: they live until they are deleted.

    Garbage that is frozen is never freed, so the young generations are collected first. The old
    one is not, because that takes as long as a full collection: 255 ms in the middle of a
    request that creates 100,000 topics. So a long-lived object that is released later, such as a
    topic or a fetch session, must not be a cycle. Topics that come and go are no reason to freeze.
    """

    def __init__(self, topic_count: Callable[[], int]) -> None:
        self._topic_count = topic_count
        self._frozen_count = topic_count()

    def made(self, topic: object) -> None:
        """Count a new topic."""
        count = self._topic_count()
        self._frozen_count = min(self._frozen_count, count)
        if count - self._frozen_count >= FREEZE_EVERY:
            self._frozen_count = count
            gc.collect(_YOUNGER)
            gc.freeze()
