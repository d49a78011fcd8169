from __future__ import annotations

import logging
import random

import pytest
from tests.gateway.kafka.world import KafkaWorld
from tests.gateway.transcode.decoding import pulled
from tests.store.reading import entries

from rockgate.gateway.transcode.messages import Cut, Origin
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.records.batch import Compression, stamp
from rockgate.protocol.kafka.records.bounds import LIGHT, is_heavy
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.read.slices import Slice

NOISE = random.Random(1).randbytes(LIGHT.compressed_bytes_max + 1)


@pytest.fixture
def world() -> KafkaWorld:
    world = KafkaWorld()
    world.topic()
    return world


def transcoder(cache_bytes_max: int = 1 << 20) -> Transcoder:
    return Transcoder(cache_bytes_max=cache_bytes_max, message_bytes_max=1 << 24)


def only(world: KafkaWorld) -> Slice:
    [found] = entries(world.store, world.queue(), 0, 1 << 30)
    return found


def select(
    transcoder: Transcoder, found: Slice, offset: int, heavy: list[Slice] | None = None
) -> Cut | None:
    return transcoder.select(found, offset, count_max=99, size_max=1 << 30, heavy=heavy)


def append(world: KafkaWorld, body: bytearray, count: int) -> None:
    world.store.appender.batch(
        world.queue(),
        body,
        count=count,
        record_ms=1,
        stamp=lambda view, offset: stamp(view, offset, 1),
    )


def test_a_batch_is_opened_once_and_read_from_any_offset(world: KafkaWorld) -> None:
    world.append(times=[1, 2, 3])
    found, reading = only(world), transcoder()
    for start in (0, 2, 1):
        cut = select(reading, found, start)
        assert cut is not None
        assert [message.offset for message in pulled(cut.buffers)] == list(range(start, 3))
    assert (reading.cache.miss_count, reading.cache.hit_count) == (1, 2)


def test_what_readers_made_of_a_batch_counts_in_the_cache(world: KafkaWorld) -> None:
    world.append(times=[1, 2, 3])
    found, reading = only(world), transcoder()
    select(reading, found, 0)
    kept = reading.cache.get(found.unit.position)
    assert kept is not None
    assert reading.cache.size == kept.size > 3 * len(b"value")


def test_one_message_of_a_batch_can_be_had(world: KafkaWorld) -> None:
    world.append(times=[1, 2, 3])
    message = transcoder().message(only(world), 1)
    assert message is not None
    assert [each.entry.born_ms for each in pulled([message])] == [2]


async def test_a_heavy_batch_is_left_to_a_thread_and_then_there(world: KafkaWorld) -> None:
    world.append(times=[1, 2], value=NOISE, compression=Compression.GZIP)
    found, reading = only(world), transcoder()
    heavy: list[Slice] = []
    assert select(reading, found, 0, heavy) is None
    assert reading.message(found, 0, heavy) is None
    assert heavy == [found, found]
    await reading.prepare(heavy)
    cut = select(reading, found, 0, [])
    assert cut is not None and cut.message_count == 2


def test_without_a_list_a_heavy_batch_is_opened_at_once(world: KafkaWorld) -> None:
    world.append(times=[1], value=NOISE, compression=Compression.GZIP)
    cut = select(transcoder(), only(world), 0)
    assert cut is not None and cut.message_count == 1


@pytest.mark.parametrize(
    ("size", "compression", "expected"),
    [
        (LIGHT.compressed_bytes_max // 2, Compression.GZIP, False),
        (LIGHT.compressed_bytes_max + 1, Compression.GZIP, True),
        (LIGHT.compressed_bytes_max, Compression.NONE, False),
    ],
)
def test_a_batch_is_heavy_by_its_size_and_if_it_is_compressed(
    world: KafkaWorld, size: int, compression: Compression, expected: bool
) -> None:
    world.append(times=[1], value=NOISE[:size], compression=compression)
    assert is_heavy(body_of(only(world).entry)) is expected


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_small_batch_that_becomes_megabytes_is_heavy(
    world: KafkaWorld, compression: Compression
) -> None:
    world.append(times=[1], value=bytes(4 * LIGHT.inflated_bytes_max), compression=compression)
    entry = only(world).entry
    assert len(entry) < LIGHT.compressed_bytes_max
    assert is_heavy(body_of(entry))


async def test_a_batch_that_cannot_be_opened_is_reported_once_and_stepped_over(
    world: KafkaWorld, caplog: pytest.LogCaptureFixture
) -> None:
    body = build_batch([Record(0, 1, None, b"v")], base_offset=0, compression=Compression.GZIP)
    append(world, body[:-9], 3)
    found, reading = only(world), transcoder(0)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert select(reading, found, 1) == Cut([], 0, 0, 3)
            # Others come by and drive it out of the cache.
            world.append(times=[1])
            other = entries(world.store, world.queue(), 3, 1)[0]
            select(reading, other, 3)
        await reading.prepare([found])
    assert reading.threads.unreadable_count == 1
    [line] = [record.getMessage() for record in caplog.records]
    assert f"position={found.unit.position} offset=0 count=3" in line


def test_damage_found_while_reading_is_reported_once(world: KafkaWorld) -> None:
    body = build_batch([Record(index, 1, None, b"v") for index in range(3)], base_offset=0)
    body[61 + 8] = 0x7F
    append(world, body, 3)
    found, reading = only(world), transcoder()
    for _ in range(2):
        cut = select(reading, found, 0)
        assert cut is not None
        assert ([each.offset for each in pulled(cut.buffers)], cut.next_offset) == ([0], 3)
    assert reading.threads.unreadable_count == 1


def test_a_batch_of_an_aborted_transaction_is_stepped_over(world: KafkaWorld) -> None:
    body = build_batch(
        [Record(0, 1, None, b"v"), Record(1, 1, None, b"w")],
        base_offset=0,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append(world, body, 2)
    found = only(world)
    asked: list[Origin] = []
    verdicts = [False, True, True]

    def is_aborted(origin: Origin) -> bool:
        asked.append(origin)
        return verdicts.pop(0)

    reading = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24, is_aborted=is_aborted)
    cut = select(reading, found, 0)
    assert cut is not None and cut.message_count == 2
    assert select(reading, found, 1) == Cut([], 0, 0, 2)
    assert reading.message(found, 0) is None
    assert asked == [Origin(b"orders", found.unit.position, 0, 0, 7)] * 3
