"""Recovery: where a log ends that was not closed, and what becomes of the rest."""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.logs import SEGMENT, body_at, body_of, draft, loaded, new_log, numbers

from rockgate.protocol import entry as envelope
from rockgate.store.clock import ManualClock
from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import PAGE_SIZE, Directory
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.recovery import Recovered, clear_rest, find_end, write_again
from rockgate.store.log.segments import Segments, segment_name
from rockgate.store.testing.memory_files import MemoryDisk, Operation, PowerCut


def recovered(segments: Segments, start: int = 0, flushed: int = 0) -> tuple[Recovered, list[int]]:
    """What recovery makes of the segments, and the drafts before the end that it found."""
    end = find_end(segments, start, flushed)
    log = CommitLog(segments, ManualClock())
    found = []
    for view, entry in log.walk(start, end.end):
        assert body_at(view, entry) == body_of(entry.queue_offset, entry.body_size)
        found.append(entry.queue_offset)
    return end, found


def filled(disk: MemoryDisk, count: int, size: int = 500) -> CommitLog:
    log = new_log(disk.root().child("commitlog"))
    for number in range(count):
        log.append(draft(number, size))
    return log


def places(log: CommitLog) -> list[int]:
    return [entry.position for _, entry in log.walk(log.start)]


def scribble(log: CommitLog, position: int, data: bytes) -> None:
    segment = log.segments.find(position)
    assert segment is not None
    segment.mapping.view[position - segment.start : position - segment.start + len(data)] = data


def restarted(disk: MemoryDisk) -> tuple[Directory, Segments]:
    root = disk.killed().root()
    return root, loaded(root.child("commitlog"))


# Where the log ends


@pytest.mark.row("S-10")
def test_a_whole_log_is_found_whole() -> None:
    disk = MemoryDisk()
    log = filled(disk, 100)
    _, segments = restarted(disk)
    end, found = recovered(segments)
    assert found == list(range(100))
    assert (end.end, end.entry_count) == (log.end, 100)
    assert end.last_store_ms == log.last_store_ms
    assert end.reason == "unwritten space"


def test_an_empty_log_ends_where_it_begins() -> None:
    disk = MemoryDisk()
    new_log(disk.root(), start=2 * SEGMENT)
    at = 2 * SEGMENT
    end, found = recovered(loaded(disk.killed().root()), at, at)
    assert (end.end, end.entry_count, found) == (2 * SEGMENT, 0, [])


def test_a_scan_may_begin_at_any_entry() -> None:
    disk = MemoryDisk()
    log = filled(disk, 100)
    _, segments = restarted(disk)
    for index in (1, 25, 60, 99):
        end, found = recovered(segments, places(log)[index])
        assert found == list(range(index, 100))
        assert end.end == log.end
    assert recovered(segments, log.end)[1] == []


def test_a_truncated_tail_is_ignored() -> None:
    """The last entry's last page did not reach the disk."""
    disk = MemoryDisk()
    log = filled(disk, 10, 2_000)
    last = places(log)[-1]
    for kept in (1, 8, 40, 88, 300, 2_000):
        size = log.end - last - kept
        scribble(log, last + kept, bytes(size))
        _, segments = restarted(disk)
        end, found = recovered(segments)
        assert (end.end, found) == (last, list(range(9)))
        log.end = last
        log.append(draft(9, 2_000))


def test_a_bad_length_at_the_end_is_ignored() -> None:
    disk = MemoryDisk()
    log = filled(disk, 10)
    last = places(log)[-1]
    for size in (0, 1, 50, 10_000, SEGMENT, 0x7FFFFFFF, 0xFFFFFFFF):
        scribble(log, last, size.to_bytes(4, "big"))
        _, segments = restarted(disk)
        end, found = recovered(segments)
        assert (end.end, found) == (last, list(range(9)))


def test_a_checksum_mismatch_at_the_end_is_ignored() -> None:
    disk = MemoryDisk()
    log = filled(disk, 10)
    last = places(log)[-1]
    view = log.segments.active.mapping.view
    for at in range(last, log.end):
        view[at] ^= 0x10
        _, segments = restarted(disk)
        end, found = recovered(segments)
        assert (end.end, found) == (last, list(range(9))), at - last
        view[at] ^= 0x10


