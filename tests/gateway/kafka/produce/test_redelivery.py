"""Delayed records are delivered with their codec, in batches that their topic allows."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.kafka.delayed import Given, Postponing, delayed
from tests.store.reading import entries
from tests.world import CONFIG

from rockgate.gateway.kafka.produce import redelivery
from rockgate.protocol import entry as envelope
from rockgate.protocol.kafka.records.batch import BatchHeader, Compression, check
from rockgate.protocol.kafka.records.record import read_records

LIMIT = 1_048_588
"""What `max.message.bytes` is by default."""


def world_of(**config: str) -> Postponing:
    world = Postponing(CONFIG)
    world.mixed(1, **config)
    return world


def put(world: Postponing, *given: Given, codec: Compression) -> int:
    """Produce records of any size; how many offsets they took."""
    done = asyncio.run(world.produce_later(world.batch(given, codec=codec)))
    assert done.error_code == 0, done
    return len(given)


def delivered(world: Postponing, start: int) -> list[tuple[BatchHeader, int, list[bytes | None]]]:
    """The batches that lie behind an offset: header, size and values."""
    found = []
    for each in entries(world.store, world.queue(), start, 1 << 30):
        body = envelope.body_of(each.entry)
        values = [record.value for record in read_records(body)]
        found.append((check(body), len(body), values))
    return found


@pytest.mark.parametrize("codec", Compression)
def test_a_delivery_has_the_codec_of_what_was_sent(codec: Compression) -> None:
    world = world_of()
    start = put(world, *[delayed(b"%d" % n * 50, 100) for n in range(9)], codec=codec)
    world.pass_time(100)
    [(header, _, values)] = delivered(world, start)
    assert header.compression is codec
    assert values == [b"%d" % n * 50 for n in range(9)]


@pytest.mark.parametrize("codec", [c for c in Compression if c is not Compression.NONE])
def test_a_record_that_is_large_in_plain_keeps_to_the_limit(codec: Compression) -> None:
    world = world_of()
    value = bytes(5 << 20)
    start = put(world, delayed(value, 100), delayed(b"small", 100), codec=codec)
    world.pass_time(100)
    found = delivered(world, start)
    assert [values for _, _, values in found] == [[value], [b"small"]]
    assert max(size for _, size, _ in found) < LIMIT


def test_deliveries_are_split_to_a_small_limit() -> None:
    world = world_of(max_message_bytes="3000")
    values = [bytes([n]) * 500 for n in range(20)]
    start = 0
    for value in values:
        start += put(world, delayed(value, 1_000), codec=Compression.NONE)
    world.pass_time(1_000)
    found = delivered(world, start)
    assert [value for _, _, part in found for value in part] == values
    assert 1 < len(found) < 20
    assert max(size for _, size, _ in found) <= 3_000


def test_batches_of_several_codecs_are_delivered_in_order_each_with_its_own() -> None:
    world = world_of()
    codecs = [Compression.ZSTD, Compression.ZSTD, Compression.NONE, Compression.GZIP]
    start = 0
    for n, codec in enumerate(codecs):
        start += put(world, delayed(b"%d" % n, 1_000), codec=codec)
    world.pass_time(1_000)
    found = [(header.compression, values) for header, _, values in delivered(world, start)]
    assert found == [
        (Compression.ZSTD, [b"0", b"1"]),
        (Compression.NONE, [b"2"]),
        (Compression.GZIP, [b"3"]),
    ]


def test_what_a_step_has_no_time_for_comes_in_the_next_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()
    ticks = iter(range(10_000))
    monkeypatch.setattr(world.store.deliveries.records, "_seconds", lambda: float(next(ticks)))
    values = [b"%d" % n * 30_000 for n in range(1, 10)] * 4
    start = put(world, *[delayed(value, 100) for value in values], codec=Compression.ZSTD)
    world.clock.advance(100)
    steps = 0
    while world.store.deliveries.step():
        steps += 1
    assert steps >= len(values) // 3
    assert [value for _, _, part in delivered(world, start) for value in part] == values


def test_a_job_opens_so_much_and_the_next_one_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery, "OPEN_AT_ONCE", 1)
    world = world_of()
    values = [bytes([n]) * (2 << 20) for n in range(5)]
    start = 0
    for value in values:
        start += put(world, delayed(value, 1_000), codec=Compression.ZSTD)
    world.pass_time(1_000)
    assert [value for _, _, part in delivered(world, start) for value in part] == values
    assert world.waiting_count == 0


def test_times_at_both_ends_are_delivered_apart() -> None:
    world = world_of(message_timestamp_before_max_ms=str(2**63 - 1))
    batch = world.batch([delayed(b"v", 100)])
    assert asyncio.run(world.produce_later(batch)).error_code == 0
    world.pass_time(100)
    assert [values for _, _, values in delivered(world, 1)] == [[b"v"]]


@pytest.mark.parametrize("size", [10, 2 << 20])
def test_a_record_is_delivered_early_with_its_codec(size: int) -> None:
    """As an operator asks for it; one that takes a thread is prepared first."""
    world = world_of(max_message_bytes=str(4 << 20))
    value = bytes(size)
    given = [delayed(value, 3_600_000), delayed(b"other", 3_600_000)]
    start = put(world, *given, codec=Compression.ZSTD)
    queue, deliveries = world.queue(), world.store.early_deliveries
    unit = queue.find(0)
    assert unit is not None
    entry = world.store.reader.entry(queue, unit)
    opening = deliveries.prepare(entry, 0)
    assert (opening is not None) == (size > 1 << 20)
    if opening is not None:
        opening.run()
        opening.keep()
        assert deliveries.prepare(entry, 0) is None
    arrival = deliveries.deliver(queue, entry, 0)
    assert arrival is not None
    assert arrival.offset == start
    [(header, _, values)] = delivered(world, start)
    assert (header.compression, values) == (Compression.ZSTD, [value])
