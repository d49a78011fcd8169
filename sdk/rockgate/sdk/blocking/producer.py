"""A producer for programs without a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Final, Self, Unpack

from rockgate.sdk.background import background
from rockgate.sdk.blocking.face import Face
from rockgate.sdk.client.replies import Reply
from rockgate.sdk.message import Message
from rockgate.sdk.options import ProducerOptions
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
        """Its outcome."""
        return self._inner.outcome

    @property
    def is_confirmed(self) -> bool:
        """Whether the broker has confirmed the outcome."""
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


class BlockingProducer(Face):
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

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for sends in flight, up to the time-out, and unregister from the brokers.

        The last to close ends the background loop. A checker that hangs is not waited for beyond
        that.
        """
        self._close(partial(self._inner.close, timeout_s))

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
        """Cancel a delayed message that is not due yet; returns its id."""
        return background.run(self._inner.recall(result, timeout_s=timeout_s))

    def queues(self, topic: str) -> Sequence[Queue]:
        """The queues that a message of this topic can be sent to."""
        return background.run(self._inner.queues(topic))