def test_an_entry_that_belongs_at_another_position_ends_the_log() -> None:
    disk = MemoryDisk()
    log = filled(disk, 10)
    first = log.slice(0, places(log)[1])
    assert first is not None
    scribble(log, log.end, bytes(first))
    _, segments = restarted(disk)
    end, found = recovered(segments)
    assert end.end == log.end
    assert end.reason == "entry claims position 0"
    assert found == list(range(10))


@pytest.mark.row("U-09")
def test_the_first_torn_entry_ends_the_log_whatever_follows() -> None:
    """Pages reach the disk in any order: what follows a hole was never promised."""
    disk = MemoryDisk()
    log = filled(disk, 60)
    position = places(log)[20]
    scribble(log, position + 200, b"\xff")
    _, segments = restarted(disk)
    end, found = recovered(segments)
    assert (end.end, found) == (position, list(range(20)))


def test_a_filler_leads_on_to_the_next_segment() -> None:
    disk = MemoryDisk()
    log = filled(disk, 60)
    assert len(log.segments) == 3
    _, segments = restarted(disk)
    assert recovered(segments)[1] == list(range(60))


def test_a_filler_that_is_not_the_rest_of_its_segment_ends_the_log() -> None:
    disk = MemoryDisk()
    log = filled(disk, 10)
    scribble(log, log.end, envelope.pack_blank(1_000))
    _, segments = restarted(disk)
    assert recovered(segments)[0].end == log.end


def test_a_lost_filler_ends_the_log_though_the_next_segment_has_entries() -> None:
    disk = MemoryDisk()
    log = filled(disk, 60)
    first = log.segments.row[0]
    view, at = first.mapping.view, 0
    while envelope.peek(view, at)[1] != envelope.MAGIC_BLANK:
        at += envelope.peek(view, at)[0]
    scribble(log, at, bytes(8))
    _, segments = restarted(disk)
    assert recovered(segments)[0].end == at


def test_a_full_segment_without_a_next_one_is_the_end() -> None:
    disk = MemoryDisk()
    log = filled(disk, 60)
    last = log.segments.active
    _, segments = restarted(disk)
    segments.cut_after(SEGMENT)
    end, _ = recovered(segments)
    assert end.end == last.start == 2 * SEGMENT
    assert end.reason == "the last segment is full"


def test_a_prepared_segment_that_was_never_used_does_not_matter() -> None:
    disk = MemoryDisk()
    log = filled(disk, 20)
    log.segments.prepare(log.end)
    root, segments = restarted(disk)
    assert len(segments) == 2
    end, _ = recovered(segments)
    assert end.end == log.end
    assert clear_rest(segments, end.end, root.child("lost")) == (0, "")
    assert segments.active.start == 0


# Groups


def grouped(disk: MemoryDisk) -> CommitLog:
    """Three entries, a group of four, and one more entry."""
    log = new_log(disk.root().child("commitlog"))
    for number in range(3):
        log.append(draft(number))
    log.append_group([draft(number) for number in range(3, 7)])
    log.append(draft(7))
    return log


@pytest.mark.parametrize("torn", [3, 4, 5, 6])
def test_a_torn_group_disappears_whole(torn: int) -> None:
    disk = MemoryDisk()
    log = grouped(disk)
    scribble(log, places(log)[torn] + 100, b"\xff")
    root, segments = restarted(disk)
    end, found = recovered(segments)
    assert (end.end, found) == (places(log)[3], [0, 1, 2])
    kept, _ = clear_rest(segments, end.end, root.child("lost"))
    assert kept == log.end - end.end
    assert recovered(segments)[0].end == end.end


def test_a_whole_group_in_front_of_a_torn_entry_stays() -> None:
    disk = MemoryDisk()
    log = grouped(disk)
    scribble(log, places(log)[7] + 100, b"\xff")
    _, segments = restarted(disk)
    end, found = recovered(segments)
    assert (end.end, found) == (places(log)[7], list(range(7)))
    assert end.entry_count == 7


