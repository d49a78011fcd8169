"""Sends messages: one, many, one-way, to a chosen queue, in transactions.

    async with Producer("127.0.0.1:9876", group="shop") as producer:
        result = await producer.send(Message("orders", b"…"))

A send tries other brokers within one time budget; docs/reference/sdk.md says what is tried again
and when.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.properties import (
    CHECK_IMMUNITY_S,
    PRODUCER_GROUP,
    TRANSACTION_PREPARED,
)
from rockgate.sdk.client.checks import Checker, GroupChecker
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.replies import Reply, asking, reply_to
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.credentials import Credentials, Tls
from rockgate.sdk.errors import Closed, InvalidMessage, TimedOut
from rockgate.sdk.hooks import SendHook
from rockgate.sdk.message import Message, check_group
from rockgate.sdk.namespaces import wrap
from rockgate.sdk.observe import message_trace, telemetry
from rockgate.sdk.observe.message_trace import TraceHook, Tracer
from rockgate.sdk.producer.outgoing import Packer
from rockgate.sdk.producer.router import Router, Selector, choice
from rockgate.sdk.producer.sender import Half, Sender
from rockgate.sdk.producer.transaction import Transaction
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue, SendResult

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

BODY_SIZE_MAX: Final = 4 * 1024 * 1024
COMPRESS_OVER: Final = 4096
TIMEOUT_S: Final = 3.0
RETRY_COUNT: Final = 2
CLOSE_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class Producer:
    """Sends in the name of a group. Producers of the same name servers share one client."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        namespace: str = "",
        instance: str | None = None,
        client: Client | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        checker: Checker | None = None,
        hooks: Sequence[SendHook] = (),
        tracer_provider: TracerProvider | None = None,
        trace: bool | str = False,
        timeout_s: float = TIMEOUT_S,
        retry_count: int = RETRY_COUNT,
        retry_not_ok: bool = False,
        avoid_slow: bool = False,
        body_size_max: int = BODY_SIZE_MAX,
        compress_over: int = COMPRESS_OVER,
    ) -> None:
        """`checker` answers brokers that ask how a local transaction ended.

        `namespace` is put before topics and group on the wire. Producers with another `instance`
        have a separate client; `credentials` and `tls` are as a Client has them. `retry_not_ok`
        sends again what was stored, but not as safely as it should be. `avoid_slow` avoids
        brokers that were slow or failed, for a while (`rockgate.sdk.producer.faults`). `hooks` are
        notified of every send (`rockgate.sdk.hooks`).
        Spans are made with `tracer_provider`, or the application's own if it has set one up
        (`rockgate.sdk.observe.telemetry`). `trace` writes RocketMQ's message trace, to its own
        topic or to the one that is named (`rockgate.sdk.observe.message_trace`).
        """
        check_group(group)
        if namespace:
            check_group(namespace)
        self._lease = Lease(
            name_servers, instance=instance, client=client, credentials=credentials, tls=tls
        )
        self.group = group
        self._wire_group = wrap(namespace, group)
        self._namespace = namespace
        self._checker = checker
        self._hooks = tuple(hooks)
        self._tracer_provider = tracer_provider
        self._trace_topic = message_trace.TOPIC if trace is True else trace or ""
        self._timeout_s = timeout_s
        self._retry_count = retry_count
        self._retry_not_ok = retry_not_ok
        self._avoid_slow = avoid_slow
        self._body_size_max = body_size_max
        self._compress_over = compress_over
        self._client: Client | None = None
        self._sender: Sender | None = None
        self._tracer: Tracer | None = None
        self._was_opened = False
        self._closed = asyncio.Event()

    @property
    def client(self) -> Client:
        """The client whose connections it uses, while it is open."""
        if self._client is None:
            raise Closed("The producer is not open. Use `async with` or `await producer.open()`.")
        return self._client

    # Life

    async def open(self) -> Self:
        """Begin; a producer is opened once.

        One with a checker is announced to every broker, so that they can send it checks. That
        continues in the background until it succeeds.
        """
        if self._was_opened:
            raise Closed("The producer is already open; a producer can be opened only once.")
        client = await self._lease.open()
        try:
            sender = self._sender_over(client, self._hooks_over(client))
            client.add_producer(self._wire_group, self._group_checker(sender))
        except BaseException:
            self._lease.abort()
            raise
        self._was_opened = True
        self._client = client
        self._sender = sender
        return self

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for the sends in flight, up to the time-out, and unregister from the brokers.

        What is not answered by then fails with Closed if it was the last producer of its client,
        and continues up to its own time-out if not. A close that is cancelled waits for nothing,
        and leaves nothing open.
        """
        client, sender = self._client, self._sender
        if client is None or sender is None:
            if self._was_opened:
                await self._closed.wait()
            return
        self._client = self._sender = None
        until = asyncio.get_running_loop().time() + timeout_s
        try:
            left_count = await sender.open_calls.drained(timeout_s)
            if left_count:
                _log.warning("closed with %d sends in flight after %.3g s", left_count, timeout_s)
            if self._tracer is not None:
                left_s = until - asyncio.get_running_loop().time()
                await self._tracer.close(max(left_s, 0.0))
        except BaseException:
            if self._tracer is not None:
                self._tracer.cancel()
            client.remove_producer(self._wire_group)
            self._lease.abort()
            raise
        else:
            client.remove_producer(self._wire_group)
            await self._lease.close()
        finally:
            self._closed.set()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Sending

    async def send(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send one message and wait until its broker has it.

        Without `queue`, `key` or `selector` queues take turns. Messages of one key go to one queue.
        """
        if queue is None and key is None and selector is None:
            return await self._open.single(message, None, timeout_s)
        return await self._open.single(message, choice(queue, key, selector), timeout_s)

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Send one message without waiting for a response: whether it was stored is never known."""
        await self._open.oneway(message, choice(queue, key, selector), timeout_s)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic to one queue, in as few requests as hold them.

        If a request fails, those before it are stored: SendFailed has their results as `sent`.
        """
        return await self._open.batch(messages, choice(queue, key, selector), timeout_s)

    def transaction(
        self,
        message: Message,
        *,
        check_after: timedelta | None = None,
        timeout_s: float | None = None,
    ) -> Transaction:
        """A local transaction around this message; see `rockgate.sdk.producer.transaction`.

        `check_after` is how old the message is before its broker asks; brokers have a default.
        """
        sender = self._open
        if self._checker is None:
            raise InvalidMessage("Transactions require a producer with a checker.")
        more = {TRANSACTION_PREPARED: "true", PRODUCER_GROUP: self._wire_group}
        if check_after is not None:
            more[CHECK_IMMUNITY_S] = str(max(0, round(check_after.total_seconds())))
        return Transaction(
            self._wire_group,
            wrap(self._namespace, message.topic),
            Half(sender, message, more, timeout_s),
        )

    async def request(self, message: Message, *, timeout_s: float | None = None) -> Reply:
        """Send a message and wait until another client has replied to it; TimedOut if none has."""
        sender = self._open
        budget = sender.router.budget(timeout_s)
        replies = self.client.replies
        number, reply = replies.expect()
        try:
            more = asking(number, self.client.id, budget.left_s)
            await sender.single(message, None, budget.left_s, more=more)
            async with asyncio.timeout(max(0.0, budget.left_s)):
                return await reply
        except TimeoutError as late:
            if isinstance(late, TimedOut):
                raise
            raise TimedOut(f"No reply from {message.topic} within {budget.used_s:.3g} s.") from None
        finally:
            replies.forget(number)

    async def reply(
        self, request: Received, body: bytes, *, timeout_s: float | None = None
    ) -> SendResult:
        """Reply to a request that was received."""
        message, more = reply_to(request, body)
        code = RequestCode.SEND_REPLY_MESSAGE_V2
        return await self._open.single(message, None, timeout_s, more=more, code=code)

    async def recall(self, result: SendResult, *, timeout_s: float | None = None) -> str:
        """Cancel a delayed message that is not due yet; returns its id."""
        sender = self._open
        with sender.open_calls:
            return await sender.router.recall(result, timeout_s)

    async def queues(self, topic: str) -> Sequence[Queue]:
        """The queues that a message of this topic can be sent to."""
        router = self._open.router
        return (await router.route(topic, router.budget())).queues

    # Private

    @property
    def _open(self) -> Sender:
        if self._sender is None:
            raise Closed("The producer is not open. Use `async with` or `await producer.open()`.")
        return self._sender

    def _group_checker(self, sender: Sender) -> GroupChecker | None:
        if self._checker is None:
            return None
        return GroupChecker(
            checker=self._checker,
            namespace=self._namespace,
            hooks=sender.hooks,
        )

    def _hooks_over(self, client: Client) -> list[SendHook]:
        """The application's hooks, and those of the trace and telemetry."""
        found = list(self._hooks)
        spans = telemetry.hook(
            self._tracer_provider, client_id=client.id, namespace=self._namespace
        )
        if spans is not None:
            found.append(spans)
        if self._trace_topic:
            group = f"{message_trace.GROUP_PREFIX}-{self.group}"
            packer, router = self._packer_over(client, ""), self._router_over(client, group)

            async def send(message: Message) -> None:
                await router.deliver(await packer.single(message), None, message_trace.SEND_S)

            self._tracer = Tracer(send, self._trace_topic)
            found.append(TraceHook(client.now_ms, self._tracer.take))
        return found

    def _sender_over(self, client: Client, hooks: Sequence[SendHook]) -> Sender:
        packer = self._packer_over(client, self._namespace)
        router = self._router_over(client, self._wire_group, self._namespace)
        return Sender(self.group, packer, router, hooks)

    def _packer_over(self, client: Client, namespace: str) -> Packer:
        return Packer(
            now_ms=client.now_ms,
            body_size_max=self._body_size_max,
            compress_over=self._compress_over,
            namespace=namespace,
        )

    def _router_over(self, client: Client, group: str, namespace: str = "") -> Router:
        return Router(
            client,
            group,
            timeout_s=self._timeout_s,
            retry_count=self._retry_count,
            retry_not_ok=self._retry_not_ok,
            avoid_slow=self._avoid_slow,
            namespace=namespace,
        )
