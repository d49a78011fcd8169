"""Opening: from a data directory to a log whose end is known, or to a refusal with a reason."""

from __future__ import annotations

import logging
from random import Random

import pytest
from tests.store.inspected import furnished
from tests.store.keeping import Keeping
from tests.store.logs import SEGMENT, draft, new_log, numbers

from rockgate.protocol.entry import Entry
from rockgate.store.clock import ManualClock
from rockgate.store.errors import SettingChanged, StoreCorrupt
from rockgate.store.log.beginning import ABORT, Found
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.segments import Segments, segment_name
from rockgate.store.opening import find_log, replay
from rockgate.store.testing.memory_files import MemoryDisk, Operation
from rockgate.store.upkeep.checkpoint import CheckpointFile
from rockgate.store.write.dispatch import Derived


def stopped(disk: MemoryDisk, count: int, *, flushed: int, is_clean: bool) -> CommitLog:
    """A log of that many entries whose first `flushed` ones are on disk and checkpointed."""
    root = disk.root()
    checkpoint = CheckpointFile(root, SEGMENT)
    log = new_log(root.child("commitlog"))
    for number in range(count):
        if number == flushed:
            checkpointed(checkpoint, log)
        log.append(draft(number))
    if flushed == count:
        checkpointed(checkpoint, log)
    if not is_clean:
        root.create(ABORT).close()
    root.sync()
    return log


def checkpointed(checkpoint: CheckpointFile, log: CommitLog) -> None:
    log.segments.sync(checkpoint.newest.flushed, log.end)
    checkpoint.write(log.end, 0, log.last_store_ms)


def opened(disk: MemoryDisk) -> tuple[Found, CommitLog]:
    root = disk.root()
    segments = Segments(root.child("commitlog"), SEGMENT, SEGMENT)
    found = find_log(segments, CheckpointFile(root, SEGMENT), root)
    log = CommitLog(segments, ManualClock(), end=found.end)
    return found, log


def test_an_empty_directory_is_an_empty_log() -> None:
    found, log = opened(MemoryDisk())
    assert found == Found(0, True, 0, 0, 0)
    log.append(draft(0))
    assert numbers(log) == [0]


@pytest.mark.row("S-03")
def test_after_a_clean_stop_nothing_is_scanned_nor_searched() -> None:
    disk = MemoryDisk()
    before = stopped(disk, 50, flushed=50, is_clean=True)
    before.segments.prepare(before.end)
    after = disk.killed()
    found, log = opened(after)
    assert (found.was_clean, found.scanned_bytes, found.end) == (True, 0, before.end)
    assert found.last_store_ms == before.last_store_ms
    assert after.root().child("lost").names() == []
    log.append(draft(50))
    assert numbers(log) == list(range(51))


@pytest.mark.row("S-03")
def test_after_a_kill_what_was_not_flushed_is_found_by_scanning() -> None:
    disk = MemoryDisk()
    before = stopped(disk, 80, flushed=30, is_clean=False)
    found, log = opened(disk.killed())
    assert not found.was_clean
    assert found.end == before.end
    assert 0 < found.scanned_bytes < before.end
    assert numbers(log) == list(range(80))


def test_a_torn_end_is_kept_aside_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    before = stopped(disk, 80, flushed=30, is_clean=False)
    position = [entry.position for _, entry in before.walk(0)][60]
    segment = before.segments.find(position)
    assert segment is not None
    segment.mapping.view[position - segment.start + 100] ^= 1
    with caplog.at_level(logging.WARNING):
        found, log = opened(disk.killed())
    assert found.end == position
    # All but the zeros behind the filler of the segment that was full.
    assert 10_000 < found.set_aside_bytes <= before.end - position
    assert f"position={position}" in caplog.text
    assert "checksum" in caplog.text
    log.append(draft(60))
    assert numbers(log) == list(range(61))


@pytest.mark.row("S-02")
def test_a_log_without_its_last_file_is_refused() -> None:
    disk = MemoryDisk()
    log = stopped(disk, 80, flushed=80, is_clean=True)
    disk.root().child("commitlog").remove(segment_name(log.segments.active.start))
    with pytest.raises(StoreCorrupt, match="a segment is missing"):
        opened(disk.killed())


@pytest.mark.row("S-02")
def test_a_log_that_is_gone_is_refused() -> None:
    disk = MemoryDisk()
    stopped(disk, 10, flushed=10, is_clean=True)
    disk.root().child("commitlog").remove(segment_name(0))
    with pytest.raises(StoreCorrupt, match="there is no log"):
        opened(disk.killed())


