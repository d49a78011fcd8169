"""Messages sent back by consumers: 36.

Behaviour
- The message is named by its address, be it a message or one record of a Kafka producer's batch.
  One that does not exist, or is not visible yet, is SYSTEM_ERROR; the client then sends it itself.
- docs/internals/retry.md has the table of levels and tries. `originMsgId` and `originTopic` come
  from the client and are not used: the message at the address is authoritative.

Departs from RocketMQ
- What cannot be consumed (delayed and half messages) cannot be sent back.
"""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.remoting.messages.retry import GivenBack, Retries
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.transcode.lookup import FoundMessage, MessageLookup
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.send import SendBackHeader
from rockgate.store.api.append import Appended
from rockgate.store.api.read import Slice


class RetryRequests:
    """Processor of messages that are sent back."""

    def __init__(self, *, retries: Retries, lookup: MessageLookup) -> None:
        self._retries = retries
        self._lookup = lookup

    def give_back(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """36: redeliver a message to the group later."""
        asked = headers.read(command, SendBackHeader)
        if self._retries.is_discarding(asked.group):
            return Command(ResponseCode.SUCCESS)
        heavy: list[Slice] = []
        found = self._lookup.message(asked.offset, heavy)
        if heavy:
            return self._later(asked)
        return self._answer(asked, found)

    def _answer(
        self, asked: SendBackHeader, found: FoundMessage | None
    ) -> Reply | Awaitable[Reply]:
        if found is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {asked.offset}"
            )
        given = GivenBack(asked.group, asked.delay_level, asked.max_reconsume_times)
        taken = self._retries.give_back(found, given)
        if isinstance(taken, Appended):
            return Command(ResponseCode.SUCCESS)
        return self._safe(taken)

    async def _later(self, asked: SendBackHeader) -> Reply:
        answer = self._answer(asked, await self._lookup.read(asked.offset))
        return answer if isinstance(answer, Command | list) else await answer

    async def _safe(self, taken: Awaitable[Appended]) -> Reply:
        await taken
        return Command(ResponseCode.SUCCESS)
