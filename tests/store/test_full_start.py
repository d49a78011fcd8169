"""A start on a disk without room: whatever of it cannot be written, readers are served.

The store that starts was killed with a torn end, and has messages, keys, delayed messages, a
snapshot and indexes, so that its start writes whatever a start may write.
"""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest
from tests.store.waiting_store import CONFIG, WaitingStore

from rockgate.store.clock import ManualClock
from rockgate.store.delay.delivery import RETRY_MS
from rockgate.store.errors import StoreFull
from rockgate.store.log.beginning import ABORT
from rockgate.store.log.commitlog import Draft
from rockgate.store.log.segments import segment_name
from rockgate.store.testing.memory_files import Operation, Plan
from rockgate.store.upkeep.disk import LOOK_MS

FULL = replace(CONFIG, key_index=True, key_index_slots=16, key_index_entries=64, flush="async")
WAITING = 12
NEEDS_ROOM = ("create", "allocate", "mkdir", "rename", "write")
RESERVED = ("/commitlog/", "/index/", "/delay/")
"""Files that have all their blocks from the start: writing to them needs no room."""


def needs_room(operation: Operation) -> bool:
    is_reserved = operation.kind == "write" and operation.path.startswith(RESERVED)
    return operation.kind in NEEDS_ROOM and not is_reserved


class FullStart(WaitingStore):
    """A store as above; `start` starts it on a disk that a plan makes fail, as often as asked."""

    def __init__(self) -> None:
        super().__init__(config=FULL)
        self.put(16)
        for number in range(WAITING):
            self.schedule(b"%d" % number, self.clock.now_ms() + 3_600_000)
        self.store.flush()
        self.store.snapshotter.take_last()
        self.store.checkpointer.take()
        self.put(16)
        self.safe = self.read()
        torn = self.store.log.end
        self.put(20)
        self.disk = self.disk.killed()
        self._tear(torn)
        for name in self.disk.root().child("queueindex").names():
            self.disk.root().child("queueindex").remove(name)
        self.torn = self.disk
        self.torn_ms = self.clock.now_ms()

    def _tear(self, position: int) -> None:
        size = FULL.segment_bytes
        folder = self.disk.root().child("commitlog")
        mapping = folder.map(segment_name(position - position % size), writable=True)
        at = position % size + 20
        mapping.view[at] ^= 0xFF

    def put(self, count: int) -> None:
        for number in range(count):
            self.store.appender.message(
                self.queue("target"), Draft(b"", 0, 0, b"%04d" % number * 60)
            )

    def read(self) -> list[bytes]:
        return self.bodies("target")

    def start(self, plan: Plan | None = None, capacity: int = 1 << 40) -> None:
        self.disk = self.torn.killed()
        self.disk.plan, self.disk.capacity = plan, capacity
        self.clock = ManualClock(self.torn_ms)
        self.open()

    def check_reading(self) -> None:
        assert self.read() == self.safe
        assert self.store.delay.waiting_count == WAITING

    def check_well(self) -> None:
        """With space again everything continues by itself, and nothing was forgotten."""
        self.disk.plan, self.disk.capacity = None, 1 << 40
        for _ in range(3):
            self.pass_time(LOOK_MS)
        assert self.store.epochs.awaited is None
        self.put(20)
        after = self.read()
        assert after[: len(self.safe)] == self.safe and len(after) == len(self.safe) + 20
        self.kill()
        assert self.read() == after
        self.pass_time(3_600_000 + RETRY_MS)
        assert len(self.read()) == len(after) + WAITING
        aside = self.disk.root().child("lost")
        assert len(aside.names()) == 1, "what lay behind the end is kept once"


def full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(scope="module")
def world() -> FullStart:
    return FullStart()


def starting(world: FullStart) -> list[Operation]:
    """Return what a start writes that needs room."""
    world.start()
    assert world.store.found.set_aside_bytes > 0
    return [each for each in world.disk.operations if needs_room(each)]


def test_a_start_writes_of_every_kind_here(world: FullStart) -> None:
    folders = {each.path.split("/")[1] for each in starting(world)}
    assert {"lost", "delay", "queueindex", "checkpoint"} <= folders


def test_any_one_write_of_a_start_may_find_no_room(world: FullStart) -> None:
    for failing in starting(world):

        def plan(operation: Operation, at: int = failing.number) -> OSError | None:
            return full() if operation.number == at else None

        world.start(plan)
        world.check_reading()
        world.check_well()


def test_from_any_write_of_a_start_on_there_may_be_no_room(world: FullStart) -> None:
    for failing in starting(world):

        def plan(operation: Operation, at: int = failing.number) -> OSError | None:
            return full() if operation.number >= at and needs_room(operation) else None

        world.start(plan)
        world.check_reading()
        for _ in range(3):
            world.pass_time(LOOK_MS)
        world.check_reading()
        world.check_well()


def test_on_a_disk_that_is_full_to_the_last_byte_readers_are_served_and_nothing_is_taken(
    world: FullStart,
) -> None:
    world.start(capacity=world.torn.used)
    world.check_reading()
    for _ in range(20):
        world.pass_time(LOOK_MS)
        with pytest.raises(StoreFull):
            world.put(1)
    world.check_reading()
    assert world.disk.root().child("lost").names() == []
    world.check_well()


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_is_left_behind_the_end_is_found_by_the_start_after(
    world: FullStart, is_killed: bool
) -> None:
    world.start(capacity=world.torn.used)
    for _ in range(3):
        if not is_killed:
            world.store.close()
        assert ABORT in world.disk.root().names()
        world.kill()
        world.check_reading()
        assert not world.store.found.was_clean and world.store.found.rest
    world.check_well()


def test_a_clean_stop_without_room_for_the_mark_of_a_run_is_clean_again() -> None:
    world = FullStart()
    world.start()
    world.store.close()
    world.torn = world.disk
    world.start(lambda operation: full() if operation.path == f"/{ABORT}" else None)
    world.check_reading()
    with pytest.raises(StoreFull):
        world.put(1)
    world.store.close()
    assert ABORT not in world.disk.root().names()
    world.kill()
    assert world.store.found.was_clean
    world.check_well()
