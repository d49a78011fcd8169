"""Recall of delayed messages: 370.

Behaviour
- A message delayed to a time is recalled by the handle that its send was answered with.
- Of a recall and the delivery exactly one happens, the first in the log.
- A message that is not or no longer waiting, or that is another one, is ILLEGAL_OPERATION.

Departs from RocketMQ
- Its broker answers SUCCESS before it knows whether the message still waits.
- Messages that wait by level have no handle there either.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.remoting.messages.delay import Delays
from rockgate.gateway.remoting.messages.recall import read_handle
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.send import RecalledHeader, RecallHeader

REGION = "DefaultRegion"


class DelayRequests:
    """Recalls delayed messages."""

    def __init__(self, *, delays: Delays, durability: Durability) -> None:
        self._delays = delays
        self._durability = durability

    def recall(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """370: recall a delayed message."""
        header = headers.read(command, RecallHeader)
        handle = read_handle(header.recall_handle)
        if handle is None or handle.topic != header.topic:
            raise Refused(ResponseCode.ILLEGAL_OPERATION, "recall failed, handle is invalid")
        if not self._delays.recall(handle.topic, handle.unique_key, handle.offset):
            raise Refused(
                ResponseCode.ILLEGAL_OPERATION,
                "recall failed, the message has been delivered or recalled",
            )
        recalled = RecalledHeader(msg_id=handle.unique_key, msg_region=REGION)
        return self._durability.after_changes(
            Command(ResponseCode.SUCCESS, headers.write(recalled))
        )
