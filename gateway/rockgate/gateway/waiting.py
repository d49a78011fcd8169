"""Long polls of both sides: who waits for more in which queue, until when.

A poll waits on queues, not on time alone: an append wakes those who wait on its queue, and each
decides whether it has enough. Polls are woken once per turn of the loop however many appends there
were, so that a burst costs each waiter one look.

Nothing here knows what a poll wants; it only knows whom to ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from rockgate.store.consumequeue import Queue

Result = TypeVar("Result")


class Poll(Generic[Result]):
    """One waiting request."""

    __slots__ = ("_look", "_timer", "_waiting", "future", "queues")

    def __init__(
        self,
        waiting: Waiting,
        queues: tuple[Queue, ...],
        look: Callable[[bool], Result | None],
        future: asyncio.Future[Result],
    ) -> None:
        self._waiting = waiting
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self.queues = queues
        self.future = future

    def begin(self, timer: asyncio.TimerHandle) -> None:
        """Start waiting; whatever ends the future ends the poll."""
        self._timer = timer
        self.future.add_done_callback(self._end)

    def look(self, is_last: bool = False) -> None:
        """Ask whether there is enough now, or take what there is if time is up."""
        if self.future.done():
            return
        try:
            result = self._look(is_last)
        except Exception as error:  # noqa: BLE001  # the one who waits is told, whatever it is
            self.future.set_exception(error)
            return
        if result is not None:
            self.future.set_result(result)

    def _end(self, future: asyncio.Future[Result]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.forget(self)


class Waiting:
    """All polls that wait, by queue."""

    def __init__(self) -> None:
        self._polls: dict[Queue, dict[Poll[object], None]] = {}
        self._woken: dict[Poll[object], None] = {}
        self._is_scheduled = False
        self._is_finishing = False

    def __len__(self) -> int:
        return len({poll for polls in self._polls.values() for poll in polls})

    def poll(
        self,
        queues: Iterable[Queue],
        wait_ms: int,
        look: Callable[[bool], Result | None],
    ) -> asyncio.Future[Result]:
        """Wait until `look` has something to say, or `wait_ms` are over.

        `look` is called with False after an append to one of the queues, and returns None to go
        on waiting; with True when time is up, and then returns what there is.
        """
        loop = asyncio.get_running_loop()
        poll: Poll[Result] = Poll(self, tuple(queues), look, loop.create_future())
        kept: Poll[object] = poll  # type: ignore[assignment]  # kept to be woken, whatever it yields
        for queue in poll.queues:
            self._polls.setdefault(queue, {})[kept] = None
        wait_s = 0.0 if self._is_finishing else wait_ms / 1000
        poll.begin(loop.call_later(wait_s, poll.look, True))
        return poll.future

    def finish(self) -> None:
        """Answer every poll with what there is: the server stops, and nobody waits from now on."""
        self._is_finishing = True
        for poll in {poll: None for polls in self._polls.values() for poll in polls}:
            poll.look(True)

    def wake(self, queue: Queue) -> None:
        """Note that a queue has more; called on every append, so it is cheap when nobody waits."""
        polls = self._polls.get(queue)
        if polls:
            self._woken.update(polls)
            if not self._is_scheduled:
                self._is_scheduled = True
                asyncio.get_running_loop().call_soon(self._look_all)

    def wake_flushed(self) -> None:
        """Note that the high watermark has moved, which queues that are not sync do not feel."""
        for queue in list(self._polls):
            if queue.is_sync:
                self.wake(queue)

    def _look_all(self) -> None:
        self._is_scheduled = False
        woken, self._woken = self._woken, {}
        for poll in woken:
            poll.look()

    def forget(self, poll: Poll[Result]) -> None:
        """Let go of a poll that has ended."""
        for queue in poll.queues:
            polls = self._polls.get(queue)
            if polls is not None:
                polls.pop(poll, None)  # type: ignore[arg-type]  # see poll()
                if not polls:
                    del self._polls[queue]
