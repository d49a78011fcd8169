"""Delayed messages: recalled (370) and counted (61).

Behaviour
- A message delayed to a time is recalled by the handle that its send was answered with.
- Of a recall and the delivery exactly one happens, the first in the log.
- A message that is not or no longer waiting, or that is another one, is ILLEGAL_OPERATION.
- 61 counts the messages that wait for a time, by the topic that they are for; those that wait by
  level are not among them, as in RocketMQ. Every one is read for it, so it is refused with the
  command to use instead if there are more than COUNTED_MAX.

Departs from RocketMQ
- Its broker answers SUCCESS before it knows whether the message still waits.
- `timeStamp` of 61 is when the messages were counted; there, when the count last changed.
- Messages that wait by level have no handle there either.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.remoting.admin.delays import DelayAdmin
from rockgate.gateway.remoting.messages.delay import Delays
from rockgate.gateway.remoting.messages.recall import read_handle
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import joined, keyed
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.statistics import TimerCount
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.admin import ScanDelaysHeader
from rockgate.protocol.remoting.headers.send import RecalledHeader, RecallHeader
from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC

REGION: Final = "DefaultRegion"
COUNTED_MAX: Final = 100_000
"""Messages that one request may count."""


class DelayRequests:
    """Recalls and counts delayed messages."""

    def __init__(self, *, delays: Delays, admin: DelayAdmin, durability: Durability) -> None:
        self._delays = delays
        self._admin = admin
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

    def metrics(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """61: how many messages wait for a time, by topic."""
        return self._metrics()

    async def _metrics(self) -> Reply:
        counts: dict[str, int] = {}
        at, now_ms = 0, 0
        while at >= 0:
            part = await self._admin.scan(ScanDelaysHeader(start=at, by_target=True))
            if part.waiting > COUNTED_MAX:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR,
                    f"{part.waiting:,} delayed messages are more than one request counts "
                    f"({COUNTED_MAX:,}); run `rockgate delay list` instead.",
                )
            at, now_ms = part.next, part.now_ms
            for each in part.counts:
                if each.topic != LEVELS_TOPIC and each.target is not None:
                    topic = names.to_rocketmq(each.target)
                    counts[topic] = counts.get(topic, 0) + sum(each.due)
        rows = (
            keyed(topic, TimerCount(count=count, time_stamp=now_ms))
            for topic, count in counts.items()
        )
        body = await joined(
            b'{"dataVersion":%b,"timingCount":{' % javajson.encode(DataVersion(timestamp=now_ms)),
            rows,
            b"}}",
            instead="run `rockgate delay list`",
        )
        return Command(ResponseCode.SUCCESS, body=body)
