"""Sends: 10, 310 and 320; and replies to requests: 324 and 325.

Behaviour
- A send is answered with the message's place: an offset message id, queue and offset. The id
  that the client gave comes back as `transactionId`.
- A batch has as many ids as messages, with commas between, and the first one's offset.
- What is in the log and not known to be on disk in time is FLUSH_DISK_TIMEOUT: the client reports
  that as a status, not as an error.
- A reply is pushed (326) to the requesting client, by the id in REPLY_TO_CLIENT, and stored in the
  reply topic.

Departs from RocketMQ
- A batch has at most 4,096 messages, as many as our own client puts into one; RocketMQ bounds its
  bytes only, and so do we besides.
- Properties take at most 31,487 bytes, and 32,767 in RocketMQ: what a delay, a send-back or a move
  adds later fits, so nothing is accepted that could not be delivered.
- sysFlag bits that are not the client's to set are ignored.
- A reply finds the requester by its request too: RocketMQ knows it from its first heartbeat on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.messages.recall import make_handle
from rockgate.gateway.remoting.messages.sender import Header, Sender
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.storage.durability import Late
from rockgate.protocol.entry import get_property, pack_properties, parse_properties
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.headers.send import (
    PushReplyHeader,
    SendHeader,
    SendHeaderV2,
    SentHeader,
)
from rockgate.protocol.remoting.hot.answers import OffsetMessageIds, sent
from rockgate.protocol.remoting.properties import DELAYING_PART
from rockgate.store.api.append import Appended, AppendedMessages
from rockgate.store.api.clock import Clock
from rockgate.store.api.queues import Queue

PUSH_SECONDS_MAX = 3.0
REGION = b"DefaultRegion"
_SUCCESS = int(ResponseCode.SUCCESS)
Stored: TypeAlias = Appended | AppendedMessages


class Sends:
    """Processors of sends."""

    def __init__(
        self,
        *,
        sender: Sender,
        clients: Clients,
        clock: Clock,
        store_host: bytes,
        address: str,
        broker_name: str,
        took: Callable[[Queue, float], None] = lambda queue, seconds: None,
    ) -> None:
        """`took` is called with the queue and the time of a slow send."""
        self._took = took
        self._broker_name = broker_name
        self._sender = sender
        self._clients = clients
        self._clock = clock
        self._message_ids = OffsetMessageIds(store_host)
        self._address = address

    def send(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """310 and 10: one message, unless it is marked as a batch."""
        header = command.header
        if header is None:
            header = _header(command)
        if header.batch:
            return self._batch(header, command, caller)
        taken = self._sender.take(header, command.body, caller)
        if isinstance(taken, Appended):
            return self._answer(command, header, taken)
        return self._later(command, header, taken)

    def was_slow(self, command: Command, seconds: float) -> None:
        """Report a slow send, if its queue exists."""
        header = command.header or _header(command)
        queue = self._sender.find_queue(header.topic, header.queue_id)
        if queue is not None:
            self._took(queue, seconds)

    def send_batch(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """320: several messages."""
        return self._batch(command.header or _header(command), command, caller)

    def _batch(self, header: Header, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        taken = self._sender.take_batch(header, command.body, caller)
        if isinstance(taken, AppendedMessages):
            return [self._sent(command, header, taken)]
        return self._later(command, header, taken)

    async def _later(self, command: Command, header: Header, taken: Awaitable[Stored]) -> Reply:
        try:
            appended = await taken
        except Late as late:
            place = headers.write(self._place(header, cast(Stored, late.answer)))
            return Command(ResponseCode.FLUSH_DISK_TIMEOUT, place, remark=str(late))
        if isinstance(appended, Appended):
            return self._answer(command, header, appended)
        return [self._sent(command, header, appended)]

    def _answer(self, command: Command, header: Header, appended: Appended) -> Reply:
        """Respond with the place of one message; one delayed to a time can be recalled."""
        properties = header.properties
        if not properties or DELAYING_PART not in properties:
            return [self._sent(command, header, appended)]
        handle = make_handle(
            header.topic, self._broker_name, properties, appended.offset, appended.store_ms
        )
        if handle is None:
            return [self._sent(command, header, appended)]
        place = self._place(header, appended, handle)
        return Command(ResponseCode.SUCCESS, headers.write(place))

    def _place(self, header: Header, appended: Stored, handle: str | None = None) -> SentHeader:
        return SentHeader(
            msg_id=self._ids(appended).decode(),
            queue_id=appended.queue_id,
            queue_offset=appended.offset,
            transaction_id=_transaction_id(header.properties),
            recall_handle=handle,
            msg_region=REGION.decode(),
            trace_on="true",
        )

    def _ids(self, appended: Stored) -> bytes:
        if isinstance(appended, Appended):
            return self._message_ids.one(appended.position)
        return self._message_ids.all(appended.positions)

    def _sent(self, command: Command, header: Header, appended: Stored) -> bytes:
        return sent(
            command.encoding,
            command.opaque,
            _SUCCESS,
            self._ids(appended),
            appended.queue_id,
            appended.offset,
            _transaction_id(header.properties),
            REGION,
        )

    # Replies

    def reply(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """324 and 325: store a reply and push it to the requester."""
        return self._reply(command, caller)

    async def _reply(self, command: Command, caller: Caller) -> Reply:
        header = _header(command)
        properties = parse_properties((header.properties or "").encode("utf-8", "surrogatepass"))
        client_id = properties.get("REPLY_TO_CLIENT", "")
        asker = self._clients.find_producer(client_id)
        if asker is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"push reply message fail, channel of <{client_id[:200]}> not found.",
            )
        await self._push(header, properties, command.body, caller, asker)
        taken = self._sender.take(header, command.body, caller)
        appended = taken if isinstance(taken, Appended) else await taken
        return [self._sent(command, header, appended)]

    async def _push(
        self,
        header: Header,
        properties: dict[str, str],
        body: Buffer,
        caller: Caller,
        asker: Caller,
    ) -> None:
        now_ms = self._clock.now_ms()
        reply_properties = {**properties, "PUSH_REPLY_TIME": str(now_ms)}
        pushed = PushReplyHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=pack_properties(reply_properties.items()).decode("utf-8", "replace"),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
            born_host=str(caller.peer.remote),
            store_host=self._address,
            store_timestamp=now_ms,
        )
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        try:
            answer = await asker.ask(code, headers.write(pushed), body, PUSH_SECONDS_MAX)
        except (TimeoutError, ConnectionError) as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"push reply message fail, {error}") from error
        if answer.code != ResponseCode.SUCCESS:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"push reply message fail, the client answers {answer.code} {answer.remark}",
            )


def _header(command: Command) -> Header:
    is_long = command.code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
    kind: Any = SendHeader if is_long else SendHeaderV2
    return cast(Header, headers.read(command, kind))


def _transaction_id(properties: str | None) -> str | None:
    """The id that the client gave the message."""
    if not properties:
        return None
    at = properties.find("UNIQ_KEY\x01")
    if at > 0 and properties[at - 1] != "\x02":
        found = get_property(properties.encode("utf-8", "surrogatepass"), b"UNIQ_KEY")
        return None if found is None else found.decode("utf-8", "replace")
    if at < 0:
        return None
    end = properties.find("\x02", at)
    return properties[at + 9 :] if end < 0 else properties[at + 9 : end]
