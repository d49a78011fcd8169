"""Sends messages: one, many, one-way, to a chosen queue, in transactions.

    async with Producer("127.0.0.1:9876", group="shop") as producer:
        result = await producer.send(Message("orders", b"…"))

A send tries other brokers within one time budget; docs/sdk.md says what is tried again and when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader
from rockgate.protocol.remoting.message import Message as Received
from rockgate.protocol.remoting.properties import (
    CHECK_IMMUNITY_S,
    PRODUCER_GROUP,
    TRANSACTION_PREPARED,
)
from rockgate.sdk.client import Client
from rockgate.sdk.connection import Link
from rockgate.sdk.delivery import Delivery, Selector, choice
from rockgate.sdk.errors import (
    Closed,
    InvalidMessage,
    Refused,
    SdkError,
    SendFailed,
    TimedOut,
)
from rockgate.sdk.message import Message, SendResult, check_group
from rockgate.sdk.outgoing import Packer
from rockgate.sdk.replies import Reply, asking, reply_to
from rockgate.sdk.routes import Queue
from rockgate.sdk.transaction import Checker, Transaction

BODY_SIZE_MAX: Final = 4 * 1024 * 1024
COMPRESS_OVER: Final = 4096
TIMEOUT_S: Final = 3.0
RETRY_COUNT: Final = 2


class Producer:
    """Sends in the name of a group. It makes a client of its own where it is given none."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        client: Client | None = None,
        checker: Checker | None = None,
        timeout_s: float = TIMEOUT_S,
        retry_count: int = RETRY_COUNT,
        retry_not_ok: bool = False,
        avoid_slow: bool = False,
        body_size_max: int = BODY_SIZE_MAX,
        compress_over: int = COMPRESS_OVER,
    ) -> None:
        """`checker` answers brokers that ask how a local transaction ended.

        `retry_not_ok` sends again what was stored, but not as safely as it should be. `avoid_slow`
        passes over brokers that were slow or failed, for a while (`rockgate.sdk.faults`).
        """
        check_group(group)
        if client is not None and name_servers:
            raise ValueError("a producer is given name servers or a client, not both")
        self.group = group
        self.client = client or Client(name_servers)
        self._owns_client = client is None
        self._checker = checker
        self._delivery = Delivery(
            self.client,
            group,
            timeout_s=timeout_s,
            retry_count=retry_count,
            retry_not_ok=retry_not_ok,
            avoid_slow=avoid_slow,
        )
        self._packer = Packer(
            now_ms=self.client.now_ms, body_size_max=body_size_max, compress_over=compress_over
        )
        self._is_open = False
        self._was_opened = False

    # Life

    async def open(self) -> Self:
        """Begin; a producer is opened once."""
        if self._was_opened:
            raise Closed("a producer is opened once")
        self.client.add_producer(self.group)
        self._was_opened = self._is_open = True
        if self._checker is not None:
            self.client.checks.add(self.group, self._checker)
        if self._owns_client:
            await self.client.open()
        return self

    async def close(self) -> None:
        """Take leave of the brokers; sends that are under way fail with Closed."""
        if not self._is_open:
            return
        self._is_open = False
        self.client.checks.remove(self.group)
        if self._owns_client:
            await self.client.close()
        else:
            self.client.remove_producer(self.group)

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
        self._check_open()
        choose = choice(queue, key, selector)
        outgoing = await self._packer.single(message)
        [result] = await self._delivery.deliver(outgoing, choose, timeout_s)
        return result

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        key: str | bytes | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Send one message and wait for nothing: whether it was stored is never known."""
        self._check_open()
        choose = choice(queue, key, selector)
        outgoing = await self._packer.single(message)
        await self._delivery.oneway(outgoing, choose, timeout_s)

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
        self._check_open()
        choose = choice(queue, key, selector)
        parts = self._packer.batches(messages)
        sent: list[SendResult] = []
        for part in parts:
            try:
                sent += await self._delivery.deliver(part, choose, timeout_s)
            except SdkError as failed:
                if not sent:
                    raise
                reason = f"{len(sent)} of {len(messages)} messages were sent"
                raise SendFailed(reason, [str(failed)], sent) from failed
            if choose is None and len(parts) > 1:
                # One call, one queue: what follows must not be read before this.
                choose = choice(sent[-1].queue, None, None)
        return sent

    def transaction(
        self,
        message: Message,
        *,
        check_after: timedelta | None = None,
        timeout_s: float | None = None,
    ) -> Transaction:
        """A local transaction around this message; see `rockgate.sdk.transaction`.

        `check_after` is how old the message is before its broker asks; brokers have a default.
        """
        self._check_open()
        if self._checker is None:
            raise InvalidMessage("a transaction needs a producer with a checker")
        more = {TRANSACTION_PREPARED: "true", PRODUCER_GROUP: self.group}
        if check_after is not None:
            more[CHECK_IMMUNITY_S] = str(max(0, round(check_after.total_seconds())))
        return Transaction(
            self.group, _Half(self._packer, self._delivery, message, more, timeout_s)
        )

    async def request(self, message: Message, *, timeout_s: float | None = None) -> Reply:
        """Send a message and wait until another client has replied to it; TimedOut if none has."""
        self._check_open()
        budget = self._delivery.budget(timeout_s)
        replies = self.client.replies
        number, reply = replies.expect()
        try:
            more = asking(number, self.client.id, budget.left_s)
            outgoing = await self._packer.single(message, more)
            await self._delivery.deliver(outgoing, None, budget.left_s)
            async with asyncio.timeout(max(0.0, budget.left_s)):
                return await reply
        except TimeoutError as late:
            if isinstance(late, TimedOut):
                raise
            raise TimedOut(f"no reply from {message.topic} in {budget.used_s:.3g} s") from None
        finally:
            replies.forget(number)

    async def reply(
        self, request: Received, body: bytes, *, timeout_s: float | None = None
    ) -> SendResult:
        """Reply to a request that was received."""
        self._check_open()
        message, more = reply_to(request, body)
        code = RequestCode.SEND_REPLY_MESSAGE_V2
        outgoing = await self._packer.single(message, more, code=code)
        [result] = await self._delivery.deliver(outgoing, None, timeout_s)
        return result

    async def recall(self, result: SendResult, *, timeout_s: float | None = None) -> str:
        """Take back a message that was sent with a time, while it waits; returns its id."""
        self._check_open()
        return await self._delivery.recall(result, timeout_s)

    async def queues(self, topic: str) -> Sequence[Queue]:
        """The queues that a message of this topic can be sent to."""
        self._check_open()
        return (await self._delivery.route(topic, self._delivery.budget())).queues

    # Private

    def _check_open(self) -> None:
        if not self._is_open:
            raise Closed("the producer is not open: use `async with`, or `await producer.open()`")


class _Half:
    """One half message on its way, for its transaction."""

    def __init__(
        self,
        packer: Packer,
        delivery: Delivery,
        message: Message,
        more: dict[str, str],
        timeout_s: float | None,
    ) -> None:
        self._packer = packer
        self._delivery = delivery
        self._message = message
        self._more = more
        self._timeout_s = timeout_s

    async def send_half(self) -> tuple[SendResult, Link]:
        """Send it as any other message."""
        outgoing = await self._packer.single(self._message, self._more, is_half=True)
        [result] = await self._delivery.deliver(outgoing, None, self._timeout_s)
        return result, await self._delivery.link(result.queue, self._delivery.budget())

    async def end(self, link: Link, header: EndTransactionHeader) -> None:
        """Tell the outcome."""
        answer = await link.request(
            RequestCode.END_TRANSACTION,
            headers.write(header),
            timeout_s=self._delivery.budget(self._timeout_s).left_s,
        )
        if answer.code != ResponseCode.SUCCESS:
            raise Refused("end of a transaction", answer.code, answer.remark)
