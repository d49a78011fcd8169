"""Two requests under way at once: what one carries is not seen by the other."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.kafka.delayed import Postponing, plain
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.produce import Produced
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.produce import ProducedPartition
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.schema import encode

HEAVY = [plain(b"%d" % number) for number in range(2_000)]


def world_of_two() -> Postponing:
    world = Postponing()
    world.mixed(partitions=2)
    return world


@pytest.mark.parametrize(("first", "second"), [("tx", None), (None, "tx")])
def test_a_request_that_waits_for_a_thread_keeps_its_own_transactional_id(
    first: str | None, second: str | None
) -> None:
    world = world_of_two()
    for partition in (0, 1):
        known = world.batch([plain(b"k")], producer=ProducerIdAndEpoch(7, 1))
        assert world.produce(known, partition=partition).error_code == 0
    produce = world.handlers[ApiKey.PRODUCE]

    async def scenario() -> list[ProducedPartition]:
        old = world.batch(HEAVY, codec=Compression.ZSTD, producer=ProducerIdAndEpoch(7, 0))
        waits = produce.handle(world.request(old, id_=first), call(12))
        assert not isinstance(waits, Produced), "it takes a thread"
        await asyncio.sleep(0)
        light = world.batch([plain(b"l")], producer=ProducerIdAndEpoch(7, 0))
        done = produce.handle(world.request(light, partition=1, id_=second), call(12))
        assert isinstance(done, Produced)
        return [each.topics[0].partitions[0] for each in (await waits, done)]

    for id_, told in zip((first, second), asyncio.run(scenario()), strict=True):
        assert told.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert told.log_start_offset == (0 if id_ is None else -1)


def test_what_a_thread_makes_of_a_batch_is_for_its_own_request() -> None:
    world = world_of_two()
    world.topic("quiet", partitions=1)
    produce = world.handlers[ApiKey.PRODUCE]

    async def scenario() -> None:
        body = world.batch(HEAVY, codec=Compression.ZSTD)
        both = [world.request(body, partition=partition) for partition in (0, 1)]
        both[1].topic_data[0].partition_data[0].records = body
        waits = [produce.handle(request, call(12)) for request in both]
        # The same bytes, for a topic that opens nothing.
        quiet = world.request(body)
        quiet.topic_data[0].name = "quiet"
        assert isinstance(produce.handle(quiet, call(12)), Produced)
        for each in waits:
            assert (await each).topics[0].partitions[0].base_offset == 0

    asyncio.run(scenario())
    assert [world.queue(partition=each).next_offset for each in (0, 1)] == [2_000, 2_000]


def test_the_handler_holds_nothing_of_a_request() -> None:
    world = world_of_two()
    produce = world.handlers[ApiKey.PRODUCE]

    def held() -> dict[str, int]:
        return {name: id(value) for name, value in vars(produce).items()}

    before = held()

    async def scenario() -> None:
        heavy = world.batch(HEAVY, codec=Compression.ZSTD)
        waits = produce.handle(world.request(heavy, id_="tx"), call(12))
        await asyncio.sleep(0)
        assert held() == before
        light = world.request(world.batch([plain(b"l")]), partition=1)
        assert produce.shortcut(memoryview(encode(light, 12)), 12, call(12).peer) is not None
        assert held() == before
        await waits

    asyncio.run(scenario())
    assert held() == before
