"""A number of turns that are taken and given back in order; the number can be changed."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """A semaphore whose size may change while it is used."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken_count = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def are_too_many(self) -> bool:
        """Whether more are taken than there are now: one that can be given back should be."""
        return self._taken_count > self._size

    async def acquire(self) -> None:
        """Take a turn as soon as there is one, in the order of the calls."""
        if self._taken_count < self._size and not self._waiting:
            self._taken_count += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # The turn was already assigned to this call, which cannot use it.
                self.release()
            raise

    def release(self) -> None:
        """Give a turn back."""
        self._taken_count -= 1
        self._hand_on()

    def resize(self, size: int) -> None:
        """Change the number of turns; those already taken are given back as usual."""
        self._size = size
        self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting and self._taken_count < self._size:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._taken_count += 1
                waiter.set_result(None)
