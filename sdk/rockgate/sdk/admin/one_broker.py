"""Requests about messages to one broker at a known address, whatever asks it, without routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.headers.query import QueryMessageHeader, ViewMessageHeader
from rockgate.protocol.remoting.headers.send import SendHeader
from rockgate.sdk.received import Received, split

AskBroker: TypeAlias = Callable[[RequestCode, msgspec.Struct, Buffer], Awaitable[Command]]
"""Sends a request to the broker; raises for an answer that is an error."""


async def query(ask: AskBroker, header: QueryMessageHeader, broker: str = "") -> list[Received]:
    """Messages with a key or an id, oldest first; MalformedContent if they cannot be decoded.

    The index of a broker has hashes of keys, which two keys may share: others are left out.
    """
    answer = await ask(RequestCode.QUERY_MESSAGE, header, b"")
    key = header.key
    found = [
        each
        for each in split(answer.body, broker)
        if (each.message_id == key if header.unique_key_query else key in each.keys)
    ]
    return sorted(found, key=lambda each: (each.stored_at, each.position))


async def view(ask: AskBroker, position: int) -> list[Received]:
    """The message at a place of the broker's log; MalformedContent if it cannot be decoded."""
    answer = await ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader(offset=position), b"")
    return split(answer.body, "")


async def send(ask: AskBroker, header: SendHeader, body: Buffer) -> Command:
    """Send one message, as its header says."""
    return await ask(RequestCode.SEND_MESSAGE, header, body)
