"""Where logs start and end, and the offset at a time: ListOffsets at each leader."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place, by_topic
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
_CONSUMER: Final = -1
_READ_COMMITTED: Final = 1


class FoundOffset(NamedTuple):
    """An offset, and the time of its record where one was asked for; -1 where there is none."""

    offset: int
    timestamp_ms: int


class Bounds(NamedTuple):
    """The first offset of a partition's log, and the one after its last."""

    start: int
    end: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[Place, int], *, is_committed: bool = False
) -> dict[Place, FoundOffset | Refused]:
    """For each partition the first record at or after a time, or one of the special times."""

    async def ask(broker: Broker, places: list[Place]) -> dict[Place, FoundOffset | Refused]:
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=_READ_COMMITTED if is_committed else 0,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=each, timestamp=wanted[topic, each])
                        for each in indexes
                    ],
                )
                for topic, indexes in by_topic(places).items()
            ],
            timeout_ms=int(cluster.timeout_s * 1000),
        )
        answer = await broker.ask(request, ListOffsetsResponse)
        return {
            (topic.name, part.partition_index): (
                Refused(part.error_code)
                if part.error_code
                else FoundOffset(part.offset, part.timestamp)
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    return await cluster.ask_leaders(wanted, ask)


async def bounds(
    cluster: Cluster, places: list[Place], *, is_committed: bool = False
) -> dict[Place, Bounds | Refused]:
    """Where the log of each partition begins and ends."""
    starts = await list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), is_committed=is_committed)
    found: dict[Place, Bounds | Refused] = {}
    for place in places:
        start, end = starts[place], ends[place]
        if isinstance(start, Refused):
            found[place] = start
        elif isinstance(end, Refused):
            found[place] = end
        else:
            found[place] = Bounds(start.offset, end.offset)
    return found


async def delete_records(
    cluster: Cluster, before: Mapping[Place, int]
) -> dict[Place, int | Refused]:
    """Delete records before an offset (-1: the end); return where each log starts now."""

    async def ask(broker: Broker, places: list[Place]) -> dict[Place, int | Refused]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=each, offset=before[topic, each])
                        for each in indexes
                    ],
                )
                for topic, indexes in by_topic(places).items()
            ],
            timeout_ms=int(cluster.timeout_s * 1000),
        )
        answer = await broker.ask(request, DeleteRecordsResponse)
        return {
            (topic.name, part.partition_index): (
                Refused(part.error_code) if part.error_code else part.low_watermark
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    return await cluster.ask_leaders(before, ask)
