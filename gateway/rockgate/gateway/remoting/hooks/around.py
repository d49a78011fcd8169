"""Calls hooks around the processors of sends and consumption.

Processors are wrapped once, at the start, and only if there are hooks: without any, a request costs
nothing more. Hooks run on the event loop, in the order of the setting, and must not block. One that
raises is logged and counted, and affects neither the request nor the other hooks.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, Final, TypeAlias, cast

from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.remoting.hooks.contexts import ConsumeContext, SendContext
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Handle, Reply, failed
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, RequestCode
from rockgate.protocol.remoting.command import Command, decode
from rockgate.protocol.remoting.headers.pop import PopHeader
from rockgate.protocol.remoting.headers.pull import PullHeader
from rockgate.protocol.remoting.headers.send import SendBackHeader, SendHeader, SendHeaderV2

log = logging.getLogger(__name__)
Context: TypeAlias = SendContext | ConsumeContext
Read: TypeAlias = Callable[[Command, Caller], Context]
LOGGED_EVERY: Final = 1_000
"""Failures of a hook per log line; the first one is always logged."""
_LENGTH: Final = 4
_SENDS: Final = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
)
_LONG: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
"""Sends with the long names of fields."""
_CONSUMES: Final = (
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.POP_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
)


class Hooks:
    """The hooks of a server, in order."""

    def __init__(
        self, hooks: Iterable[tuple[str, object]], now: Callable[[], float] = perf_counter
    ) -> None:
        self._hooks = [*hooks]
        self._now = now
        self.failed_counts = dict.fromkeys((name for name, _ in self._hooks), 0)
        """How often each hook has raised."""

    def around(self, table: Mapping[RequestCode, Handle]) -> dict[RequestCode, Handle]:
        """The table, with the processors of sends and consumption wrapped."""
        wrapped = dict(table)
        if self._hooks:
            for code in _SENDS:
                wrapped[code] = self._wrap(wrapped[code], _send, "before_send", "after_send")
            for code in _CONSUMES:
                wrapped[code] = self._wrap(
                    wrapped[code], _consume, "before_consume", "after_consume"
                )
        return wrapped

    def _wrap(self, handle: Handle, read: Read, before: str, after: str) -> Handle:
        first, last = self._methods(before), self._methods(after)

        def hooked(command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
            # A request that cannot be read is refused by its processor; no hook sees it.
            context, began = read(command, caller), self._now()
            self._call(first, context)
            try:
                reply = handle(command, caller)
            except (ProtocolError, Disconnect):
                raise
            except Exception as error:  # noqa: BLE001 # decided by type in failed()
                reply = failed(command, caller, error)
            if inspect.isawaitable(reply):
                return later(command, caller, reply, context, began)
            self._end(last, context, began, reply)
            return reply

        async def later(
            command: Command, caller: Caller, reply: Awaitable[Any], context: Context, began: float
        ) -> Reply:
            try:
                answer = await reply
                if inspect.isawaitable(answer):
                    answer = await answer
            except (ProtocolError, Disconnect):
                raise
            except Exception as error:  # noqa: BLE001 # decided by type in failed()
                answer = failed(command, caller, error)
            self._end(last, context, began, answer)
            return cast(Reply, answer)

        return hooked

    def _methods(self, method: str) -> list[tuple[str, Callable[[Context], object]]]:
        return [
            (name, getattr(hook, method)) for name, hook in self._hooks if hasattr(hook, method)
        ]

    def _end(
        self,
        methods: list[tuple[str, Callable[[Context], object]]],
        context: Context,
        began: float,
        reply: Reply,
    ) -> None:
        size = 0
        if isinstance(reply, list):
            size = sum(map(len, reply))
            # The head has the code and fields; the messages behind it need not be copied.
            reply = decode(memoryview(reply[0])[_LENGTH:]) if reply else Command(0)
        outcome = context.outcome
        outcome.code, outcome.remark = reply.code, reply.remark or ""
        outcome.seconds = self._now() - began
        fields = reply.fields or {}
        if isinstance(context, SendContext):
            context.message_id = fields.get("msgId") or ""
            context.queue_offset = int(fields.get("queueOffset") or -1)
        else:
            context.answer_bytes = size
        self._call(methods, context)

    def _call(
        self, methods: list[tuple[str, Callable[[Context], object]]], context: Context
    ) -> None:
        for name, method in methods:
            try:
                method(context)
            except Exception:
                count = self.failed_counts[name]
                self.failed_counts[name] = count + 1
                if count % LOGGED_EVERY == 0:
                    log.exception("hook failed hook=%s failures=%d", quoted(name), count + 1)


def _send(command: Command, caller: Caller) -> SendContext:
    kind: Any = SendHeader if command.code in _LONG else SendHeaderV2
    header = command.header or headers.read(command, kind)
    return SendContext(
        client=str(caller.peer.remote),
        producer_group=header.producer_group,
        topic=header.topic,
        queue_id=header.queue_id,
        body_bytes=len(command.body),
        properties=header.properties or "",
        is_batch=header.batch or command.code == RequestCode.SEND_BATCH_MESSAGE,
        is_oneway=bool(command.flag & ONEWAY_FLAG),
    )


def _consume(command: Command, caller: Caller) -> ConsumeContext:
    client = str(caller.peer.remote)
    if command.code == RequestCode.CONSUMER_SEND_MSG_BACK:
        back = headers.read(command, SendBackHeader)
        return ConsumeContext(
            client=client,
            consumer_group=back.group,
            topic=back.origin_topic or "",
            kind="send back",
            offset=back.offset,
        )
    if command.code == RequestCode.POP_MESSAGE:
        pop = headers.read(command, PopHeader)
        return ConsumeContext(
            client=client,
            consumer_group=pop.consumer_group,
            topic=pop.topic,
            kind="pop",
            queue_id=pop.queue_id,
            count_max=pop.max_msg_nums,
        )
    pull = cast(PullHeader, command.header or headers.read(command, PullHeader))
    return ConsumeContext(
        client=client,
        consumer_group=pull.consumer_group,
        topic=pull.topic,
        kind="pull",
        queue_id=pull.queue_id,
        offset=pull.queue_offset,
        count_max=pull.max_msg_nums,
    )