def test_a_group_that_nothing_follows_disappears() -> None:
    disk = MemoryDisk()
    log = grouped(disk)
    position = places(log)[6]
    scribble(log, position, bytes(log.end - position))
    _, segments = restarted(disk)
    assert recovered(segments)[1] == [0, 1, 2]


def test_a_group_never_reaches_into_the_next_segment() -> None:
    """The log writes none that does: such bytes are damage, not a group."""
    disk = MemoryDisk()
    log = new_log(disk.root().child("commitlog"))
    log.append(draft(0))
    log.append_group([draft(1), draft(2)])
    position = places(log)[2]
    scribble(log, position, envelope.pack_blank(SEGMENT - position))
    log.segments.roll()
    log.end = SEGMENT
    log.append(draft(3))
    _, segments = restarted(disk)
    end, found = recovered(segments)
    assert (end.end, found) == (place_of(log, 1), [0])
    assert "group" in end.reason


def place_of(log: CommitLog, number: int) -> int:
    return next(entry.position for _, entry in log.walk(0) if entry.queue_offset == number)


# Before the flushed position


@pytest.mark.row("U-09", "I-03")
@pytest.mark.row("S-02")
def test_damage_in_front_of_the_flushed_position_refuses_to_start() -> None:
    disk = MemoryDisk()
    log = filled(disk, 60)
    position = places(log)[30]
    scribble(log, position + 200, b"\xff")
    _, segments = restarted(disk)
    for flushed in (position + 1, places(log)[31], log.end):
        with pytest.raises(StoreCorrupt) as refused:
            recovered(segments, 0, flushed)
        assert refused.value.file.endswith(f"commitlog/{segment_name(SEGMENT)}")
        assert refused.value.position == position
        assert "checksum" in refused.value.reason
    assert recovered(segments, 0, position)[0].end == position


def test_every_kind_of_damage_in_front_of_it_names_its_reason() -> None:
    disk = MemoryDisk()
    log = filled(disk, 60)
    position = places(log)[30]
    whole = log.slice(position, 700)
    assert whole is not None
    original = bytes(whole)
    kinds: list[tuple[int, bytes, str]] = [
        (0, bytes(8), "unwritten space"),
        (0, b"\x7f\xff\xff\xff", "exceeds the"),
        (4, b"\0\0\0\1", "unknown magic 0x00000001"),
        (28, bytes(8), "claims position 0"),
        (100, b"\xff", "body checksum mismatch"),
    ]
    for at, data, reason in kinds:
        scribble(log, position + at, data)
        with pytest.raises(StoreCorrupt, match=reason):
            recovered(restarted(disk)[1], 0, log.end)
        scribble(log, position, original)
    assert recovered(restarted(disk)[1], 0, log.end)[0].end == log.end


def test_a_torn_group_in_front_of_the_flushed_position_refuses_to_start() -> None:
    disk = MemoryDisk()
    log = grouped(disk)
    scribble(log, places(log)[5] + 100, b"\xff")
    _, segments = restarted(disk)
    with pytest.raises(StoreCorrupt) as refused:
        recovered(segments, 0, places(log)[5])
    assert refused.value.position == places(log)[3]
    assert "group" in refused.value.reason


def test_a_segment_missing_at_the_end_refuses_to_start() -> None:
    disk = MemoryDisk()
    log = filled(disk, 100)
    end = log.end
    disk.root().child("commitlog").remove(segment_name(log.segments.active.start))
    _, segments = restarted(disk)
    for start in (0, places(log)[5], log.segments.active.start, end):
        with pytest.raises(StoreCorrupt, match="a segment is missing"):
            recovered(segments, start, end)


def test_a_segment_missing_at_the_beginning_refuses_to_start() -> None:
    disk = MemoryDisk()
    log = filled(disk, 100)
    disk.root().child("commitlog").remove(segment_name(0))
    _, segments = restarted(disk)
    with pytest.raises(StoreCorrupt, match="a segment is missing"):
        recovered(segments, 0, log.end)


