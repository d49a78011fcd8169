"""The checkpoint file: two slots in turn, of which one is always whole."""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.pages import fields, table

from rockgate.store.errors import SettingChanged, StoreCorrupt
from rockgate.store.files.interface import PAGE_SIZE, Directory
from rockgate.store.testing.memory_files import MemoryDisk, Operation, PowerCut
from rockgate.store.upkeep import checkpoint
from rockgate.store.upkeep.checkpoint import Checkpoint, CheckpointFile

SEGMENT = 64 << 10


def write(file: CheckpointFile, number: int) -> None:
    """The number-th checkpoint says ten times, a hundred times and a thousand times as much."""
    file.write(100 * number, 10 * number, 1_000 * number)


def read(directory: Directory, segment_bytes: int = SEGMENT) -> Checkpoint:
    return CheckpointFile(directory, segment_bytes).newest


def expected(number: int) -> Checkpoint:
    return Checkpoint(number, 100 * number, 10 * number, 1_000 * number, SEGMENT)


def damage(directory: Directory, at: int) -> None:
    file = directory.open("checkpoint")
    file.write(at, bytes([file.read(at, 1)[0] ^ 0x55]))


@pytest.mark.row("S-08")
def test_a_missing_file_means_that_nothing_is_known_to_be_safe() -> None:
    root = MemoryDisk().root()
    file = CheckpointFile(root, SEGMENT)
    assert file.newest == Checkpoint(0, 0, 0, 0, SEGMENT)
    assert file.is_blank
    assert root.names() == [], "a size that is wrong must not get into a file"
    file.make()
    assert root.names() == ["checkpoint"]
    assert read(root) == Checkpoint(0, 0, 0, 0, SEGMENT)


@pytest.mark.row("S-08")
def test_the_newest_checkpoint_is_read_back() -> None:
    root = MemoryDisk().root()
    file = CheckpointFile(root, SEGMENT)
    for number in range(1, 6):
        write(file, number)
        assert file.newest == expected(number)
        assert read(root) == expected(number)


def test_the_table_on_the_page_is_the_layout() -> None:
    assert table("recovery.md", "The checkpoint") == fields(checkpoint.SLOT)


def test_slots_are_written_in_turn_each_in_a_page_of_its_own() -> None:
    disk = MemoryDisk()
    root = disk.root()
    file = CheckpointFile(root, SEGMENT)
    file.make()
    written = []
    for number in range(1, 5):
        before = root.open("checkpoint").read(0, 2 * PAGE_SIZE)
        write(file, number)
        after = root.open("checkpoint").read(0, 2 * PAGE_SIZE)
        assert len(before) == len(after)
        written.append(
            [before[at : at + PAGE_SIZE] != after[at : at + PAGE_SIZE] for at in (0, PAGE_SIZE)]
        )
    assert written == [[False, True], [True, False], [False, True], [True, False]]


def test_a_torn_slot_leaves_the_other() -> None:
    for newest in (4, 5):
        for at in range(52):
            root = MemoryDisk().root()
            file = CheckpointFile(root, SEGMENT)
            for number in range(1, newest + 1):
                write(file, number)
            damage(root, newest % 2 * PAGE_SIZE + at)
            assert read(root) == expected(newest - 1)


def test_the_torn_slot_is_the_one_written_next() -> None:
    root = MemoryDisk().root()
    file = CheckpointFile(root, SEGMENT)
    write(file, 1)
    write(file, 2)
    damage(root, 10)
    again = CheckpointFile(root, SEGMENT)
    assert again.newest == expected(1)
    again.write(200, 20, 2_000)
    assert read(root) == expected(2)


def test_two_damaged_slots_are_not_taken_for_a_new_store() -> None:
    """No cut of power damages both: the log may be long, and all of it safe."""
    root = MemoryDisk().root()
    file = CheckpointFile(root, SEGMENT)
    write(file, 1)
    write(file, 2)
    damage(root, 10)
    damage(root, PAGE_SIZE + 10)
    with pytest.raises(StoreCorrupt, match="neither slot") as refused:
        read(root)
    assert refused.value.file.endswith("checkpoint")


@pytest.mark.parametrize("size", [0, 1, 51])
def test_a_file_cut_short_is_not_taken_for_a_new_store(size: int) -> None:
    root = MemoryDisk().root()
    root.create("checkpoint").write(0, bytes(size))
    with pytest.raises(StoreCorrupt):
        read(root)


@pytest.mark.row("S-06")
def test_another_segment_size_than_the_log_was_made_with_is_refused() -> None:
    root = MemoryDisk().root()
    write(CheckpointFile(root, SEGMENT), 1)
    with pytest.raises(
        SettingChanged, match="created with segment_bytes=65536, but the setting is 131"
    ):
        read(root, 2 * SEGMENT)
    assert read(root).segment_bytes == SEGMENT


def test_a_checkpoint_that_could_not_be_synced_does_not_count() -> None:
    def fail(operation: Operation) -> OSError | None:
        return OSError(5, "injected") if operation.kind == "sync" else None

    disk = MemoryDisk()
    file = CheckpointFile(disk.root(), SEGMENT)
    write(file, 1)
    disk.plan = fail
    with pytest.raises(OSError, match="injected"):
        write(file, 2)
    assert file.newest == expected(1)
    disk.plan = None
    # The same slot again: the other holds what is still true.
    file.write(300, 30, 3_000)
    assert read(disk.power_cut(Random(1), keep="none").root()).flushed == 300


def test_a_power_cut_at_any_operation_leaves_the_last_checkpoint_or_the_one_before() -> None:
    random = seeded()
    crash_at = 1
    finished = False
    while not finished:
        disk = MemoryDisk(crash_at=crash_at, crash_keeps=random.choice((0, 10, 52)))
        done = 0
        try:
            file = CheckpointFile(disk.root(), SEGMENT)
            for number in range(1, 6):
                write(file, number)
                done = number
            finished = True
        except PowerCut:
            pass
        for _ in range(budget("power_cuts") // 4):
            found = read(disk.power_cut(random, page_size=random.choice((512, PAGE_SIZE))).root())
            assert found.sequence in (done, done + 1)
            assert found == expected(found.sequence)
        crash_at += 1
    assert crash_at > 10
