"""The power is cut, or the process killed, at any write, fsync or rename of a random workload."""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.crash.workload import Model, Workload, open_store, visible, world_of
from tests.seeds import seeded

from rockgate.store.clock import ManualClock
from rockgate.store.memoryfiles import MemoryDisk, PowerCut
from rockgate.store.store import Store

STEPS = 100
WORKLOADS = 3


def _operations(seed: int) -> int:
    """How many operations the workload of a seed takes when nothing happens to it."""
    disk = MemoryDisk()
    clock = ManualClock()
    store = open_store(disk.root(), clock)
    Workload(store, Model(), clock, Random(seed)).run(STEPS)
    store.close()
    return disk.operation_count


def _run_until_cut(disk: MemoryDisk, model: Model, clock: ManualClock, random: Random) -> None:
    store: Store | None = None
    try:
        store = open_store(disk.root(), clock)
        model.cut(store, _common_end(store, model))
        model.epochs = {epoch.position for epoch in store.epochs.all}
        Workload(store, model, clock, random).run(STEPS)
        store.close()
    except PowerCut:
        if store is not None:
            model.flushed = max(model.flushed, store.flusher.flushed)


def _common_end(store: Store, model: Model) -> int:
    """Where the log stops being the one that the model knows.

    An epoch entry that it has not seen is of a start that died: what the model thinks lies there
    had been lost before.
    """
    unseen = [e.position for e in store.epochs.all[:-1] if e.position not in model.epochs]
    return min([store.found.end, *unseen])


def _check(store: Store, model: Model) -> None:
    end = _common_end(store, model)
    assert end >= model.flushed, "something that was flushed is gone"
    model.cut(store, end)
    found, expected = world_of(store), visible(model.world_at(end))
    assert found.topics.keys() == expected.topics.keys()
    assert found.progress == expected.progress
    for name, topic in expected.topics.items():
        assert found.topics[name].log_starts == topic.log_starts
        assert len(found.topics[name].queues) == len(topic.queues)
        for queue_id, queue in enumerate(topic.queues):
            assert _brief(found.topics[name].queues[queue_id]) == _brief(queue), (name, queue_id)


def _brief(queue: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Bodies repeat a serial number, so that their beginnings tell them apart."""
    return [(base, count, body[:6]) for base, count, body in queue]


def _disk(random: Random, total: int) -> MemoryDisk:
    return MemoryDisk(crash_at=random.randint(1, total), crash_keeps=random.choice((0, 1, 50, 400)))


@pytest.mark.row("S-01")
@pytest.mark.row("S-16")
def test_after_a_power_cut_a_prefix_is_there_and_all_that_was_flushed() -> None:
    random = seeded()
    for _ in range(WORKLOADS):
        seed = random.randrange(1 << 32)
        total = _operations(seed)
        for _ in range(budget("power_cuts") // WORKLOADS):
            disk, clock, model = _disk(random, total), ManualClock(), Model()
            _run_until_cut(disk, model, clock, Random(seed))
            store = open_store(disk.power_cut(random).root(), clock)
            _check(store, model)
            store.close()


@pytest.mark.row("S-03")
def test_after_kill_9_everything_that_was_appended_is_there() -> None:
    random = seeded()
    for _ in range(WORKLOADS):
        seed = random.randrange(1 << 32)
        total = _operations(seed)
        for _ in range(budget("power_cuts") // WORKLOADS):
            disk, clock, model = _disk(random, total), ManualClock(), Model()
            _run_until_cut(disk, model, clock, Random(seed))
            # Appended means visible to the next process, flushed or not.
            model.flushed = model.steps[-1].end if model.steps else 0
            store = open_store(disk.killed().root(), clock)
            _check(store, model)
            store.close()


def test_a_cut_during_recovery_loses_nothing_more() -> None:
    random = seeded()
    for _ in range(budget("power_cuts")):
        seed = random.randrange(1 << 32)
        disk, clock, model = _disk(random, 400), ManualClock(), Model()
        _run_until_cut(disk, model, clock, Random(seed))
        for _ in range(3):
            disk = disk.power_cut(random)
            disk.crash_at = random.randint(1, 40)
            try:
                open_store(disk.root(), clock).close()
            except PowerCut:
                continue
        disk = disk.power_cut(random) if disk.is_dead else disk.killed()
        store = open_store(disk.root(), clock)
        _check(store, model)
        store.close()


def test_a_store_that_died_many_times_goes_on_as_if_it_had_not() -> None:
    random = seeded()
    for _ in range(max(1, budget("power_cuts") // 10)):
        disk, clock, model = MemoryDisk(), ManualClock(), Model()
        for _ in range(6):
            disk.crash_at = disk.operation_count + random.randint(1, 300)
            _run_until_cut(disk, model, clock, Random(random.randrange(1 << 32)))
            disk = disk.power_cut(random)
        store = open_store(disk.root(), clock)
        _check(store, model)
        store.close()