def test_what_a_failed_fsync_left_in_memory_is_brought_to_disk_by_the_next_start() -> None:
    """A start that believed its eyes would call safe what the first power cut takes."""

    def fail(operation: Operation) -> OSError | None:
        return OSError(5, "injected") if operation.kind == "sync" else None

    disk = MemoryDisk()
    before = stopped(disk, 80, flushed=30, is_clean=False)
    disk.plan = fail
    for segment in before.segments.row:
        with pytest.raises(OSError, match="injected"):
            segment.mapping.sync()
    after = disk.killed()
    found, log = opened(after)
    log.segments.sync(found.end - found.scanned_bytes, found.end)
    CheckpointFile(after.root(), SEGMENT).write(found.end, 0, 0)
    _, last = opened(after.power_cut(Random(1), keep="none"))
    assert numbers(last) == list(range(80))


# Replaying


class Seen:
    """Something derived from the log that only remembers what it was fed."""

    def __init__(self, *, wants_batches: bool = True, wants_messages: bool = True) -> None:
        self.wants_batches = wants_batches
        self.wants_messages = wants_messages
        self.numbers: list[int] = []

    def dispatch(self, view: memoryview, entry: Entry) -> None:
        self.numbers.append(entry.queue_offset)


def test_a_replay_feeds_every_entry_of_a_range_in_order() -> None:
    disk = MemoryDisk()
    stopped(disk, 80, flushed=80, is_clean=True)
    _, log = opened(disk.killed())
    places = [entry.position for _, entry in log.walk(0)]
    for first, last in ((0, None), (20, None), (20, 60)):
        seen = Seen()
        derived: list[Derived] = [seen]
        end = None if last is None else places[last]
        count = replay(log, log.segments, places[first], log.end, derived, end)
        assert seen.numbers == list(range(first, last or 80))
        assert count == len(seen.numbers)


def test_a_replay_passes_over_what_concerns_no_one() -> None:
    disk = MemoryDisk()
    stopped(disk, 0, flushed=0, is_clean=True)
    _, log = opened(disk.killed())
    for number in range(90):
        count = number % 3
        log.append(draft(number)._replace(batch_count=count))
    messages, batches = list(range(0, 90, 3)), [number for number in range(90) if number % 3]
    places = {entry.queue_offset: entry.position for _, entry in log.walk(0)}
    for flushed in (0, places[45], log.end):
        for alone, wanted in (
            (Seen(wants_batches=False), messages),
            (Seen(wants_messages=False), batches),
            (Seen(wants_batches=False, wants_messages=False), []),
        ):
            replay(log, log.segments, 0, flushed, [alone])
            assert alone.numbers == wanted
            beside = Seen()
            replay(log, log.segments, 0, flushed, [alone, beside])
            assert beside.numbers == list(range(90))


def test_a_replay_feeds_changes_of_state_to_everyone() -> None:
    disk = MemoryDisk()
    stopped(disk, 0, flushed=0, is_clean=True)
    _, log = opened(disk.killed())
    for number in range(9):
        log.append(draft(number)._replace(offset=-1 if number % 2 else number))
    seen = Seen(wants_batches=False, wants_messages=False)
    replay(log, log.segments, 0, log.end, [seen])
    assert seen.numbers == [-1] * 4


def test_a_replay_refuses_damage_that_no_scan_has_seen() -> None:
    disk = MemoryDisk()
    stopped(disk, 80, flushed=80, is_clean=True)
    _, log = opened(disk.killed())
    position = [entry.position for _, entry in log.walk(0)][10]
    log.segments.row[0].mapping.view[position + 150] ^= 1
    with pytest.raises(StoreCorrupt) as refused:
        replay(log, log.segments, 0, log.end, [])
    assert refused.value.position == position
    assert refused.value.file.endswith(segment_name(0))


@pytest.mark.row("S-08")
def test_a_log_that_begins_above_0_is_scanned_if_its_checkpoint_is_lost() -> None:
    keeping = furnished()
    keeping.open()
    before = {name: keeping.read(name) for name in ("short", "long")}
    start = keeping.store.log.start
    assert start > 0
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    keeping.disk.root().remove("checkpoint")
    keeping.open()
    assert keeping.store.log.start == start
    assert {name: keeping.read(name) for name in before} == before
    keeping.reopen()
    assert {name: keeping.read(name) for name in before} == before


def test_a_wrong_segment_size_gets_into_no_checkpoint() -> None:
    """The setting that is put right again must not be refused for the one that was wrong."""
    keeping = furnished()
    keeping.disk.root().remove("checkpoint")
    with pytest.raises(SettingChanged):
        keeping.open_store(segment_bytes=2 * keeping.config.segment_bytes)
    keeping.open()


@pytest.mark.parametrize("size", [0, 1, 4096])
def test_a_prepared_segment_that_was_cut_does_not_keep_the_server_down(size: int) -> None:
    keeping = Keeping()
    keeping.topic("orders")
    held = keeping.fill_segment("orders")["orders"] + keeping.fill("orders", 8)
    keeping.store.log.segments.prepare(keeping.store.log.end + SEGMENT)
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    commitlog = keeping.disk.root().child("commitlog")
    *_, last = commitlog.names()
    assert int(last) > keeping.store.log.end
    commitlog.create(last).write(0, bytes(size))
    keeping.open()
    assert keeping.read("orders") == held
