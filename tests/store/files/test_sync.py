"""A sync that fails:

it is noticed once, whichever file it was, and nothing is written afterwards.
"""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.keeping import HOUR_MS, Keeping
from tests.store.reading import entries

from rockgate.store.errors import DiskFailed, StoreError
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.files.sync import SyncedDirectory, Syncs
from rockgate.store.log.commitlog import Draft
from rockgate.store.progress.progress import Commit
from rockgate.store.testing.memory_files import MemoryDisk, Operation
from rockgate.store.write.append import Intake

SYNCS = ("sync", "sync names")


def failing(number: int = 1) -> Callable[[Operation], OSError | None]:
    """Fail the n-th sync, and no other: the disk seems to be well again after it."""
    left = number

    def plan(operation: Operation) -> OSError | None:
        nonlocal left
        left -= operation.kind in SYNCS
        if left or operation.kind not in SYNCS:
            return None
        left -= 1
        return OSError(errno.EIO, "injected")

    return plan


def sync_count(disk: MemoryDisk) -> int:
    return sum(operation.kind in SYNCS for operation in disk.operations)


def guarded(disk: MemoryDisk) -> tuple[SyncedDirectory, Syncs]:
    syncs = Syncs()
    return SyncedDirectory(disk.root(), syncs), syncs


# One place


def test_after_a_failed_sync_none_is_tried_whichever_file_it_is_of() -> None:
    disk = MemoryDisk()
    directory, syncs = guarded(disk)
    file, mapping = directory.create("file"), directory.allocate("mapped", 4096)
    below = directory.child("below")
    disk.plan = failing()
    with pytest.raises(DiskFailed, match=r"Failed to fsync //file: injected"):
        file.sync()
    count = disk.operation_count
    for sync in (file.sync, mapping.sync, directory.sync, below.sync, below.create("x").sync):
        with pytest.raises(DiskFailed, match="injected"):
            sync()
    assert disk.operation_count == count + 1, "only the file was made"
    assert syncs.failure is not None


@pytest.mark.parametrize("what", ["file", "mapping", "range", "directory", "opened", "mapped"])
def test_every_kind_of_sync_is_watched(what: str) -> None:
    disk = MemoryDisk()
    directory, syncs = guarded(disk)
    file, mapping = directory.create("file"), directory.allocate("mapped", 4096)
    sync = {
        "file": file.sync,
        "mapping": mapping.sync,
        "range": lambda: mapping.sync(0, 10),
        "directory": directory.sync,
        "opened": directory.open("file").sync,
        "mapped": directory.map("mapped", writable=True).sync,
    }[what]
    sync()
    assert syncs.failure is None
    disk.plan = failing()
    with pytest.raises(DiskFailed):
        sync()
    assert syncs.failure is not None


def test_a_sync_that_was_under_way_when_another_failed_is_not_trusted() -> None:
    syncs = Syncs()

    def fail() -> None:
        raise OSError(errno.EIO, "injected")

    def slow() -> None:
        with pytest.raises(DiskFailed):
            syncs.run("other", fail)

    with pytest.raises(DiskFailed, match="Failed to fsync other: injected"):
        syncs.run("slow", slow)


