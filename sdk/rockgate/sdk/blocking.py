"""Producer and consumer for programs without a loop: the same calls, which wait.

    with BlockingProducer("127.0.0.1:9876", group="shop") as producer:
        producer.send(Message("orders", b"…"))

    with BlockingConsumer("127.0.0.1:9876", group="billing", topics=["orders"]) as consumer:
        for message in consumer:
            …

They are thin faces over `Producer` and `Consumer`, which run on one background loop: one thread for
all of them in the process, there while any is open. Calls may come from any thread.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from types import TracebackType
from typing import Final, Protocol, Self, Unpack

from rockgate.sdk.background import background
from rockgate.sdk.client.replies import Reply
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.signals import SIGNALS
from rockgate.sdk.errors import Closed
from rockgate.sdk.message import Message
from rockgate.sdk.observe.statistics import ConsumerStatistics
from rockgate.sdk.options import ConsumerOptions, ProducerOptions
from rockgate.sdk.producer.producer import CLOSE_S, Producer
from rockgate.sdk.producer.router import Selector
from rockgate.sdk.producer.transaction import Transaction
from rockgate.sdk.received import Received
from rockgate.sdk.results import Outcome, Queue, SendResult

CHECKERS_MAX: Final = 8
"""Threads of one producer that may run its checker at the same time."""


class BlockingTransaction:
    """A transaction as a plain `with` block; rules and outcomes are those of `Transaction`."""

    def __init__(self, inner: Transaction) -> None:
        self._inner = inner

    @property
    def result(self) -> SendResult:
        """Where the half message is stored."""
        return self._inner.result

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return self._inner.outcome

    @property
    def is_confirmed(self) -> bool:
        """Whether the broker has said that the message ended so."""
        return self._inner.is_confirmed

    @property
    def failure(self) -> Exception | None:
        """Why it is not confirmed, once the block has ended."""
        return self._inner.failure

    def rollback(self) -> None:
        """Roll back when the block ends, however it ends."""
        self._inner.rollback()

    def __enter__(self) -> Self:
        background.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return background.run(self._inner.__aexit__(kind, error, trace))


class _Inner(Protocol):
    async def open(self) -> object: ...

    async def close(self, timeout_s: float) -> None: ...


class _Face:
    """What is opened and closed from outside of the loop that it runs on."""

    def __init__(self, inner: _Inner) -> None:
        self._opened = inner
        self._is_open = False
        self._lock = threading.Lock()

    def open(self) -> Self:
        """Begin; it is opened once."""
        background.acquire()
        try:
            background.run(self._opened.open())
        except BaseException:
            background.release()
            raise
        self._is_open = True
        return self

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for what is in flight, up to the time-out, and unregister from the brokers.

        The last to close ends the background loop. A checker or listener that hangs is not waited
        for beyond that.
        """
        background.check_thread()
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
        try:
            background.run(self._opened.close(timeout_s))
        finally:
            self._ended()
            background.release()

    def _ended(self) -> None:
        """It is closed."""

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class BlockingProducer(_Face):
    """A `Producer` whose calls wait. Its checker is a plain function, run in a pool of threads."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        checker: Callable[[Received], Outcome] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """`options` are those of `Producer`."""

        # A dedicated pool: a slow checker holds up no other producer, and no dial.
        self._checkers = ThreadPoolExecutor(CHECKERS_MAX, "rockgate-checker")

        async def check(message: Received) -> Outcome:
            assert checker is not None
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._checkers, checker, message)

        self._inner = Producer(
            name_servers, group=group, checker=None if checker is None else check, **options
        )
        super().__init__(self._inner)

    def _ended(self) -> None:
        self._checkers.shutdown(wait=False, cancel_futures=True)

    def send(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send one message and wait until its broker has it."""
        return background.run(
            self._inner.send(message, queue=queue, key=key, selector=selector, timeout_s=timeout_s)
        )

    def submit(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> Future[SendResult]:
        """Send one message without waiting; the future has the result, or calls back with it."""
        return background.submit(
            self._inner.send(message, queue=queue, key=key, selector=selector, timeout_s=timeout_s)
        )

    def send_oneway(self, message: Message, *, key: str | bytes | None = None) -> None:
        """Send one message; whether it was stored is never known."""
        background.run(self._inner.send_oneway(message, key=key))

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic to one queue, in as few requests as hold them."""
        return background.run(
            self._inner.send_batch(messages, queue=queue, key=key, timeout_s=timeout_s)
        )

    def transaction(
        self,
        message: Message,
        *,
        check_after: timedelta | None = None,
        timeout_s: float | None = None,
    ) -> BlockingTransaction:
        """A local transaction around this message, as a `with` block."""
        return BlockingTransaction(
            self._inner.transaction(message, check_after=check_after, timeout_s=timeout_s)
        )

    def request(self, message: Message, *, timeout_s: float | None = None) -> Reply:
        """Send a message and wait until another client has replied to it."""
        return background.run(self._inner.request(message, timeout_s=timeout_s))

    def reply(
        self, request: Received, body: bytes, *, timeout_s: float | None = None
    ) -> SendResult:
        """Reply to a request that was received."""
        return background.run(self._inner.reply(request, body, timeout_s=timeout_s))

    def recall(self, result: SendResult, *, timeout_s: float | None = None) -> str:
        """Take back a message that was sent with a time, while it waits; returns its id."""
        return background.run(self._inner.recall(result, timeout_s=timeout_s))

    def queues(self, topic: str) -> Sequence[Queue]:
        """The queues that a message of this topic can be sent to."""
        return background.run(self._inner.queues(topic))


class BlockingConsumer(_Face):
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
        self._inner = Consumer(name_servers, group=group, topics=topics, **options)
        super().__init__(self._inner)
        self._may_end = threading.Event()
        self.on = self._inner.on
        """Have messages of a topic consumed by a function, in one of the consumer's threads."""

    def _ended(self) -> None:
        self._may_end.set()

    def __iter__(self) -> Iterator[Received]:
        self._inner.__aiter__()
        return self

    def __next__(self) -> Received:
        """The next message; the one before it is acknowledged by that."""

        async def following() -> Received | None:
            return await anext(self._inner, None)

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

    def run(self) -> None:
        """Open, have listeners consume until SIGINT or SIGTERM comes, and close.

        For the main thread, where Python handles signals; handlers are as they were afterwards.
        """

        def came(_: int, __: object) -> None:
            self._may_end.set()

        self._inner.check_listeners()
        before = {each: signal.signal(each, came) for each in SIGNALS}
        try:
            with self:
                self._may_end.wait()
        finally:
            for each, handler in before.items():
                # None: it was not installed from Python, and cannot be restored.
                if handler is not None:
                    signal.signal(each, handler)

    async def _pause(self, topics: Sequence[str]) -> None:
        self._inner.pause(*topics)

    async def _resume(self, topics: Sequence[str]) -> None:
        self._inner.resume(*topics)

    async def _statistics(self) -> ConsumerStatistics:
        return self._inner.statistics

    def pause(self, *topics: str) -> None:
        """Pull no more of these topics, or of all; what was pulled is still delivered."""
        background.run(self._pause(topics))

    def resume(self, *topics: str) -> None:
        """Pull these topics again, or all."""
        background.run(self._resume(topics))

    @property
    def statistics(self) -> ConsumerStatistics:
        """How it does now."""
        if not self._is_open:
            return self._inner.statistics
        return background.run(self._statistics())
