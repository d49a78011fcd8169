from __future__ import annotations

from collections.abc import Awaitable

import pytest
from tests.gateway.kafka.world import KafkaWorld, call
from tests.world import NOW_MS

from rockgate.gateway.kafka.fetch import time_search
from rockgate.gateway.kafka.fetch.time_search import TimeSearch
from rockgate.gateway.kafka.handlers import list_offsets
from rockgate.gateway.kafka.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LARGEST_TIME,
    LATEST,
    LATEST_TIERED,
    ListOffsets,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.records.batch import HEADER_SIZE, Compression, seal
from rockgate.protocol.kafka.records.bounds import LIGHT
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.store.config import StoreConfig

NOTHING = (0, -1, -1, -1)
Answer = tuple[int, int, int, int]
"""Error code, offset, timestamp, leader epoch."""


def handler_of(world: KafkaWorld) -> ListOffsets:
    return ListOffsets(
        topics=world.store.topics,
        queues=world.store.queues,
        reader=world.partitions,
        epochs=world.epochs,
        search=TimeSearch(world.store.reader, world.epochs, world.cold_reads),
        cold_reads=world.cold_reads,
    )


def request(*asked: ListOffsetsPartition, committed: bool = False) -> ListOffsetsRequest:
    topic = ListOffsetsTopic(name="orders", partitions=list(asked))
    return ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=[topic])


def answers(response: ListOffsetsResponse, version: int) -> list[Answer]:
    sent = decode(ListOffsetsResponse, version, encode(response, version))
    return [
        (each.error_code, each.offset, each.timestamp, each.leader_epoch)
        for topic in sent.topics
        for each in topic.partitions
    ]


async def ask(
    world: KafkaWorld,
    timestamp: int,
    *,
    version: int = 11,
    partition: int = 0,
    epoch: int = -1,
    committed: bool = False,
) -> Answer:
    asked = ListOffsetsPartition(
        partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
    )
    found = handler_of(world).handle(request(asked, committed=committed), call(version))
    response = found if isinstance(found, ListOffsetsResponse) else await found
    [answer] = answers(response, version)
    return answer


@pytest.fixture
def world() -> KafkaWorld:
    """Ten records in batches of two, ten milliseconds apart; two of them are deleted, and epoch 2
    began at 6."""
    world = KafkaWorld()
    world.topic(partitions=2)
    for first in range(0, 10, 2):
        if first == 6:
            world.reopen()
        world.append(times=[first * 10, first * 10 + 10])
    world.delete_records(2)
    return world


# Places


@pytest.mark.parametrize(
    ("timestamp", "partition", "answer"),
    [
        (LATEST, 0, (0, 10, -1, 2)),
        (EARLIEST, 0, (0, 2, -1, 1)),
        (EARLIEST_LOCAL, 0, (0, 2, -1, 1)),
        (LARGEST_TIME, 0, (0, 9, 90, 2)),
        (LATEST_TIERED, 0, NOTHING),
        (EARLIEST_PENDING, 0, NOTHING),
        (LATEST, 1, (0, 0, -1, 2)),
        (EARLIEST, 1, (0, 0, -1, 2)),
        (LARGEST_TIME, 1, NOTHING),
    ],
)
async def test_special_times_ask_for_places(
    world: KafkaWorld, timestamp: int, partition: int, answer: Answer
) -> None:
    assert await ask(world, timestamp, partition=partition) == answer


@pytest.mark.parametrize("version", range(1, 12))
async def test_each_special_time_has_its_first_version(world: KafkaWorld, version: int) -> None:
    firsts = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11, -7: 99}
    for timestamp, first in firsts.items():
        code, *_ = await ask(world, timestamp, version=version)
        assert code == (0 if version >= first else ErrorCode.UNSUPPORTED_VERSION), timestamp


