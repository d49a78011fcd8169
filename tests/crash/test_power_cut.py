"""The power is cut, or the process killed, at any write, fsync or rename of a random workload."""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.crash.cutting import check, dying_disk, operations, run_until_cut
from tests.crash.workload import Model, Workload, open_store
from tests.seeds import seeded

from rockgate.store.clock import ManualClock
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

STEPS = 100
WORKLOADS = 3


def work(workload: Workload) -> None:
    workload.run(STEPS)


@pytest.mark.row("S-01")
@pytest.mark.row("S-16")
def test_after_a_power_cut_a_prefix_is_there_and_all_that_was_flushed() -> None:
    random = seeded()
    for _ in range(WORKLOADS):
        seed = random.randrange(1 << 32)
        total = operations(work, seed)
        for _ in range(budget("power_cuts") // WORKLOADS):
            disk, clock, model = dying_disk(random, total), ManualClock(), Model()
            run_until_cut(disk, model, clock, Random(seed), work)
            store = open_store(disk.power_cut(random).root(), clock)
            check(store, model)
            store.close()


@pytest.mark.row("S-03")
def test_after_kill_9_everything_that_was_appended_is_there() -> None:
    random = seeded()
    for _ in range(WORKLOADS):
        seed = random.randrange(1 << 32)
        total = operations(work, seed)
        for _ in range(budget("power_cuts") // WORKLOADS):
            disk, clock, model = dying_disk(random, total), ManualClock(), Model()
            run_until_cut(disk, model, clock, Random(seed), work)
            # Appended means visible to the next process, flushed or not.
            model.flushed = model.steps[-1].end if model.steps else 0
            store = open_store(disk.killed().root(), clock)
            check(store, model)
            store.close()


def test_a_cut_during_recovery_loses_nothing_more() -> None:
    random = seeded()
    for _ in range(budget("power_cuts")):
        seed = random.randrange(1 << 32)
        disk, clock, model = dying_disk(random, 400), ManualClock(), Model()
        run_until_cut(disk, model, clock, Random(seed), work)
        for _ in range(3):
            disk = disk.power_cut(random)
            disk.crash_at = random.randint(1, 40)
            try:
                open_store(disk.root(), clock).close()
            except PowerCut:
                continue
        disk = disk.power_cut(random) if disk.is_dead else disk.killed()
        store = open_store(disk.root(), clock)
        check(store, model)
        store.close()


def test_a_store_that_died_many_times_continues_as_if_it_had_not() -> None:
    random = seeded()
    for _ in range(max(1, budget("power_cuts") // 10)):
        disk, clock, model = MemoryDisk(), ManualClock(), Model()
        for _ in range(6):
            disk.crash_at = disk.operation_count + random.randint(1, 300)
            run_until_cut(disk, model, clock, Random(random.randrange(1 << 32)), work)
            disk = disk.power_cut(random)
        store = open_store(disk.root(), clock)
        check(store, model)
        store.close()
