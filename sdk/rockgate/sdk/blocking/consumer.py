"""A consumer for programs without a loop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Unpack, overload

from rockgate.sdk.background import background
from rockgate.sdk.blocking.face import Face, OnLoop, Waiting
from rockgate.sdk.consumer.consumer import CLOSE_S, Consumer
from rockgate.sdk.consumer.delivery.listeners import OnMessage, OnMessages
from rockgate.sdk.consumer.signals import SIGNALS
from rockgate.sdk.errors import Closed
from rockgate.sdk.observe.statistics import ConsumerStatistics
from rockgate.sdk.options import ConsumerOptions
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue


class BlockingConsumer(Face):
    """A `Consumer` whose calls wait: iterated over, or with listeners that are plain functions.

    `for message in consumer` is as `async for` is: asking for the next message acknowledges the one
    before it. It ends when another thread closes the consumer.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        topics: Mapping[str, str] | Sequence[str] = (),
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """`options` are those of `Consumer`."""
        self.inner = Consumer(name_servers, group=group, topics=topics, **options)
        super().__init__(self.inner)
        self._may_end = threading.Event()
        self.on = self.inner.on
        """Have messages of a topic consumed by a function, in one of the consumer's threads."""

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for listeners that run, up to the time-out, commit, and leave the group.

        The last to close ends the background loop. A listener that hangs is not waited for beyond
        that.
        """
        self._close(partial(self.inner.close, timeout_s))

    def _ended(self) -> None:
        self._may_end.set()

    def __iter__(self) -> Iterator[Received]:
        self.inner.__aiter__()
        return self

    def __next__(self) -> Received:
        """The next message; the one before it is acknowledged by that."""

        async def following() -> Received | None:
            return await anext(self.inner, None)

        try:
            message = background.run(following())
        except Closed:
            if self._is_open:
                raise
            message = None
        if message is None:
            raise StopIteration
        return message

    def ack(self, message: Received) -> None:
        """It is consumed. A message is settled once; more does nothing."""
        background.run(message.ack())

    def retry(self, message: Received, after: timedelta | None = None) -> None:
        """Deliver it again: after the broker's next delay, or at least after this time."""
        background.run(message.retry(after))

    def dead_letter(self, message: Received) -> None:
        """Do not deliver it again: it goes to the group's dead letters at once."""
        background.run(message.dead_letter())

    def run(self) -> None:
        """Open, have listeners consume until SIGINT or SIGTERM comes, and close.

        For the main thread, where Python handles signals; handlers are as they were afterwards.
        """

        def came(_: int, __: object) -> None:
            self._may_end.set()

        self.inner.check_listeners()
        before = {each: signal.signal(each, came) for each in SIGNALS}
        try:
            with self:
                self._may_end.wait()
        finally:
            for each, handler in before.items():
                # None: it was not installed from Python, and cannot be restored.
                if handler is not None:
                    signal.signal(each, handler)

    @overload
    def subscribe(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        listener: OnMessage | None = None,
    ) -> None: ...

    @overload
    def subscribe(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        listener: OnMessages,
        batch: int,
    ) -> None: ...

    def subscribe(self, topic: str, tags: str = "*", **how: Any) -> None:
        """Consume another topic from now on, or other messages of one."""
        background.run(self.inner.subscribe(topic, tags, **how))

    unsubscribe = Waiting(Consumer.unsubscribe)
    queues_of = Waiting(Consumer.queues_of)
    resize = OnLoop(Consumer.resize)
    pause = OnLoop(Consumer.pause)
    resume = OnLoop(Consumer.resume)

    @property
    def statistics(self) -> ConsumerStatistics:
        """Its current state: rates over the last minute, cached messages, and lag."""
        if not self._is_open:
            return self.inner.statistics
        return self._asked(lambda: self.inner.statistics)

    @property
    def queues(self) -> Sequence[Queue]:
        """The queues that this member reads now, those of its group's retry topic included."""
        return self.inner.queues
