"""Calls in flight, so that a close can wait for them.

with underway: …                one call
await underway.drained(5.0)     until there is none, or 5 s have passed; how many are left
"""

from __future__ import annotations

import asyncio


class OpenCalls:
    """How many calls are under way."""

    __slots__ = ("_drained", "count")

    def __init__(self) -> None:
        self.count = 0
        self._drained: asyncio.Event | None = None

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        if self._drained is not None and not self.count:
            self._drained.set()

    async def drained(self, timeout_s: float) -> int:
        """Wait until none is left; how many are, if that takes too long."""
        if not self.count:
            return 0
        self._drained = asyncio.Event()
        try:
            async with asyncio.timeout(timeout_s):
                await self._drained.wait()
        except TimeoutError:
            pass
        return self.count
