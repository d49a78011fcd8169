"""Looking messages up: 12 by key, 33 by place."""

from __future__ import annotations

from collections.abc import Awaitable

from rockgate.gateway.mapping.lookup import MessageLookup
from rockgate.gateway.mapping.transcoder import Transcoder
from rockgate.gateway.remoting.caller import Caller
from rockgate.gateway.remoting.dispatch import Reply
from rockgate.gateway.remoting.errors import Refused
from rockgate.gateway.remoting.topicbook import TopicBook
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.querying import QueryMessageHeader, ViewMessageHeader
from rockgate.store.keyindex import FOREVER_MS
from rockgate.store.reading import Slice

COUNT_MAX = 64
"""Messages of one answer, as in RocketMQ."""
BYTES_MAX = 8 << 20


class Queries:
    """Answers 12 and 33."""

    def __init__(self, *, topics: TopicBook, lookup: MessageLookup, transcoder: Transcoder) -> None:
        self._topics = topics
        self._lookup = lookup
        self._transcoder = transcoder

    def by_key(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """12: messages with a key."""
        return self._by_key(headers.read(command, QueryMessageHeader))

    async def _by_key(self, asked: QueryMessageHeader) -> Reply:
        topic = self._topics.get(asked.topic)
        heavy: list[Slice] | None = []
        while True:
            found = self._lookup.by_key(
                topic.encoded,
                asked.key.encode("utf-8", "surrogatepass"),
                limit=max(1, min(asked.max_num, COUNT_MAX)),
                begin_ms=max(0, asked.begin_timestamp),
                end_ms=min(max(0, asked.end_timestamp), FOREVER_MS),
                heavy=heavy,
            )
            if not heavy:
                break
            await self._transcoder.prepare(heavy)
            heavy = None
        if not found:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range not correct"
            )
        parts: list[memoryview] = []
        size = 0
        for each in found:
            if parts and size + len(each.message) > BYTES_MAX:
                break
            parts.append(each.message)
            size += len(each.message)
        told = {"indexLastUpdatePhyoffset": "0", "indexLastUpdateTimestamp": "0"}
        return Command(ResponseCode.SUCCESS, told, b"".join(parts))

    def view(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """33: the message at a place."""
        return self._view(headers.read(command, ViewMessageHeader).offset)

    async def _view(self, place: int) -> Reply:
        heavy: list[Slice] = []
        found = self._lookup.message(place, heavy) if place >= 0 else None
        if found is None and heavy:
            await self._transcoder.prepare(heavy)
            found = self._lookup.message(place)
        if found is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {place}")
        return Command(ResponseCode.SUCCESS, body=bytes(found.message))
