import pytest

from rockgate.gateway.kafka.handlers import fetch
from rockgate.gateway.kafka.handlers.heartbeat import Heartbeat
from rockgate.gateway.kafka.request.handler import MEMORY_MAX, Answer, memory_max, row
from rockgate.protocol.kafka import api
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.schema import encode
from rockgate.protocol.kafka.schema.codec import MEMORY_SLACK

MANY = 10_000


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
@pytest.mark.parametrize("topics", [1, MANY])
def test_a_fetch_of_ten_thousand_partitions_is_ordinary(version: int, topics: int) -> None:
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=f"topic-{number}" if version < 13 else "",
                topic_id=bytes(16),
                partitions=[
                    FetchPartition(
                        partition=index, fetch_offset=1 << 40, partition_max_bytes=1 << 20
                    )
                    for index in range(MANY // topics)
                ],
            )
            for number in range(topics)
        ],
    )
    read = fetch.decode(memoryview(encode(request, version)), version)
    assert sum(len(topic.partitions) for topic in read.topics) == MANY


@pytest.mark.parametrize("version", [1, 11])
@pytest.mark.parametrize("topics", [1, MANY])
def test_so_is_any_other_request_by_the_declared_codec(version: int, topics: int) -> None:
    partitions = [
        ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(MANY // topics)
    ]
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(name=f"t{number}", partitions=partitions) for number in range(topics)
        ],
    )
    declared = row(api.LIST_OFFSETS, lambda services: services)
    read = declared.decode(memoryview(encode(request, version)), version)
    assert sum(len(topic.partitions) for topic in read.topics) == MANY


def test_the_objects_of_a_request_take_a_bounded_amount_of_memory_however_large_it_is() -> None:
    for size in (MEMORY_MAX, 2 * MEMORY_MAX):
        assert memory_max(size) == size + MEMORY_MAX + MEMORY_SLACK
    assert memory_max(1 << 20) <= MEMORY_MAX


def test_a_row_wants_a_handler_of_its_own_api_and_a_codec_of_its_handler() -> None:
    def read(body: memoryview, version: int) -> HeartbeatRequest:
        raise NotImplementedError

    def write(response: HeartbeatResponse, version: int) -> Answer:
        raise NotImplementedError

    # These are for the type checker, which reports an `ignore` that ignores nothing.
    def beat(_: None) -> Heartbeat:
        raise NotImplementedError

    assert row(api.HEARTBEAT, beat).key is api.HEARTBEAT.key
    row(api.METADATA, beat)  # type: ignore[arg-type]
    assert row(api.HEARTBEAT, beat, decode=read, encode=write).decode is read
    row(api.FETCH, beat, decode=fetch.decode, encode=write)  # type: ignore[misc]
