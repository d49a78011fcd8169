"""Durability: one fsync for many who wait, and none to trust after one has failed."""

from __future__ import annotations

import errno
import threading
from dataclasses import replace

import pytest
from tests.waiting import wait_until

from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import PAGE_SIZE
from rockgate.store.log.flusher import Flusher

CONFIG = StoreConfig(flush_pages_min=4, flush_thorough_ms=10_000)


class Log:
    """A log that is only an end, and the fsyncs that were asked of it."""

    def __init__(self, config: StoreConfig = CONFIG) -> None:
        self.end = 0
        self.clock = ManualClock()
        self.synced: list[tuple[int, int]] = []
        self.failure: OSError | None = None
        self.flusher = Flusher(
            sync=self.sync,
            end=lambda: self.end,
            clock=self.clock,
            config=config,
            flushed=0,
        )

    def sync(self, start: int, end: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.synced.append((start, end))


class Told:
    """Records the results of the callbacks."""

    def __init__(self, log: Log, *positions: int) -> None:
        self.answers: dict[int, Exception | None] = {}
        for position in positions:
            log.flusher.when_flushed(position, lambda error, at=position: self.tell(at, error))  # type: ignore[misc]

    def tell(self, position: int, error: Exception | None) -> None:
        assert position not in self.answers, "nobody is told twice"
        self.answers[position] = error


def test_whoever_waits_wakes_the_thread_that_flushes() -> None:
    log, flushed = Log(replace(CONFIG, flush_interval_ms=3_600_000)), threading.Event()
    thread = log.flusher.start(flushed.set)
    thread.start()
    log.end = 1_000
    Told(log, 1_000)
    assert flushed.wait(60)
    thread.stop()
    assert log.synced == [(0, 1_000)]


@pytest.mark.row("S-17")
def test_many_who_wait_share_one_fsync() -> None:
    log = Log()
    log.end = 1_000
    told = Told(log, *range(1, 1_001))
    assert log.flusher.waiting_count == 1_000
    assert log.flusher.step()
    assert told.answers == {}
    log.flusher.settle()
    assert told.answers == dict.fromkeys(range(1, 1_001))
    assert log.flusher.waiting_count == 0
    assert log.flusher.fsync_count == 1
    assert log.synced == [(0, 1_000)]


@pytest.mark.row("S-17")
def test_what_is_appended_during_an_fsync_waits_for_the_next() -> None:
    log = Log()
    log.end = 100
    told = Told(log, 100)
    late = Told(log)

    def sync(start: int, end: int) -> None:
        log.synced.append((start, end))
        if end == 100:
            log.end = 300
            log.flusher.when_flushed(300, lambda error: late.tell(300, error))

    log.flusher._sync = sync
    log.flusher.step()
    log.flusher.settle()
    assert (told.answers, late.answers) == ({100: None}, {})
    assert log.flusher.flushed == 100
    log.flusher.step()
    log.flusher.settle()
    assert late.answers == {300: None}
    assert log.synced == [(0, 100), (100, 300)]


@pytest.mark.row("S-16")
def test_no_one_is_notified_before_its_position_is_on_disk() -> None:
    log = Log()
    log.end = 500
    log.flusher.step()
    log.end = 800
    told = Told(log, 500, 501, 800)
    assert told.answers == {500: None}
    log.flusher.settle()
    assert told.answers == {500: None}
    log.flusher.step()
    log.flusher.settle()
    assert told.answers == {500: None, 501: None, 800: None}


def test_a_step_without_anything_new_touches_no_disk() -> None:
    log = Log()
    assert not log.flusher.step()
    log.end = 10
    assert log.flusher.step()
    assert not log.flusher.step()
    assert log.flusher.fsync_count == 1


# An fsync that fails


def test_an_fsync_that_fails_is_final() -> None:
    log = Log()
    log.end = 100
    told = Told(log, 100)
    log.failure = OSError(errno.EIO, "injected")
    assert log.flusher.step()
    log.flusher.settle()
    assert told.answers == {100: log.failure}
    assert log.flusher.flushed == 0
    # The disk seems to be well again: that proves nothing.
    failure, log.failure = log.failure, None
    log.end = 200
    later = Told(log, 200)
    assert later.answers == {200: failure}
    assert not log.flusher.step()
    assert log.flusher.flushed == 0
    assert log.synced == []


def test_what_was_on_disk_before_a_failure_is_still_confirmed() -> None:
    log = Log()
    log.end = 100
    waiting = Told(log, 50, 100)
    log.flusher.step()
    log.end = 200
    lost = Told(log, 200)
    log.failure = OSError(errno.EIO, "injected")
    log.flusher.step()
    log.flusher.settle()
    assert waiting.answers == {50: None, 100: None}
    assert lost.answers == {200: log.failure}
    assert Told(log, 100).answers == {100: None}


# When a flush is due


@pytest.mark.row("S-18")
def test_under_async_a_flush_is_due_at_four_dirty_pages() -> None:
    log = Log()
    assert not log.flusher.is_due()
    log.end = 4 * PAGE_SIZE - 1
    assert not log.flusher.is_due()
    log.end = 4 * PAGE_SIZE
    assert log.flusher.is_due()


@pytest.mark.row("S-18")
def test_under_async_everything_is_flushed_every_ten_seconds() -> None:
    log = Log()
    log.end = 1
    log.clock.advance(9_999)
    assert not log.flusher.is_due()
    log.clock.advance(1)
    assert log.flusher.is_due()
    log.flusher.step()
    assert not log.flusher.is_due()
    log.end = 2
    log.clock.advance(9_999)
    assert not log.flusher.is_due()
    log.clock.advance(1)
    assert log.flusher.is_due()


def test_an_idle_log_is_never_due() -> None:
    log = Log()
    log.clock.advance(1_000_000)
    assert not log.flusher.is_due()


# Threads


def test_two_threads_that_step_never_sync_at_the_same_time() -> None:
    """A checkpoint flushes too, from a thread of its own."""
    log = Log()
    inside = threading.Semaphore(1)
    collisions = []

    def sync(start: int, end: int) -> None:
        if not inside.acquire(blocking=False):
            collisions.append((start, end))
            return
        log.synced.append((start, end))
        inside.release()

    log.flusher._sync = sync
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            log.flusher.step()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for end in range(1, 2_000):
        log.end = end
    wait_until(lambda: log.flusher.flushed == 1_999, "everything is flushed")
    stop.set()
    for thread in threads:
        thread.join()
    assert collisions == []
    starts = [start for start, _ in log.synced]
    assert starts == [0] + [end for _, end in log.synced[:-1]]
