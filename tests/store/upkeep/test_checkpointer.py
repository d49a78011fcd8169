"""Taking checkpoints: the order of steps, one at a time, and what a failure leaves."""

from __future__ import annotations

import gc
import logging
from collections import deque
from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded

from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog, Draft
from rockgate.store.log.flusher import Flusher
from rockgate.store.log.recovery import find_end
from rockgate.store.log.segments import Segments
from rockgate.store.queues.queueindex import parse_name
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.testing.memory_files import MemoryDisk, Operation, PowerCut
from rockgate.store.upkeep.checkpoint import CheckpointFile
from rockgate.store.upkeep.checkpointer import Checkpointer
from rockgate.store.workers import Done, InlineJobs, Jobs, Work

SEGMENT = 64 << 10
TOPIC = b"orders"
ID = b"orders".ljust(16, b"\x01")
CONFIG = StoreConfig(
    segment_bytes=SEGMENT,
    checkpoint_bytes=16 << 10,
    checkpoint_interval_ms=10_000,
    upkeep_gap_ms=1_000,
)


class HandJobs:
    """Jobs that run when a test says so."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Work, Done]] = deque()

    def submit(self, work: Work, done: Done) -> None:
        self.waiting.append((work, done))

    def run_one(self) -> None:
        work, done = self.waiting.popleft()
        failure: Exception | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001  # as a job's thread does
            failure = error
        done(failure)

    def run_all(self, limit: int = 1_000) -> None:
        while self.waiting:
            self.run_one()
            limit -= 1
            assert limit, "the jobs do not come to an end"


class Parts:
    """What a checkpoint is taken of."""

    def __init__(self, disk: MemoryDisk, jobs: Jobs | None = None) -> None:
        jobs = jobs or InlineJobs()
        root = disk.root()
        self.disk = disk
        self.clock = ManualClock()
        self.file = CheckpointFile(root, SEGMENT)
        self.file.make()
        segments = Segments(root.child("commitlog"), SEGMENT, 4_096)
        segments.start_at(0)
        self.log = CommitLog(segments, self.clock)
        self.queues = QueueTable(root.child("queueindex"), SEGMENT)
        [self.queue] = self.queues.create(TOPIC, ID, 1)
        self.flusher = Flusher(
            sync=segments.sync,
            end=lambda: self.log.end,
            clock=self.clock,
            config=CONFIG,
            flushed=0,
            on_flushed=lambda position: self.commit.flushed(position),
        )
        self.commit = Commit(self.flusher)
        self.checkpointer = Checkpointer(
            log=self.log,
            flusher=self.flusher,
            commit=self.commit,
            queues=self.queues,
            keys=None,
            file=self.file,
            jobs=lambda: jobs,
            clock=self.clock,
            config=CONFIG,
        )

    def append(self, size: int = 1_000) -> None:
        written = self.log.append(Draft(TOPIC, 0, self.queue.next_offset, bytes(size)))
        self.queue.add(written.position, written.size, 1, written.store_ms, 0)
        if not self.queue.is_dirty:
            self.queues.note(self.queue)


def test_a_checkpoint_names_what_is_flushed_and_indexed() -> None:
    parts = Parts(MemoryDisk())
    for _ in range(150):
        parts.append()
    parts.checkpointer.take()
    newest = parts.file.newest
    assert newest.flushed == newest.indexed == parts.log.end == parts.queues.indexed
    assert newest.last_store_ms == parts.log.last_store_ms
    assert parts.checkpointer.taken_count == 1
    assert parts.queues.sealed == 2 * SEGMENT


def test_a_checkpoint_leaves_no_cycle_that_would_hold_the_queues_of_deleted_topics() -> None:
    parts = Parts(MemoryDisk())
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            for _ in range(50):
                parts.append()
            parts.checkpointer.take()
        assert parts.checkpointer.taken_count == 3
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_the_log_is_synced_before_its_index_and_that_before_the_checkpoint() -> None:
    disk = MemoryDisk()
    parts = Parts(disk)
    for _ in range(30):
        parts.append()
    before = disk.operation_count
    parts.checkpointer.take()
    done = [
        (operation.kind, operation.path.split("/")[1])
        for operation in disk.operations[before:]
        if operation.kind in ("sync", "sync names")
    ]
    assert done == [
        ("sync", "commitlog"),
        ("sync", "queueindex"),
        ("sync names", "queueindex"),
        ("sync", "checkpoint"),
    ]


def test_nothing_is_due_while_the_log_stands_still() -> None:
    parts = Parts(MemoryDisk())
    parts.clock.advance(1_000_000)
    assert not parts.checkpointer.is_due()


def test_time_or_bytes_make_a_checkpoint_due() -> None:
    parts = Parts(MemoryDisk())
    parts.append()
    assert not parts.checkpointer.is_due()
    parts.clock.advance(10_000)
    assert parts.checkpointer.is_due()
    parts.checkpointer.take()
    assert not parts.checkpointer.is_due()
    while parts.log.end - parts.file.newest.flushed < CONFIG.checkpoint_bytes:
        assert not parts.checkpointer.is_due()
        parts.append()
    parts.clock.advance(1_000)
    assert parts.checkpointer.is_due()


def test_under_load_bytes_make_the_next_one_due_only_after_a_pause() -> None:
    parts = Parts(MemoryDisk())
    for _ in range(3):
        while parts.log.end - parts.file.newest.flushed < 4 * CONFIG.checkpoint_bytes:
            parts.append()
        assert not parts.checkpointer.is_due()
        parts.clock.advance(999)
        assert not parts.checkpointer.is_due()
        parts.clock.advance(1)
        assert parts.checkpointer.is_due()
        parts.checkpointer.take()


def test_only_one_is_taken_at_a_time() -> None:
    jobs = HandJobs()
    parts = Parts(MemoryDisk(), jobs)
    parts.append()
    parts.checkpointer.take()
    parts.checkpointer.take()
    assert len(jobs.waiting) == 1
    parts.clock.advance(1_000_000)
    assert not parts.checkpointer.is_due()
    jobs.run_all()
    assert parts.checkpointer.taken_count == 1
    assert not parts.checkpointer.is_running


def test_who_asks_during_a_checkpoint_waits_for_the_next_one() -> None:
    """What was appended meanwhile is in that one, and need not be in this."""
    jobs = HandJobs()
    parts = Parts(MemoryDisk(), jobs)
    heard: list[int] = []
    parts.append()
    parts.checkpointer.take(lambda: heard.append(parts.file.newest.flushed))
    first = parts.log.end
    jobs.run_one()
    parts.append()
    parts.checkpointer.take(lambda: heard.append(parts.file.newest.flushed))
    jobs.run_all()
    assert heard == [first, parts.log.end]
    assert parts.checkpointer.taken_count == 2


def test_a_checkpoint_ends_however_fast_the_log_is_flushed_meanwhile() -> None:
    jobs = HandJobs()
    parts = Parts(MemoryDisk(), jobs)
    parts.append()
    parts.checkpointer.take()
    steps = 0
    while jobs.waiting:
        jobs.run_one()
        parts.append()
        parts.flusher.step()
        steps += 1
        assert steps < 20, "the checkpoint runs after the end of the log"
    assert parts.checkpointer.taken_count == 1


def test_units_appended_during_a_checkpoint_are_in_the_next_one() -> None:
    jobs = HandJobs()
    disk = MemoryDisk()
    parts = Parts(disk, jobs)
    for _ in range(200):
        parts.append()
        parts.checkpointer.take()
        if jobs.waiting:
            jobs.run_one()
    jobs.run_all()
    parts.checkpointer.take()
    jobs.run_all()
    queues = QueueTable(disk.killed().root().child("queueindex"), SEGMENT)
    [queue] = queues.create(TOPIC, ID, 1)
    assert queues.load(0, parts.file.newest.flushed) == parts.log.end
    assert len(queue.units(0, 1 << 40, 1 << 40)) == 200


# Failures


class Failing:
    """Fails operations of one kind on paths with a word in them."""

    def __init__(self, kind: str, word: str) -> None:
        self.kind, self.word = kind, word

    def __call__(self, operation: Operation) -> OSError | None:
        if operation.kind == self.kind and self.word in operation.path:
            return OSError(28, "injected")
        return None


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("create", "queueindex"),
        ("write", "queueindex"),
        ("sync", "queueindex"),
        ("rename", "queueindex"),
        ("sync names", "queueindex"),
        ("write", "checkpoint"),
        ("sync", "checkpoint"),
    ],
)
def test_a_checkpoint_that_fails_is_logged_and_the_next_one_holds_everything(
    kind: str, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = MemoryDisk()
    parts = Parts(disk)
    for _ in range(100):
        parts.append()
    disk.plan = Failing(kind, word)
    heard: list[str] = []
    with caplog.at_level(logging.ERROR):
        parts.checkpointer.take(lambda: heard.append("done"))
    reason = "[Errno 28] injected" if kind == "sync" else "No space left on device"
    assert f"Checkpoint failed and will be retried: {reason}" in caplog.text
    assert heard == ["done"]
    assert parts.file.newest.flushed == 0
    assert not parts.checkpointer.is_running
    disk.plan = None
    parts.append()
    parts.checkpointer.take()
    assert parts.file.newest.flushed == parts.log.end
    queues = QueueTable(disk.killed().root().child("queueindex"), SEGMENT)
    [queue] = queues.create(TOPIC, ID, 1)
    assert queues.load(0, parts.log.end) == parts.log.end
    assert len(queue.units(0, 1 << 40, 1 << 40)) == 101


def test_after_a_failure_only_time_makes_the_next_one_due() -> None:
    disk = MemoryDisk()
    parts = Parts(disk)
    for _ in range(30):
        parts.append()
    disk.plan = Failing("create", "queueindex")
    parts.clock.advance(1_000)
    assert parts.checkpointer.is_due()
    parts.checkpointer.take()
    parts.clock.advance(9_999)
    assert not parts.checkpointer.is_due()
    parts.clock.advance(1)
    assert parts.checkpointer.is_due()


def test_no_checkpoint_is_taken_of_a_log_that_could_not_be_flushed() -> None:
    disk = MemoryDisk()
    parts = Parts(disk)
    parts.append()
    disk.plan = Failing("sync", "commitlog")
    told: list[Exception | None] = []
    parts.flusher.when_flushed(parts.log.end, told.append)
    parts.checkpointer.take()
    assert parts.file.newest.flushed == 0
    assert told == [parts.flusher.failure]
    disk.plan = None
    parts.checkpointer.take()
    assert parts.file.newest.flushed == 0


# Cuts of power


def test_after_a_power_cut_the_checkpoint_never_names_more_than_is_on_disk() -> None:
    random = seeded()
    crash_at = 1
    finished = False
    while not finished:
        disk = MemoryDisk(crash_at=crash_at)
        try:
            parts = Parts(disk)
            for number in range(90):
                parts.append()
                if number % 12 == 11:
                    parts.checkpointer.take()
            finished = True
        except PowerCut:
            pass
        for _ in range(max(1, budget("power_cuts") // 30)):
            after = disk.power_cut(Random(random.random())).root()
            newest = CheckpointFile(after, SEGMENT).newest
            names = [parse_name(name) for name in after.child("queueindex").names()]
            covered = 0
            for stretch in sorted(filter(None, names)):
                covered = max(covered, stretch[1]) if stretch[0] <= covered else covered
            assert covered >= newest.indexed
            segments = Segments(after.child("commitlog"), SEGMENT, 4_096)
            segments.load()
            if not len(segments):
                segments.start_at(0)
            # Raises StoreCorrupt if anything before the flushed position is damaged.
            assert find_end(segments, 0, newest.flushed).end >= newest.flushed
        crash_at += 7