def test_a_failure_is_reported_once_and_loudly(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    told: list[DiskFailed] = []
    syncs = Syncs(told.append)
    directory = SyncedDirectory(disk.root(), syncs)
    disk.plan = lambda operation: OSError(errno.EIO, "injected")
    for _ in range(3):
        with pytest.raises(DiskFailed):
            directory.sync()
    assert told == [syncs.failure]
    [line] = caplog.records
    assert line.levelno == logging.ERROR
    assert "Failed to fsync /: injected. The server is read-only until" in line.message
    assert line.message.endswith("check the disk first.")


def test_a_file_that_cannot_be_made_is_no_failed_disk() -> None:
    disk = MemoryDisk()
    directory, syncs = guarded(disk)
    disk.plan = lambda operation: OSError(errno.EIO, "injected")
    with pytest.raises(OSError, match="injected"):
        directory.create("file")
    disk.plan = None
    directory.sync()
    assert syncs.failure is None


def test_a_directory_that_cannot_be_opened_to_be_synced_is_no_failed_disk(tmp_path: Path) -> None:
    syncs = Syncs()
    directory = SyncedDirectory(DiskDirectory(tmp_path / "data"), syncs)
    shutil.rmtree(tmp_path / "data")
    with pytest.raises(StoreError, match="Cannot open"):
        directory.sync()
    assert syncs.failure is None


def test_an_error_that_is_raised_again_and_again_does_not_grow() -> None:
    syncs = Syncs()
    with pytest.raises(DiskFailed):
        syncs.run("file", lambda: (_ for _ in ()).throw(OSError(errno.EIO, "injected")))
    for _ in range(100):
        with pytest.raises(DiskFailed) as raised:
            syncs.check()
    assert len(raised.traceback) < 5


# Every caller


class Scenario:
    """A store that does all it ever does to its disk."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.disk = MemoryDisk()
        self.disk.plan = None if fails_at is None else failing(fails_at)
        self.told: list[Exception | None] = []
        self.keeping = Keeping(
            self.disk,
            flush="sync",
            retention_ms=HOUR_MS,
            key_index=True,
            key_index_slots=10,
            key_index_entries=40,
            snapshot_interval_ms=2_000,
        )

    def work(self) -> None:
        keeping = self.keeping
        keeping.topic("orders")
        keeping.topic("kept", retention_ms="-1")
        for _ in range(6):
            keeping.fill("orders", 10)
            keeping.fill("kept", 1)
            keeping.store.flusher.when_flushed(keeping.store.log.end, self.told.append)
            keeping.pass_time(1_000)
        keeping.pass_time(2 * HOUR_MS)
        keeping.pass_time(5_000)
        keeping.fill("orders", 1)


def test_every_caller_s_failed_sync_ends_all_writing_until_a_restart() -> None:
    whole = Scenario()
    whole.work()
    before = sync_count(whole.disk)
    assert whole.keeping.store.log.start > 0, "retention removed something"
    assert whole.keeping.store.snapshots.newest is not None
    seen = {run_into(number) for number in range(1, before + 1)}
    names = ("commitlog", "queueindex", "snapshots")
    assert {(kind, name) for kind in SYNCS for name in names} <= seen
    assert {("sync", "checkpoint"), ("sync", "index"), ("sync", "start")} <= seen


def run_into(number: int) -> tuple[str, str]:
    """Fail the n-th sync, examine everything, and return whose it was."""
    scenario = None
    try:
        scenario = Scenario(number)
        scenario.work()
    except StoreError as error:
        assert "injected" in str(error)
    except OSError as error:
        assert scenario is None, "a start may be refused by the error itself"
        assert "injected" in str(error)
    if scenario is None:
        return "sync", "start"
    check_refusing(scenario)
    failed = [each for each in scenario.disk.operations if each.kind in SYNCS][number - 1]
    restart(scenario)
    return failed.kind, failed.path.split("/")[1]


def check_refusing(scenario: Scenario) -> None:
    keeping = scenario.keeping
    store, queue = keeping.store, keeping.queue("orders")
    assert store.syncs.failure is not None
    end, flushed = store.log.end, store.flusher.flushed
    count = sync_count(scenario.disk)
    draft = Draft(queue.topic, queue.queue_id, queue.next_offset, b"body")
    state = Intake(None, Draft(b"rmq_sys_rockgate_epoch", 0, -1, b"x"))
    for refused in (
        lambda: store.appender.batch(queue, b"body", count=1, record_ms=0),
        lambda: store.appender.message(queue, draft),
        lambda: store.appender.group([Intake(queue, draft)]),
        lambda: store.appender.group([state], is_upkeep=True),
        lambda: keeping.topic("more"),
        lambda: store.topics.delete([store.topics.get("orders")]),
        lambda: store.progress.commit("group", [Commit(queue.topic_id, 0, 1)]),
        store.flush,
    ):
        with pytest.raises(DiskFailed, match="injected"):
            refused()
    told: list[Exception | None] = []
    store.flusher.when_flushed(end + 1, told.append)
    assert told == [store.syncs.failure]
    for _ in range(5):
        keeping.clock.advance(HOUR_MS)
        store.tick()
    assert (store.log.end, store.flusher.flushed) == (end, flushed)
    assert sync_count(scenario.disk) == count, "no sync is tried any more"
    # Every waiter was notified, and readers see exactly what is on disk.
    assert store.flusher.waiting_count == 0
    shown = store.reader.high_watermark(queue)
    assert shown <= queue.next_offset
    if queue.log_start < shown:
        assert entries(store, queue, queue.log_start, 1 << 20)


def restart(scenario: Scenario) -> None:
    keeping = scenario.keeping
    keeping.store.close()
    assert "abort" in scenario.disk.root().names(), "the next start looks at all of the log"
    flushed = keeping.store.flusher.flushed
    scenario.disk.plan = None
    keeping.kill()
    assert keeping.store.log.end > flushed
    keeping.fill("orders", 1)
    keeping.store.close()


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_an_append_after_a_failure_is_refused_under_either_setting(flush: str) -> None:
    keeping = Keeping(flush=flush)
    keeping.topic("orders")
    keeping.fill("orders", 3)
    keeping.disk.plan = failing()
    with pytest.raises(DiskFailed):
        keeping.store.flush()
    with pytest.raises(DiskFailed):
        keeping.fill("orders", 1)
    shown = 0 if flush == "sync" else keeping.queue("orders").next_offset
    assert keeping.store.reader.high_watermark(keeping.queue("orders")) == shown


def test_a_disk_with_room_again_does_not_lift_the_refusal_of_a_failed_one() -> None:
    keeping = Keeping(disk_used_percent_max=50)
    keeping.topic("orders")
    keeping.topic("gone")
    keeping.disk.capacity = keeping.disk.used + 1
    keeping.pass_time(1_000)
    assert keeping.store.retention.disk.is_over
    keeping.store.topics.delete([keeping.store.topics.get("gone")])
    keeping.disk.plan = failing()
    with pytest.raises(DiskFailed):
        keeping.store.flush()
    keeping.disk.capacity = 1 << 40
    keeping.store.retention.disk.look()
    with pytest.raises(DiskFailed):
        keeping.fill("orders", 1)
