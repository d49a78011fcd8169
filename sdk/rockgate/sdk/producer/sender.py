"""Packs and delivers messages for a group, and notifies the hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.transactions import EndTransactionHeader
from rockgate.sdk import hooks as hook_calls
from rockgate.sdk.client.connection import Link
from rockgate.sdk.errors import Refused, SdkError, SendFailed
from rockgate.sdk.hooks import Ended, SendHook, Sending, SendKind
from rockgate.sdk.message import Message
from rockgate.sdk.producer.open_calls import OpenCalls
from rockgate.sdk.producer.outgoing import Packer
from rockgate.sdk.producer.router import Choose, Router, choice
from rockgate.sdk.results import Outcome, SendResult


class Sender:
    """What a producer does with messages, for every kind of caller."""

    def __init__(
        self, group: str, packer: Packer, router: Router, hooks: Sequence[SendHook]
    ) -> None:
        self.group = group
        self.packer = packer
        self.router = router
        self.hooks = hooks
        self.open_calls = OpenCalls()
        """Its calls, up to their answers."""

    async def single(
        self,
        message: Message,
        choose: Choose | None,
        timeout_s: float | None,
        *,
        more: Mapping[str, str] | None = None,
        is_half: bool = False,
        code: int = RequestCode.SEND_MESSAGE_V2,
        on_packed: Callable[[str], None] | None = None,
    ) -> SendResult:
        """One message, with more properties than the application's.

        `on_packed` is called with its id before it is sent.
        """
        with self.open_calls:
            if not self.hooks:
                outgoing = await self.packer.single(message, more, is_half=is_half, code=code)
                if on_packed is not None:
                    on_packed(outgoing.ids[0])
                return (await self.router.deliver(outgoing, choose, timeout_s))[0]
            with self._hooked([message], is_half=is_half) as sending:
                more = {**sending.properties, **(more or {})}
                outgoing = await self.packer.single(message, more, is_half=is_half, code=code)
                sending.message_ids = outgoing.ids
                if on_packed is not None:
                    on_packed(outgoing.ids[0])
                results = await self.router.deliver(outgoing, choose, timeout_s)
                sending.results = results
                return results[0]

    async def oneway(
        self, message: Message, choose: Choose | None, timeout_s: float | None
    ) -> None:
        """One message, and no answer."""
        with self.open_calls, self._hooked([message], is_oneway=True) as sending:
            outgoing = await self.packer.single(message, sending.properties)
            sending.message_ids = outgoing.ids
            await self.router.oneway(outgoing, choose, timeout_s)

    async def batch(
        self, messages: Sequence[Message], choose: Choose | None, timeout_s: float | None
    ) -> list[SendResult]:
        """Messages of one topic, to one queue."""
        if not messages:
            return []
        with self.open_calls, self._hooked(messages) as sending:
            parts = self.packer.batches(messages, sending.properties)
            sending.message_ids = [each for part in parts for each in part.ids]
            sent: list[SendResult] = []
            for part in parts:
                try:
                    sent += await self.router.deliver(part, choose, timeout_s)
                except SdkError as failed:
                    if not sent:
                        raise
                    reason = f"Only {len(sent):,} of {len(messages):,} messages were sent."
                    raise SendFailed(reason, [str(failed)], sent, failed.code) from failed
                if choose is None and len(parts) > 1:
                    # One call, one queue: what follows must not be read before this.
                    choose = choice(sent[-1].queue, None, None)
            sending.results = sent
            return sent

    @contextmanager
    def _hooked(
        self, messages: Sequence[Message], *, is_half: bool = False, is_oneway: bool = False
    ) -> Iterator[Sending]:
        kind = SendKind.HALF if is_half else SendKind.NORMAL
        if messages[0].delay is not None:
            kind = SendKind.DELAYED
        sending = Sending(self.group, messages, kind, is_oneway=is_oneway)
        hook_calls.begin(self.hooks, sending)
        try:
            yield sending
        except BaseException as error:
            sending.error = error
            raise
        finally:
            hook_calls.end(self.hooks, sending)


class Half:
    """One half message on its way, for its transaction."""

    def __init__(
        self,
        sender: Sender,
        message: Message,
        more: dict[str, str],
        timeout_s: float | None,
    ) -> None:
        self._sender = sender
        self._message = message
        self._more = more
        self._timeout_s = timeout_s

    async def send_half(self, on_packed: Callable[[str], None]) -> tuple[SendResult, Link]:
        """Send it as any other message."""
        result = await self._sender.single(
            self._message,
            None,
            self._timeout_s,
            more=self._more,
            is_half=True,
            on_packed=on_packed,
        )
        router = self._sender.router
        return result, await router.link(result.queue, router.budget())

    async def end(self, link: Link, result: SendResult, header: EndTransactionHeader) -> None:
        """Send the outcome; over another connection, if that of the half message was closed."""
        router = self._sender.router
        budget = router.budget(self._timeout_s)
        with self._sender.open_calls:
            if link.is_closed:
                link = await router.link(result.queue, budget)
            answer = await link.request(
                RequestCode.END_TRANSACTION, headers.write(header), timeout_s=budget.left_s
            )
        if answer.code != ResponseCode.SUCCESS:
            raise Refused("end of a transaction", answer.code, answer.remark)
        message = self._message
        hook_calls.notify_ended(
            self._sender.hooks,
            Ended(
                group=self._sender.group,
                topic=message.topic,
                message_id=header.msg_id or "",
                transaction_id=header.transaction_id or "",
                store_host=link.address,
                tag=message.tag,
                keys=" ".join(message.keys) or None,
                outcome=Outcome(header.commit_or_rollback),
                is_from_check=False,
            ),
        )
