"""The commit log: what an append leaves, where segments end, and what a failed one leaves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.logs import SEGMENT, TOPIC, body_at, body_of, draft, loaded, new_log, numbers

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BLANK_SIZE, EntryError
from rockgate.store.clock import ManualClock
from rockgate.store.errors import EntryTooLarge, StoreFull
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.log.commitlog import MOVED_SIZE, PROPERTIES_SIZE_MAX, CommitLog, Draft
from rockgate.store.log.recovery import find_end
from rockgate.store.log.segments import Segments
from rockgate.store.testing.memory_files import MemoryDisk

OVERHEAD = envelope.HEAD_SIZE_V4 + envelope.tail_size(TOPIC, b"", envelope.MAGIC_V1)
"""What the envelope of an entry of TOPIC without properties takes."""


def memory_log(*, segment: int = SEGMENT, start: int = 0) -> CommitLog:
    return new_log(MemoryDisk().root(), segment=segment, start=start)


def fill(log: CommitLog, left: int) -> None:
    """Fill the first segment with two entries except for that many bytes."""
    log.append(draft(0, 4_000))
    log.append(draft(1, SEGMENT - left - log.end - OVERHEAD))
    assert log.end == SEGMENT - left


def end_of(disk: MemoryDisk) -> int:
    """Where a process that starts now finds the log's end."""
    return find_end(loaded(disk.killed().root()), 0, 0).end


@contextmanager
def logs_alike(host: bytes) -> Iterator[tuple[CommitLog, CommitLog]]:
    """Two logs that must have the same bytes in the end: in memory all entries take the long way,
    on a disk the short one where there is one."""
    with tempfile.TemporaryDirectory() as scratch:
        logs = []
        for directory in (MemoryDisk().root(), DiskDirectory(Path(scratch))):
            segments = Segments(directory, SEGMENT, SEGMENT)
            segments.start_at(0)
            logs.append(CommitLog(segments, ManualClock(77), store_host=host))
        usual, short = logs
        yield usual, short
        assert usual.end == short.end
        for position in range(0, usual.end, SEGMENT):
            size = min(SEGMENT, usual.end - position)
            assert usual.slice(position, size) == short.slice(position, size)


# A message and a change


@pytest.mark.parametrize("topic", [TOPIC, b"t" * 200], ids=["short", "long"])
@pytest.mark.parametrize("left", [0, 150, 300, 500])
def test_a_pair_has_the_bytes_of_a_group(topic: bytes, left: int) -> None:
    change = Draft(b"changes", 0, -1, b"decided")
    for host, body, properties, sys_flag in product(
        (envelope.pack_host(b"\x7f\0\0\1", 80), envelope.pack_host(bytes(16), 80)),
        (b"", b"a body", bytes(3_000)),
        (b"", b"TAGS\x01a\x02"),
        (0, envelope.COMPRESSED, envelope.TRANSACTION_PREPARED),
    ):
        message = Draft(topic, 3, 7, body, properties, born_ms=5, flag=2, sys_flag=sys_flag)
        with logs_alike(host) as (usual, short):
            for log in (usual, short):
                log.append(draft(0, SEGMENT - left - OVERHEAD - 1_000))
            assert usual.append_group([message, change]) == [*short.append_pair(message, change)]


def test_a_pair_whose_write_fails_leaves_the_log_as_it_was() -> None:
    log = memory_log()
    before = log.end
    unwritable = Draft(TOPIC, 0, 0, b"x", born_host=b"short")
    with pytest.raises(AssertionError):
        log.append_pair(unwritable, Draft(b"changes", 0, -1, b"decided"))
    assert log.end == before
    assert bytes(log.slice(before, 100) or b"") == bytes(100)


# One entry


