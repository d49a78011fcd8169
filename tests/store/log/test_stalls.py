"""A writer that reaches the end of what the allocator has prepared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.store.keeping import Keeping
from tests.waiting import wait_until

from rockgate.store.clock import ManualClock
from rockgate.store.errors import StoreBusy
from rockgate.store.files.interface import Mapping
from rockgate.store.log.commitlog import Draft
from rockgate.store.log.page_allocation import STUCK_MS, Allocator
from rockgate.store.log.segments import Segments
from rockgate.store.testing.memory_files import MemoryDisk

SIZE = 1 << 16
AHEAD = 1 << 13
MAKE_AT = SIZE // 2
ROOM_AT = SIZE - SIZE // 8


class StuckDisk:
    """An allocator on a thread whose disk is stuck for as long as the test says so."""

    def __init__(self) -> None:
        self.end = 0
        self.clock = ManualClock()
        self.posted: list[Callable[[], None]] = []
        self.stalls: list[bool] = []
        self.goes = threading.Event()
        self.goes.set()
        self.is_inside = threading.Event()
        self.segments = Segments(MemoryDisk().root(), SIZE, AHEAD)
        self.segments.start_at(0)
        self.allocator = Allocator(
            self.segments, self.clock, end=lambda: self.end, awaited_count=lambda: 0
        )
        self.allocator.notify(self.stalls.append)
        self.allocator.step()

    def stick(self, owner: object, name: str) -> None:
        """Have a method wait, from now on."""
        real = getattr(owner, name)

        def waiting(*arguments: object, **options: object) -> object:
            self.is_inside.set()
            assert self.goes.wait(60)
            return real(*arguments, **options)

        vars(owner)[name] = waiting
        self.goes.clear()

    @contextmanager
    def running(self) -> Iterator[None]:
        worker = self.allocator.start(self.posted.append)
        worker.start()
        try:
            yield
        finally:
            self.goes.set()
            worker.stop()

    def write_to(self, end: int) -> None:
        """Write up to a position, as the log does."""
        self.end = end
        if end >= self.segments.prepare_at:
            self.allocator.wake()

    def recover(self) -> None:
        self.goes.set()
        wait_until(lambda: self.posted, "the allocator reports its step")
        self.posted.pop()()


@pytest.mark.row("F-03")
def test_a_writer_that_needs_a_file_which_is_being_created_is_stalled_until_it_is_there() -> None:
    disk = StuckDisk()
    disk.stick(disk.segments, "_make")
    with disk.running():
        disk.write_to(MAKE_AT)
        assert disk.is_inside.wait(60)
        disk.write_to(ROOM_AT - 1)
        assert not disk.allocator.is_stalled
        disk.write_to(ROOM_AT)
        assert disk.allocator.is_stalled
        disk.recover()
        assert not disk.allocator.is_stalled
    assert disk.stalls == [True, False]


@pytest.mark.row("F-03")
def test_pages_that_are_missing_stall_the_writer_only_when_they_take_over_a_second() -> None:
    disk = StuckDisk()
    disk.stick(disk.segments, "prepare")
    with disk.running():
        disk.write_to(disk.segments.prepare_at)
        assert disk.is_inside.wait(60)
        disk.clock.advance(STUCK_MS - 1)
        disk.write_to(AHEAD)
        assert not disk.allocator.is_stalled
        disk.clock.advance(1)
        disk.allocator.look()
        assert disk.allocator.is_stalled
        disk.recover()
        assert disk.stalls == [True, False]


def test_pages_that_are_ready_stall_no_one_however_long_the_allocator_takes() -> None:
    disk = StuckDisk()
    disk.stick(disk.segments, "prepare")
    with disk.running():
        disk.write_to(disk.segments.prepare_at)
        assert disk.is_inside.wait(60)
        disk.clock.advance(10 * STUCK_MS)
        disk.allocator.look()
        assert not disk.stalls


def test_a_writer_is_woken_for_the_next_pages_after_it_has_overtaken_the_allocator() -> None:
    disk = StuckDisk()
    disk.stick(disk.segments, "prepare")
    with disk.running():
        disk.write_to(disk.segments.prepare_at)
        assert disk.is_inside.wait(60)
        disk.write_to(AHEAD)
        disk.goes.set()
        wait_until(lambda: disk.segments.active.populated > AHEAD, "the step is done")
        before = disk.segments.active.populated
        disk.write_to(MAKE_AT - 1)
        wait_until(lambda: disk.segments.active.populated > before, "another step")


def test_a_failed_step_is_not_repeated_for_every_append() -> None:
    disk = StuckDisk()
    tries = 0

    def fail(*arguments: object) -> Mapping:
        nonlocal tries
        tries += 1
        raise OSError(5, "Input/output error")

    vars(disk.segments)["_make"] = fail
    with disk.running():
        disk.write_to(MAKE_AT)
        wait_until(lambda: disk.segments.prepare_at > SIZE, "the step has failed")
        for end in range(ROOM_AT, SIZE, 512):
            disk.write_to(end)
    assert tries == 1
    assert not disk.stalls


@pytest.mark.row("PUT-6")
def test_an_append_that_would_wait_for_a_file_is_rejected_as_busy_and_succeeds_later() -> None:
    world = Keeping()
    world.topic("a")
    world.store.attach(on_stalled=lambda is_stalled: None)
    with vars(world.store.segments)["_making"]:
        with pytest.raises(StoreBusy, match="The disk is slow"):
            for _ in range(100):
                world.fill("a", 1)
        end, held = world.store.log.end, world.queue("a").next_offset
        with pytest.raises(StoreBusy):
            world.fill("a", 1)
        assert (world.store.log.end, world.queue("a").next_offset) == (end, held)
        assert world.store.appender.failed_count == 2
    world.fill("a", 1)
    assert world.queue("a").next_offset > held
    world.reopen()
    assert world.read("a")


def test_without_anyone_who_is_notified_an_append_waits_for_the_file() -> None:
    """Tools and benchmarks append from threads of their own, which may wait."""
    world = Keeping()
    world.topic("a")
    making = vars(world.store.segments)["_making"]
    making.acquire()
    release = threading.Timer(0.2, making.release)
    release.start()
    world.fill_segment("a")
    assert not release.is_alive()


@pytest.mark.row("PUT-7")
def test_failed_appends_of_messages_are_counted_whatever_their_form() -> None:
    world = Keeping()
    world.topic("a")
    queue, appender = world.queue("a"), world.store.appender
    too_large = bytes(2 * world.store.config.segment_bytes)
    with pytest.raises(Exception, match="Entry"):
        appender.message(queue, Draft(b"", 0, 0, too_large))
    with pytest.raises(Exception, match="Entry"):
        appender.batch(queue, too_large, count=1, record_ms=0)
    with pytest.raises(Exception, match="Entry"):
        appender.batch(queue, too_large, count=1, record_ms=0, stamp=lambda view, offset: None)
    assert appender.failed_count == 3
    world.fill("a", 1)
    assert appender.failed_count == 3


@pytest.mark.row("D-07")
def test_a_disk_that_only_flushes_slowly_stalls_no_append() -> None:
    """Flushing waits for the same disk, but it is not the append."""
    world = Keeping(flush="sync")
    world.topic("a")
    flushes, goes = threading.Event(), threading.Event()
    mapping = world.store.segments.active.mapping
    real = mapping.sync

    def slow(at: int = 0, size: int | None = None) -> None:
        flushes.set()
        assert goes.wait(60)
        real(at, size)

    vars(mapping)["sync"] = slow
    world.store.start(lambda work: None)
    try:
        world.fill("a", 1)
        world.store.flusher.when_flushed(world.store.log.end, lambda error: None)
        assert flushes.wait(60)
        world.fill("a", 3)
        world.clock.advance(10 * STUCK_MS)
        world.store.allocator.look()
        assert not world.store.allocator.is_stalled
    finally:
        goes.set()
        world.store.close()