async def test_under_sync_the_latest_is_what_is_on_disk_and_it_never_falls() -> None:
    world = KafkaWorld(StoreConfig(segment_bytes=1 << 20, flush="sync", key_index=False))
    world.topic()
    world.append(times=[5, 6])
    assert await ask(world, LATEST) == (0, 0, -1, 1)
    assert await ask(world, 5) == NOTHING
    assert await ask(world, LARGEST_TIME) == NOTHING
    world.store.flush()
    world.append(times=[7, 8])
    for committed in (False, True):
        assert await ask(world, LATEST, committed=committed) == (0, 2, -1, 1)
    assert await ask(world, 6) == (0, 1, 6, 1)
    assert await ask(world, 7) == NOTHING
    assert await ask(world, LARGEST_TIME) == (0, 1, 6, 1)


# Times


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (0, (0, 2, 20, 1)),
        (20, (0, 2, 20, 1)),
        (21, (0, 3, 30, 1)),
        (30, (0, 3, 30, 1)),
        (31, (0, 4, 40, 1)),
        (60, (0, 6, 60, 2)),
        (90, (0, 9, 90, 2)),
        (91, NOTHING),
        (1 << 62, NOTHING),
    ],
)
async def test_a_time_finds_the_first_record_that_is_as_late(
    world: KafkaWorld, timestamp: int, answer: Answer
) -> None:
    assert await ask(world, timestamp) == answer
    before_epochs = await ask(world, timestamp, version=3)
    assert before_epochs == (*answer[:3], -1)


@pytest.mark.parametrize("compression", Compression)
async def test_compressed_batches_are_opened_too(compression: Compression) -> None:
    world = KafkaWorld()
    world.topic()
    world.append(times=range(0, 1000, 10), compression=compression, value=b"x" * 300)
    assert await ask(world, 555) == (0, 56, 560, 1)


async def test_a_large_batch_is_opened_in_a_thread() -> None:
    world = KafkaWorld()
    world.topic()
    world.append(times=range(LIGHT.records_max + 1), value=b"x" * 10)
    assert await ask(world, 50) == (0, 50, 50, 1)


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_ms"),
    [(0, 0, 500), (500, 0, 500), (501, 3, 700), (700, 3, 700)],
)
async def test_under_log_append_time_all_records_of_a_batch_have_its_time(
    timestamp: int, offset: int, found_ms: int
) -> None:
    world = KafkaWorld()
    world.topic()
    world.append(times=[1, 2, 3], append_time=500)
    world.append(times=[1, 2], append_time=700)
    assert await ask(world, timestamp) == (0, offset, found_ms, 1)
    assert await ask(world, LARGEST_TIME) == (0, 3, 700, 1)


async def test_times_may_be_out_of_order() -> None:
    world = KafkaWorld()
    world.topic()
    for times in ([50, 10], [20, 90], [30, 40], [90, 5]):
        world.append(times=times)
    found = {timestamp: (await ask(world, timestamp))[1] for timestamp in (0, 10, 50, 51, 90, 91)}
    assert found == {0: 0, 10: 0, 50: 0, 51: 3, 90: 3, 91: -1}
    assert await ask(world, LARGEST_TIME) == (0, 3, 90, 1)


@pytest.mark.parametrize("log_start", [4, 5])
async def test_a_deleted_record_of_a_late_time_does_not_hide_what_follows(log_start: int) -> None:
    world = KafkaWorld()
    world.topic()
    for times in ([1, 900], [2, 3], [800, 4], [5, 6], [7, 700], [8, 700]):
        world.append(times=times)
    world.delete_records(log_start)
    gone = log_start == 5
    assert (await ask(world, 750))[1] == (-1 if gone else 4)
    assert (await ask(world, 6))[1] == (7 if gone else 4)
    assert await ask(world, LARGEST_TIME) == (0, 9 if gone else 4, 700 if gone else 800, 1)


