"""Messages waiting to be iterated over one by one, where there is no listener."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from rockgate.sdk.consumer.delivery.order import Ruling, Verdict
from rockgate.sdk.consumer.delivery.settlement import QueueSettlement
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.received import Received


class Inbox:
    """Messages in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[ProcessQueue[Received], Received]] = deque()
        self._offered: dict[Received, asyncio.Future[Verdict]] = {}
        self._arrived = asyncio.Event()
        self._is_closed = False

    def submit(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        messages: Sequence[Received],
    ) -> None:
        """Offer messages to the iterator."""
        self._waiting.extend((cached, message) for message in messages)
        self._arrived.set()

    async def get(self) -> Received:
        """The next message of a queue that is still held."""
        while True:
            while self._waiting:
                cached, message = self._waiting.popleft()
                if not cached.is_dropped:
                    message.started_at_s = asyncio.get_running_loop().time()
                    return message
                self.settled(message, Verdict(Ruling.ABANDONED))
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Notify all waiters that no more messages will come."""
        self._is_closed = True
        self._waiting.clear()
        self._arrived.set()

    # In order: one message of each queue at a time

    def offer(self, cached: ProcessQueue[Received], message: Received) -> asyncio.Future[Verdict]:
        """Offer a message to the iterator; the future has its outcome."""
        future = self._offered[message] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: self._offered.pop(message, None))
        self._waiting.append((cached, message))
        self._arrived.set()
        return future

    def withdraw(self, message: Received) -> None:
        """Do not deliver a message that has not been requested so far."""
        for at, (_, each) in enumerate(self._waiting):
            if each is message:
                del self._waiting[at]
                self.settled(message, Verdict(Ruling.ABANDONED))
                return

    def settled(self, message: Received, verdict: Verdict) -> None:
        """The consumer of a message has settled it."""
        future = self._offered.get(message)
        if future is not None and not future.done():
            future.set_result(verdict)
