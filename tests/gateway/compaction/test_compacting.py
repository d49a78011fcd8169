"""What readers of a compacted topic get, and what goes when."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.compaction.compacting import DAY_MS, Compacting, seen_in
from tests.store.keeping import SEGMENT

from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.gateway.kafka.fetch.time_search import TimeSearch
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import DELAYED, MOVED, body_of
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.store.errors import StoreFull
from rockgate.store.log.commitlog import Draft, Written
from rockgate.store.state.topicchanges import NewTopic


def table(**config: str) -> Compacting:
    world = Compacting()
    world.topic("table", 1, **({"cleanup_policy": "compact"} | config))
    return world


@pytest.mark.row("CMP-1")
@pytest.mark.parametrize("compression", list(Compression))
def test_of_each_key_the_last_value_stays_with_its_offset(compression: Compression) -> None:
    world = table()
    for number in range(20):
        world.produce(
            ("a", f"{number}"), (f"k{number % 3}", "x" * 100), ("b", "y"), compression=compression
        )
    world.roll()
    world.compact()
    found = world.check()
    assert sorted(key for _, key, _ in found) == ["a", "b", "k0", "k1", "k2"]
    assert world.store.cleaner.dropped_count == 55


def test_neighbouring_entries_without_records_become_one() -> None:
    world = table()
    for number in range(30):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    units = list(world.queue("table").walk(0))
    assert [(unit[0], unit[3]) for unit in units] == [(0, 29), (29, 1)]
    for number in range(30):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    units = list(world.queue("table").walk(0))
    assert [(unit[0], unit[3]) for unit in units] == [(0, 59), (59, 1)]
    assert world.check() == [(59, "a", "29")]


def test_the_active_segment_is_not_compacted() -> None:
    world = table()
    for number in range(10):
        world.produce(("a", f"{number}"))
    world.compact()
    assert len(world.check()) == 10


def test_messages_of_rocketmq_are_compacted_with_records_of_kafka() -> None:
    world = table()
    for number in range(10):
        world.send(("a", f"m{number}"))
        world.produce(("a", f"k{number}"), ("b", f"k{number}"))
    world.send(("b", "last"))
    world.roll()
    world.compact()
    assert [(key, value) for _, key, value in world.check()] == [("a", "k9"), ("b", "last")]


def test_segments_go_once_their_records_are_superseded() -> None:
    world = table()
    for _ in range(400):
        world.produce(*((f"k{number}", "v" * 50) for number in range(10)))
    world.roll()
    for _ in range(5):
        world.compact()
    assert len(world.check()) == 10
    assert len(world.row()) <= 4
    assert world.store.log.start > 10 * SEGMENT
    world.reopen()
    assert len(world.check()) == 10
    world.kill()
    assert len(world.check()) == 10


@pytest.mark.row("CMP-2")
def test_a_tombstone_goes_when_its_horizon_has_come_and_its_value_stays_gone() -> None:
    world = table(delete_retention_ms=str(DAY_MS), min_cleanable_dirty_ratio="0")
    world.produce(("a", "1"), ("b", "1"))
    world.produce(("a", None))
    world.roll()
    world.compact()
    assert world.check() == [(1, "b", "1"), (2, "a", None)]
    [_, tombstone] = world.entries("table")
    header = batch.read_header(body_of(tombstone.entry))
    assert header.delete_horizon_ms == pytest.approx(world.clock.now_ms() + DAY_MS, abs=10_000)
    # Another cleaning does not move the horizon.
    world.clock.advance(DAY_MS // 2)
    world.produce(("b", "2"), ("c", "1"))
    world.roll()
    world.compact()
    assert (2, "a", None) in world.check()
    world.clock.advance(DAY_MS // 2)
    world.produce(("b", "3"), ("c", "2"))
    world.roll()
    world.compact()
    assert [key for _, key, _ in world.check()] == ["b", "c"]


def test_timestamps_survive_a_horizon() -> None:
    world = table()
    now_ms = world.clock.now_ms()
    world.produce(("a", None), ("b", "1"))
    world.roll()
    world.compact()
    [found] = world.entries("table")
    records = read_records(body_of(found.entry))
    assert [each.timestamp for each in records] == [now_ms, now_ms + 1]
    assert batch.check(body_of(found.entry)).has_delete_horizon


@pytest.mark.row("CMP-3")
def test_aborted_records_go_and_supersede_nothing() -> None:
    world = table()
    world.produce(("a", "1"), ("b", "1"))
    first = world.produce(
        ("a", "2"), ("b", "2"), producer_id=7, is_transactional=True, is_visible=False
    )
    marker = world.end(7, first, commits=False)
    world.produce(("b", "3"))
    world.roll()
    world.compact()
    assert [(key, value) for _, key, value in world.check()] == [("a", "1"), ("b", "3")]
    queue = world.queue("table")
    unit = queue.find(marker)
    assert unit is not None and unit.base == marker and unit.offset_count == 1


@pytest.mark.row("CMP-3")
def test_nothing_is_superseded_from_behind_the_last_stable_offset() -> None:
    world = table()
    world.produce(("a", "1"))
    first = world.produce(("a", "2"), producer_id=7, is_transactional=True, is_visible=False)
    world.produce(("a", "3"))
    world.roll()
    world.compact()
    assert (0, "a", "1") in world.records()
    world.end(7, first, commits=True)
    world.roll()
    world.compact()
    assert [value for _, _, value in world.records()] == ["3"]


def test_the_marker_of_a_commit_goes_after_its_data_and_its_horizon() -> None:
    world = table(delete_retention_ms="1000", min_cleanable_dirty_ratio="0")
    first = world.produce(("a", "1"), producer_id=7, is_transactional=True)
    marker = world.end(7, first, commits=True)
    markers = []
    for number in range(5):
        world.produce(("a", f"{number + 2}"), ("b", "1"))
        world.roll()
        world.compact()
        unit = world.queue("table").find(marker)
        assert unit is not None
        entry = world.store.reader.entry(world.queue("table"), unit)
        header = batch.read_header(body_of(entry.entry))
        markers.append((header.is_control, header.has_delete_horizon))
        world.clock.advance(2_000)
        world.check()
    assert markers[0] == (True, False), "its data was there when the first cleaning began"
    assert (True, True) in markers
    assert markers[-1] == (False, False)


def test_a_young_record_stays_as_it_is() -> None:
    world = table(min_compaction_lag_ms=str(DAY_MS), min_cleanable_dirty_ratio="0")
    for number in range(5):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    assert len(world.check()) == 5
    world.clock.advance(DAY_MS)
    world.compact()
    assert len(world.check()) == 1


def test_an_old_record_does_not_wait_for_dirt() -> None:
    world = table(max_compaction_lag_ms=str(DAY_MS), min_cleanable_dirty_ratio="0.9")
    world.produce(*((f"k{number}", "v" * 20) for number in range(50)))
    world.roll()
    world.compact()
    world.produce(("k1", "new"))
    world.roll()
    world.compact()
    assert len(world.check()) == 51
    world.clock.advance(DAY_MS)
    world.compact()
    assert len(world.check()) == 50


def test_a_queue_that_is_hardly_dirty_is_left_alone() -> None:
    world = table(min_cleanable_dirty_ratio="0.5")
    world.produce(*((f"k{number}", "v" * 20) for number in range(50)))
    world.roll()
    world.compact()
    world.produce(("k1", "new"))
    world.roll()
    world.compact()
    assert len(world.check()) == 51
    assert world.store.cleaner.cleaned_count == 1


def test_topics_without_the_policy_keep_everything() -> None:
    world = Compacting()
    world.topic("table", 1)
    for number in range(10):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    assert len(world.check()) == 10


def test_without_bodies_everything_stays_as_it_was() -> None:
    world = table()
    world.store.cleaner.bodies = None
    for number in range(10):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    assert len(world.check()) == 10
    assert not world.disk.root().has_child("compaction")


def test_records_without_a_key_go_where_a_topic_became_compacted() -> None:
    world = Compacting()
    topic = world.topic("table", 1)
    world.message("table", body=b"no key")
    world.produce(("a", "1"))
    world.store.topics.set_config({topic: {"cleanup.policy": "compact"}})
    world.roll()
    world.compact()
    assert world.check() == [(1, "a", "1")]


def test_compact_and_delete_expires_what_is_left() -> None:
    world = table(cleanup_policy="compact,delete", retention_ms=str(DAY_MS))
    for number in range(10):
        world.produce((f"k{number % 2}", f"{number}"))
    world.roll()
    world.compact()
    assert len(world.check()) == 2
    world.clock.advance(DAY_MS)
    world.compact()
    assert world.check() == []


class _Needs:
    """A keeper of one offset."""

    def __init__(self, offset: int) -> None:
        self.offset: int | None = offset

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        return topic == b"table" and self.offset is not None and first <= self.offset < end


def test_what_a_keeper_needs_stays_and_so_does_what_deletes_it() -> None:
    world = table(delete_retention_ms="1000", min_cleanable_dirty_ratio="0")
    needs = _Needs(world.produce(("a", "1")))
    world.store.retention.keep(needs)
    world.produce(("a", None))
    for number in range(3):
        world.produce(("b", f"{number}"))
        world.roll()
        world.compact()
        assert world.records()[:2] == [(0, "a", "1"), (1, "a", None)]
        world.clock.advance(5_000)
    needs.offset = None
    for number in range(2):
        world.produce(("b", f"{number}"))
        world.roll()
        world.compact()
    assert {key for _, key, _ in world.check()} == {"b"}


def test_entries_are_compacted_while_retention_moves_and_jobs_are_late() -> None:
    world = Compacting(compaction_interval_ms=20, retention_interval_ms=30)
    world.topic("table", 1, cleanup_policy="compact", delete_retention_ms="100")
    world.topic("filler", 1, retention_ms="500")
    keys = [f"k{number}" for number in range(60)]
    for step, _ in enumerate(world.tick_late()):
        if step % 3 == 0:
            key = keys[step * 7 % 60]
            world.send((key, None if step % 4 == 0 else f"{step}"))
            world.produce((key, f"{step}"), (keys[step * 5 % 60], None if step % 7 else "x" * 90))
        if step % 20 == 0:
            world.fill("filler", 2)
        if step % 50 == 0:
            world.check()
    assert world.store.retention.mover.moved_count and world.store.cleaner.rewritten_count
    assert world.store.cleaner.failure is None
    world.check()


def test_nothing_is_replaced_while_retention_relocates_entries() -> None:
    world = table()
    for number in range(20):
        world.produce(("a", f"{number}"))
    world.roll()
    retention = world.store.retention
    # As in the middle of a round: entries were picked, and are about to be appended again.
    vars(retention)["_emptying"] = world.store.segments.row[0]
    vars(retention)["_work"] = iter([True] * 500)
    world.clock.advance(2_000)
    for _ in range(400):
        world.store.tick()
    assert world.store.cleaner.rewritten_count == 0
    vars(retention)["_emptying"] = None
    world.compact()
    assert world.store.cleaner.rewritten_count == 1
    assert len(world.check()) == 1


def test_a_full_disk_ends_a_cleaning_and_the_next_one_finishes_it() -> None:
    world = table()
    for number in range(30):
        world.produce(("a", f"{number}"), ("b", "x" * 100))
    world.roll()
    append, calls = world.store.log.append, []

    def full(draft: Draft) -> Written:
        if draft.sys_flag & MOVED:
            calls.append(draft)
            raise StoreFull("no space")
        return append(draft)

    vars(world.store.log)["append"] = full
    world.compact()
    assert calls
    assert isinstance(world.store.cleaner.failure, StoreFull)
    assert len(world.check()) == 60
    del vars(world.store.log)["append"]
    world.pass_time(60_000)
    world.compact()
    assert len(world.check()) == 2
    assert world.store.cleaner.failure is None


@pytest.mark.row("CMP-5")
def test_a_damaged_entry_stops_its_queue_and_no_other() -> None:
    world = table()
    world.topic("other", 1, cleanup_policy="compact")
    for number in range(30):
        world.produce(("a", f"{number}"))
        world.produce(("a", f"{number}"), name="other")
    world.roll()
    unit = world.queue("table").find(5)
    assert unit is not None
    view = world.store.log.slice(unit.position, unit.size)
    assert view is not None
    view[-12] ^= 1
    world.compact()
    assert world.store.cleaner.damaged_count == 1
    assert len(world.check("other")) == 1
    assert list(seen_in(world.entries("table")[-1].entry)) == [(29, "a", "29")]


def test_a_time_is_found_although_the_record_of_the_maximum_went() -> None:
    world = table()
    late = world.clock.now_ms() + 5_000
    queue = world.queue("table")
    world.append(queue, build_batch([Record(0, late, b"a", b"1")], base_offset=0), 1, late)
    world.produce(("b", "1"))
    world.produce(("a", "2"))
    world.roll()
    world.compact()
    store = world.store
    search = TimeSearch(
        store.reader,
        LeaderEpochs(store.epochs, store.reader),
        ColdReads(store.residency, store.log),
    )
    largest = asyncio.run(search.largest(queue, queue.next_offset))
    assert largest is not None
    assert largest.offset == 1
    assert asyncio.run(search.first_at(queue, late, queue.next_offset)) is None
    found = asyncio.run(search.first_at(queue, 0, queue.next_offset))
    assert found is not None and found.offset == 1


def test_a_pull_goes_on_behind_what_went() -> None:
    world = table()
    for number in range(30):
        world.send(("a", f"{number}"))
    world.roll()
    world.compact()
    queue = world.queue("table")
    run = world.store.reader.message_run(queue, 7, 30, count_max=32, size_max=1 << 20)
    assert run.message_count == 0 and run.batch is not None
    transcoder = Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 20)
    cut = transcoder.select(run.batch, 7, count_max=32, size_max=1 << 20)
    assert cut is not None and (cut.message_count, cut.next_offset) == (0, 29)
    run = world.store.reader.message_run(queue, 29, 30, count_max=32, size_max=1 << 20)
    assert (run.message_count, run.next_offset) == (1, 30)
    read = world.store.reader.batches(queue, 7, 30, 1 << 20, at_least_one=True, cold=None)
    assert (len(read.bodies), read.next_offset, read.is_at_message) == (1, 29, True)


def test_what_was_made_of_messages_is_outdated_after_a_cleaning() -> None:
    world = table(min_cleanable_dirty_ratio="0")
    calls: list[int] = []
    world.store.attach(on_compacted=lambda: calls.append(world.store.cleaner.rewritten_count))
    world.send(("a", "1"))
    world.roll()
    world.compact()
    assert calls == [], "nothing went"
    world.send(("a", "2"))
    world.roll()
    world.compact()
    assert calls == [1]


def test_internal_topics_are_compacted_as_their_policy_says() -> None:
    world = Compacting()
    new = NewTopic(
        name="table", queue_count=1, is_internal=True, config={"cleanup.policy": "compact"}
    )
    world.store.topics.create(new)
    for number in range(10):
        world.produce(("a", f"{number}"))
    world.roll()
    world.compact()
    assert len(world.check()) == 1


def test_batches_are_left_as_kafka_leaves_them() -> None:
    """What the segments of Apache Kafka 4.3.1 held after the same; offset 5 is a gap there."""
    world = table(delete_retention_ms="6000", min_cleanable_dirty_ratio="0.01")
    times = []
    for pairs in (("a1", "b1", "c1"), ("a", "b2"), ("d1",), ("d2",)):
        times.append(world.clock.now_ms())
        world.produce(*((pair[0], pair[1:] or None) for pair in pairs))
        world.clock.advance(100)
    world.roll()
    world.compact()
    horizon_ms = _headers(world)[1][4]
    assert 2_000 <= horizon_ms - world.clock.now_ms() <= 6_000
    wanted = [
        # base offset, last offset delta, records, attributes, base and maximum timestamp
        (0, 2, 1, 0, times[0], times[0] + 2),
        (3, 1, 2, 64, horizon_ms, times[1] + 1),
        (5, 0, 0, 0, -1, -1),
        (6, 0, 1, 0, times[3], times[3]),
    ]
    assert _headers(world) == wanted
    for _ in range(2):
        world.clock.advance(6_000)
        world.produce(("z", "1"))
        world.roll()
        world.compact()
    wanted[1] = (3, 1, 1, 64, horizon_ms, times[1] + 1)
    assert _headers(world)[:4] == wanted


def _headers(world: Compacting) -> list[tuple[int, ...]]:
    found = [batch.read_header(body_of(each.entry)) for each in world.entries("table")]
    return [
        (
            each.base_offset,
            each.last_offset_delta,
            each.record_count,
            each.attributes,
            each.base_timestamp,
            each.max_timestamp,
        )
        for each in found
    ]


def test_a_batch_with_pending_records_stays_and_later_loses_what_was_delivered() -> None:
    world = table(delete_retention_ms="1000", min_cleanable_dirty_ratio="0")
    world.produce(("a", "1"), ("b", "1"))
    headers = (("TIMER_DELAY_MS", b"60000"),)
    parts = ((b"a", b"now", ()), (b"b", b"later", headers), (b"c", b"now", ()))
    records = [
        Record(index, world.clock.now_ms(), key, value, its_headers)
        for index, (key, value, its_headers) in enumerate(parts)
    ]
    queue = world.queue("table")
    needs = _Needs(queue.next_offset + 1)
    world.store.retention.keep(needs)
    body = build_batch(records, base_offset=0, compression=Compression.LZ4)
    world.append(queue, body, len(records), world.clock.now_ms(), sys_flag=DELAYED)
    world.produce(("c", "2"))
    for _ in range(2):
        world.produce(("z", "1"))
        world.roll()
        world.compact()
    # What is visible of it supersedes; what is pending does not, and all of it stays.
    assert [seen for seen in world.records() if seen[1] != "z"] == [
        (1, "b", "1"),
        (2, "a", "now"),
        (3, "b", "later"),
        (4, "c", "now"),
        (5, "c", "2"),
    ]
    needs.offset = None
    world.produce(("z", "1"))
    world.roll()
    world.compact()
    assert [seen for seen in world.records() if seen[1] != "z"] == [
        (1, "b", "1"),
        (2, "a", "now"),
        (5, "c", "2"),
    ]
    unit = queue.find(2)
    assert unit is not None
    assert not envelope.read(world.store.reader.entry(queue, unit).entry).sys_flag & DELAYED