# Beyond the end


def torn(disk: MemoryDisk) -> tuple[CommitLog, int]:
    """A log of several segments that is torn in its second."""
    log = filled(disk, 100)
    position = places(log)[40]
    assert SEGMENT < position < 2 * SEGMENT
    scribble(log, position + 150, b"\xff")
    return log, position


@pytest.mark.row("U-09")
def test_the_rest_is_kept_aside_and_zeroed() -> None:
    disk = MemoryDisk()
    log, position = torn(disk)
    rest = b"".join(
        bytes(segment.mapping.view[max(0, position - segment.start) :]).rstrip(b"\0")
        for segment in log.segments.row
        if segment.end > position
    )
    root, segments = restarted(disk)
    kept, path = clear_rest(segments, position, root.child("lost"))
    assert kept == len(rest)
    [name] = root.child("lost").names()
    assert path.endswith(f"lost/{name}")
    assert root.child("lost").open(name).read(0, kept + 1) == rest
    assert [segment.start for segment in segments.row] == [0, SEGMENT]
    assert not any(segments.active.mapping.view[position - SEGMENT :])
    assert recovered(segments)[0].end == position


def test_what_was_cut_off_is_gone_on_disk_before_anything_is_appended() -> None:
    disk = MemoryDisk()
    log, position = torn(disk)
    log.segments.sync(0, log.end)
    after = disk.killed()
    root = after.root()
    segments = loaded(root.child("commitlog"))
    kept, _ = clear_rest(segments, position, root.child("lost"))
    cut = after.power_cut(Random(1), keep="none").root()
    assert cut.child("commitlog").names() == [segment_name(0), segment_name(SEGMENT)]
    assert recovered(loaded(cut.child("commitlog")))[0].end == position
    [name] = cut.child("lost").names()
    assert cut.child("lost").open(name).size() == kept


def test_nothing_behind_the_end_comes_back() -> None:
    """Not even when a new entry ends exactly where an old whole one begins."""
    disk = MemoryDisk()
    log, position = torn(disk)
    next_position = (
        position + envelope.peek(log.segments.row[1].mapping.view, position - SEGMENT)[0]
    )
    assert log.read(next_position) is not None
    root, segments = restarted(disk)
    clear_rest(segments, position, root.child("lost"))
    again = CommitLog(segments, ManualClock())
    again.end = position
    again.append(draft(40))
    assert again.end == next_position
    assert recovered(segments)[1] == list(range(41))


def test_a_clean_end_keeps_nothing_aside() -> None:
    disk = MemoryDisk()
    log = filled(disk, 60)
    root, segments = restarted(disk)
    assert clear_rest(segments, log.end, root.child("lost")) == (0, "")
    assert root.child("lost").names() == []


def test_what_was_kept_aside_is_never_overwritten() -> None:
    """A cut during the zeroing leaves less behind the end than was there."""
    disk = MemoryDisk()
    _, position = torn(disk)
    root, segments = restarted(disk)
    lost = root.child("lost")
    whole = bytes(segments.row[1].mapping.view[position - SEGMENT :])
    clear_rest(segments, position, lost)
    [first] = lost.names()
    before = lost.open(first).read(0, SEGMENT)
    # As if only some of the zeros had reached the disk, and the last byte had not.
    segments.active.mapping.view[position - SEGMENT :] = whole
    segments.active.mapping.view[position - SEGMENT + 50 : -200] = bytes(len(whole) - 250)
    kept, _ = clear_rest(segments, position, lost)
    assert lost.open(first).read(0, SEGMENT) == before
    if kept:
        assert len(lost.names()) == 2


