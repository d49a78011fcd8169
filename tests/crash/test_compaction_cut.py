"""The power is cut at every single operation while a queue is compacted and segments are freed."""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.gateway.compaction.compacting import Compacting, check_read
from tests.seeds import seeded

from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

CONFIG = {
    "cleanup_policy": "compact",
    "delete_retention_ms": "3000",
    "min_cleanable_dirty_ratio": "0",
}


def work(world: Compacting, random: Random) -> None:
    """Write what supersedes itself, with records that delete, and let the store clean it up."""
    for _ in range(3):
        for _ in range(25):
            keys = random.sample(range(8), 3)
            if random.random() < 0.3:
                world.send((f"k{keys[0]}", random.choice((None, "x" * 40))))
            else:
                world.produce(*((f"k{key}", random.choice((None, "y" * 90))) for key in keys))
        world.roll()
        world.store.flush()
        world.pass_time(2_000)
        world.pass_time(2_000)


def stretch(seed: int) -> tuple[int, int]:
    """The operations between the first replacement and the end."""
    disk = MemoryDisk()
    world = Compacting(disk)
    world.topic("table", 1, **CONFIG)
    first = disk.operation_count + 1
    work(world, Random(seed))
    assert world.store.cleaner.rewritten_count and world.store.retention.removed_count
    return first, disk.operation_count


@pytest.mark.row("CMP-1")
@pytest.mark.parametrize("death", ["power", "kill"])
def test_no_moment_of_a_cleaning_loses_a_value_or_brings_one_back(death: str) -> None:
    random = seeded()
    seed = random.randrange(1 << 32)
    first, last = stretch(seed)
    every = max(1, (last - first) // budget("compaction_cuts"))
    for crash_at in range(first + random.randrange(every), last, every):
        disk = MemoryDisk(crash_at=crash_at, crash_keeps=random.choice((0, 50, 400)))
        world = Compacting(disk)
        try:
            world.topic("table", 1, **CONFIG)
            work(world, Random(seed))
        except PowerCut:
            pass
        model = world.model.get(("table", 0), [])
        if world.begun and world.begun[0][0] == len(model):
            model = [*model, *world.begun]
        least = len(world.model.get(("table", 0), []))
        if death == "power":
            least = world.queue("table").end_before(world.store.flusher.flushed)
        survivor = disk.power_cut(random) if death == "power" else disk.killed()
        for _ in range(2):
            after = Compacting(survivor)
            _check(after, model, least)
            # What was interrupted is finished by the next life.
            after.pass_time(10_000)
            after.pass_time(10_000)
            _check(after, model, least)
            survivor = after.disk.killed()


def _check(world: Compacting, model: list[tuple[int, str, str | None]], least: int) -> None:
    if world.store.topics.find("table") is None:
        assert least == 0
        return
    end = world.queue("table").next_offset
    assert end >= least
    check_read(world.records(), [seen for seen in model if seen[0] < end])
