"""Records that Kafka clients delay by headers: what is stored, what readers see, when it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.gateway.kafka.delayed import Postponing, delayed, plain
from tests.gateway.kafka.fetcher import Answer, Asked, Fetcher
from tests.world import NOW_MS

from rockgate.gateway.delay.headers import open_batch
from rockgate.gateway.kafka.fetch.time_search import TimeSearch
from rockgate.gateway.kafka.handlers.fetch import Fetched
from rockgate.gateway.kafka.produce import delay, delay_schedule, topic_checks
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import DELAYED, get_property, properties_of
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.config import StoreConfig

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def mixed(partitions: int = 1, **config: str) -> Postponing:
    world = Postponing()
    world.mixed(partitions, **config)
    return world


def entry_at(world: Postponing, offset: int) -> memoryview:
    queue = world.queue()
    unit = queue.find(offset)
    assert unit is not None
    return world.store.reader.entry(queue, unit).entry


# What is stored, what is seen, what comes


@pytest.mark.row("Y-03", "Y-04")
@pytest.mark.parametrize("codec", list(Compression))
def test_a_delayed_record_comes_when_it_is_due_and_the_others_at_once(codec: Compression) -> None:
    world = mixed()
    world.put(plain(b"before"))
    base = world.put(plain(b"a"), delayed(b"b", 5_000), plain(b"c"), codec=codec)
    assert base == 1
    assert world.put(plain(b"behind")) == 4
    assert world.values() == [b"before", b"a", b"c", b"behind"]
    world.pass_time(4_999)
    assert world.values() == [b"before", b"a", b"c", b"behind"]
    world.pass_time(1)
    assert world.values() == [b"before", b"a", b"c", b"behind", b"b"]
    assert [record.offset for batch in world.shown() for record in batch.records] == [0, 1, 3, 4, 5]
    assert world.waiting_count == 0


def test_the_batch_lies_in_the_log_as_it_came_and_is_marked() -> None:
    world = mixed()
    batch = world.batch([plain(b"a"), delayed(b"b", 1)], codec=Compression.ZSTD)
    assert world.produce(batch).base_offset == 0
    view = entry_at(world, 0)
    assert envelope.read(view).sys_flag & DELAYED
    assert bytes(envelope.body_of(view))[16:] == batch[16:]


def test_a_delivery_names_its_origin() -> None:
    world = mixed()
    world.put(plain(b"a"), delayed(b"b", 1))
    world.pass_time(1)
    view = entry_at(world, 2)
    entry = envelope.read(view)
    topic = world.store.topics.get("orders")
    assert get_property(properties_of(view, entry), b"__ORIGIN") == b"%b:0:1" % (
        topic.id.hex().encode()
    )
    assert not entry.sys_flag & DELAYED


def test_a_record_comes_as_it_was_sent_without_the_headers_that_delayed_it() -> None:
    world = mixed()
    headers = (("a", b"1"), ("DELAY", b"1"), ("a", None), ("TIMER_DELAY_MS", b"7"), ("é", b""))
    record = Record(0, NOW_MS - 77, None, None, headers)
    assert world.produce(bytes(build_batch([record], base_offset=0))).error_code == 0
    world.pass_time(1_000)
    (last,) = world.shown()[-1].records
    assert last == Record(1, NOW_MS - 77, None, None, (("a", b"1"), ("a", None), ("é", b"")))


@pytest.mark.parametrize(
    ("name", "value", "wait_ms"),
    [
        ("DELAY", "2", 5_000),
        ("DELAY", "99", 10_000),
        ("TIMER_DELAY_SEC", "3", 3_000),
        ("TIMER_DELIVER_MS", str(NOW_MS + 4_000), 4_000),
        ("__STARTDELIVERTIME", str(NOW_MS + 4_500), 4_500),
    ],
)
def test_every_header_delays(name: str, value: str, wait_ms: int) -> None:
    world = mixed()
    world.put((b"x", {name: value}))
    world.pass_time(wait_ms - 1)
    assert world.values() == []
    world.pass_time(1)
    assert world.values() == [b"x"]


@pytest.mark.parametrize(
    "headers", [{"TIMER_DELIVER_MS": "1"}, {"TIMER_DELAY_MS": "0"}, {"TIMER_DELAY_MS": "-9"}]
)
def test_what_is_past_comes_at_once(headers: dict[str, str]) -> None:
    world = mixed()
    world.put((b"x", headers))
    world.settle()
    assert world.values() == [b"x"]


def test_records_come_in_the_order_of_their_times_and_then_as_they_were_sent() -> None:
    world = mixed()
    world.put(delayed(b"c", 900), delayed(b"a", 300), delayed(b"d", 900))
    world.put(delayed(b"b", 300))
    world.pass_time(1_000)
    assert world.values() == [b"a", b"b", b"c", b"d"]


def test_an_all_delayed_batch_is_empty_to_readers_and_brings_them_forward() -> None:
    world = mixed()
    world.put(delayed(b"a", 1_000), delayed(b"b", 1_000))
    world.put(plain(b"c"))
    first, second = world.shown()
    assert first == (0, 2, [])
    assert [record.value for record in second.records] == [b"c"]
    assert world.shown(start=1, size_max=1)[0] == (0, 2, [])


def test_a_batch_without_delayed_records_passes_untouched() -> None:
    world = mixed()
    batch = world.batch([plain(b"DELAY"), (b"x", {"DELAYED": "1"}), (b"y", {"DELAY": "0"})])
    assert world.produce(batch).base_offset == 0
    view = entry_at(world, 0)
    assert not envelope.read(view).sys_flag & DELAYED
    assert bytes(envelope.body_of(view))[16:] == batch[16:]
    assert world.values() == [b"DELAY", b"x", b"y"]


@pytest.mark.parametrize("kind", ["NORMAL", "FIFO", "TRANSACTION"])
def test_on_topics_of_other_types_the_header_is_an_ordinary_one(kind: str) -> None:
    world = mixed(message_type=kind)
    batch = world.batch([(b"x", {"DELAY": "1"}), (b"y", {"TIMER_DELAY_MS": "soon"})])
    assert world.produce(batch).error_code == 0
    assert world.values() == [b"x", b"y"]
    assert world.waiting_count == 0
    assert world.shown()[0].records[0].headers == (("DELAY", b"1"),)


def test_a_topic_that_becomes_normal_delivers_what_waits() -> None:
    world = mixed()
    world.put(plain(b"a"), delayed(b"b", 1_000))
    world.store.topics.set_config({world.store.topics.get("orders"): {"message.type": "NORMAL"}})
    assert world.values() == [b"a"]
    world.pass_time(1_000)
    assert world.values() == [b"a", b"b"]


# Refusals


@pytest.mark.parametrize(
    "headers",
    [{"DELAY": "soon"}, {"DELAY": "-1"}, {"TIMER_DELIVER_MS": ""}, {"TIMER_DELAY_MS": str(10**12)}],
)
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_a_bad_header_refuses_the_batch_and_names_the_record(
    headers: dict[str, str], codec: Compression
) -> None:
    world = mixed()
    end = world.store.log.end
    batch = world.batch([plain(b"a"), delayed(b"b", 1), (b"c", headers)], codec=codec)
    told = world.produce(batch)
    assert told.error_code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in told.record_errors] == [2]
    reason = told.record_errors[0][1] or ""
    assert next(iter(headers)) in reason or "exceeds the maximum" in reason
    assert world.store.log.end == end
    assert world.waiting_count == 0


# Producers and their retries


def test_a_batch_that_is_sent_again_is_not_scheduled_again() -> None:
    world = mixed()
    producer = world.init().producer
    batch = world.batch([plain(b"a"), delayed(b"b", 1_000)], producer=producer)
    assert [world.produce(batch).base_offset for _ in range(3)] == [0, 0, 0]
    world.kill()
    assert world.produce(batch).base_offset == 0
    assert world.waiting_count == 1
    world.pass_time(1_000)
    assert world.values() == [b"a", b"b"]
    assert world.produce(batch).base_offset == 0
    world.pass_time(DAY_MS)
    assert world.values() == [b"a", b"b"]


# Restarts


@pytest.mark.parametrize("how", ["reopen", "kill"])
def test_what_waits_survives_a_restart(how: str) -> None:
    world = mixed()
    world.put(plain(b"a"), delayed(b"b", HOUR_MS), delayed(b"c", 2 * HOUR_MS))
    getattr(world, how)()
    world.pass_time(HOUR_MS)
    assert world.values() == [b"a", b"b"]
    getattr(world, how)()
    world.pass_time(HOUR_MS)
    getattr(world, how)()
    world.pass_time(HOUR_MS)
    assert world.values() == [b"a", b"b", b"c"]


def test_a_recalled_record_never_comes() -> None:
    world = mixed()
    world.put(plain(b"a"), delayed(b"b", 1_000), delayed(b"c", 1_000))
    topic = world.store.topics.get("orders")
    assert world.store.delay.recall(topic.id, 0, 1)
    world.pass_time(1_000)
    assert world.values() == [b"a", b"c"]


def test_a_deleted_topic_takes_what_waits_with_it() -> None:
    world = mixed()
    world.put(delayed(b"b", 1_000))
    producer = world.init().producer
    batch = world.batch([delayed(b"t", 1)], producer=producer, is_transactional=True)
    assert world.produce(batch, id_="tx").error_code == 0
    world.store.topics.delete([world.store.topics.get("orders")])
    assert (world.waiting_count, len(world.folds.held)) == (0, 0)
    world.mixed()
    world.pass_time(DAY_MS)
    assert world.values() == []


# Settings of topics


def test_under_append_time_a_record_has_the_time_of_its_delivery() -> None:
    world = mixed(message_timestamp_type="LogAppendTime")
    world.put(plain(b"a"), delayed(b"b", 1_000))
    world.pass_time(1_000)
    times = [record.timestamp for batch in world.shown() for record in batch.records]
    assert times == [NOW_MS, NOW_MS + 1_000]


def test_a_topic_that_compresses_shows_what_it_keeps() -> None:
    world = mixed(compression_type="zstd")
    world.put(plain(b"a" * 500), delayed(b"b", 1_000), codec=Compression.GZIP)
    header = read_header(envelope.body_of(entry_at(world, 0)))
    assert header.compression is Compression.ZSTD
    assert world.values() == [b"a" * 500]
    world.pass_time(1_000)
    assert world.values() == [b"a" * 500, b"b"]


# Searching by time, deleting, retention


def found_at(world: Postponing, time_ms: int | None) -> int | None:
    search = TimeSearch(world.store.reader, world.epochs, world.cold_reads)
    queue = world.queue()

    async def ask() -> int | None:
        if time_ms is None:
            found = await search.largest(queue, queue.next_offset)
        else:
            found = await search.first_at(queue, time_ms, queue.next_offset)
        return None if found is None else found.offset

    return asyncio.run(ask())


def test_a_search_by_time_finds_what_readers_see() -> None:
    world = mixed()
    world.put(delayed(b"x", HOUR_MS), delayed(b"y", HOUR_MS))
    assert found_at(world, 0) is None
    assert found_at(world, None) is None
    world.put(plain(b"a"), delayed(b"b", HOUR_MS), plain(b"c"), delayed(b"d", HOUR_MS))
    assert found_at(world, 0) == 2
    assert found_at(world, NOW_MS + 1) == 4
    assert found_at(world, NOW_MS + 3) is None
    assert found_at(world, None) == 4
    world.pass_time(HOUR_MS)
    assert found_at(world, NOW_MS + 3) == 9
    assert found_at(world, None) == 9


def test_deleting_records_leaves_what_waits() -> None:
    world = mixed()
    world.put(plain(b"a"), delayed(b"b", 1_000), plain(b"c"))
    world.delete_records(3)
    assert world.values() == []
    world.pass_time(1_000)
    assert world.values() == [b"b"]


SMALL = StoreConfig(
    segment_bytes=16_384,
    populate_ahead_bytes=4_096,
    checkpoint_bytes=6_000,
    checkpoint_interval_ms=3_000,
    upkeep_gap_ms=0,
    snapshot_bytes=9_000,
    snapshot_interval_ms=7_000,
    key_index=False,
    retention_interval_ms=1_000,
)


def test_what_waits_outlives_the_retention_of_its_topic() -> None:
    world = Postponing(SMALL)
    world.mixed(retention_ms=str(HOUR_MS))
    world.put(plain(b"a"), delayed(b"month", 30 * DAY_MS), codec=Compression.LZ4)
    producer = world.init(timeout_ms=900_000).producer
    open_batch = world.batch([delayed(b"t", 60 * DAY_MS)], producer=producer, is_transactional=True)
    assert world.produce(open_batch, id_="tx").error_code == 0
    for _ in range(30):
        for _ in range(8):
            world.put(plain(b"x" * 1_000))
        world.pass_time(HOUR_MS + 1)
    assert world.store.retention.removed_count > 5
    assert world.store.log.start > 0
    assert world.end(producer, commit=True).code == 0
    world.settle()
    assert world.waiting_count == 2
    world.kill()
    world.pass_time(30 * DAY_MS)
    assert b"month" in world.values()
    world.pass_time(31 * DAY_MS)
    assert world.values()[-1:] == [b"t"]


# Transactions


def test_records_of_a_transaction_wait_from_its_commit_on() -> None:
    world = mixed()
    producer = world.init().producer
    batch = world.batch(
        [plain(b"a"), delayed(b"b", 1_000)], producer=producer, is_transactional=True
    )
    assert world.produce(batch, id_="tx").error_code == 0
    world.pass_time(10_000)
    assert world.waiting_count == 0
    assert world.values(committed=True) == []
    assert world.values() == [b"a"]
    assert world.end(producer, commit=True).code == 0
    world.pass_time(999)
    assert (world.waiting_count, world.values(committed=True)) == (1, [b"a"])
    world.pass_time(1)
    assert world.read() == [b"a", b"b"]
    assert world.values(committed=True) == [b"a", b"b"]


def test_an_abort_schedules_nothing() -> None:
    world = mixed()
    producer = world.init().producer
    batch = world.batch(
        [plain(b"a"), delayed(b"b", 1_000)], producer=producer, is_transactional=True
    )
    assert world.produce(batch, id_="tx").error_code == 0
    assert world.end(producer, commit=False).code == 0
    world.pass_time(DAY_MS)
    assert (world.waiting_count, len(world.folds.held)) == (0, 0)
    assert world.read() == []


def test_an_open_transaction_is_held_over_restarts_and_decided_then() -> None:
    world = mixed(partitions=2)
    producer = world.init().producer
    for partition in (0, 1):
        batch = world.batch([delayed(b"b", 1_000)], producer=producer, is_transactional=True)
        assert world.produce(batch, id_="tx", partition=partition).error_code == 0
    world.kill()
    world.pass_time(5_000)
    assert (world.waiting_count, len(world.folds.held)) == (0, 2)
    world.reopen()
    assert world.end(producer, commit=True).code == 0
    world.kill()
    world.settle()
    assert (world.waiting_count, len(world.folds.held)) == (2, 0)
    world.pass_time(1_000)
    assert world.read(0) == world.read(1) == [b"b"]


def test_each_transaction_of_a_producer_is_decided_alone() -> None:
    world = mixed()
    producer = world.init().producer
    for number, is_commit in enumerate((True, False, True, False)):
        given = [delayed(b"%d" % number, 1_000)]
        batch = world.batch(given, producer=producer, is_transactional=True)
        assert world.produce(batch, id_="tx").error_code == 0
        producer = world.end(producer, commit=is_commit).producer
        if number == 1:
            world.kill()
    world.pass_time(1_000)
    assert world.read() == [b"0", b"2"]


# Very large batches


def test_a_batch_with_very_many_delayed_records_is_scheduled_little_by_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_checks, "WAITS_MAX", 3)
    monkeypatch.setattr(delay, "WAITS_MAX", 3)
    monkeypatch.setattr("rockgate.gateway.kafka.produce.delay_schedule.STEP_RECORDS", 2)
    world = mixed()
    world.put(*[delayed(b"%d" % number, 1_000) for number in range(7)])
    seen = []
    while world.scheduling.step():
        seen.append(world.waiting_count)
        if len(seen) == 2:
            world.kill()
            assert world.waiting_count == 4
    assert seen == [2, 4, 6, 7]
    world.pass_time(1_000)
    assert world.values() == [b"%d" % number for number in range(7)]


def test_a_held_batch_that_is_damaged_waits_behind_the_others_and_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in (topic_checks, delay):
        monkeypatch.setattr(module, "WAITS_MAX", 1)
    world = mixed()
    for number in range(3):
        world.put(*[delayed(b"%d" % number, 1_000)] * 2)
    damaged: list[bytes] = []

    def damage(body: memoryview, **more: Any) -> Any:
        if not damaged or bytes(body) == damaged[0]:
            damaged[:] = [bytes(body)]
            raise MalformedBatch("a flipped bit")
        return open_batch(body, **more)

    monkeypatch.setattr("rockgate.gateway.kafka.produce.delay_schedule.open_batch", damage)
    for _ in range(5):
        world.pass_time(delay_schedule.RETRY_MS)
    assert world.values() == [b"1", b"1", b"2", b"2"]
    assert (
        sum("stopped until the log is repaired" in record.message for record in caplog.records) == 1
    )
    monkeypatch.setattr("rockgate.gateway.kafka.produce.delay_schedule.open_batch", open_batch)
    world.pass_time(delay_schedule.RETRY_MS)
    world.pass_time(1_000)
    assert world.values() == [b"1", b"1", b"2", b"2", b"0", b"0"]


def heavy(world: Postponing, count: int = 2_000, ms: int = 1_000) -> bytes:
    given = [delayed(b"d", ms) if number % 2 else plain(b"%d" % number) for number in range(count)]
    return world.batch(given, codec=Compression.ZSTD)


def test_a_large_batch_is_opened_by_a_thread_and_what_comes_behind_it_waits() -> None:
    world = mixed(partitions=2)

    async def scenario() -> list[int]:
        first = asyncio.ensure_future(world.produce_later(heavy(world)))
        await asyncio.sleep(0)
        behind = asyncio.ensure_future(world.produce_later(world.batch([plain(b"z")])))
        other = asyncio.ensure_future(world.produce_later(world.batch([plain(b"z")]), partition=1))
        await asyncio.sleep(0)
        assert other.done(), "another partition goes on"
        return [(await each).base_offset for each in (first, behind, other)]

    assert asyncio.run(scenario()) == [0, 2_000, 0]
    assert world.values()[:3] == [b"0", b"2", b"4"]
    assert world.values()[-1] == b"z"
    assert world.shown()[0].records[1].offset == 2
    world.pass_time(1_000)
    assert world.values().count(b"d") == 1_000


def test_a_large_batch_with_a_bad_header_is_refused_by_its_record() -> None:
    world = mixed()
    given = [plain(b"x")] * 900 + [(b"y", {"DELAY": "soon"})]

    async def scenario() -> None:
        told = await world.produce_later(world.batch(given))
        assert told.error_code == ErrorCode.INVALID_RECORD
        assert [index for index, _ in told.record_errors] == [900]

    asyncio.run(scenario())
    assert world.queue().next_offset == 0


def test_what_was_received_is_stored_though_its_connection_is_lost() -> None:
    world = mixed()

    async def scenario() -> None:
        asking = asyncio.ensure_future(world.produce_later(heavy(world)))
        await asyncio.sleep(0)
        asking.cancel()
        told = await world.produce_later(world.batch([plain(b"z")]))
        assert told.base_offset == 2_000

    asyncio.run(scenario())


def test_a_large_batch_that_is_read_later_is_the_same() -> None:
    world = mixed()

    async def scenario() -> None:
        assert (await world.produce_later(heavy(world))).base_offset == 0

    asyncio.run(scenario())
    kept = world.shown()
    world.kill()
    assert world.shown() == kept
    world.pass_time(1_000)
    assert world.values().count(b"d") == 1_000


def test_a_fetch_of_a_large_batch_has_a_thread_rewrite_it_and_keeps_to_its_limits() -> None:
    world = mixed()
    asyncio.run(world.produce_later(heavy(world)))
    world.put(plain(b"behind"))
    world.kill()  # the visible part is no longer cached
    fetcher = Fetcher(world)

    async def scenario() -> None:
        request = fetcher.request({("orders", 0): Asked(0)})
        answer = fetcher.send(request)
        assert not isinstance(answer, Fetched), "it is made here and now"
        records = Answer(fetcher, await answer).records()
        assert [record.offset for record in records] == [*range(0, 2_000, 2), 2_000]
        # The second time it is there, and counts with the size that it has now.
        kept = fetcher.fetch({("orders", 0): Asked(0)})
        assert kept.records() == records
        small = fetcher.fetch({("orders", 0): Asked(0, size_max=100)})
        assert small.offsets() == list(range(0, 2_000, 2))
        size = small.sizes["orders", 0]
        both = fetcher.fetch({("orders", 0): Asked(0, size_max=size + 200)})
        assert both.offsets() == kept.offsets()

    asyncio.run(scenario())
