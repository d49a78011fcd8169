"""Capacity for requests in flight, bounded by count and bytes; requests over it wait in order.

A request larger than the byte limit is sent alone. The queue of waiting requests is bounded too:
beyond it a request is rejected at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from rockgate.sdk.errors import Overloaded


@dataclass(slots=True, eq=False)
class _Waiting:
    """A waiting request, and the capacity it needs."""

    turn: asyncio.Future[None]
    size: int


class InFlight:
    """The capacity in use, and the requests that wait for it."""

    __slots__ = ("_count_max", "_size_max", "_waiting", "_waiting_max", "count", "size")

    def __init__(self, *, count_max: int, size_max: int, waiting_max: int) -> None:
        assert count_max > 0
        self._count_max = count_max
        self._size_max = size_max
        self._waiting_max = waiting_max
        self._waiting: deque[_Waiting] = deque()
        self.count = 0
        self.size = 0

    @property
    def waiting_count(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def try_take(self, size: int) -> bool:
        """Reserve capacity for a request of this size, if there is some and no other waits."""
        if self._waiting or not self._fits(size):
            return False
        self.count += 1
        self.size += size
        return True

    async def take(self, size: int) -> None:
        """The same, but wait for it; what was acquired must be released."""
        if self.try_take(size):
            return
        if len(self._waiting) >= self._waiting_max:
            raise Overloaded(
                f"Too many requests: {self.count:,} in flight and {len(self._waiting):,} queued."
            )
        mine = _Waiting(asyncio.get_running_loop().create_future(), size)
        self._waiting.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine.turn.cancelled():
                self._waiting.remove(mine)
                # The next in the queue may need less.
                self._wake()
            else:
                self.give(size)
            raise

    def give(self, size: int) -> None:
        """Release capacity."""
        self.count -= 1
        self.size -= size
        if self._waiting:
            self._wake()

    def _fits(self, size: int) -> bool:
        return self.count < self._count_max and (
            self.size + size <= self._size_max or not self.count
        )

    def _wake(self) -> None:
        while self._waiting and (self._waiting[0].turn.done() or self._fits(self._waiting[0].size)):
            first = self._waiting[0]
            if first.turn.done():
                # Cancelled, and not yet resumed: it removes itself.
                return
            self._waiting.popleft()
            self.count += 1
            self.size += first.size
            first.turn.set_result(None)
