"""Answers that wait for the disk: what was acknowledged under sync flush survives a power cut.

One fsync serves all who wait. An answer that need not wait is given back as it is, so that the
usual request costs no future.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from rockgate.store.errors import FlushTimeout
from rockgate.store.store import Store

A = TypeVar("A")


class Durability:
    """Holds answers back until the log is on disk as far as they need it."""

    def __init__(self, store: Store) -> None:
        self._log = store.log
        self._flusher = store.flusher
        self._is_sync = store.config.flush == "sync"
        self._seconds_max = store.config.flush_timeout_ms / 1000

    def after_changes(self, answer: A, *, is_sync: bool = False) -> A | asyncio.Future[A]:
        """The answer, once every change made so far is as safe as the server's setting says.

        With `is_sync` it waits for the disk whatever the server's setting: a topic's own asks it.
        """
        return self.after(self._log.end, answer) if is_sync or self._is_sync else answer

    def after(self, position: int, answer: A) -> A | asyncio.Future[A]:
        """The answer, once everything before a position is on disk; FlushTimeout if it is late."""
        if position <= self._flusher.flushed:
            return answer
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()

        def give_up() -> None:
            if not future.done():
                future.set_exception(FlushTimeout(position))

        timer = loop.call_later(self._seconds_max, give_up)

        def told(failure: OSError | None) -> None:
            timer.cancel()
            if future.done():
                return
            if failure is None:
                future.set_result(answer)
            else:
                future.set_exception(FlushTimeout(position))

        self._flusher.when_flushed(position, told)
        return future
