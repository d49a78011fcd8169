"""The producer for programs without a loop: the same calls, which wait.

    with BlockingProducer("127.0.0.1:9876", group="shop") as producer:
        producer.send(Message("orders", b"…"))

It is a thin face over `Producer`, which runs on one background loop: one thread for all blocking
producers of the process, there while any of them is open. Its calls may come from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from rockgate.sdk.client.replies import Reply
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.message import Message
from rockgate.sdk.producer.producer import CLOSE_S, Producer
from rockgate.sdk.producer.router import Selector
from rockgate.sdk.producer.transaction import Transaction
from rockgate.sdk.received import Received
from rockgate.sdk.results import Outcome, Queue, SendResult

T = TypeVar("T")

CHECKERS_MAX: Final = 8
"""Threads of one producer that may run its checker at the same time."""
END_S: Final = 1.0
JOIN_S: Final = 5.0
"""How long the last to close waits for the background loop to end."""


class Background:
    """One loop in one thread, for as long as somebody uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None

    def acquire(self) -> None:
        """One user more; the first starts it."""
        with self._lock:
            self._user_count += 1
            if self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="rockgate-sdk", daemon=True
                )
                self._thread.start()

    def release(self) -> None:
        """One user less; the last ends it."""
        with self._lock:
            self._user_count -= 1
            if self._user_count or self._loop is None or self._thread is None:
                return
            loop, thread = self._loop, self._thread
            self._thread = self._loop = None
        # Waited for without the lock: whoever opens meanwhile has a loop of its own.
        loop.call_soon_threadsafe(loop.stop)
        thread.join(JOIN_S)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run it there; the future may be waited for in any other thread."""
        try:
            self.check_thread()
            # Under the lock, for a loop that ends takes nothing any more and says nothing.
            with self._lock:
                if self._loop is None:
                    raise Closed("The producer is not open. Use `with` or `producer.open()`.")
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except SdkError:
            coroutine.close()
            raise

    def check_thread(self) -> None:
        """Refuse to wait on the loop for the loop."""
        if threading.current_thread() is self._thread:
            raise SdkError("Blocking calls from the SDK's event loop would deadlock.")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait."""
        future = self.submit(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise Closed("The producer was closed before the response arrived.") from None
        finally:
            # Of use only if the wait was interrupted: what nobody waits for ends there too.
            future.cancel()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_end_tasks())
    finally:
        # It waits for no thread of its pool: what is looked up or compressed is nobody's by now.
        loop.close()


async def _end_tasks() -> None:
    """Cancel what is left, so that nobody waits for it for ever."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S)


_background: Final = Background()


class BlockingTransaction:
    """A transaction as a plain `with` block; rules and outcomes are those of `Transaction`."""

    def __init__(self, inner: Transaction) -> None:
        self._inner = inner

    @property
    def result(self) -> SendResult:
        """Where the half message lies."""
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
        _background.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return _background.run(self._inner.__aexit__(kind, error, trace))


class BlockingProducer:
    """A `Producer` whose calls wait. Its checker is a plain function, run in a pool of threads."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        checker: Callable[[Received], Outcome] | None = None,
        **settings: Any,
    ) -> None:
        """`settings` are those of `Producer`."""

        # A pool of its own: a slow checker holds up no other producer, and no dial.
        self._checkers = ThreadPoolExecutor(CHECKERS_MAX, "rockgate-checker")

        async def check(message: Received) -> Outcome:
            assert checker is not None
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._checkers, checker, message)

        self._inner = Producer(
            name_servers, group=group, checker=None if checker is None else check, **settings
        )
        self._is_open = False
        self._lock = threading.Lock()

    def open(self) -> Self:
        """Begin; a producer is opened once."""
        _background.acquire()
        try:
            _background.run(self._inner.open())
        except BaseException:
            _background.release()
            raise
        self._is_open = True
        return self

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for what is under way, so long at most, and take leave of the brokers.

        The last producer to close ends the background loop. A checker that runs is not waited for.
        """
        _background.check_thread()
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
        try:
            _background.run(self._inner.close(timeout_s))
        finally:
            self._checkers.shutdown(wait=False, cancel_futures=True)
            _background.release()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
        return _background.run(
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
        """Send one message and go on; the future has the result, or calls back with it."""
        return _background.submit(
            self._inner.send(message, queue=queue, key=key, selector=selector, timeout_s=timeout_s)
        )

    def send_oneway(self, message: Message, *, key: str | bytes | None = None) -> None:
        """Send one message; whether it was stored is never known."""
        _background.run(self._inner.send_oneway(message, key=key))

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic to one queue, in as few requests as hold them."""
        return _background.run(
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
        return _background.run(self._inner.request(message, timeout_s=timeout_s))

    def reply(
        self, request: Received, body: bytes, *, timeout_s: float | None = None
    ) -> SendResult:
        """Reply to a request that was received."""
        return _background.run(self._inner.reply(request, body, timeout_s=timeout_s))

    def recall(self, result: SendResult, *, timeout_s: float | None = None) -> str:
        """Take back a message that was sent with a time, while it waits; returns its id."""
        return _background.run(self._inner.recall(result, timeout_s=timeout_s))

    def queues(self, topic: str) -> Sequence[Queue]:
        """The queues that a message of this topic can be sent to."""
        return _background.run(self._inner.queues(topic))
