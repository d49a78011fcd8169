from __future__ import annotations

import asyncio

import pytest
from tests.gateway.kafka.world import KafkaWorld, call

from rockgate.gateway.kafka.handlers.delete_records import DeleteRecords
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.testing.memory_files import MemoryDisk

SYNC = StoreConfig(segment_bytes=1 << 20, flush="sync", key_index=False)
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def deleting(world: KafkaWorld) -> DeleteRecords:
    store = world.store
    return DeleteRecords(
        topics=store.topics,
        queues=store.queues,
        reader=store.reader,
        durability=Durability(store),
    )


def request(*asked: tuple[str, int, int]) -> DeleteRecordsRequest:
    """Topic, partition, offset."""
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)],
            )
            for name, index, offset in asked
        ],
        timeout_ms=1000,
    )


def answers(response: DeleteRecordsResponse, version: int = 2) -> list[tuple[int, int]]:
    """Error code and low watermark."""
    sent = decode(DeleteRecordsResponse, version, encode(response, version))
    return [
        (each.error_code, each.low_watermark) for topic in sent.topics for each in topic.partitions
    ]


def delete(
    world: KafkaWorld, *asked: tuple[str, int, int], version: int = 2
) -> list[tuple[int, int]]:
    response = deleting(world).handle(request(*asked), call(version))
    assert isinstance(response, DeleteRecordsResponse)
    return answers(response, version)


@pytest.fixture
def world() -> KafkaWorld:
    """Ten records of which three are deleted already."""
    world = KafkaWorld()
    world.topic(partitions=2)
    for _ in range(5):
        world.append(times=[0, 0])
    world.delete_records(3)
    return world


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (5, (0, 5)),
        (10, (0, 10)),
        (-1, (0, 10)),
        (3, (0, 3)),
        (0, (0, 3)),
        (11, (OUT_OF_RANGE, -1)),
        (-2, (OUT_OF_RANGE, -1)),
        (1 << 62, (OUT_OF_RANGE, -1)),
    ],
)
def test_the_log_starts_at_the_offset_given_and_never_before_it_did(
    world: KafkaWorld, offset: int, answer: tuple[int, int], version: int
) -> None:
    assert delete(world, ("orders", 0, offset), version=version) == [answer]
    assert world.queue().log_start == max(3, answer[1])


def test_the_log_start_is_there_after_a_restart(world: KafkaWorld) -> None:
    delete(world, ("orders", 0, 7))
    world.reopen()
    assert (world.queue().log_start, world.queue().next_offset) == (7, 10)


def test_each_partition_succeeds_or_fails_alone_in_one_change(world: KafkaWorld) -> None:
    end = world.store.log.end
    answer = delete(
        world,
        *(
            ("orders", 0, 5),
            ("orders", 9, 0),
            ("nothing", 0, 0),
            ("orders", 1, 1),
            ("orders", 0, 6),
        ),
    )
    assert answer == [(0, 6), (UNKNOWN, -1), (UNKNOWN, -1), (OUT_OF_RANGE, -1), (0, 6)]
    assert len(list(world.store.log.walk(end))) == 1


def test_records_of_a_topic_that_is_only_compacted_are_not_deleted(world: KafkaWorld) -> None:
    world.topic("kept", cleanup_policy="compact")
    world.topic("both", cleanup_policy="compact,delete")
    assert delete(world, ("kept", 0, -1), ("both", 0, -1)) == [
        (ErrorCode.POLICY_VIOLATION, -1),
        (0, 0),
    ]


def test_records_of_the_servers_own_topics_are_not_deleted(world: KafkaWorld) -> None:
    world.store.topics.create(NewTopic(name="own", queue_count=1, is_internal=True))
    assert delete(world, ("own", 0, -1)) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]


def test_a_refusal_is_reported_for_each_partition(world: KafkaWorld) -> None:
    refused = deleting(world).refuse(
        request(("orders", 0, 5), ("orders", 1, 0)), ErrorCode.UNKNOWN_SERVER_ERROR
    )
    assert answers(refused) == [(-1, -1)] * 2


async def test_under_sync_the_answer_waits_for_the_disk_and_minds_the_high_watermark() -> None:
    world = KafkaWorld(SYNC)
    world.topic()
    world.append()
    world.store.flush()
    world.append()
    assert delete_now(world, 2).done()
    future = delete_now(world, 1)
    assert not future.done()
    world.store.flush()
    assert answers(await future) == [(0, 1)]


def delete_now(world: KafkaWorld, offset: int) -> asyncio.Future[DeleteRecordsResponse]:
    response = deleting(world).handle(request(("orders", 0, offset)), call(2))
    if isinstance(response, DeleteRecordsResponse):
        done: asyncio.Future[DeleteRecordsResponse] = asyncio.get_running_loop().create_future()
        assert answers(response) == [(OUT_OF_RANGE, -1)]
        done.set_result(response)
        return done
    return asyncio.ensure_future(response)


async def test_under_sync_a_disk_that_fails_is_reported() -> None:
    disk = MemoryDisk()
    world = KafkaWorld(SYNC, disk)
    world.topic()
    world.append()
    world.store.flush()
    future = delete_now(world, 1)
    world.store.flusher.fail(DiskFailed("log", OSError("gone")))
    world.store.flusher.settle()
    with pytest.raises(DiskFailed):
        await future