@pytest.mark.row("S-11")
def test_an_entry_is_read_back_with_all_that_the_caller_gave() -> None:
    clock = ManualClock(1_234)
    segments = Segments(MemoryDisk().root(), SEGMENT, SEGMENT)
    segments.start_at(0)
    host = envelope.pack_host(bytes(range(16)), 10_911)
    log = CommitLog(segments, clock, store_host=host)
    properties = envelope.pack_properties([("TAGS", "a"), ("KEYS", "k")])
    written = log.append(
        Draft(
            TOPIC,
            7,
            99,
            b"the body",
            properties,
            born_ms=55,
            born_host=envelope.pack_host(b"\x7f\0\0\1", 80),
            flag=3,
            sys_flag=envelope.COMPRESSED,
            reconsume_times=2,
            prepared_offset=88,
        )
    )
    assert written.position == 0
    assert log.end == written.size
    found = log.read(0)
    assert found is not None
    view, entry = found
    envelope.check(view, entry)
    assert (entry.topic, entry.queue_id, entry.queue_offset) == (TOPIC, 7, 99)
    assert (entry.flag, entry.reconsume_times, entry.prepared_offset) == (3, 2, 88)
    assert (entry.born_ms, entry.store_ms, written.store_ms) == (55, 1_234, 1_234)
    assert (entry.store_host, entry.born_host) == (host, envelope.pack_host(b"\x7f\0\0\1", 80))
    assert entry.sys_flag == envelope.COMPRESSED | envelope.STORE_HOST_V6
    assert body_at(view, entry) == b"the body"
    assert entry.body_crc == envelope.body_checksum(b"the body")
    assert envelope.properties_of(view, entry) == properties


def test_a_batch_takes_its_count_from_its_envelope() -> None:
    log = memory_log()
    log.append(Draft(TOPIC, 0, 40, b"records", batch_count=17))
    [(view, entry)] = log.walk(0)
    envelope.check(view, entry)
    assert entry.is_batch
    assert (entry.queue_offset, entry.offset_count) == (40, 17)
    assert entry.sys_flag & envelope.INNER_BATCH


def test_a_body_is_stamped_in_place_before_its_checksum_is_taken() -> None:
    log = memory_log()
    body = bytearray(b"00000000 records")

    def stamp(view: memoryview, offset: int) -> None:
        view[:8] = b"%08d" % offset

    log.append(Draft(TOPIC, 0, 41, body, batch_count=3, stamp=stamp))
    [(view, entry)] = log.walk(0)
    envelope.check(view, entry)
    assert body_at(view, entry) == b"00000041 records"
    assert body == b"00000000 records"


def test_an_empty_body_is_an_entry_too() -> None:
    log = memory_log()
    log.append(Draft(TOPIC, 0, 0, b""))
    [(view, entry)] = log.walk(0)
    envelope.check(view, entry)
    assert entry.body_size == 0


@pytest.mark.parametrize("size", [1, 127, 128, 255, 256, 5_000])
@pytest.mark.parametrize("batch_count", [0, 2])
def test_a_topic_may_be_longer_than_127_bytes(size: int, batch_count: int) -> None:
    log = memory_log()
    log.append(Draft(b"t" * size, 0, 0, b"body", batch_count=batch_count))
    [(view, entry)] = log.walk(0)
    envelope.check(view, entry)
    assert entry.topic == b"t" * size


def test_the_callers_flags_cannot_tie_an_entry_to_the_next() -> None:
    """Recovery would wait for the rest of a group, and drop an entry that was acknowledged."""
    disk = MemoryDisk()
    log = new_log(disk.root())
    log.append(draft(0, sys_flag=envelope.CONTINUES))
    log.append_group([draft(1), draft(2, sys_flag=envelope.CONTINUES)])
    assert end_of(disk) == log.end


# Batches


FRAME = envelope.batch_frame(TOPIC, 0)


def stamped(view: memoryview, offset: int) -> None:
    view[:8] = offset.to_bytes(8)


