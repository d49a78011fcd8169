"""Message lookup: by physical location, by key, or by the id that the producer assigned."""

from __future__ import annotations

import socket
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.headers.query import QueryMessageHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.sdk.admin import one_broker
from rockgate.sdk.admin.calls import AdminCalls
from rockgate.sdk.consumer.pull.pull_consumer import ms_of
from rockgate.sdk.errors import InvalidMessage, Refused, SdkError
from rockgate.sdk.received import Received

LIMIT: Final = 32
LIMIT_MAX: Final = 64
"""Messages that a broker finds for one key at most."""
FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATER: Final = timedelta(hours=1)


class MessageAdmin:
    """Looks messages up."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def view(self, offset_message_id: str) -> Received:
        """The message at the place that this id names; the id says the broker's address, too."""
        try:
            host, port, place = parse_offset_message_id(offset_message_id)
        except MalformedContent as wrong:
            raise InvalidMessage(f"Not an offset message id: {wrong}") from None
        if not 0 < port < 1 << 16:
            raise InvalidMessage(f"Message id {offset_message_id} names port {port:,}.")
        family = socket.AF_INET if len(host) == 4 else socket.AF_INET6
        name = socket.inet_ntop(family, host)
        address = f"{name}:{port}" if len(host) == 4 else f"[{name}]:{port}"
        found = await _decoded(one_broker.view(partial(self._calls.ask, address), place))
        if len(found) != 1:
            raise SdkError(f"{address} sent {len(found)} messages for one id.")
        return found[0]

    async def by_key(
        self,
        topic: str,
        key: str,
        *,
        since: datetime = EPOCH,
        until: datetime = FOREVER,
        limit: int = LIMIT,
    ) -> list[Received]:
        """Messages of a topic with a key that were stored in a time, the oldest first."""
        return await self._query(topic, key, since, until, limit, is_unique=False)

    async def by_message_id(
        self, topic: str, message_id: str, *, since: datetime = EPOCH, until: datetime = FOREVER
    ) -> list[Received]:
        """Messages with the id that their producer made; retries of one have the same."""
        return await self._query(topic, message_id, since, until, LIMIT, is_unique=True)

    async def _query(
        self, topic: str, key: str, since: datetime, until: datetime, limit: int, *, is_unique: bool
    ) -> list[Received]:
        if not key:
            raise InvalidMessage("The key to look for is empty.")
        if not 1 <= limit <= LIMIT_MAX:
            raise ValueError(f"limit must be 1 to {LIMIT_MAX}, not {limit:,}.")
        header = QueryMessageHeader(
            topic=topic,
            key=key,
            max_num=limit,
            begin_timestamp=ms_of(since),
            end_timestamp=ms_of(until),
            unique_key_query=is_unique,
        )
        found: list[Received] = []
        for name, address in (await self._calls.masters_of(topic)).items():
            ask = partial(self._calls.ask, address)
            try:
                found += await _decoded(one_broker.query(ask, header, name))
            except Refused as refused:
                if refused.code != ResponseCode.QUERY_NOT_FOUND:
                    raise
        return sorted(found, key=lambda each: (each.stored_at, each.position))[:limit]


async def _decoded(asked: Awaitable[list[Received]]) -> list[Received]:
    try:
        return await asked
    except MalformedContent as wrong:
        raise SdkError(f"Cannot decode the broker's messages: {wrong}") from None
