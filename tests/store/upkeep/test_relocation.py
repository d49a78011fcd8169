"""Moving: what an entry keeps, what it gains, and what is never moved."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.keeping import HOUR_MS, SEGMENT, Keeping
from tests.store.reading import entries

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import CONTINUES, MOVED, Entry
from rockgate.store.errors import EntryTooLarge, StoreCorrupt
from rockgate.store.files.interface import Mapping
from rockgate.store.log.commitlog import PROPERTIES_SIZE_MAX, Draft
from rockgate.store.log.segments import Segment
from rockgate.store.upkeep.relocation import SLICE_COUNT
from rockgate.store.write.append import Intake

V6 = bytes(range(16)) + (9092).to_bytes(4, "big")
V4 = bytes(range(4)) + (9092).to_bytes(4, "big")


def entry_at(keeping: Keeping, offset: int) -> tuple[Entry, bytes, bytes]:
    """The envelope, body and properties of what a reader gets for an offset."""
    [(_, view), *_] = entries(keeping.store, keeping.queue("long"), offset, 1)
    entry = envelope.read(view)
    envelope.check(view, entry)
    return entry, bytes(envelope.body_of(view)), envelope.properties_of(view, entry)


def empty_first(keeping: Keeping) -> None:
    keeping.store.checkpointer.take()
    first, *_ = keeping.store.retention.sealed()
    for _ in keeping.store.retention.mover.empty(first):
        pass


def two_topics(**settings: Any) -> Keeping:
    keeping = Keeping(retention_ms=HOUR_MS, **settings)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    return keeping


@pytest.mark.parametrize("host", [V4, V6], ids=["v4", "v6"])
def test_a_moved_message_keeps_all_but_its_position(host: bytes) -> None:
    keeping = two_topics()
    flags = envelope.BORN_HOST_V6 if len(host) > 8 else 0
    draft = Draft(
        b"",
        0,
        0,
        b"body",
        b"KEYS\x01k\x02TAGS\x01paid\x02",
        born_ms=77,
        born_host=host,
        flag=5,
        sys_flag=flags | envelope.COMPRESSED,
        reconsume_times=3,
        prepared_offset=99,
    )
    keeping.store.appender.message(keeping.queue("long"), draft)
    keeping.fill_segment("short")
    before, body, properties = entry_at(keeping, 0)
    unit = keeping.queue("long").find(0)
    keeping.clock.advance(HOUR_MS)
    empty_first(keeping)
    after, moved_body, moved_properties = entry_at(keeping, 0)
    moved_unit = keeping.queue("long").find(0)
    changed = {"total_size", "position", "sys_flag", "start", "body_at"}
    changed |= {"properties_at", "properties_size"}
    for name in Entry._fields:
        if name not in changed:
            assert getattr(after, name) == getattr(before, name), name
    assert after.sys_flag == before.sys_flag | MOVED
    assert after.position >= 8192 > before.position
    assert moved_body == body
    assert unit is not None
    assert moved_unit == unit._replace(position=after.position, size=after.total_size)
    topic = keeping.store.topics.get("long")
    marks = f"__TID\x01{topic.id.hex()}\x02__RMAX\x0177\x02__EPOCH\x011\x02"
    assert moved_properties == properties + marks.encode()


def test_a_moved_batch_keeps_its_count_and_its_place() -> None:
    keeping = two_topics()
    queue = keeping.queue("long")
    keeping.fill("long", 1)
    keeping.store.appender.batch(queue, b"records", count=700, record_ms=5)
    keeping.fill_segment("short")
    base = 1
    before, body, _ = entry_at(keeping, base)
    empty_first(keeping)
    for offset in (base, base + 350, base + 699):
        after, moved_body, properties = entry_at(keeping, offset)
        assert (after.queue_offset, after.offset_count) == (base, 700)
        assert (after.born_ms, after.store_ms, moved_body) == (5, before.store_ms, body)
        assert properties.startswith(envelope.batch_properties(700, base) + b"__TID\x01")
        assert properties.count(b"INNER_NUM") == 1


def test_an_entry_that_is_moved_again_gains_nothing_more() -> None:
    keeping = two_topics()
    keeping.fill("long", 3)
    keeping.fill_segment("short")
    keeping.pass_time(2 * HOUR_MS)
    first, _, properties = entry_at(keeping, 0)
    assert first.sys_flag & MOVED
    keeping.reopen()
    for _ in range(3):
        keeping.fill_segment("short")
        keeping.pass_time(2 * HOUR_MS)
    last, _, last_properties = entry_at(keeping, 0)
    assert last.position > first.position + 8192
    assert last._replace(position=0, start=0) == first._replace(position=0, start=0)
    # The epoch is still that of the first append, though the server has started anew since.
    assert last_properties == properties
    assert envelope.get_property(properties, b"__EPOCH") == b"1"


def test_a_moved_entry_of_a_group_stands_alone() -> None:
    keeping = two_topics()
    queue = keeping.queue("long")
    draft = Draft(b"", 0, 0, b"part")
    keeping.store.appender.group([Intake(queue, draft)] * 3)
    assert entry_at(keeping, 0)[0].sys_flag & CONTINUES
    keeping.fill_segment("short")
    topic = keeping.store.topics.get("long")
    keeping.store.topics.advance_log_starts({topic: {0: 1}})
    empty_first(keeping)
    entry, _, _ = entry_at(keeping, 1)
    assert entry.sys_flag & (MOVED | CONTINUES) == MOVED
    keeping.kill()
    assert len(keeping.read("long")) == 2


@pytest.mark.parametrize("store_host", [V4, V6], ids=["v4", "v6"])
def test_the_host_that_stored_a_message_stays_though_the_server_has_another(
    store_host: bytes,
) -> None:
    keeping = two_topics()
    keeping.fill("long", 1)
    keeping.fill_segment("short")
    before, _, _ = entry_at(keeping, 0)
    log = keeping.store.log
    log._store_host = store_host
    log._host_flag = envelope.STORE_HOST_V6 if len(store_host) > 8 else 0
    empty_first(keeping)
    after, _, _ = entry_at(keeping, 0)
    assert after.sys_flag & MOVED
    assert after.store_host == before.store_host
    assert after.sys_flag & envelope.STORE_HOST_V6 == 0
    added = keeping.fill("long", 1)
    assert entry_at(keeping, added[0][0])[0].store_host == store_host


def test_an_entry_with_the_largest_properties_can_be_moved() -> None:
    keeping = two_topics(segment_bytes=128 << 10)
    properties = b"N\x01" + b"v" * (PROPERTIES_SIZE_MAX - 3) + b"\x02"
    draft = Draft(b"", 0, 0, b"body", properties)
    keeping.store.appender.message(keeping.queue("long"), draft)
    keeping.fill_segment("short")
    empty_first(keeping)
    entry, _, moved_properties = entry_at(keeping, 0)
    assert entry.sys_flag & MOVED
    assert moved_properties.startswith(properties)


def test_the_largest_entry_that_a_segment_takes_can_be_moved() -> None:
    keeping = two_topics()
    queue = keeping.queue("long")
    with pytest.raises(EntryTooLarge) as refused:
        keeping.store.appender.message(queue, Draft(b"", 0, 0, bytes(SEGMENT)))
    body = bytes(SEGMENT - (refused.value.size - refused.value.size_max))
    with pytest.raises(EntryTooLarge):
        keeping.store.appender.message(queue, Draft(b"", 0, 0, body + b"x"))
    keeping.fill("short", 1)
    keeping.store.appender.message(queue, Draft(b"", 0, 0, body))
    keeping.fill("short", 1)
    keeping.store.checkpointer.take()
    _, second = keeping.store.retention.sealed()
    for _ in keeping.store.retention.mover.empty(second):
        pass
    entry, moved_body, _ = entry_at(keeping, 0)
    assert entry.sys_flag & MOVED
    assert moved_body == body


def test_moving_pauses_after_some_entries_and_skips_what_expires_meanwhile() -> None:
    keeping = two_topics(segment_bytes=64 << 10)
    keeping.fill("long", 5 * SLICE_COUNT, size=10)
    keeping.fill_segment("short")
    topic = keeping.store.topics.get("long")
    end = keeping.queue("long").next_offset
    keeping.store.checkpointer.take()
    [first] = keeping.store.retention.sealed()
    mover = keeping.store.retention.mover
    # The other topic's entries are dead, so that all that moves is of this one.
    keeping.store.topics.delete([keeping.store.topics.get("short")])
    moved = []
    for number, _ in enumerate(mover.empty(first)):
        moved.append(mover.moved_count)
        if number == 2:
            keeping.store.topics.advance_log_starts({topic: {0: end}})
    assert moved == [SLICE_COUNT, 2 * SLICE_COUNT, 3 * SLICE_COUNT]
    assert mover.moved_count == 3 * SLICE_COUNT


def test_a_unit_that_points_at_another_entry_stops_the_moving() -> None:
    keeping = two_topics()
    keeping.fill("long", 2)
    keeping.fill_segment("short")
    keeping.store.checkpointer.take()
    [first] = keeping.store.retention.sealed()
    mover, queue = keeping.store.retention.mover, keeping.queue("long")
    one, two = list(queue.walk(0))[:2]
    with pytest.raises(StoreCorrupt, match="no entry for offset 0 of queue 0"):
        mover.move_entry(first, queue, (one[0], two[1], *two[2:]))


def test_entries_are_loaded_before_they_are_read() -> None:
    keeping = two_topics()
    keeping.fill("long", 2)
    keeping.fill_segment("short")
    keeping.store.checkpointer.take()
    [first] = keeping.store.retention.sealed()
    fetched: list[tuple[int, int]] = []

    class Watched:
        def __init__(self, mapping: Mapping) -> None:
            self.mapping = mapping
            self.view = mapping.view

        def prefetch(self, at: int, size: int) -> None:
            fetched.append((at, size))

    watched = Segment(first.start, first.mapping)
    watched.mapping = Watched(first.mapping)  # type: ignore[assignment]  # all that moving uses
    for _ in keeping.store.retention.mover.empty(watched):
        pass
    units = list(keeping.store.queues.index(0).runs())
    assert len(fetched) == sum(run.unit_count for run in units)
