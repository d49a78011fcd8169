"""Where an epoch ends is tested with LeaderEpochs; here is what a request adds to it."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest
from tests.gateway.kafka.world import KafkaWorld, call

from rockgate.gateway.kafka.handlers import offset_for_leader_epoch
from rockgate.gateway.kafka.handlers.offset_for_leader_epoch import OffsetForLeaderEpoch
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.store.config import StoreConfig

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
Answer = tuple[int, int, int]
"""Error code, leader epoch, end offset."""


def handler_of(world: KafkaWorld) -> OffsetForLeaderEpoch:
    return OffsetForLeaderEpoch(
        topics=world.store.topics,
        queues=world.store.queues,
        reader=world.partitions,
        epochs=world.epochs,
        cold_reads=world.cold_reads,
    )


def request(*asked: tuple[str, int, int, int]) -> OffsetForLeaderEpochRequest:
    """Topic, partition, current leader epoch, epoch."""
    return OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=name,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, current_leader_epoch=current, leader_epoch=epoch
                    )
                ],
            )
            for name, index, current, epoch in asked
        ]
    )


async def ask(
    world: KafkaWorld, *asked: tuple[str, int, int, int], version: int = 4
) -> list[Answer]:
    found = handler_of(world).handle(request(*asked), call(version))
    response = found if isinstance(found, OffsetForLeaderEpochResponse) else await found
    sent = decode(OffsetForLeaderEpochResponse, version, encode(response, version))
    assert [topic.topic for topic in sent.topics] == [name for name, _, _, _ in asked]
    return [
        (each.error_code, each.leader_epoch, each.end_offset)
        for topic in sent.topics
        for each in topic.partitions
    ]


@pytest.fixture
def world() -> KafkaWorld:
    """Epoch 1 wrote offsets 0 and 1, epoch 2, the current one, 2."""
    world = KafkaWorld()
    world.topic()
    world.append(times=[1, 2])
    world.reopen()
    world.append()
    return world


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(1, (0, 1, 2)), (2, (0, 2, 3)), (3, (0, -1, -1)), (-1, (0, -1, -1))],
)
async def test_an_epoch_is_reported_with_its_end(
    world: KafkaWorld, epoch: int, answer: Answer, version: int
) -> None:
    assert await ask(world, ("orders", 0, -1, epoch), version=version) == [answer]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (("orders", 1, -1, 1), UNKNOWN),
        (("orders", -1, -1, 1), UNKNOWN),
        (("nothing", 0, -1, 1), UNKNOWN),
        (("orders", 0, 1, 1), ErrorCode.FENCED_LEADER_EPOCH),
        (("orders", 0, 3, 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_what_cannot_be_told_is_an_error(
    world: KafkaWorld, asked: tuple[str, int, int, int], code: int
) -> None:
    good = ("orders", 0, 2, 1)
    assert await ask(world, asked, good) == [(code, -1, -1), (0, 1, 2)]


async def test_nothing_past_the_high_watermark_is_reported() -> None:
    world = KafkaWorld(StoreConfig(segment_bytes=1 << 20, flush="sync", key_index=False))
    world.topic()
    world.append()
    assert await ask(world, ("orders", 0, -1, 1)) == [(0, 1, 0)]
    world.store.flush()
    assert await ask(world, ("orders", 0, -1, 1)) == [(0, 1, 1)]


async def test_many_partitions_are_looked_up_in_slices_after_what_is_cold_was_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offset_for_leader_epoch, "SLICE_COUNT", 10)
    world = KafkaWorld()
    world.topic(partitions=25)
    for partition in range(25):
        world.append(partition=partition, times=[0] * (partition + 1))
    world.reopen()
    asked = [("orders", index, 2, 1) for index in range(25)]
    first = handler_of(world).handle(request(asked[0]), call(4))
    assert isinstance(first, Awaitable) and (await first).topics[0].partitions[0].end_offset == 1
    found = await ask(world, *asked)
    assert found == [(0, 1, index + 1) for index in range(25)]


def test_a_refusal_is_reported_for_each_partition(world: KafkaWorld) -> None:
    refused = handler_of(world).refuse(
        request(("orders", 0, -1, 1), ("a", 7, -1, 1)), ErrorCode.UNKNOWN_SERVER_ERROR
    )
    found = [
        (each.partition, each.error_code) for topic in refused.topics for each in topic.partitions
    ]
    assert found == [(0, -1), (7, -1)]
