"""Runs a workload until its process crashes, and compares the result with the model."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.crash.workload import Model, Workload, open_store, visible, world_of

from rockgate.store.clock import ManualClock
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

Work = Callable[[Workload], None]


def operations(work: Work, seed: int) -> int:
    """Return the number of operations of a seed's work if nothing fails."""
    disk = MemoryDisk()
    clock = ManualClock()
    store = open_store(disk.root(), clock)
    work(Workload(store, Model(), clock, Random(seed)))
    store.close()
    return disk.operation_count


def run_until_cut(
    disk: MemoryDisk, model: Model, clock: ManualClock, random: Random, work: Work
) -> None:
    store: Store | None = None
    try:
        store = open_store(disk.root(), clock)
        model.cut(store, _common_end(store, model))
        model.epochs = {epoch.position for epoch in store.epochs.all}
        work(Workload(store, model, clock, random))
        store.close()
    except PowerCut:
        if store is not None:
            model.flushed = max(model.flushed, store.flusher.flushed)


def _common_end(store: Store, model: Model) -> int:
    """Return the position up to which the log matches the model.

    An unknown epoch entry belongs to a start that crashed: what the model expects there had been
    lost before.
    """
    unseen = [e.position for e in store.epochs.all[:-1] if e.position not in model.epochs]
    return min([store.found.end, *unseen])


def check(store: Store, model: Model) -> None:
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
    """Shorten bodies, which repeat a serial number, to distinguishable prefixes."""
    return [(base, count, body[:6]) for base, count, body in queue]


def dying_disk(random: Random, total: int) -> MemoryDisk:
    return MemoryDisk(crash_at=random.randint(1, total), crash_keeps=random.choice((0, 1, 50, 400)))
