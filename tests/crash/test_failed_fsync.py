"""An fsync fails, the process is killed, another starts, and then the power is cut."""

from __future__ import annotations

import errno
from random import Random

import pytest
from tests.budget import budget
from tests.crash.workload import Model, Workload, open_store, visible, world_of
from tests.seeds import seeded
from tests.store.reading import entries

from rockgate.store.clock import ManualClock
from rockgate.store.errors import DiskFailed, StoreError
from rockgate.store.testing.memory_files import MemoryDisk, Operation

STEPS = 70


class FailingOnce:
    """Fails one sync of the log, and counts them."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.has_failed = False

    def __call__(self, operation: Operation) -> OSError | None:
        if operation.kind != "sync" or "/commitlog/" not in operation.path:
            return None
        self._left -= 1
        if self._left:
            return None
        self.has_failed = True
        return OSError(errno.EIO, "injected")


def run(disk: MemoryDisk, model: Model, clock: ManualClock, random: Random) -> bool:
    """Work until a sync of the log fails; say whether one did."""
    store = open_store(disk.root(), clock)
    failing = FailingOnce(random.randint(1, 12))
    disk.plan = failing
    work = Workload(store, model, clock, random)
    try:
        work.run(STEPS)
    except StoreError:
        assert failing.has_failed
    disk.plan = None
    if store.flusher.failure is None:
        return False
    flushed = store.flusher.flushed
    with pytest.raises(DiskFailed, match="injected"):
        store.flush()
    assert store.flusher.flushed == flushed, "a later fsync proves nothing"
    return True


@pytest.mark.row("S-16")
def test_what_a_new_process_calls_flushed_outlives_a_power_cut_after_a_failed_fsync() -> None:
    random = seeded()
    failed = 0
    for _ in range(budget("power_cuts")):
        disk, clock, model = MemoryDisk(), ManualClock(), Model()
        failed += run(disk, model, clock, Random(random.randrange(1 << 32)))
        disk = disk.killed()
        store = open_store(disk.root(), clock)
        # The page cache has it all; the new process must bring it to disk before it says so.
        end = store.found.end
        assert store.flusher.flushed >= end
        expected = world_of(store)
        store = open_store(disk.power_cut(random, keep="none").root(), clock)
        assert store.found.end >= end
        assert world_of(store) == expected
        if model.pending is None:
            assert expected == visible(model.world_at(end))
        store.close()
    assert failed


def test_after_a_failed_fsync_messages_are_refused_and_readers_continue() -> None:
    disk, clock = MemoryDisk(), ManualClock()
    store = open_store(disk.root(), clock)
    model = Model()
    work = Workload(store, model, clock, Random(1))
    work.create_topic()
    [queue, *_] = store.queues
    for _ in range(5):
        store.appender.batch(queue, b"safe", count=1, record_ms=0)
    store.flush()
    disk.plan = FailingOnce(1)
    store.appender.batch(queue, b"lost", count=1, record_ms=0)
    with pytest.raises(DiskFailed, match="injected"):
        store.flush()
    with pytest.raises(DiskFailed, match=r"Failed to fsync"):
        store.appender.batch(queue, b"refused", count=1, record_ms=0)
    assert store.reader.high_watermark(queue) == 5
    assert len(entries(store, queue, 0, 1 << 20)) == 5
