"""The time slice that work may occupy the event loop.

Only this thread's CPU time counts: on a busy machine the loop may be preempted without having done
anything, and then it should continue. The clock that is cheap to read is checked first.
"""

from __future__ import annotations

from time import perf_counter, thread_time


class TimeSlice:
    """A slice of one turn of the loop, starting now."""

    __slots__ = ("_began", "_end", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = thread_time()
        self._end = perf_counter() + seconds

    def is_over(self) -> bool:
        """Whether the slice is used up."""
        now = perf_counter()
        if now < self._end:
            return False
        used = thread_time() - self._began
        self._end = now + self._seconds - used
        return used >= self._seconds
