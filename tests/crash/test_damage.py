"""One bit flips in a file of a store that is not running: it is mended, refused, or never read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from tests.budget import budget
from tests.crash.workload import CONFIG, Holdings, Model, Workload, open_store, visible, world_of
from tests.seeds import seeded
from tests.world import World

from rockgate.protocol.entry import EntryError
from rockgate.store.clock import ManualClock
from rockgate.store.errors import FormatTooNew, SettingChanged, StoreCorrupt
from rockgate.store.files.interface import Directory
from rockgate.store.testing.memory_files import MemoryDisk

STEPS = 120
FOLDERS = ("", "commitlog", "queueindex", "snapshots")
Refused = (StoreCorrupt, FormatTooNew)


def stopped(random: Random) -> tuple[MemoryDisk, Holdings]:
    """A store that did some work and stopped cleanly, and what it held."""
    disk, clock, model = MemoryDisk(), ManualClock(), Model()
    store = open_store(disk.root(), clock)
    Workload(store, model, clock, random).run(STEPS)
    store.close()
    return disk, visible(model.world_at(store.log.end))


def files(disk: MemoryDisk) -> Iterator[tuple[str, Directory, str, int]]:
    """Every file that has bytes: its folder's name, its folder, its name and its size."""
    for folder in FOLDERS:
        directory = disk.root().child(folder) if folder else disk.root()
        for name in directory.names():
            size = directory.open(name).size()
            if size:
                yield folder, directory, name, size


def flip(directory: Directory, name: str, at: int, bit: int) -> None:
    file = directory.open(name)
    file.write(at, bytes([file.read(at, 1)[0] ^ 1 << bit]))
    file.close()


def brief(world: Holdings) -> object:
    """A world in a form that shows differences; bodies repeat a serial number."""
    return (
        {
            name: [[(base, count, body[:6]) for base, count, body in q] for q in topic.queues]
            for name, topic in world.topics.items()
        },
        world.progress,
    )


def outcome(disk: MemoryDisk, *, is_log: bool) -> object:
    """The contents of an opened store; None if damage was reported."""
    try:
        store = open_store(disk.root(), ManualClock())
    except Refused:
        return None
    try:
        return brief(world_of(store))
    except Refused:
        return None
    except EntryError:
        # A body is not read again by the store; whoever reads it has its checksums.
        assert is_log
        return None
    finally:
        store.close()


def used(directory: Directory, folder: str, name: str, size: int) -> int:
    """How many bytes of a file matter: a segment's rest, and a checkpoint's, is zeros."""
    content = directory.open(name).read(0, size)
    return len(content.rstrip(b"\0")) or 1 if folder in ("", "commitlog") else size


def test_a_flipped_bit_in_any_file_is_mended_or_refused_and_never_believed() -> None:
    random = seeded()
    outcomes: dict[tuple[str, bool], int] = {}
    before, expected = stopped(random)
    for round_number in range(budget("damage_rounds")):
        if round_number % 40 == 39:
            before, expected = stopped(random)
        disk = before.killed()
        choices = list(files(disk))
        if round_number == 0:
            # The newest index is read whole by a start, which then scans the log instead of it.
            choices = [found for found in choices if found[0] == "queueindex"][-1:]
        folder, directory, name, size = random.choice(choices)
        at = random.randrange(used(directory, folder, name, size))
        flip(directory, name, at, random.randrange(8))
        found = outcome(disk, is_log=folder == "commitlog")
        assert found in (None, brief(expected)), f"byte {at} of {folder}/{name}"
        outcomes[folder, found is None] = outcomes.get((folder, found is None), 0) + 1
    assert outcomes.get(("queueindex", False)), "no damaged index was mended"


def test_a_damaged_index_is_whole_again_after_one_more_start() -> None:
    random = seeded()
    before, expected = stopped(random)
    for _ in range(budget("damage_rounds") // 4):
        disk = before.killed()
        indexes = [found for found in files(disk) if found[0] == "queueindex"]
        _, directory, name, size = random.choice(indexes)
        flip(directory, name, random.randrange(size), random.randrange(8))
        outcome(disk, is_log=False)
        assert outcome(disk.killed(), is_log=False) == brief(expected)


def test_a_store_without_its_queue_indexes_makes_them_again() -> None:
    before, expected = stopped(seeded())
    disk = before.killed()
    directory = disk.root().child("queueindex")
    for name in directory.names():
        directory.remove(name)
    assert outcome(disk, is_log=False) == brief(expected)
    assert outcome(disk.killed(), is_log=False) == brief(expected)
    assert directory.names()


@pytest.mark.row("S-06")
def test_a_segment_size_that_changed_is_refused_by_name() -> None:
    disk, _ = stopped(seeded())
    config = replace(CONFIG, segment_bytes=2 * CONFIG.segment_bytes)
    with pytest.raises(SettingChanged, match="segment_bytes=8192, but the setting is 16384") as no:
        World(config, disk.killed())
    assert "damaged" not in str(no.value)
    assert "set store.segment_bytes to 8192" in str(no.value)
