"""A replica that cannot use its log begins with the primary's snapshot."""

from __future__ import annotations

from random import Random

import pytest
from tests.crash.workload import CONFIG
from tests.seeds import seeded
from tests.store.replication.pair import Primary, Replica, assert_same

from rockgate.store.errors import StoreCorrupt
from rockgate.store.replication.copying import Copying, is_unfinished
from rockgate.store.testing.memory_files import MemoryDisk


def aged(random: Random) -> Primary:
    """A primary whose log no longer starts at 0."""
    primary = Primary(random)
    while primary.store.log.start == 0:
        primary.workload.run(20)
        primary.workload.tick()
    return primary


def test_a_new_replica_of_a_log_without_its_beginning_copies_and_follows() -> None:
    random = seeded()
    primary, replica = aged(random), Replica(random)
    replica.connect(primary.store)
    assert replica.copied_count == 1
    replica.connect(primary.store)
    assert replica.copied_count == 1, "one is enough"
    replica.follow(primary.store)
    assert_same(primary.store, replica.store)
    assert replica.store.log.start == primary.store.log.start
    replica.close()
    replica.open()
    assert_same(primary.store, replica.store)


def test_a_replica_that_is_too_far_behind_copies_anew() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    replica.connect(primary.store)
    replica.follow(primary.store)
    while primary.store.log.start <= replica.store.log.end:
        primary.workload.run(20)
        primary.workload.tick()
    directory = replica.following.directory
    replica.connect(primary.store)
    assert replica.copied_count == 1
    replica.follow(primary.store)
    assert_same(primary.store, replica.store)
    assert replica.following.directory != directory, "another directory: nothing of it is left"


def test_an_unfinished_copy_begins_anew() -> None:
    random = seeded()
    primary, disk = aged(random), MemoryDisk()
    copying = Copying(disk.root(), CONFIG.segment_bytes, primary.store.log.start)
    copying.close()
    assert is_unfinished(disk.root())
    replica = Replica(random, disk)
    replica.connect(primary.store)
    assert not is_unfinished(disk.root())
    replica.follow(primary.store)
    assert_same(primary.store, replica.store)


@pytest.mark.parametrize(
    ("name", "size", "place"),
    [("../identity.json", 10, 0), ("00000000000000000000-0000000001", 10, 5), ("", 10, 0)],
)
def test_a_file_that_is_no_snapshot_is_refused(name: str, size: int, place: int) -> None:
    copying = Copying(MemoryDisk().root(), CONFIG.segment_bytes, 0)
    with pytest.raises(StoreCorrupt):
        copying.file(name, size, place, memoryview(b"part"))
    copying.close()


def test_a_damaged_snapshot_is_refused() -> None:
    copying = Copying(MemoryDisk().root(), CONFIG.segment_bytes, 0)
    with pytest.raises(StoreCorrupt):
        copying.file("00000000000000000000-0000000001", 200, 0, memoryview(bytes(200)))
    copying.close()
