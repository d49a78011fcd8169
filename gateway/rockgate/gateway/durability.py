"""Answers that wait for the disk: given when the log is flushed up to where it was promised."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from rockgate.store.errors import FlushTimeout
from rockgate.store.flush import Flusher

Answer = TypeVar("Answer")


def when_flushed(
    flusher: Flusher, position: int, answer: Answer, *, seconds_max: float
) -> asyncio.Future[Answer]:
    """Return a future of `answer`; FlushTimeout if the disk fails or takes too long."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Answer] = loop.create_future()

    def give_up() -> None:
        if not future.done():
            future.set_exception(FlushTimeout(position))

    timer = loop.call_later(seconds_max, give_up)

    def told(failure: OSError | None) -> None:
        timer.cancel()
        if future.done():
            return
        if failure is None:
            future.set_result(answer)
        else:
            future.set_exception(FlushTimeout(position))

    flusher.when_flushed(position, told)
    return future
