"""The power is cut at every single operation while segments are emptied and removed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.budget import budget
from tests.crash.cutting import check, run_until_cut
from tests.crash.workload import CONFIG, Model, Workload, open_store
from tests.seeds import seeded

from rockgate.store.clock import ManualClock
from rockgate.store.testing.memory_files import MemoryDisk


def work(workload: Workload) -> None:
    """Fill segments with messages that go soon and a few that stay, and let retention work."""
    while len(workload.store.topics) < 3:
        workload.create_topic()
    fill_a_segment(workload)
    for _ in range(2):
        for _ in range(25):
            workload.append_message()
            workload.append_batch()
        workload.flush()
        rest(workload)


def fill_a_segment(workload: Workload) -> None:
    """Fill the first with messages that go, and one that stays: it is moved for every seed."""
    stays, goes = (
        workload.store.queues.of(workload.store.topics.get(name).id)[0]
        for name in ("orders", "payments")
    )
    workload.append_message(stays)
    while workload.store.log.end <= CONFIG.segment_bytes:
        workload.append_message(goes)


def rest(workload: Workload) -> None:
    """Let time pass and the store do all that is due."""
    workload.clock.advance(10_000)
    for _ in range(60):
        workload.store.tick()
        workload.model.flushed = workload.store.flusher.flushed


def stretch(seed: int) -> tuple[int, int]:
    """The operations between the first entry that is moved and the last segment that goes."""
    disk, clock = MemoryDisk(), ManualClock()
    store = open_store(disk.root(), clock)
    moves: list[int] = []
    move = store.retention.mover.move_entry

    def noted(*args: Any) -> None:
        moves.append(disk.operation_count)
        move(*args)

    vars(store.retention.mover)["move_entry"] = noted
    work(Workload(store, Model(), clock, Random(seed)))
    removals = [o.number for o in disk.operations if o.kind == "remove" and "log/" in o.path]
    assert moves and removals, "the work was meant to move entries and remove segments"
    return moves[0], removals[-1] + 10


@pytest.mark.parametrize("death", ["power", "kill"])
def test_no_moment_of_moving_and_removing_loses_or_repeats_anything(death: str) -> None:
    random = seeded()
    seed = random.randrange(1 << 32)
    first, last = stretch(seed)
    every = max(1, (last - first) // budget("retention_cuts"))
    for crash_at in range(first + random.randrange(every), last, every):
        disk = MemoryDisk(crash_at=crash_at, crash_keeps=random.choice((0, 50, 400)))
        clock, model = ManualClock(), Model()
        run_until_cut(disk, model, clock, Random(seed), work)
        if death == "kill":
            model.flushed = model.steps[-1].end
        survivor = disk.power_cut(random) if death == "power" else disk.killed()
        for _ in range(2):
            store = open_store(survivor.root(), clock)
            check(store, model)
            store.close()
            # What was interrupted is finished by the next life, and still nothing is missing.
            survivor = survivor.killed()
            run_until_cut(survivor, model, clock, random, rest)
            survivor = survivor.killed()
