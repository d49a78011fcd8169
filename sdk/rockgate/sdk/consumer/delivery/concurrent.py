"""Listeners that run at once: a few workers, and the messages that wait for them.

Workers take what was pulled in the order in which it came, up to `batch_max` messages of one queue
together. There is no task for a message, and no lock: everything here is the loop's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rockgate.sdk.consumer.delivery.redelivery import BROKER_CHOOSES, Retry
from rockgate.sdk.consumer.delivery.settlement import QueueSettlement
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.settings import ConsumerSettings
from rockgate.sdk.received import Received

_log: Final = logging.getLogger(__name__)

Listener = Callable[[Sequence[Received]], Awaitable[int | None]]
"""Consumes messages of one queue. None: all of them; a number: those before it, the rest failed."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Messages of one queue that go to a listener together."""

    cached: ProcessQueue[Received]
    settlement: QueueSettlement
    messages: Sequence[Received]


Split = Callable[[Sequence[Received]], Iterable[Sequence[Received]]]
"""Messages of one queue as they go to a listener together."""


class ConcurrentDispatch:
    """Runs a listener for pulled messages."""

    def __init__(
        self, listener: Listener, settings: ConsumerSettings, split: Split | None = None
    ) -> None:
        self._listener = listener
        self._split = split or self._by_size
        self._settings = settings
        self._waiting: deque[_Batch] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._size = 0
        self._workers: dict[int, asyncio.Task[None]] = {}
        """By number; those from `_size` on end when their listeners do."""
        self._later: set[asyncio.TimerHandle] = set()
        self._running_count = 0
        self._is_closing = False

    def start(self) -> None:
        """Begin, on the loop that runs."""
        self.resize(self._settings.workers)

    def resize(self, workers: int) -> None:
        """Set how many listeners run at once; those that run are not interrupted."""
        if self._is_closing:
            return
        loop = asyncio.get_running_loop()
        self._size = workers
        for number in range(workers):
            worker = self._workers.get(number)
            if worker is None or worker.done():
                self._workers[number] = loop.create_task(self._work(number))
        # Surplus workers end by themselves.
        while self._idle:
            self._wake()

    def submit(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        messages: Sequence[Received],
    ) -> None:
        """Deliver messages of one queue."""
        for part in self._split(messages):
            self._waiting.append(_Batch(cached, settlement, part))
            self._wake()

    async def close(self, timeout_s: float) -> int:
        """Begin nothing more, and wait for what runs; how many did not end, and were cancelled."""
        self._is_closing = True
        self._waiting.clear()
        for handle in self._later:
            handle.cancel()
        while self._idle:
            self._wake()
        if not self._workers:
            return 0
        try:
            _, left = await asyncio.wait(self._workers.values(), timeout=timeout_s)
        finally:
            for worker in self._workers.values():
                worker.cancel()
        return len(left)

    # Private

    def _by_size(self, messages: Sequence[Received]) -> Iterable[Sequence[Received]]:
        batch_max = self._settings.batch_max
        for at in range(0, len(messages), batch_max):
            yield messages[at : at + batch_max]

    def _wake(self) -> None:
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _work(self, number: int) -> None:
        waiting = self._waiting
        while not self._is_closing and number < self._size:
            if not waiting:
                waiter = asyncio.get_running_loop().create_future()
                self._idle.append(waiter)
                await waiter
                continue
            batch = waiting.popleft()
            if not batch.cached.is_dropped:
                await self._consume(batch)

    async def _consume(self, batch: _Batch) -> None:
        messages = batch.messages
        now_s = asyncio.get_running_loop().time()
        for message in messages:
            message.started_at_s = now_s
        level = BROKER_CHOOSES
        try:
            done_count = await self._listener(messages)
        except Retry as retry:
            done_count, level = retry.done, retry.level
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("listener failed for %s", messages[0])
            done_count = 0
        if done_count is None or done_count >= len(messages):
            batch.settlement.finished(messages)
            return
        if done_count > 0:
            batch.settlement.finished(messages[:done_count])
        left = await batch.settlement.failed(messages[done_count:], level)
        if left:
            self._again(_Batch(batch.cached, batch.settlement, left))

    def _again(self, batch: _Batch) -> None:
        """No broker took these back: they are still cached, and run again in a while."""

        def due() -> None:
            self._later.discard(handle)
            if not self._is_closing:
                self._waiting.append(batch)
                self._wake()

        loop = asyncio.get_running_loop()
        handle = loop.call_later(self._settings.local_retry_s, due)
        self._later.add(handle)
