"""Responses that wait for an fsync: what is acknowledged with sync flush survives a power failure.

What they wait for is the committed position: on a node by itself that is what is on disk.

One fsync serves all waiting responses. Those of one turn of the loop request it together, when the
turn is over: requested immediately, it would start after the first of many requests. A response
that need not wait is returned as it is, so that the usual request costs no future.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, TypeVar

from rockgate.store.api.store import CommittedLog
from rockgate.store.errors import FlushTimeout

A = TypeVar("A")


class Late(FlushTimeout):
    """Raised for an append that is stored, but was not flushed to disk in time."""

    def __init__(self, position: int, answer: Any) -> None:
        super().__init__(position)
        self.answer = answer
        """The response without the flush: its position in the log is known."""


class Durability:
    """Delays responses until the log is on disk as far as they require."""

    def __init__(self, store: CommittedLog) -> None:
        self._log = store.log
        self._commit = store.commit
        self._is_sync = store.config.flush == "sync"
        self._seconds_max = store.config.flush_timeout_ms / 1000
        self._gathered: list[_PendingAnswer] = []

    def after_changes(self, answer: A, *, is_sync: bool = False) -> A | asyncio.Future[A]:
        """The response, once every change so far is as durable as the server's setting requires.

        With `is_sync` it waits for the disk whatever the server's setting, because the topic's own
        setting requires it.
        """
        return self.after(self._log.end, answer) if is_sync or self._is_sync else answer

    def after(self, position: int, answer: A) -> A | asyncio.Future[A]:
        """The response, once everything before a position is committed.

        Late if it takes too long, DiskFailed if it never will be.
        """
        if position <= self._commit.position:
            return answer
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        if not self._gathered:
            loop.call_soon(self._ask)
        self._gathered.append(_PendingAnswer(position, future, answer))
        return future

    def _ask(self) -> None:
        """Request one flush for all responses of this turn."""
        gathered, self._gathered = self._gathered, []
        committed = self._commit.position
        held = []
        for each in gathered:
            if each.position <= committed:
                each.settle(None)
            else:
                held.append(each)
        if not held:
            return

        def settle_all(failure: Exception | None) -> None:
            timer.cancel()
            for each in held:
                each.settle(failure)

        def give_up() -> None:
            for each in held:
                each.give_up()

        timer = asyncio.get_running_loop().call_later(self._seconds_max, give_up)
        self._commit.when_committed(max(each.position for each in held), settle_all)


class _PendingAnswer(NamedTuple):
    """A response that waits for the disk."""

    position: int
    future: asyncio.Future[Any]
    answer: Any

    def settle(self, failure: Exception | None) -> None:
        """Complete the response, or fail it because the disk failed."""
        if self.future.done():
            return
        if failure is None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(failure.with_traceback(None))

    def give_up(self) -> None:
        """Respond that the flush took too long."""
        if not self.future.done():
            self.future.set_exception(Late(self.position, self.answer))