async def test_a_long_walk_gives_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_search, "WALK_UNITS", 3)
    world = KafkaWorld()
    world.topic()
    world.append(times=[1000])
    for time_ms in range(40):
        world.append(times=[time_ms])
    world.delete_records(1)
    assert await ask(world, 37) == (0, 38, 37, 1)
    assert await ask(world, LARGEST_TIME) == (0, 40, 39, 1)
    assert await ask(world, 40) == NOTHING


async def test_message_entries_have_the_time_they_were_born() -> None:
    world = KafkaWorld()
    world.topic()
    world.append(times=[NOW_MS])
    for number in (1, 2, 3):
        world.message(born_ms=NOW_MS + number)
    assert await ask(world, NOW_MS + 2) == (0, 2, NOW_MS + 2, 1)
    assert await ask(world, LARGEST_TIME) == (0, 3, NOW_MS + 3, 1)


async def test_what_was_written_before_the_start_is_loaded_first() -> None:
    world = KafkaWorld()
    world.topic()
    for time_ms in range(5):
        world.append(times=[time_ms])
    world.reopen()
    brought: list[int] = []
    fault_in = world.store.residency.fault_in
    world.store.residency.fault_in = lambda chunks: (brought.extend(chunks), fault_in(chunks))[1]  # type: ignore[method-assign, func-returns-value]  # counted on the way
    assert await ask(world, EARLIEST) == (0, 0, -1, 1)
    assert brought == [0]
    assert await ask(world, 3) == (0, 3, 3, 1)
    assert brought == [0]


async def test_a_batch_that_is_none_inside_is_reported_as_corrupt() -> None:
    world = KafkaWorld()
    world.topic()
    body = build_batch([Record(0, 1, b"k", b"v"), Record(1, 2, b"k", b"v")], base_offset=0)
    body[HEADER_SIZE:] = b"\xff" * (len(body) - HEADER_SIZE)
    seal(body)
    world.store.appender.batch(world.queue(), body, count=2, record_ms=2)
    assert await ask(world, 2) == (ErrorCode.CORRUPT_MESSAGE, -1, -1, -1)


# Errors


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, 0), (2, 0), (1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
async def test_the_leader_epoch_must_be_the_current_one(
    world: KafkaWorld, epoch: int, code: int
) -> None:
    for timestamp in (LATEST, EARLIEST, 5):
        assert (await ask(world, timestamp, epoch=epoch))[0] == code


@pytest.mark.parametrize("partition", [2, -1, 1 << 30])
async def test_a_partition_that_is_not_there_is_unknown(world: KafkaWorld, partition: int) -> None:
    answer = await ask(world, LATEST, partition=partition)
    assert answer == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)


async def test_a_topic_that_readers_may_not_read_is_refused(world: KafkaWorld) -> None:
    world.store.topics.set_permission({world.store.topics.get("orders"): 2})
    assert (await ask(world, LATEST))[0] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_partition_that_is_named_twice_is_an_invalid_request_told_once(world: KafkaWorld) -> None:
    asked = [
        ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0, 9, 9)
    ]
    response = handler_of(world).handle(request(*asked), call(11))
    assert isinstance(response, ListOffsetsResponse)
    found = [(each.partition_index, each.error_code) for each in response.topics[0].partitions]
    invalid = ErrorCode.INVALID_REQUEST
    assert found == [(0, invalid), (1, 0), (9, invalid)]


def test_a_refusal_is_reported_for_each_partition(world: KafkaWorld) -> None:
    asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1)]
    refused = handler_of(world).refuse(request(*asked), ErrorCode.UNKNOWN_SERVER_ERROR)
    assert answers(refused, 11) == [(-1, -1, -1, -1)] * 2


async def test_many_partitions_are_looked_up_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_offsets, "SLICE_COUNT", 10)
    world = KafkaWorld()
    world.topic(partitions=35)
    world.append(partition=34)
    asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(35)]
    response = handler_of(world).handle(request(*asked), call(11))
    assert isinstance(response, Awaitable)
    found = answers(await response, 11)
    assert [answer[1] for answer in found] == [0] * 34 + [1]
