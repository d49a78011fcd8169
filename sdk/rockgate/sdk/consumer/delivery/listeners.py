"""The application's listeners: which of them a message is for, and how it is called.

A coroutine function runs on the loop, any other in a pool of threads with the caller's context. One
that was registered with `batch` is given several messages of its topic and of one queue at once.

    returns None            all of them are done
    returns a number        this many are done, from the first on; the rest is redelivered
    raises Retry            the same, and when
    raises DeadLetter       the same, and the rest is not tried again
    raises anything else    all of them are redelivered
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from rockgate.sdk.consumer.delivery.observed import Observed
from rockgate.sdk.consumer.delivery.redelivery import Retry
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.received import Received

BATCH_MAX: Final = 1024

_log: Final = logging.getLogger(__name__)

OnMessage = Callable[[Received], object]
"""Consumes one message: acknowledged when this returns, and redelivered if this raises."""
OnMessages = Callable[[Sequence[Received]], Awaitable[int | None] | int | None]
"""Consumes several; if it returns a number, that many of them are done."""


@dataclass(frozen=True, slots=True)
class _Listener:
    function: Callable[[Any], Any]
    is_async: bool
    batch_max: int | None
    """None: it is given one message, and not a list."""


class Listeners:
    """The listeners of one consumer, by topic as the application knows it."""

    def __init__(self, *, workers: int) -> None:
        self._workers = workers
        self._by_topic: dict[str, _Listener] = {}
        self._pool: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._by_topic)

    def __contains__(self, topic: str) -> bool:
        return topic in self._by_topic

    def add(self, topic: str, function: Callable[[Any], Any], batch_max: int | None) -> None:
        """Set the listener of a topic, replacing any other."""
        if batch_max is not None and not 1 <= batch_max <= BATCH_MAX:
            raise ValueError(f"batch must be 1 to {BATCH_MAX:,}, not {batch_max:,}.")
        called = getattr(function, "__call__", None)  # noqa: B004 # what is called, not whether
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._by_topic[topic] = _Listener(function, is_async, batch_max)

    def check(self, topics: Iterable[str]) -> None:
        """ValueError if some of these topics have a listener and others have none."""
        missing = sorted(topic for topic in topics if topic not in self._by_topic)
        if self._by_topic and missing:
            raise ValueError(f"Topics without a listener: {', '.join(missing)}.")

    @property
    def batch_max(self) -> int:
        """The most messages that one of them is given at once."""
        return max((each.batch_max or 1 for each in self._by_topic.values()), default=1)

    def resize(self, workers: int) -> None:
        """Set the number of threads; calls under way finish in the old ones."""
        self._workers = workers
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def close(self) -> None:
        """Start nothing more in threads. A hanging one is not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def split(self, messages: Sequence[Received]) -> Iterator[Sequence[Received]]:
        """Messages of one queue as they are handed to listeners, in their order."""
        begin = 0
        for end in self._ends(messages):
            size = self._size(messages[begin].topic)
            for at in range(begin, end, size):
                yield messages[at : min(at + size, end)]
            begin = end

    async def consume(self, messages: Sequence[Received], observed: Observed) -> int | None:
        """Pass messages to the listener part by part; returns how many are done, if not all."""
        done = 0
        for part in self.split(messages):
            try:
                with observed.call(part) as call:
                    call.done = count = await self._call(part)
            except Retry as retry:
                raise retry.with_done(done + min(retry.done, len(part))) from retry
            except Exception:
                if not done:
                    raise
                # Earlier messages are done, and the rest is redelivered as if it had failed alone.
                _log.exception("listener failed for %s", part[0])
                return done
            done += count
            if count < len(part):
                return done
        return None

    # Private

    def _ends(self, messages: Sequence[Received]) -> Iterator[int]:
        """Where parts of one topic end: a queue of a retry topic has messages of several."""
        if messages and messages[0].source.topic.startswith(RETRY_PREFIX):
            for at in range(1, len(messages)):
                if messages[at].topic != messages[at - 1].topic:
                    yield at
        yield len(messages)

    def _size(self, topic: str) -> int:
        listener = self._by_topic.get(topic)
        return (listener and listener.batch_max) or 1

    async def _call(self, part: Sequence[Received]) -> int:
        topic = part[0].topic
        listener = self._by_topic.get(topic)
        if listener is None:
            raise LookupError(f"Topic {topic} has no listener.")
        given = part[0] if listener.batch_max is None else part
        if listener.is_async:
            result = await listener.function(given)
        else:
            result = await self._in_thread(listener.function, given)
        if listener.batch_max is None or result is None:
            return len(part)
        if not isinstance(result, int) or isinstance(result, bool):
            raise TypeError(f"The listener of {topic} returned {result!r}, not a number or None.")
        return max(0, min(result, len(part)))

    async def _in_thread(self, function: Callable[[Any], Any], given: object) -> object:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, "rockgate-listener")
        run = contextvars.copy_context().run
        result: object = await asyncio.get_running_loop().run_in_executor(
            self._pool, run, function, given
        )
        # A plain function that hands back a coroutine: what it began is not done yet.
        return await result if inspect.isawaitable(result) else result
