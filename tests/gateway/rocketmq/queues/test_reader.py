"""Reading ahead: strides in flight, what answers leave of them, the end, and the bounds."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.rocketmq.fake_brokers import LOST, QUEUE, FakeBrokers, settle
from tests.waiting import until

from rockgate.gateway.rocketmq.queues.reader import (
    AHEAD_COUNT,
    STRIDE,
    Cache,
    QueueReader,
    QueueReading,
)
from rockgate.gateway.transcode.remote.pulled_messages import PulledMessages
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.record import read_records


class Reads:
    """A reader, its broker, and a client that waits."""

    def __init__(self, count: int = 0, *, cache_bytes_max: int = 1 << 20) -> None:
        self.brokers = FakeBrokers()
        self.add(count)
        self.cache: Cache = Cache(cache_bytes_max)
        self.reader = QueueReader(
            QUEUE, self.brokers, group="g", messages=PulledMessages(), cache=self.cache
        )
        self.news = asyncio.Event()
        self.reader.watch(self.news.set)

    def add(self, count: int) -> None:
        first = len(self.brokers.messages)
        self.brokers.messages += [(b"%d" % at, b"") for at in range(first, first + count)]
        self.brokers.tell()

    def read(self, offset: int, size_max: int = 1 << 20) -> QueueReading:
        return self.reader.read(offset, size_max, at_least_one=True)

    async def wait(self, offset: int) -> QueueReading:
        """Read as a Fetch does: until there is something, or an error."""
        while True:
            self.news.clear()
            reading = self.read(offset)
            if reading.batches or reading.error:
                return reading
            async with asyncio.timeout(5):
                await self.news.wait()


def values(reading: QueueReading) -> list[bytes | None]:
    return [record.value for batch in reading.batches for record in read_records(batch)]


async def read_all(world: Reads, end: int, offset: int = 0) -> list[bytes | None]:
    found: list[bytes | None] = []
    while offset + len(found) < end:
        found += values(await world.wait(offset + len(found)))
    return found


async def test_every_message_is_read_once_and_in_order() -> None:
    world = Reads(1000)
    assert await read_all(world, 1000) == [b"%d" % at for at in range(1000)]
    assert sorted(at for at, _ in world.brokers.pulls) == sorted(
        {at for at, _ in world.brokers.pulls}
    )


async def test_pulls_run_side_by_side_and_no_more_than_so_many() -> None:
    world = Reads(10_000)
    await world.wait(0)
    world.read(STRIDE)
    await settle(lambda: world.brokers.in_flight_max > 1)
    assert world.brokers.in_flight_max == AHEAD_COUNT


@pytest.mark.parametrize("least", [1, 7, 31])
async def test_what_an_answer_leaves_of_its_stride_is_asked_for_again(least: int) -> None:
    world = Reads(300)
    world.brokers.pull_count_max = least
    assert await read_all(world, 300) == [b"%d" % at for at in range(300)]


async def test_a_second_reader_of_the_same_offsets_pulls_nothing() -> None:
    world = Reads(200)
    await read_all(world, 200)
    pulls = len(world.brokers.pulls)
    assert await read_all(world, 200) == [b"%d" % at for at in range(200)]
    # Only the end is held, once for all.
    assert len(world.brokers.pulls) <= pulls + 1


async def test_reading_within_a_batch_gets_the_batch() -> None:
    world = Reads(10)
    await world.wait(0)
    assert values(world.read(5)) == [b"%d" % at for at in range(10)]


async def test_at_the_end_one_held_pull_stands_for_all_who_wait() -> None:
    world = Reads(5)
    await world.wait(0)
    for _ in range(3):
        world.read(5)
        await asyncio.sleep(0)
    assert [at for at, _ in world.brokers.pulls].count(5) == 1
    world.add(2)
    assert values(await world.wait(5)) == [b"5", b"6"]


async def test_a_size_is_not_exceeded_but_for_the_first_batch() -> None:
    world = Reads(200)
    await read_all(world, 200)
    whole = world.read(0)
    size = len(whole.batches[0]) + len(whole.batches[1])
    assert world.read(0, size).batches == whole.batches[:2]
    assert world.read(0, 1).batches == whole.batches[:1]
    assert world.reader.read(0, 1, at_least_one=False).batches == []


async def test_what_was_evicted_is_pulled_again() -> None:
    world = Reads(500, cache_bytes_max=2000)
    assert await read_all(world, 500) == [b"%d" % at for at in range(500)]
    assert world.cache.size <= 4000
    assert (await read_all(world, 100))[:100] == [b"%d" % at for at in range(100)]


# Bounds


async def test_below_the_start_and_behind_the_end_is_out_of_range() -> None:
    world = Reads(50)
    world.brokers.start = 10
    for offset in (3, 51, 1000):
        reading = await world.wait(offset)
        assert (reading.error, reading.start, reading.end) == (
            ErrorCode.OFFSET_OUT_OF_RANGE,
            10,
            50,
        )
    assert values(await world.wait(10))[0] == b"10"


async def test_an_end_that_others_have_moved_is_asked_for_before_it_is_refused() -> None:
    world = Reads(10)
    await world.wait(0)
    # Written while there was no reader, so that no held pull saw it.
    world.brokers.messages += [(b"%d" % at, b"") for at in range(10, 40)]
    assert values(await world.wait(30))[0] == b"30"


async def test_what_this_gateway_confirmed_is_in_range_before_it_is_visible() -> None:
    world = Reads(10)
    await world.wait(0)
    world.reader.confirmed(12)
    reading = world.read(12)
    assert (reading.error, reading.end) == (ErrorCode.NONE, 12)
    world.add(3)
    assert values(await world.wait(12)) == [b"10", b"11", b"12"]


async def test_a_broker_that_lost_its_tail_has_its_new_end() -> None:
    world = Reads(100)
    await read_all(world, 100)
    del world.brokers.messages[50:]
    world.brokers.tell()
    await settle(lambda: world.read(100).end == 50)
    world.brokers.messages[40:] = [(b"new", b"")] * 10
    assert values(await world.wait(45))[-1] == b"new"


@pytest.mark.parametrize("code", [LOST, 1, 14])
async def test_a_broker_that_fails_is_left_alone_and_asked_again(code: int) -> None:
    world = Reads(10)
    world.brokers.pull_code = code
    assert (await world.wait(0)).error is ErrorCode.LEADER_NOT_AVAILABLE
    pulls = len(world.brokers.pulls)
    assert world.read(0).error is ErrorCode.LEADER_NOT_AVAILABLE
    assert len(world.brokers.pulls) == pulls
    world.brokers.pull_code = None
    await until(lambda: not world.read(0).error, "the broker is asked again")
    assert values(await world.wait(0))[0] == b"0"


async def test_a_closed_reader_pulls_nothing_more() -> None:
    world = Reads(5)
    await world.wait(0)
    world.read(5)
    world.reader.close()
    await settle(lambda: not world.brokers.in_flight)


async def test_what_is_cached_of_a_deleted_topic_is_dropped() -> None:
    world = Reads(3)
    assert len(await read_all(world, 3)) == 3
    assert world.cache.size
    world.reader.drop()
    assert world.cache.size == 0
