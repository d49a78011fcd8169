"""Looking messages up: 12 by key, 33 by place; 321 what a queue's index has at an offset.

Behaviour
- 321 has a row for each offset, as many of a record batch as it has records: each with its address
  and the whole batch's size. With a group's name it says which rows the group's members would be
  given, by the hash of their tags; what an expression says, and the tags of records inside of a
  batch, are known when they are read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING, Filter, filter_of
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import group_of
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.transcode.address import pack_address
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.protocol.entry import MAGIC_BATCH, places
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.queues import QueueUnit, QueueUnits
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.query import (
    QueryMessageHeader,
    QueryQueueHeader,
    ViewMessageHeader,
)
from rockgate.store.api.queues import Queue, Queues, Unit
from rockgate.store.api.read import FOREVER_MS, EntryReader

COUNT_MAX = 64
"""Maximum number of messages in a response, as in RocketMQ."""
BYTES_MAX = 8 << 20
ROWS_MAX = 100
"""Maximum number of offsets in a response to 321."""


class Queries:
    """Processors of lookups."""

    def __init__(
        self,
        *,
        topics: TopicRegistry,
        lookup: MessageLookup,
        queues: Queues,
        reader: EntryReader,
        puller: Puller,
        clients: Clients,
    ) -> None:
        self._queues = queues
        self._reader = reader
        self._puller = puller
        self._clients = clients
        self._topics = topics
        self._lookup = lookup

    def by_key(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """12: messages with a key."""
        return self._by_key(headers.read(command, QueryMessageHeader))

    async def _by_key(self, asked: QueryMessageHeader) -> Reply:
        topic = self._topics.get(asked.topic)
        found = await self._lookup.by_key(
            topic.encoded,
            asked.key.encode("utf-8", "surrogatepass"),
            limit=max(1, min(asked.max_num, COUNT_MAX)),
            begin_ms=max(0, asked.begin_timestamp),
            end_ms=min(max(0, asked.end_timestamp), FOREVER_MS),
        )
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
        index_fields = {"indexLastUpdatePhyoffset": "0", "indexLastUpdateTimestamp": "0"}
        return Command(ResponseCode.SUCCESS, index_fields, b"".join(parts))

    def view(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """33: the message at an address."""
        return self._view(headers.read(command, ViewMessageHeader).offset)

    async def _view(self, place: int) -> Reply:
        found = await self._lookup.read(place) if place >= 0 else None
        if found is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {place}")
        return Command(ResponseCode.SUCCESS, body=bytes(found.message))

    def by_offset(self, command: Command, caller: Caller) -> Reply:
        """321: a queue's index from an offset on."""
        asked = headers.read(command, QueryQueueHeader)
        topic = self._topics.get(asked.topic)
        if not 0 <= asked.queue_id < topic.queue_count:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"{asked.queue_id}@{asked.topic} is not exist!"
            )
        queue = self._queues.of(topic.id)[asked.queue_id]
        end = self._puller.end(queue)
        answer = QueueUnits(max_queue_index=end, min_queue_index=queue.log_start)
        wanted = EVERYTHING
        if asked.consumer_group:
            wanted = self._wanted(asked.consumer_group, asked.topic, answer)
        count = max(0, min(asked.count, ROWS_MAX))
        first = max(asked.index, queue.log_start)
        answer.queue_data = list(self._rows(queue, first, min(end, first + count), wanted))
        return Command(ResponseCode.SUCCESS, body=javajson.encode(answer))

    def _wanted(self, group_name: str, topic: str, answer: QueueUnits) -> Filter:
        group = self._clients.consumer_group(group_of(group_name))
        subscription = None if group is None else group.subscriptions.get(topic)
        if subscription is None:
            answer.filter_data = f"{group_name}@{topic} is not online!"
            return EVERYTHING
        answer.subscription_data = subscription
        return filter_of(subscription.expression_type or "TAG", subscription.sub_string)

    def _rows(self, queue: Queue, first: int, end: int, wanted: Filter) -> Iterator[QueueUnit]:
        for each in queue.walk(first):
            unit = Unit._make(each)
            if unit.base >= end:
                return
            if self._is_batch(queue, unit):
                for offset in range(max(first, unit.base), min(end, unit.base + unit.offset_count)):
                    index = offset - unit.base
                    yield QueueUnit(
                        physic_offset=pack_address(unit.position, index),
                        physic_size=unit.size,
                        tags_code=0,
                        extend_data_json=f"record {index} of {unit.offset_count} in a batch",
                    )
            else:
                yield QueueUnit(
                    physic_offset=unit.position,
                    physic_size=unit.size,
                    tags_code=unit.tag_code,
                    eval=wanted.accepts_code is None or wanted.accepts_code(unit.tag_code),
                )

    def _is_batch(self, queue: Queue, unit: Unit) -> bool:
        """Whether an entry is a batch; only one with a single offset and no tag has to be read."""
        if unit.offset_count > 1 or unit.tag_code:
            return unit.offset_count > 1
        return places(self._reader.entry(queue, unit).entry, 0)[1] == MAGIC_BATCH
