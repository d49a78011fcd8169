"""What may go, when and in which order: whole stores on memory files and a clock turned by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.store.keeping import HOUR_MS, SEGMENT, Keeping
from tests.store.reading import entries

from rockgate.store.log.commitlog import Draft
from rockgate.store.testing.memory_files import Operation
from rockgate.store.upkeep import disk, expiry, relocation, retention


def test_a_queue_begins_behind_what_is_older_than_its_topic_allows() -> None:
    keeping = Keeping()
    keeping.topic("orders", retention_ms=str(HOUR_MS))
    keeping.fill("orders", 4)
    keeping.clock.advance(HOUR_MS // 2)
    young = keeping.fill("orders", 4)
    keeping.pass_time(HOUR_MS // 2 + 1)
    assert keeping.read("orders") == young
    assert keeping.queue("orders").log_start == young[0][0]


def test_a_unit_lives_through_the_last_millisecond_of_its_time() -> None:
    keeping = Keeping(retention_interval_ms=1)
    keeping.topic("orders", retention_ms=str(HOUR_MS))
    held = keeping.fill("orders", 1)
    keeping.pass_time(HOUR_MS)
    assert keeping.read("orders") == held
    keeping.pass_time(1)
    assert keeping.read("orders") == []


def test_segments_without_a_live_message_go_and_the_others_are_read_as_before() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    for _ in range(3):
        keeping.fill_segment("orders")
    keeping.clock.advance(HOUR_MS)
    young = keeping.fill_segment("orders")["orders"]
    assert len(keeping.row()) == 5
    keeping.pass_time(HOUR_MS // 2)
    assert keeping.read("orders")[-len(young) :] == young
    assert keeping.row() == [3 * SEGMENT, 4 * SEGMENT]
    assert min(keeping.files()) == 3 * SEGMENT
    assert keeping.store.retention.removed_count == 3
    assert keeping.store.log.start == 3 * SEGMENT


def test_a_topic_with_longer_retention_keeps_all_its_messages_while_segments_go() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    long = []
    for _ in range(12):
        long += keeping.fill("long", 1)
        keeping.fill_segment("short")
        keeping.pass_time(HOUR_MS // 2)
        assert keeping.read("long") == long
    assert keeping.store.retention.mover.moved_count > 12
    assert keeping.store.log.start > 6 * SEGMENT
    keeping.reopen()
    assert keeping.read("long") == long


def test_order_offsets_and_lookups_by_time_are_the_same_after_moves() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    long, units, times = [], [], []
    for _ in range(8):
        for _ in range(3):
            times.append(keeping.clock.now_ms())
            long += keeping.fill("long", 1)
            keeping.clock.advance(1_000)
        keeping.fill_segment("short")
        keeping.pass_time(HOUR_MS)
        units = _without_places(keeping)
    queue = keeping.queue("long")
    assert keeping.store.log.start > 0
    assert keeping.read("long") == long
    for (base, count, body), time_ms in zip(long, times, strict=True):
        for by_time in (queue.first_at_store_time, queue.first_at_record_time):
            found = by_time(time_ms)
            assert found is not None
            assert found.base == base
            after = by_time(time_ms + 1)
            assert after is None or after.base == base + count
        for offset in range(base, base + count):
            [first, *_] = entries(keeping.store, queue, offset, 1)
            assert first.unit.base == base
            assert bytes(first.entry[: len(first.entry)]).find(body) > 0
    # A start that must build every index again from the log comes to the same.
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    directory = keeping.disk.root().child("queueindex")
    for name in directory.names():
        directory.remove(name)
    keeping.open()
    assert keeping.read("long") == long
    assert _without_places(keeping) == units


def _without_places(keeping: Keeping) -> list[tuple[int, ...]]:
    return [(unit[0], *unit[3:]) for unit in keeping.queue("long").walk(0)]


def test_shorter_retention_moves_the_log_start_with_the_next_tick() -> None:
    keeping = Keeping(retention_interval_ms=24 * HOUR_MS)
    topic = keeping.topic("orders")
    other = keeping.topic("other")
    keeping.fill("orders", 3)
    held = keeping.fill("other", 3)
    keeping.pass_time(HOUR_MS)
    keeping.store.topics.set_config({topic: {"retention.ms": "1000"}})
    keeping.settle()
    assert keeping.read("orders") == []
    assert keeping.read("other") == held
    assert other.log_starts == {}


def test_a_log_start_that_moved_is_there_after_a_restart() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    keeping.fill("orders", 4)
    keeping.pass_time(2 * HOUR_MS)
    start = keeping.queue("orders").log_start
    assert start > 0
    keeping.kill()
    assert keeping.queue("orders").log_start == start


def test_a_queue_keeps_at_least_the_bytes_it_is_to_keep_and_little_more() -> None:
    keeping = Keeping()
    keeping.topic("orders", 2, retention_bytes="3000")
    held = keeping.fill("orders", 40)
    few = keeping.fill("orders", 3, queue_id=1)
    keeping.pass_time(1_000)
    kept = keeping.read("orders")
    assert kept == held[-len(kept) :]
    size = sum(unit[2] for unit in keeping.queue("orders").walk(kept[0][0]))
    largest = max(unit[2] for unit in keeping.queue("orders").walk(0))
    assert 3000 <= size < 3000 + largest
    assert keeping.read("orders", 1) == few


def test_size_is_counted_on_when_age_or_deletion_moved_the_log_start() -> None:
    keeping = Keeping()
    topic = keeping.topic("orders", retention_bytes="3000", retention_ms=str(HOUR_MS))
    for _ in range(10):
        held = keeping.fill("orders", 12)
        keeping.pass_time(1_000)
        keeping.store.topics.advance_log_starts({topic: {0: held[3][0]}})
        held += keeping.fill("orders", 9)
        keeping.pass_time(1_000)
        kept = keeping.read("orders")
        assert kept == held[-len(kept) :]
        assert sum(unit[2] for unit in keeping.queue("orders").walk(kept[0][0])) >= 3000
        if keeping.serial % 2:
            keeping.pass_time(HOUR_MS)
            assert keeping.read("orders") == []


def test_an_emptied_queue_continues_with_its_offsets_after_a_restart() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    keeping.topic("other", retention_ms="-1")
    keeping.fill_segment("orders")
    end = keeping.queue("orders").next_offset
    keeping.pass_time(2 * HOUR_MS)
    keeping.fill_segment("other")
    keeping.pass_time(HOUR_MS)
    assert keeping.store.log.start > 0
    for restart in (keeping.reopen, keeping.kill):
        restart()
        assert keeping.queue("orders").next_offset == end
        assert keeping.fill("orders", 1)[0][0] == end
        end = keeping.queue("orders").next_offset
        keeping.pass_time(2 * HOUR_MS)


def test_a_queue_whose_messages_were_all_moved_continues_with_its_offsets() -> None:
    """Its first appends are gone from the log, and no log start tells of them."""
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    long = keeping.fill("long", 3)
    for _ in range(4):
        keeping.fill_segment("short")
        keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.log.start > SEGMENT
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    directory = keeping.disk.root().child("queueindex")
    for name in directory.names():
        directory.remove(name)
    keeping.open()
    assert keeping.read("long") == long
    assert keeping.queue("long").next_offset == long[-1][0] + long[-1][1]


def test_segments_of_a_deleted_topic_go() -> None:
    keeping = Keeping()
    topic = keeping.topic("orders")
    keeping.topic("other")
    for _ in range(3):
        keeping.fill_segment("orders")
    held = keeping.fill("other", 2)
    keeping.pass_time(1_000)
    assert len(keeping.row()) == 4
    keeping.store.topics.delete([topic])
    keeping.pass_time(1_000)
    assert len(keeping.row()) == 1
    assert keeping.read("other") == held


def test_moved_entries_of_an_earlier_life_never_come_back() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    first_life = keeping.topic("long", retention_ms="-1")
    keeping.fill("long", 3)
    for _ in range(3):
        keeping.fill_segment("short")
        keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.retention.mover.moved_count >= 3
    keeping.store.topics.delete([first_life])
    keeping.topic("long", retention_ms="-1")
    held = keeping.fill("long", 1)
    assert held[0][0] == 0
    for _ in range(3):
        keeping.kill()
        assert keeping.read("long") == held
        keeping.fill_segment("short")
        keeping.pass_time(2 * HOUR_MS)
        assert keeping.read("long") == held


# Snapshots


def test_no_segment_goes_that_the_older_snapshot_needs() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    for _ in range(3):
        keeping.fill_segment("orders")
    keeping.store.checkpointer.take()
    keeping.clock.advance(2 * HOUR_MS)
    while keeping.store.retention.step():
        pass
    retention = keeping.store.retention
    assert keeping.store.snapshots.oldest_needed() == 0
    assert retention.wants_snapshot
    assert retention.segments[0].reason == "waiting for a snapshot"
    assert keeping.row()[0] == 0
    keeping.settle()
    assert not retention.wants_snapshot
    assert keeping.row()[0] == 3 * SEGMENT
    assert keeping.store.snapshots.oldest_needed() >= 3 * SEGMENT


def test_snapshots_are_not_asked_for_without_need() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    for _ in range(3):
        keeping.fill_segment("orders")
    keeping.pass_time(HOUR_MS // 2)
    assert keeping.store.snapshots.newest is None


# Reading meanwhile


def test_a_slice_of_a_removed_segment_stays_readable() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    held = keeping.fill_segment("orders")["orders"]
    [first, *_] = entries(keeping.store, keeping.queue("orders"), 0, 1)
    keeping.pass_time(2 * HOUR_MS)
    assert keeping.row()[0] == SEGMENT
    assert held[0][2] in bytes(first.entry)


def test_readers_find_everything_at_every_pause_of_a_round() -> None:
    keeping = Keeping(retention_ms=HOUR_MS, flush="sync")
    keeping.topic("short")
    keeping.topic("long", 2, retention_ms="-1")
    long = keeping.fill("long", 4)
    for _ in range(2):
        keeping.fill_segment("short")
        long += keeping.fill("long", 4)
    keeping.store.flush()
    keeping.clock.advance(2 * HOUR_MS)
    pauses = 0
    for _ in keeping.tick_late():
        assert keeping.read("long") == long
        pauses += keeping.store.retention.mover.moved_count > 0
        if keeping.store.log.start == 2 * SEGMENT:
            break
    assert pauses > 10


# Clocks


def test_a_clock_that_is_set_back_brings_nothing_back_and_deletes_nothing_early() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    keeping.fill("orders", 2)
    keeping.pass_time(2 * HOUR_MS)
    start = keeping.queue("orders").log_start
    held = keeping.fill("orders", 2)
    keeping.clock.step(-5 * HOUR_MS)
    keeping.pass_time(HOUR_MS)
    assert keeping.queue("orders").log_start == start
    assert keeping.read("orders") == held
    keeping.pass_time(6 * HOUR_MS)
    assert keeping.read("orders") == []


def test_a_clock_that_jumps_ahead_deletes_nothing_until_that_has_lasted_an_hour() -> None:
    keeping = Keeping(retention_ms=24 * HOUR_MS)
    keeping.topic("orders")
    held = keeping.fill("orders", 2)
    keeping.pass_time(1_000)
    keeping.clock.step(365 * 24 * HOUR_MS)
    keeping.pass_time(1_000)
    keeping.pass_time(HOUR_MS - 1_000)
    assert keeping.read("orders") == held
    keeping.pass_time(1_000)
    assert keeping.read("orders") == []


# Trouble


def test_what_stops_a_round_is_reported_and_the_next_round_continues() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    for _ in range(2):
        keeping.fill_segment("orders")
    failing = True

    def plan(operation: Operation) -> OSError | None:
        is_removal = operation.kind == "remove" and "commitlog" in operation.path
        return OSError("the disk says no") if failing and is_removal else None

    keeping.disk.plan = plan
    keeping.pass_time(2 * HOUR_MS)
    retention = keeping.store.retention
    assert str(retention.failure) == "the disk says no"
    assert retention.segments[0].reason == "the disk says no"
    assert keeping.row()[0] == 0
    failing = False
    keeping.pass_time(1_000)
    assert retention.failure is None
    assert keeping.row()[0] == 2 * SEGMENT


def test_a_segment_stays_while_no_checkpoint_can_be_taken() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    keeping.fill_segment("orders")
    keeping.pass_time(1_000)

    def plan(operation: Operation) -> OSError | None:
        return OSError("no") if operation.path.endswith("/checkpoint") else None

    keeping.disk.plan = plan
    keeping.pass_time(2 * HOUR_MS)
    assert "checkpoint did not reach" in str(keeping.store.retention.failure)
    assert keeping.files()[0] == 0
    keeping.disk.plan = None
    keeping.pass_time(2 * HOUR_MS)
    assert keeping.files()[0] == SEGMENT


def test_a_segment_is_removed_in_a_second_try_if_the_first_failed() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("orders")
    keeping.fill_segment("orders")
    keeping.fill_segment("orders")
    failures = 0

    def plan(operation: Operation) -> OSError | None:
        nonlocal failures
        if operation.kind != "remove" or "commitlog" not in operation.path or failures == 2:
            return None
        failures += 1
        return OSError("not yet")

    keeping.pass_time(1_000)
    keeping.disk.plan = plan
    keeping.pass_time(2 * HOUR_MS)
    for _ in range(3):
        keeping.pass_time(2 * HOUR_MS)
    assert failures == 2
    assert keeping.row()[0] == 2 * SEGMENT
    keeping.kill()
    assert keeping.row()[0] == 2 * SEGMENT


def test_a_damaged_entry_is_not_moved_and_its_segment_stays() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    held = keeping.fill("long", 1)
    keeping.fill_segment("short")
    [(_, entry)] = entries(keeping.store, keeping.queue("long"), 0, 1)
    entry[bytes(entry).index(held[0][2])] ^= 1
    keeping.pass_time(2 * HOUR_MS)
    reason = keeping.store.retention.segments[0].reason
    assert "00000000000000000000 is damaged at position" in reason
    assert "body checksum mismatch" in reason
    assert keeping.row()[0] == 0
    assert keeping.store.retention.mover.moved_count == 0


# Keys


def _keyed(keeping: Keeping, key: str) -> bytes:
    properties = f"KEYS\x01{key}\x02".encode()
    keeping.store.appender.message(
        keeping.queue("long"), Draft(b"", 0, 0, key.encode() * 9, properties)
    )
    return key.encode() * 9


def _found(keeping: Keeping, key: str) -> list[bytes]:
    positions = keeping.store.lookup.by_key(b"long", key.encode(), limit=10)
    found = [keeping.store.log.read(position) for position in positions]
    return [bytes(view[e.body_at : e.body_at + e.body_size]) for view, e in filter(None, found)]


@pytest.mark.parametrize("flush", ["async", "sync"])
def test_a_message_is_found_by_its_key_once_wherever_it_was_moved(flush: str) -> None:
    keeping = Keeping(retention_ms=HOUR_MS, flush=flush, key_index=True)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    bodies = {key: _keyed(keeping, key) for key in ("one", "two")}
    for _ in range(3):
        keeping.fill_segment("short")
        keeping.store.flush()
        keeping.clock.advance(2 * HOUR_MS)
        start = keeping.store.log.start
        for _ in keeping.tick_late():
            for key, body in bodies.items():
                assert _found(keeping, key) == [body]
            if keeping.store.log.start > start:
                break
    assert keeping.store.retention.mover.moved_count >= 4


def test_a_moved_message_of_an_earlier_life_is_not_found_by_its_key() -> None:
    keeping = Keeping(retention_ms=HOUR_MS, key_index=True)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    _keyed(keeping, "one")
    keeping.fill_segment("short")
    keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.log.start > 0
    keeping.store.topics.delete([keeping.store.topics.get("long")])
    keeping.topic("long", retention_ms="-1")
    assert _found(keeping, "one") == []
    body = _keyed(keeping, "one")
    assert _found(keeping, "one") == [body]


# Figures


def test_live_and_dead_bytes_and_the_reason_to_stay_are_known_for_each_segment() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    keeping.fill_segment("long")
    keeping.fill_segment("long", "short", "short")
    keeping.fill_segment("long")
    retention = keeping.store.retention
    assert [use.reason for use in retention.segments[:2]] == ["its index is not written yet"] * 2
    keeping.pass_time(1_000)
    for use in retention.segments[:3]:
        assert use.live is not None
        assert use.dead == SEGMENT - use.live
        assert use.live > SEGMENT // 2
        assert use.reason == "mostly live"
    keeping.pass_time(2 * HOUR_MS)
    full, half, third, active = retention.segments
    assert full.live is not None
    assert half.live is not None
    assert full.live > SEGMENT * 0.8
    assert SEGMENT * 0.2 < half.live < SEGMENT * 0.4
    assert half.reason == "waiting for earlier segments"
    assert (active.live, active.dead, active.reason) == (None, None, "active")
    assert third.reason == "mostly live"


# Keepers


class _Wanted:
    def __init__(self) -> None:
        self.offsets: set[int] = set()

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        return topic == b"waiting" and any(first <= offset < end for offset in self.offsets)


def test_what_a_keeper_wants_is_moved_whatever_its_age_until_it_wants_it_no_more() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    wanted = _Wanted()
    keeping.store.retention.keep(wanted)
    keeping.topic("waiting")
    keeping.topic("short")
    held = keeping.fill("waiting", 6)
    wanted.offsets = {held[2][0] + held[2][1] - 1, held[4][0]}
    for _ in range(4):
        keeping.fill_segment("short")
        keeping.pass_time(2 * HOUR_MS)
        queue = keeping.queue("waiting")
        assert keeping.read("waiting") == []
        for base, count, body in (held[2], held[4]):
            unit = queue.find(base)
            assert unit is not None
            assert (unit.base, unit.offset_count) == (base, count)
            entry = keeping.store.log.slice(unit.position, unit.size)
            assert entry is not None
            assert body in bytes(entry)
    assert keeping.store.log.start > SEGMENT
    wanted.offsets = set()
    moved = keeping.store.retention.mover.moved_count
    for _ in range(3):
        keeping.fill_segment("short")
        keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.retention.mover.moved_count == moved
    assert keeping.queue("waiting").find(0) is None


# The page


def test_the_page_has_the_numbers_of_the_code() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "internals" / "retention.md"
    rows = re.findall(r"\| `([A-Z_]+)` \| (\d+) \|", page.read_text(encoding="utf-8"))
    modules = (retention, expiry, disk, relocation)
    known = {name: getattr(m, name) for m in modules for name, _ in rows if hasattr(m, name)}
    assert {name: int(value) for name, value in rows} == known
    assert len(known) == 7
