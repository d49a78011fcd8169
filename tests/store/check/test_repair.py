"""Ending a damaged log: what a server refuses, a repair mends, and nothing goes unnoticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.seeds import seeded
from tests.store.inspected import flip, furnished
from tests.store.keeping import SEGMENT, Keeping

from rockgate.store.check.inspect import check, inspect
from rockgate.store.check.logwalk import COMMITLOG, Row, Whole
from rockgate.store.check.repair import truncate
from rockgate.store.errors import CannotRepair, StoreCorrupt, StoreLocked
from rockgate.store.files.interface import Directory
from rockgate.store.log.segments import segment_name
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut


def filled() -> Keeping:
    """A log from 0 on without a snapshot, killed: a start replays and checks all of it."""
    keeping = Keeping()
    keeping.topic("orders")
    for _ in range(3):
        keeping.fill_segment("orders")
    keeping.store.checkpointer.take()
    keeping.disk = keeping.disk.killed()
    return keeping


def entries(disk: MemoryDisk) -> list[Whole]:
    row = Row(disk.root().child(COMMITLOG))
    return [piece for piece in row.walk(row.start, row.end) if isinstance(piece, Whole)]


def damage(disk: MemoryDisk, piece: Whole) -> None:
    start = piece.position - piece.position % SEGMENT
    flip(disk, COMMITLOG, segment_name(start), piece.position - start + 60)


def test_a_server_refuses_damage_before_the_flushed_position_and_starts_after_a_repair() -> None:
    keeping = filled()
    pieces = entries(keeping.disk)
    victim = pieces[len(pieces) // 2]
    damage(keeping.disk, victim)
    with pytest.raises(StoreCorrupt) as refused:
        keeping.open()
    assert refused.value.position == victim.position
    keeping.disk = keeping.disk.killed()
    [finding] = check(keeping.disk.root()).damage
    assert finding.position == victim.position
    repaired = truncate(keeping.disk.root(), finding.position)
    assert repaired.end == victim.position
    assert repaired.entry_count == len(pieces) // 2
    report = check(keeping.disk.root())
    assert report.is_clean
    assert report.log_end == report.flushed == victim.position
    keeping.open()
    kept = keeping.read("orders")
    assert len(kept) == len(pieces) // 2 - 2, "all messages but the epoch's and the topic's entries"
    added = keeping.fill("orders", 3)
    keeping.reopen()
    assert keeping.read("orders") == kept + added


def test_what_is_cut_off_is_kept_aside_entry_by_entry() -> None:
    keeping = filled()
    pieces = entries(keeping.disk)
    gone = pieces[-20:]
    content = [bytes(p.view[p.entry.start : p.entry.end]) for p in gone]
    repaired = truncate(keeping.disk.root(), gone[0].position)
    lost = keeping.disk.root().child("lost")
    assert repaired.saved_in == lost.path
    kept = b"".join(lost.open(name).read(0, 1 << 30) for name in lost.names())
    assert repaired.lost_bytes == len(kept) > sum(map(len, content))
    assert all(entry in kept for entry in content)


def test_snapshots_and_indexes_that_know_more_go_with_the_next_start() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    first = keeping.fill_segment("orders")["orders"]
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    middle = check(keeping.disk.root()).log_end
    keeping.open()
    keeping.topic("later")
    keeping.fill_segment("orders")
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    truncate(keeping.disk.root(), middle)
    report = check(keeping.disk.root())
    assert report.is_clean
    assert any("requires the log up to" in note for note in report.notes)
    keeping.open()
    assert keeping.store.topics.find("later") is None
    assert keeping.read("orders") == first
    assert check(keeping.disk.root()).notes == []


def test_a_damaged_checkpoint_is_replaced() -> None:
    keeping = filled()
    end = check(keeping.disk.root()).log_end
    for slot in (0, 4096):
        flip(keeping.disk, "", "checkpoint", slot + 20)
    with pytest.raises(StoreCorrupt):
        keeping.open()
    keeping.disk = keeping.disk.killed()
    truncate(keeping.disk.root(), end)
    assert check(keeping.disk.root()).is_clean
    keeping.open()
    assert len(keeping.read("orders")) == keeping.serial


# What cannot be repaired


def test_a_running_server_is_not_repaired() -> None:
    keeping = Keeping()
    with pytest.raises(StoreLocked):
        truncate(keeping.disk.root(), 0)


def test_a_position_inside_an_entry_is_refused_and_its_neighbours_are_named() -> None:
    keeping = filled()
    piece = entries(keeping.disk)[5]
    before = keeping.disk.killed()
    with pytest.raises(CannotRepair) as refused:
        truncate(keeping.disk.root(), piece.position + 1)
    assert str(piece.position) in str(refused.value)
    assert str(piece.position + piece.size) in str(refused.value)
    assert _content(keeping.disk) == _content(before)


def test_a_position_behind_damage_is_refused() -> None:
    keeping = filled()
    pieces = entries(keeping.disk)
    damage(keeping.disk, pieces[4])
    with pytest.raises(
        CannotRepair,
        match=f"A server could not start .* damaged at position {pieces[4].position}: .*"
        f"The log can be truncated at {pieces[4].position}",
    ):
        truncate(keeping.disk.root(), pieces[9].position)


def test_a_position_inside_a_group_is_refused() -> None:
    keeping = furnished()
    pieces = entries(keeping.disk)
    index = max(i for i, piece in enumerate(pieces) if piece.entry.sys_flag >> 17 & 1)
    with pytest.raises(
        CannotRepair, match=f"group of entries that starts at {pieces[index - 1].position}"
    ):
        truncate(keeping.disk.root(), pieces[index + 1].position)


@pytest.mark.parametrize("position", [0, SEGMENT - 1, 1 << 40])
def test_a_position_outside_the_log_is_refused(position: int) -> None:
    with pytest.raises(CannotRepair, match=f"The log only covers positions {SEGMENT} to"):
        truncate(furnished().disk.root(), position)


def test_a_directory_without_a_log_is_refused() -> None:
    with pytest.raises(CannotRepair, match="does not contain a log"):
        truncate(MemoryDisk().root(), 0)


def test_a_log_that_no_server_could_start_from_is_never_made() -> None:
    keeping = furnished()
    before = _content(keeping.disk)
    first = entries(keeping.disk)[0]
    for is_forced in (False, True):
        with pytest.raises(
            CannotRepair, match=r"A server could not start .* can be truncated at \d+"
        ):
            truncate(keeping.disk.root(), first.position, is_forced=is_forced)
    assert _content(keeping.disk) == before
    keeping.open()


def test_a_log_that_can_be_ended_nowhere_is_kept_aside_whole_by_a_forced_repair() -> None:
    keeping = furnished()
    snapshots = keeping.disk.root().child("snapshots")
    for name in snapshots.names():
        snapshots.remove(name)
    first, *_, last, _, _, _ = entries(keeping.disk)
    for position in (first.position, last.position):
        with pytest.raises(CannotRepair, match=r"there is no valid snapshot.* cannot be truncated"):
            truncate(keeping.disk.root(), position)
    report = inspect(keeping.disk.root())
    assert report.refusal is not None
    assert report.repair_at is None
    repaired = truncate(keeping.disk.root(), first.position, is_forced=True)
    assert (repaired.end, repaired.entry_count) == (0, 0)
    assert repaired.lost_bytes > last.position - first.position
    assert inspect(keeping.disk.root()).refusal is None
    keeping.open()
    keeping.topic("orders")
    added = keeping.fill("orders", 3)
    keeping.reopen()
    assert keeping.read("orders") == added


def test_what_a_start_does_not_read_may_stay_damaged_so_that_less_is_lost() -> None:
    keeping = furnished()
    pieces = entries(keeping.disk)
    damage(keeping.disk, pieces[1])
    [finding] = check(keeping.disk.root()).damage
    assert finding.position == pieces[1].position
    assert inspect(keeping.disk.root()).refusal is None
    end = check(keeping.disk.root()).log_end
    assert truncate(keeping.disk.root(), end).end == end
    keeping.open()


def test_the_size_of_segments_is_not_taken_from_the_damaged_one() -> None:
    for size in (0, 100, 4096, SEGMENT - 1, SEGMENT + 4096):
        keeping = filled()
        commitlog = keeping.disk.root().child(COMMITLOG)
        content = commitlog.open(segment_name(0)).read(0, size)
        commitlog.create(segment_name(0)).write(0, content.ljust(size, b"\0"))
        report = inspect(keeping.disk.root())
        assert report.repair_at is not None, size
        for position in {finding.position for finding in report.damage}:
            disk = keeping.disk.killed()
            truncate(disk.root(), position)
            commitlog = disk.root().child(COMMITLOG)
            assert commitlog.open(segment_name(0)).size() == SEGMENT
            Keeping(disk).topic("new")


def test_of_two_segments_without_a_checkpoint_the_size_is_the_one_that_their_names_fit() -> None:
    for size, first_size in (
        *((size, SEGMENT) for size in (1, 4096, SEGMENT - 1, SEGMENT + 1, SEGMENT + 4096)),
        (5_997, 7_000),
        (SEGMENT + 1, SEGMENT + 2),
    ):
        keeping = Keeping()
        keeping.topic("orders")
        keeping.fill_segment("orders")
        keeping.store.close()
        commitlog = keeping.disk.root().child(COMMITLOG)
        commitlog.remove(segment_name(2 * SEGMENT))  # prepared ahead, and unwritten
        for name, new in zip(commitlog.names(), (first_size, size), strict=True):
            content = commitlog.open(name).read(0, new)
            commitlog.create(name).write(0, content.ljust(new, b"\0"))
        keeping.disk.root().remove("checkpoint")
        disk = keeping.disk.killed()
        report = inspect(keeping.disk.root())
        if report.refusal is not None:
            assert report.repair_at is not None, size
            truncate(disk.root(), report.repair_at)
        Keeping(disk).topic("new")


def test_a_setting_that_changed_is_reported_as_such_and_nothing_is_repaired() -> None:
    keeping = filled()
    config = replace(keeping.config, segment_bytes=2 * SEGMENT)

    def opens(directory: Directory) -> Store:
        return Store(directory, config, keeping.clock).begin_epoch()

    report = inspect(keeping.disk.root(), opens=opens)
    assert report.is_clean
    assert report.refusal is not None
    assert not report.refusal.is_repairable
    with pytest.raises(CannotRepair, match=r"set store\.segment_bytes to 8192"):
        truncate(keeping.disk.root(), 0, opens=opens, is_forced=True)
    keeping.open()


def test_a_missing_segment_before_the_position_is_refused() -> None:
    keeping = filled()
    keeping.disk.root().child(COMMITLOG).remove(segment_name(SEGMENT))
    with pytest.raises(CannotRepair, match="a segment is missing"):
        truncate(keeping.disk.root(), 2 * SEGMENT)
    # Before the gap it can be: what follows it is saved like the rest.
    last = max(p.position for p in entries(keeping.disk) if p.position < SEGMENT)
    repaired = truncate(keeping.disk.root(), last)
    assert repaired.lost_bytes > SEGMENT
    assert keeping.disk.root().child(COMMITLOG).names() == [segment_name(0)]
    keeping.open()
    assert len(keeping.read("orders")) == repaired.entry_count - 2


def _content(disk: MemoryDisk) -> dict[str, bytes]:
    directory = disk.root().child(COMMITLOG)
    return {name: directory.open(name).read(0, SEGMENT) for name in directory.names()}


def test_a_power_cut_at_any_moment_of_a_repair_leaves_a_log_that_can_be_repaired() -> None:
    random = seeded()
    keeping = filled()
    pieces = entries(keeping.disk)
    victim = pieces[len(pieces) // 2]
    damage(keeping.disk, victim)
    # Damage is on disk: it does not go away with a cut of power.
    for name in keeping.disk.root().child(COMMITLOG).names():
        keeping.disk.root().child(COMMITLOG).open(name).sync()
    whole = keeping.disk.killed()
    truncate(whole.root(), victim.position)
    for crash_at in range(1, whole.operation_count + 1):
        disk = keeping.disk.killed()
        disk.crash_at = crash_at
        with pytest.raises(PowerCut):
            truncate(disk.root(), victim.position)
        disk = disk.power_cut(random)
        try:
            truncate(disk.root(), victim.position)
        except CannotRepair as error:
            # It was cut where everything was already removed but the last step.
            raise AssertionError(f"operation {crash_at}: {error}") from error
        assert check(disk.root()).is_clean
        keeping.disk, before = disk, keeping.disk
        keeping.open()
        assert len(keeping.read("orders")) == len(pieces) // 2 - 2
        keeping.disk = before