@settings(deadline=None, max_examples=budget("property_examples"))
@given(
    batches=st.lists(
        st.tuples(
            st.binary(min_size=8, max_size=SEGMENT // 3),
            st.integers(1, envelope.COUNT_MAX),
            st.integers(0, 1 << 40),
            st.sampled_from([TOPIC, b"%d%%", b"t" * 128]),
        ),
        min_size=1,
        max_size=8,
    ),
    host=st.sampled_from([bytes(8), bytes(20)]),
)
def test_a_batch_appended_the_short_way_leaves_the_same_bytes(
    batches: list[tuple[bytes, int, int, bytes]], host: bytes
) -> None:
    with logs_alike(host) as (usual, short):
        offset = 0
        for body, count, born_ms, topic in batches:
            draft = Draft(topic, 3, offset, body, b"", count, born_ms, stamp=stamped)
            written = short.append_batch(
                envelope.batch_frame(topic, offset), topic, 3, offset, body, count, born_ms, stamped
            )
            assert usual.append(draft) == written
            offset += count


@settings(deadline=None, max_examples=budget("property_examples"))
@given(
    messages=st.lists(
        st.tuples(
            st.sampled_from([TOPIC, b"100%", b"t" * 127, b"t" * 128]),
            st.binary(max_size=40) | st.sampled_from([bytes(4_096), bytes(9_000)]),
            st.sampled_from([b"", b"KEYS\x01a%b\x02", b"p\x01%b\x02" % bytes(5_000)]),
            st.sampled_from([0, 0, 1]),
            st.sampled_from([0, 1, envelope.BORN_HOST_V6, envelope.CONTINUES, envelope.MOVED]),
            st.sampled_from([0, 66]),
            st.sampled_from([b"", bytes(range(8))]),
        ),
        min_size=1,
        max_size=8,
    ),
    host=st.sampled_from([bytes(8), bytes(20)]),
)
def test_an_entry_appended_in_one_step_has_the_same_bytes(
    messages: list[tuple[bytes, bytes, bytes, int, int, int, bytes]], host: bytes
) -> None:
    """On a disk a small message is put together at once."""
    with logs_alike(host) as (usual, short):
        for offset, (topic, body, packed, count, flags, moved_ms, moved_host) in enumerate(
            messages
        ):
            born_host = bytes(20 if flags & envelope.BORN_HOST_V6 else 8)
            places = (topic, 3, offset, body, packed, count, 5, born_host)
            draft = Draft(*places, 9, flags, 2, 4, moved_ms, None, moved_host)
            assert usual.append(draft) == short.append(draft)


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_batch_whose_stamp_fails_leaves_nothing(tmp_path: Path, is_on_disk: bool) -> None:
    def failing(view: memoryview, offset: int) -> None:
        raise ValueError("no stamp")

    log = new_log(DiskDirectory(tmp_path) if is_on_disk else MemoryDisk().root())
    with pytest.raises(ValueError, match="no stamp"):
        log.append_batch(FRAME, TOPIC, 0, 0, b"records", 1, 0, failing)
    assert log.end == 0
    assert bytes(log.slice(0, 200) or b"") == bytes(200)


def test_a_batch_that_fits_no_segment_is_refused_the_short_way_too() -> None:
    with pytest.raises(EntryTooLarge):
        memory_log().append_batch(FRAME, TOPIC, 0, 0, bytes(SEGMENT), 1, 0, stamped)


# Limits


@pytest.mark.row("S-14")
def test_an_entry_that_no_segment_can_hold_is_refused_and_the_log_continues() -> None:
    log = memory_log()
    log.append(draft(0))
    end = log.end
    with pytest.raises(EntryTooLarge) as refused:
        log.append(Draft(TOPIC, 0, 1, bytes(SEGMENT)))
    assert refused.value.size_max == SEGMENT - BLANK_SIZE - MOVED_SIZE
    assert log.end == end
    log.append(draft(1))
    assert numbers(log) == [0, 1]


@pytest.mark.row("S-14")
def test_the_largest_entry_fills_a_segment_but_for_the_filler_and_what_moving_it_adds() -> None:
    log = memory_log()
    log.append(draft(0))
    largest = SEGMENT - BLANK_SIZE - MOVED_SIZE - OVERHEAD
    log.append(draft(1, largest))
    log.append(draft(2))
    assert [entry.position for _, entry in log.walk(0)] == [0, SEGMENT, 2 * SEGMENT]
    assert numbers(log) == [0, 1, 2]
    with pytest.raises(EntryTooLarge):
        log.append(draft(3, largest + 1))
    log.append(draft(3, largest + MOVED_SIZE, sys_flag=envelope.MOVED))
    assert numbers(log) == [0, 1, 2, 3]


@pytest.mark.row("S-14")
@pytest.mark.row("PUT-5")
def test_properties_that_the_format_cannot_hold_are_refused() -> None:
    log = memory_log(segment=128 << 10)
    log.append(Draft(TOPIC, 0, 0, b"", b"p" * PROPERTIES_SIZE_MAX))
    with pytest.raises(EntryTooLarge, match="Properties"):
        log.append(Draft(TOPIC, 0, 1, b"", b"p" * (PROPERTIES_SIZE_MAX + 1)))
    with pytest.raises(EntryTooLarge, match="Properties"):
        log.append(Draft(TOPIC, 0, 1, b"", b"p" * PROPERTIES_SIZE_MAX, batch_count=1))
    assert len(list(log.walk(0))) == 1


@pytest.mark.parametrize("batch_count", [0, 1])
def test_a_topic_that_the_format_cannot_hold_is_refused(batch_count: int) -> None:
    log = memory_log(segment=128 << 10)
    log.append(Draft(b"t" * 32_767, 0, 0, b"", batch_count=batch_count))
    for size in (32_768, 70_000):
        with pytest.raises(EntryTooLarge, match="Topic name"):
            log.append(Draft(b"t" * size, 0, 1, b"", batch_count=batch_count))


# Segments


@pytest.mark.row("S-14")
@pytest.mark.parametrize("left", range(BLANK_SIZE, BLANK_SIZE + OVERHEAD + 20, 7))
def test_no_entry_lies_across_two_segments(left: int) -> None:
    disk = MemoryDisk()
    log = new_log(disk.root())
    fill(log, left)
    log.append(draft(2, 12))
    fits = left >= 12 + OVERHEAD + BLANK_SIZE
    *_, last = log.walk(0)
    assert last[1].position == (SEGMENT - left if fits else SEGMENT)
    assert numbers(log) == [0, 1, 2]
    assert end_of(disk) == log.end


def test_what_is_left_of_a_full_segment_is_a_filler_of_its_size() -> None:
    log = memory_log()
    fill(log, 1_000)
    log.append(draft(2, 900))
    view = log.segments.row[0].mapping.view
    assert envelope.peek(view, SEGMENT - 1_000) == (1_000, envelope.MAGIC_BLANK)


def test_a_log_that_ends_with_its_segment_continues_in_the_next() -> None:
    """After a recovery there is no room left for a filler, and none is needed."""
    disk = MemoryDisk()
    log = new_log(disk.root())
    fill(log, BLANK_SIZE)
    log.segments.active.mapping.write(SEGMENT - 8, envelope.pack_blank(8))
    segments = loaded(disk.killed().root())
    again = CommitLog(segments, ManualClock())
    again.end = find_end(segments, 0, 0).end
    assert again.end == SEGMENT
    again.append(draft(2))
    assert numbers(again) == [0, 1, 2]
    assert [segment.start for segment in segments.row] == [0, SEGMENT]


def test_a_log_need_not_begin_at_zero() -> None:
    log = memory_log(start=5 * SEGMENT)
    assert log.start == log.end == 5 * SEGMENT
    assert log.append(draft(0)).position == 5 * SEGMENT
    assert numbers(log) == [0]
    assert log.read(0) is None
    assert log.slice(0, 10) is None


def test_the_allocator_is_woken_before_the_segment_is_full() -> None:
    woken: list[int] = []
    segments = Segments(MemoryDisk().root(), SEGMENT, SEGMENT >> 3)
    segments.start_at(0)

    def wake() -> None:
        woken.append(log.end)
        segments.prepare(log.end)

    log = CommitLog(segments, ManualClock(), wake_allocator=wake)
    for number in range(100):
        before = len(segments)
        log.append(draft(number))
        assert segments._prepared is not None or log.end < segments.active.end - (SEGMENT >> 2)
        assert before <= len(segments) <= before + 1
    assert 4 <= len(woken) < 60
    assert numbers(log) == list(range(100))


# A full disk


def test_a_full_disk_leaves_the_log_as_it_was_and_readers_continue() -> None:
    disk = MemoryDisk(capacity=2 * SEGMENT)
    log = new_log(disk.root())
    number = 0
    with pytest.raises(StoreFull):
        while True:
            log.append(draft(number))
            number += 1
    end = log.end
    for _ in range(3):
        with pytest.raises(StoreFull):
            log.append(draft(number))
        with pytest.raises(StoreFull):
            log.append_group([draft(number), draft(number + 1)])
    assert log.end == end
    assert numbers(log) == list(range(number))
    assert end_of(disk) == end
    # What still fits is still taken, and with room again so is the rest.
    log.append(draft(number, 10))
    disk.capacity = 4 * SEGMENT
    log.append(draft(number + 1))
    assert numbers(log) == list(range(number + 2))


# Groups


def test_all_entries_of_a_group_but_the_last_say_that_it_continues() -> None:
    log = memory_log()
    written = log.append_group([draft(number) for number in range(4)])
    found = [bool(entry.sys_flag & envelope.CONTINUES) for _, entry in log.walk(0)]
    assert found == [True, True, True, False]
    assert [each.position for each in written] == [entry.position for _, entry in log.walk(0)]
    assert log.end == written[-1].position + written[-1].size


def test_a_group_lies_in_one_segment() -> None:
    log = memory_log()
    log.append(draft(0, SEGMENT - 3_000))
    log.append_group([draft(number) for number in range(1, 7)])
    positions = [entry.position for _, entry in log.walk(0)]
    assert positions[1] == SEGMENT
    assert numbers(log) == list(range(7))


def test_a_group_that_no_segment_can_hold_is_refused_whole() -> None:
    log = memory_log()
    log.append(draft(0))
    with pytest.raises(EntryTooLarge):
        log.append_group([draft(number, 5_000) for number in range(1, 5)])
    log.append(draft(1))
    assert numbers(log) == [0, 1]


def test_the_end_moves_once_for_a_group() -> None:
    """Whoever flushes up to it never flushes half a group."""
    ends: set[int] = set()
    log = memory_log()

    def stamp(view: memoryview, offset: int) -> None:
        ends.add(log.end)

    log.append_group([draft(number)._replace(stamp=stamp) for number in range(5)])
    assert ends == {0}


# An append that fails halfway


class Injected(Exception):
    pass


def failing(view: memoryview, offset: int) -> None:
    raise Injected


def test_an_append_whose_stamp_fails_leaves_the_log_as_it_was() -> None:
    disk = MemoryDisk()
    log = new_log(disk.root())
    log.append(draft(0))
    end = log.end
    with pytest.raises(Injected):
        log.append(draft(1)._replace(stamp=failing))
    assert log.end == end
    assert not any(log.segments.active.mapping.view[end:])
    log.append(draft(1, 10))
    assert numbers(log) == [0, 1]
    assert end_of(disk) == log.end


def test_a_group_whose_last_stamp_fails_leaves_the_log_as_it_was() -> None:
    """Its first entries are whole, and one of them could come back behind a shorter append."""
    disk = MemoryDisk()
    log = new_log(disk.root())
    log.append(draft(0))
    end = log.end
    with pytest.raises(Injected):
        log.append_group([draft(1), draft(2), draft(3)._replace(stamp=failing)])
    assert log.end == end
    assert not any(log.segments.active.mapping.view[end:])
    assert end_of(disk) == end


def test_an_entry_that_cannot_be_packed_leaves_the_log_as_it_was() -> None:
    log = memory_log()
    log.append(draft(0))
    end = log.end
    with pytest.raises(Exception, match="format requires"):
        log.append(draft(1)._replace(queue_id=1 << 40))
    assert log.end == end
    assert not any(log.segments.active.mapping.view[end:])


# Time


@pytest.mark.row("S-13")
def test_store_times_never_go_back_when_the_clock_does() -> None:
    clock = ManualClock(10_000)
    segments = Segments(MemoryDisk().root(), SEGMENT, SEGMENT)
    segments.start_at(0)
    log = CommitLog(segments, clock)
    times = []
    for number, step in enumerate([0, 5, -5_000, 10, 4_990, 1]):
        clock.step(step)
        times.append(log.append(draft(number)).store_ms)
    assert times == [10_000, 10_005, 10_005, 10_005, 10_005, 10_006]
    assert [entry.store_ms for _, entry in log.walk(0)] == times


def test_a_moved_entry_keeps_its_time_and_does_not_hold_up_the_next() -> None:
    log = memory_log()
    now_ms = log.append(draft(0)).store_ms
    assert log.append(draft(1)._replace(store_ms=5)).store_ms == 5
    assert log.append(draft(2)).store_ms == now_ms


# Reading


def test_a_slice_is_the_entry_as_it_lies() -> None:
    log = memory_log()
    log.append(draft(0))
    written = log.append(draft(1))
    found = log.slice(written.position, written.size)
    assert found is not None
    entry = envelope.read(found)
    assert body_at(found, entry) == body_of(1)


def test_nothing_is_read_at_the_end_or_behind() -> None:
    log = memory_log()
    log.append(draft(0))
    assert log.read(log.end) is None
    assert log.read(log.end + 10 * SEGMENT) is None
    assert log.read(-1) is None


def test_a_position_at_which_no_entry_begins_is_refused() -> None:
    """A client may send any position it likes."""
    log = memory_log()
    for number in range(40):
        log.append(draft(number))
    begins = {entry.position for _, entry in log.walk(0)}
    for position in range(0, log.end, 13):
        if position in begins:
            assert log.read(position) is not None
            continue
        with pytest.raises(EntryError):
            log.read(position)


def test_an_entry_inside_a_body_is_not_an_entry_of_the_log() -> None:
    log = memory_log()
    first = log.append(draft(0))
    copy = log.slice(first.position, first.size)
    assert copy is not None
    second = log.append(Draft(TOPIC, 0, 1, bytes(copy)))
    inside = second.position + envelope.HEAD_SIZE_V4
    with pytest.raises(EntryError, match="claims position 0"):
        log.read(inside)


def test_a_walk_covers_a_range() -> None:
    log = memory_log()
    positions = [log.append(draft(number)).position for number in range(60)]
    assert len(log.segments) > 2
    for first, last in ((0, 60), (5, 9), (24, 40), (59, 60)):
        end = log.end if last == 60 else positions[last]
        found = [entry.queue_offset for _, entry in log.walk(positions[first], end)]
        assert found == list(range(first, last))
    assert list(log.walk(log.end)) == []


def test_a_walk_that_begins_before_the_log_does_is_refused() -> None:
    """Or it would be taken for a log without entries."""
    log = memory_log(start=3 * SEGMENT)
    log.append(draft(0))
    with pytest.raises(EntryError, match="no segment contains position 0"):
        list(log.walk(0))


# Any workload


@settings(deadline=None, max_examples=budget("property_examples"))
@given(st.lists(st.lists(st.integers(0, 6_000), min_size=1, max_size=4), min_size=1, max_size=40))
def test_whatever_is_appended_is_walked_in_order_and_recovered(groups: list[list[int]]) -> None:
    disk = MemoryDisk()
    log = new_log(disk.root())
    number = 0
    expected: list[int] = []
    for sizes in groups:
        drafts = [draft(number + index, size) for index, size in enumerate(sizes)]
        try:
            if len(drafts) == 1:
                log.append(drafts[0])
            else:
                log.append_group(drafts)
        except EntryTooLarge:
            assert sum(sizes) > SEGMENT - 4 * OVERHEAD - BLANK_SIZE - 1
            continue
        expected += range(number, number + len(sizes))
        number += len(sizes)
    assert numbers(log) == expected
    assert end_of(disk) == log.end


def test_the_disk_kind_holds_the_same_log(tmp_path: Path) -> None:
    random = Random(1)
    directory = DiskDirectory(tmp_path)
    log = new_log(directory)
    for number in range(300):
        log.append(draft(number, random.randint(0, 2_000)))
    assert numbers(log) == list(range(300))
    end = log.end
    log.segments.close()
    segments = loaded(directory)
    assert find_end(segments, 0, 0).end == end
    segments.close()
