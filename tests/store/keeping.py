"""A small store on memory files with a manual clock, for tests of retention."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.world import World

from rockgate.protocol import entry as envelope
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.workers import Done, InlineJobs, Work

SEGMENT = 8192
CONFIG = StoreConfig(
    segment_bytes=SEGMENT,
    populate_ahead_bytes=4096,
    checkpoint_bytes=4096,
    checkpoint_interval_ms=1_000,
    upkeep_gap_ms=0,
    snapshot_bytes=1 << 40,
    snapshot_interval_ms=1 << 40,
    retention_ms=-1,
    retention_interval_ms=1_000,
    key_index=False,
)
HOUR_MS = 3_600_000
ALL = 1 << 40

Held = tuple[int, int, bytes]
"""Base offset, offset count and body of an entry."""


class LateJobs:
    """Jobs that run one at a time, when the test says so: a thread that is always late."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[Work, Done]] = deque()

    def submit(self, work: Work, done: Done) -> None:
        self._jobs.append((work, done))

    def do_one(self) -> None:
        if self._jobs:
            InlineJobs().submit(*self._jobs.popleft())


class Keeping(World):
    """A world of short segments, and what retention tests do with it."""

    def __init__(self, disk: MemoryDisk | None = None, **settings: Any) -> None:
        self.serial = 0
        super().__init__(replace(CONFIG, **settings), disk)

    def reopen(self) -> None:
        self.store.close()
        self.kill()

    def fill(self, name: str, count: int, *, queue_id: int = 0, size: int = 400) -> list[Held]:
        """Append messages and batches in turn; return what a reader must get."""
        queue = self.queue(name, queue_id)
        held = []
        for _ in range(count):
            self.serial += 1
            body = (b"%06d" % self.serial).ljust(size, b".")
            base = queue.next_offset
            if self.serial % 3:
                draft = Draft(b"", 0, 0, body, b"TAGS\x01t\x02", born_ms=self.clock.now_ms())
                self.store.appender.message(queue, draft)
            else:
                self.store.appender.batch(queue, body, count=3, record_ms=self.clock.now_ms())
            held.append((base, queue.next_offset - base, body))
        return held

    def fill_segment(self, *names: str) -> dict[str, list[Held]]:
        """Append to the topics in turn until the log is in its next segment."""
        held: dict[str, list[Held]] = {name: [] for name in names}
        active = self.row()[-1]
        while self.row()[-1] == active:
            for name in names:
                held[name] += self.fill(name, 1)
        return held

    def read(self, name: str, queue_id: int = 0) -> list[Held]:
        """Everything that a reader gets from the log start on."""
        queue, found = self.queue(name, queue_id), []
        for unit, view in self.entries(name, queue_id):
            entry = envelope.read(view)
            envelope.check(view, entry)
            assert (entry.topic, entry.queue_offset) == (queue.topic, unit.base)
            found.append((unit.base, unit.offset_count, bytes(envelope.body_of(view))))
        end = sum(found[-1][:2]) if found else queue.log_start
        assert end == queue.next_offset, f"offset {end} of {queue.next_offset} cannot be read"
        return found

    # Time

    def tick_late(self) -> Iterator[None]:
        """Tick repeatedly with late jobs; the caller runs in between."""
        jobs = self.store.threads.jobs
        if not isinstance(jobs, LateJobs):
            jobs = self.store.threads.jobs = LateJobs()
        for _ in range(1_000):
            self.clock.advance(10)
            self.store.tick()
            yield
            jobs.do_one()
            yield

    def settle(self) -> None:
        """Tick until nothing is in progress."""
        idle = 0
        for _ in range(100_000):
            idle = 0 if self.store.tick() else idle + 1
            if idle == 3:
                return
        raise AssertionError("the store never comes to rest")

    # Segments

    def row(self) -> list[int]:
        """The starts of the log's segments."""
        return [segment.start for segment in self.store.retention.segments]

    def files(self) -> list[int]:
        """The starts of the segments on disk, including a prepared one."""
        names = self.disk.root().child("commitlog").names()
        return [int(name) for name in names if name.isdigit()]

    def indexes(self) -> list[str]:
        return self.disk.root().child("queueindex").names()
