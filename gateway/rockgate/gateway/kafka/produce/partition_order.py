"""Orders requests that take longer than a call, one after the other for each partition.

A request takes effect before the next one of its connection is read; one that must wait for a
thread cannot. So later ones for the same partitions wait as well, in the order in which they
arrived. Each waits only for earlier ones, so there is no deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Requests in progress, by partition. Nearly always there are none."""

    def __init__(self) -> None:
        self.last: dict[Hashable, asyncio.Future[None]] = {}
        """The last request in progress for each partition; looked up by every request."""
        self._tasks: set[asyncio.Task[object]] = set()

    def take(
        self, partitions: Iterable[Hashable], work: Callable[[], Awaitable[T]]
    ) -> asyncio.Future[T]:
        """Run work when the earlier requests for these partitions are done.

        What was received takes effect even if its connection is lost meanwhile, as it would have
        done at once: only the answer is cancelled.
        """
        mine = list(partitions)
        before = {self.last[each] for each in mine if each in self.last}
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.last.update(dict.fromkeys(mine, done))

        async def turn() -> T:
            try:
                for each in before:
                    await each
                return await work()
            finally:
                for partition in mine:
                    if self.last.get(partition) is done:
                        del self.last[partition]
                done.set_result(None)

        task = asyncio.ensure_future(turn())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)