def test_a_power_cut_while_the_rest_is_cleared_loses_nothing() -> None:
    random = seeded()
    crash_at = 1
    finished = False
    while not finished:
        for _ in range(max(1, budget("power_cuts") // 10)):
            disk = MemoryDisk()
            log, position = torn(disk)
            log.segments.sync(0, log.end)
            for folder in (disk.root().child("commitlog"), disk.root().child("lost")):
                folder.sync()
            disk.crash_at = disk.operation_count + crash_at
            segments = loaded(disk.root().child("commitlog"))
            try:
                clear_rest(segments, position, disk.root().child("lost"))
                finished = True
            except PowerCut:
                pass
            root = disk.power_cut(random).root()
            segments = loaded(root.child("commitlog"))
            end, found = recovered(segments, 0, position)
            assert (end.end, found) == (position, list(range(40)))
            clear_rest(segments, end.end, root.child("lost"))
            assert recovered(segments)[0].end == position
        crash_at += 1
    assert crash_at > 5


# A failed fsync, then a restart


def test_what_is_found_behind_the_flushed_position_is_written_again() -> None:
    """After a failed fsync the kernel shows bytes, calls them clean, and never writes them."""

    def fail(operation: Operation) -> OSError | None:
        return OSError(5, "injected") if operation.kind == "sync" else None

    disk = MemoryDisk()
    log = filled(disk, 20)
    log.segments.sync(0, log.end)
    flushed = log.end
    for number in range(20, 60):
        log.append(draft(number))
    disk.plan = fail
    for segment in log.segments.row:
        with pytest.raises(OSError, match="injected"):
            segment.mapping.sync()
    after = disk.killed()
    segments = loaded(after.root().child("commitlog"))
    end, found = recovered(segments, 0, flushed)
    assert found == list(range(60))
    write_again(segments, flushed, end.end)
    segments.sync(flushed, end.end)
    cut = after.power_cut(Random(1), keep="none").root().child("commitlog")
    assert recovered(loaded(cut), 0, end.end)[1] == list(range(60))


# Power cuts of a running log


@pytest.mark.row("S-10")
def test_after_a_power_cut_a_prefix_is_left_and_all_that_was_flushed() -> None:
    random = seeded()
    for _ in range(budget("power_cuts")):
        disk = MemoryDisk(crash_at=random.randint(10, 300), crash_keeps=random.choice((0, 30, 88)))
        flushed = appended = 0
        log: CommitLog | None = None
        try:
            log = new_log(disk.root().child("commitlog"))
            disk.root().child("lost")
            while True:
                count = random.choice((1, 1, 1, 3))
                drafts = [draft(appended + n, random.randint(0, 3_000)) for n in range(count)]
                log.append_group(drafts)
                appended += count
                if random.random() < 0.1:
                    end = log.end
                    log.segments.sync(flushed, end)
                    flushed = end
        except PowerCut:
            pass
        page_size = random.choice((512, PAGE_SIZE))
        root = disk.power_cut(random, page_size=page_size).root()
        segments = loaded(root.child("commitlog"))
        if not len(segments):
            assert not flushed
            continue
        where, found = recovered(segments, 0, flushed)
        assert where.end >= flushed
        assert found == list(range(len(found)))
        assert len(found) <= appended + 3
        clear_rest(segments, where.end, root.child("lost"))
        again = CommitLog(segments, ManualClock())
        again.end = where.end
        for number in range(len(found), len(found) + 20):
            again.append(draft(number))
        assert numbers(again) == list(range(len(found) + 20))


def test_no_byte_of_an_entry_can_change_unseen() -> None:
    """Wherever a bit flips in the flushed log, a scan refuses; it never returns the entry."""
    random = seeded()
    disk = MemoryDisk()
    log = filled(disk, 40)
    entries = [entry for _, entry in log.walk(0)]

    def flip(position: int, bit: int) -> None:
        segment = log.segments.find(position)
        assert segment is not None
        segment.mapping.view[position - segment.start] ^= 1 << bit

    for _ in range(budget("fuzz_rounds")):
        entry = random.choice(entries)
        position = entry.position + random.randrange(entry.total_size)
        bit = random.randrange(8)
        flip(position, bit)
        with pytest.raises(StoreCorrupt) as refused:
            recovered(log.segments, 0, log.end)
        assert refused.value.position == entry.position
        flip(position, bit)
