"""Which snapshots are retained, and which part of the log they need."""

from random import Random
from zlib import crc32

import pytest

from rockgate.store.errors import FormatTooNew
from rockgate.store.files.interface import Directory
from rockgate.store.state.snapshotfile import SnapshotBuilder
from rockgate.store.state.snapshots import RetainedSnapshot, Snapshots, snapshot_name
from rockgate.store.testing.memory_files import MemoryDisk


def put(
    snapshots: Snapshots, directory: Directory, replay_from: int, needs: int
) -> RetainedSnapshot:
    """Write a snapshot without folds and move it into place."""
    sequence, aside = snapshots.next_name(replay_from)
    file = directory.create(aside)
    size = SnapshotBuilder(file, [], replay_from, 0).finish(needs)
    file.close()
    kept = RetainedSnapshot(replay_from, sequence, size)
    snapshots.publish(kept)
    return kept


def positions(names: list[str]) -> list[int]:
    return [int(name[:20]) for name in names]


def test_the_two_newest_are_kept_and_the_log_from_the_older_one_on() -> None:
    directory = MemoryDisk().root()
    snapshots = Snapshots(directory)
    needed = []
    for replay_from in (100, 200, 300, 400):
        put(snapshots, directory, replay_from, replay_from)
        needed.append(snapshots.oldest_needed())
    assert positions(directory.names()) == [300, 400]
    assert needed == [0, 100, 200, 300], "one alone may be damaged, so it frees no log"


def test_a_start_finds_what_was_kept() -> None:
    directory = MemoryDisk().root()
    for replay_from in (100, 200, 300):
        put(Snapshots(directory), directory, replay_from, replay_from)
    snapshots = Snapshots(directory)
    assert [kept.replay_from for kept in snapshots.usable(0, 1000)] == [300, 200, 100]
    assert snapshots.oldest_needed() == 200
    assert snapshots.newest is not None and snapshots.newest.size > 0


def test_two_snapshots_of_one_position_are_distinguished_by_their_number() -> None:
    directory = MemoryDisk().root()
    put(Snapshots(directory), directory, 100, 100)
    snapshots = Snapshots(directory)
    snapshots.usable(0, 1000)
    put(snapshots, directory, 100, 150)
    assert directory.names() == [snapshot_name(100, 1), snapshot_name(100, 2)]
    assert [kept.sequence for kept in Snapshots(directory).usable(0, 1000)] == [2, 1]


def test_what_was_being_written_when_the_process_died_is_removed() -> None:
    directory = MemoryDisk().root()
    directory.create(snapshot_name(100, 1) + ".new").close()
    directory.create("notes").close()
    assert Snapshots(directory).usable(0, 1000) == []
    assert directory.names() == ["notes"]


def test_one_that_needs_log_beyond_the_end_is_gone_even_if_the_power_is_cut_then() -> None:
    disk = MemoryDisk()
    directory = disk.root()
    put(Snapshots(directory), directory, 100, 500)
    assert Snapshots(directory).usable(0, 499) == []
    for seed in range(20):
        assert disk.power_cut(Random(seed)).root().names() == []


def test_a_damaged_one_is_not_counted_among_the_two_and_goes_with_the_oldest() -> None:
    directory = MemoryDisk().root()
    snapshots = Snapshots(directory)
    for replay_from in (100, 200):
        put(snapshots, directory, replay_from, replay_from)
    damaged = directory.names()[1]
    directory.create(damaged).close()
    snapshots = Snapshots(directory)
    assert [kept.replay_from for kept in snapshots.usable(0, 1000)] == [100]
    assert (snapshots.oldest_needed(), snapshots.damaged_count) == (0, 1)
    put(snapshots, directory, 300, 300)
    assert snapshots.oldest_needed() == 100
    assert f"{damaged}.damaged" in directory.names()
    put(snapshots, directory, 400, 400)
    assert positions(directory.names()) == [300, 400]


def test_one_from_before_the_logs_start_is_neither_used_nor_counted() -> None:
    directory = MemoryDisk().root()
    snapshots = Snapshots(directory)
    for replay_from in (100, 200):
        put(snapshots, directory, replay_from, replay_from)
    snapshots = Snapshots(directory)
    assert [kept.replay_from for kept in snapshots.usable(150, 1000)] == [200]
    assert snapshots.oldest_needed() == 0


def test_one_of_a_later_format_is_refused_even_if_an_older_one_could_be_read() -> None:
    directory = MemoryDisk().root()
    snapshots = Snapshots(directory)
    for replay_from in (100, 200):
        put(snapshots, directory, replay_from, replay_from)
    name = directory.names()[1]
    file = directory.open(name)
    header = bytearray(file.read(0, 46))
    header[9] = 9
    header[-4:] = crc32(header[:-4]).to_bytes(4, "big")
    file.write(0, header)
    with pytest.raises(FormatTooNew, match="format 9"):
        Snapshots(directory).usable(0, 1000)
    assert directory.names()[1] == name
