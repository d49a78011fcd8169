"""Requests that wait for another client's reply, and the replies that brokers push (326).

A request is an ordinary message with CORRELATION_ID, REPLY_TO_CLIENT and TTL. Its consumer replies
with a message of the cluster's reply topic, which the broker pushes to the requesting client.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting import properties as names
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.compression import compression_of, decompress
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest
from rockgate.protocol.remoting.headers.send import PushReplyHeader
from rockgate.sdk.client.connection import Link
from rockgate.sdk.errors import Closed, InvalidMessage
from rockgate.sdk.message import Message
from rockgate.sdk.received import Received

WAITING_MAX: Final = 65_536
"""Requests of one client that may wait for their replies."""
REPLY: Final = "reply"

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What another client answered."""

    body: bytes
    properties: dict[str, str]


class Replies:
    """The requests of one client that wait for their replies."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._is_closed = False

    def expect(self) -> tuple[str, asyncio.Future[Reply]]:
        """A new correlation id and the future of its reply; call `forget` afterwards."""
        if self._is_closed:
            raise Closed("The client is closed.")
        if len(self._waiting) >= WAITING_MAX:
            raise InvalidMessage(f"Too many requests awaiting a reply: {len(self._waiting):,}.")
        number = str(uuid.uuid4())
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        return number, reply

    def forget(self, number: str) -> None:
        """Stop waiting for a reply."""
        self._waiting.pop(number, None)

    def close(self) -> None:
        """No further reply will come."""
        self._is_closed = True
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(Closed("The client was closed before the reply arrived."))
                # Retrieved here, because the caller may have given up.
                reply.exception()

    def pushed(self, link: Link, command: Command) -> None:
        """326: a reply. One that is not waited for is accepted, and dropped."""
        try:
            header = headers.read(command, PushReplyHeader)
            kind = compression_of(header.sys_flag)
            body = bytes(command.body) if kind is None else decompress(command.body, kind)
        except (MalformedRequest, MalformedContent) as wrong:
            _log.warning("cannot decode a reply from %s: %s", link.address, wrong)
            link.respond(command, Command(ResponseCode.SYSTEM_ERROR, remark=str(wrong)))
            return
        text = (header.properties or "").encode("utf-8", "surrogatepass")
        found = parse_properties(text)
        waiting = self._waiting.get(found.get(names.CORRELATION_ID, ""))
        if waiting is not None and not waiting.done():
            waiting.set_result(Reply(body=body, properties=found))
        link.respond(command, Command(ResponseCode.SUCCESS))


def asking(number: str, client_id: str, ttl_s: float) -> dict[str, str]:
    """The properties that make a message a request."""
    return {
        names.CORRELATION_ID: number,
        names.REPLY_TO_CLIENT: client_id,
        names.TTL: str(max(1, round(ttl_s * 1000))),
    }


def reply_to(request: Received, body: bytes) -> tuple[Message, Mapping[str, str]]:
    """The message that answers a request, and its properties besides."""
    asked = request.properties
    try:
        message = Message(f"{asked[names.CLUSTER]}_REPLY_TOPIC", body)
        copied = (names.CORRELATION_ID, names.REPLY_TO_CLIENT, names.TTL)
        return message, {
            names.MESSAGE_TYPE: REPLY,
            **{name: asked[name] for name in copied if name != names.TTL or name in asked},
        }
    except KeyError as missing:
        raise InvalidMessage(
            f"The message is not a request: property {missing} is missing."
        ) from None
