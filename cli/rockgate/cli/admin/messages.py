"""Reading messages of a topic: the newest, from an offset or a time on, and by key or id.

Reads are bounded by counts and end at the offsets that were the ends when they began, so that a
topic that is written to as fast as it is read ends a search too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rockgate.cli.client.admin.offsets import Bounds, bounds, list_offsets
from rockgate.cli.client.consume.fetcher import Fetcher
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Declined, Refused, Unusable
from rockgate.cli.client.kafka.view import Place
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.kafka.records.record import Header, Record
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.headers.query import QueryMessageHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.sdk.admin import one_broker
from rockgate.sdk.received import Received

FOUND_MAX: Final = 64
"""How many messages the key index gives at once."""
_END_OF_TIME: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message of a partition, from either wire."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    is_append_time: bool = False

    @property
    def place(self) -> Place:
        """Its partition."""
        return self.topic, self.partition

    @property
    def size(self) -> int:
        """Of key and value."""
        return len(self.key or b"") + len(self.value or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """A message that RocketMQ's listener found, with where it lies in the log."""

    message: StoredMessage
    message_id: str
    offset_message_id: str
    position: int
    born_ms: int
    stored_ms: int
    tries: int


Passes = Callable[[StoredMessage], bool]


async def limits(cluster: Cluster, places: Sequence[Place]) -> dict[Place, Bounds]:
    """Where partitions begin and end; Refused if one of them cannot say."""
    found: dict[Place, Bounds] = {}
    for place, each in (await bounds(cluster, list(places))).items():
        if isinstance(each, Refused):
            raise each.at(place)
        found[place] = each
    return found


async def places_of(cluster: Cluster, topic: str) -> list[Place]:
    """The partitions of a topic, which must exist."""
    topics = await cluster.topics([topic])
    return [(topic, index) for index in topics[topic].partitions]


def newest(known: Mapping[Place, Bounds], count: int) -> dict[Place, int]:
    """Where to begin for the last messages of each partition."""
    return {place: max(each.start, each.end - count) for place, each in known.items()}


def at_offset(known: Mapping[Place, Bounds], offset: int) -> dict[Place, int]:
    """Where to begin for an offset, moved to the nearer end of each log."""
    return {place: min(max(offset, each.start), each.end) for place, each in known.items()}


async def at_time(
    cluster: Cluster, known: Mapping[Place, Bounds], time_ms: int
) -> dict[Place, int]:
    """The first offset of each partition at or after a time; its end where there is none."""
    starts: dict[Place, int] = {}
    for place, found in (await list_offsets(cluster, dict.fromkeys(known, time_ms))).items():
        if isinstance(found, Refused):
            raise found.at(place)
        starts[place] = found.offset if found.offset >= 0 else known[place].end
    return starts


async def read(
    cluster: Cluster, starts: Mapping[Place, int], known: Mapping[Place, Bounds]
) -> AsyncGenerator[list[StoredMessage], None]:
    """Messages from these offsets to the ends, as they arrive, a list for each answer."""
    left = {place: known[place].end for place, start in starts.items() if start < known[place].end}
    fetcher = Fetcher(cluster)
    fetcher.assign({place: starts[place] for place in left})
    try:
        while left:
            for chunk in await fetcher.poll():
                end = left.get(chunk.place)
                if end is None:
                    continue
                records = [each for each in chunk.records if each.offset < end]
                if chunk.next_offset >= end:
                    del left[chunk.place]
                    positions = {p: at for p, at in fetcher.positions.items() if p in left}
                    fetcher.assign(positions)
                yield [
                    stored(chunk.place, each, is_append_time=chunk.is_append_time)
                    for each in records
                ]
    finally:
        fetcher.stop()


async def follow(
    cluster: Cluster, known: Mapping[Place, Bounds]
) -> AsyncGenerator[list[StoredMessage], None]:
    """Messages from the ends on, as they arrive, without an end; a list may be empty."""
    fetcher = Fetcher(cluster)
    fetcher.assign({place: each.end for place, each in known.items()})
    try:
        while True:
            yield [
                stored(chunk.place, each, is_append_time=chunk.is_append_time)
                for chunk in await fetcher.poll()
                for each in chunk.records
            ]
    finally:
        fetcher.stop()


async def one(cluster: Cluster, place: Place, offset: int) -> StoredMessage | None:
    """The message at an offset; None if there is none to be read there."""
    known = await limits(cluster, [place])
    if not known[place].start <= offset < known[place].end:
        return None
    only = {place: Bounds(known[place].start, offset + 1)}
    async for messages in read(cluster, {place: offset}, only):
        for each in messages:
            if each.offset == offset:
                return each
    return None


def stored(place: Place, record: Record, *, is_append_time: bool = False) -> StoredMessage:
    """A record of Kafka's wire as a message."""
    return StoredMessage(
        topic=place[0],
        partition=place[1],
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
        is_append_time=is_append_time,
    )


# Over RocketMQ's listener, which has the key index


async def by_key(
    remoting: RemotingConnection, topic: str, key: str, *, is_id: bool = False
) -> list[FoundMessage]:
    """Messages of a topic with a key, or with the id that their producer gave, oldest first."""
    header = QueryMessageHeader(
        topic=topic,
        key=key,
        max_num=FOUND_MAX,
        begin_timestamp=0,
        end_timestamp=_END_OF_TIME,
        unique_key_query=is_id,
    )
    try:
        found = await one_broker.query(remoting.command, header)
    except Declined as error:
        if error.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        raise
    except MalformedContent as error:
        raise _undecodable(error) from None
    return [_found(each) for each in found]


async def by_location(remoting: RemotingConnection, offset_message_id: str) -> FoundMessage | None:
    """The message at the place in the log that this id names."""
    try:
        _, _, position = parse_offset_message_id(offset_message_id)
    except MalformedContent as error:
        raise Unusable(f"Not an offset message id: {error}") from None
    try:
        found = await one_broker.view(remoting.command, position)
    except Declined as error:
        if error.code in (ResponseCode.QUERY_NOT_FOUND, ResponseCode.SYSTEM_ERROR):
            return None
        raise
    except MalformedContent as error:
        raise _undecodable(error) from None
    return next((_found(each) for each in found), None)


def _undecodable(error: MalformedContent) -> Unusable:
    return Unusable(f"Cannot decode the server's messages: {error}")


def _found(each: Received) -> FoundMessage:
    key = each.key
    stored_ms = int(each.stored_at.timestamp() * 1000)
    return FoundMessage(
        message=StoredMessage(
            topic=each.topic,
            partition=each.queue.id,
            offset=each.offset,
            timestamp_ms=stored_ms,
            key=None if key is None else key.encode(),
            value=each.body,
            headers=tuple((name, value.encode()) for name, value in each.properties.items()),
        ),
        message_id=each.message_id,
        offset_message_id=each.offset_message_id,
        position=each.position,
        born_ms=int(each.born_at.timestamp() * 1000),
        stored_ms=stored_ms,
        tries=each.tries,
    )
