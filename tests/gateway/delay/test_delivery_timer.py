from __future__ import annotations

import pytest
from tests.gateway.fakes import HandClock

from rockgate.gateway.delay.delivery_timer import FAILED_MS, GATHER_MS, WAIT_MS_MAX, Delivering


class Schedule:
    """Deliveries of which a test says when they are due; they take one at a step."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.due_ms: list[int] = []
        self.came_ms: list[int] = []
        self.delivered_count = 0
        self.steps = 0
        self.fails = False
        self.looks_at_ms = 0
        self.delivering = Delivering(self, self, self.clock)
        self.clock.advance(0)

    def add(self, wait_ms: int) -> None:
        due_ms = self.now_ms() + wait_ms
        self.due_ms.append(due_ms)
        if due_ms < self.looks_at_ms:
            self.delivering.sooner()

    def now_ms(self) -> int:
        return round(self.clock.now * 1_000)

    def wait_ms(self) -> int:
        return max(0, min(self.due_ms) - self.now_ms()) if self.due_ms else 1 << 62

    def step(self) -> bool:
        self.steps += 1
        if self.fails:
            raise OSError("no room")
        due = [each for each in self.due_ms if each <= self.now_ms()]
        for each in due[:1]:
            self.due_ms.remove(each)
            self.came_ms.append(self.now_ms() - each)
            self.delivered_count += 1
        return len(due) > 1


def test_what_is_due_is_delivered_at_its_time() -> None:
    schedule = Schedule()
    for wait_ms in (3, 30, 99, 2_500):
        schedule.add(wait_ms)
    schedule.clock.advance(5)
    assert schedule.came_ms == [0, 0, 0, 0]
    assert schedule.steps < 15


def test_what_is_due_right_after_a_delivery_comes_some_milliseconds_later_together() -> None:
    schedule = Schedule()
    for wait_ms in range(10, 110):
        schedule.add(wait_ms)
    before = schedule.steps
    schedule.clock.advance(1)
    assert max(schedule.came_ms) <= GATHER_MS
    assert len(schedule.came_ms) == 100
    woken = schedule.steps - before - len(schedule.came_ms)
    assert woken <= 5, "but for the steps that take one each"


def test_something_sooner_moves_the_next_look() -> None:
    schedule = Schedule()
    schedule.add(900)
    schedule.clock.advance(0.1)
    schedule.add(20)
    schedule.add(10)
    schedule.clock.advance(0.02)
    assert schedule.came_ms == [0, 0]


def test_what_is_past_comes_at_the_next_millisecond() -> None:
    schedule = Schedule()
    schedule.add(-5_000)
    schedule.clock.advance(0.001)
    assert schedule.came_ms == [5_001]


def test_while_much_is_due_steps_follow_at_once() -> None:
    schedule = Schedule()
    schedule.due_ms = [schedule.now_ms() + 50] * 40
    schedule.delivering.sooner()
    schedule.clock.advance(0.051)
    assert len(schedule.came_ms) == 40


def test_someone_looks_now_and_then_though_nothing_is_known_to_be_due() -> None:
    schedule = Schedule()
    before = schedule.steps
    schedule.clock.advance(10 * WAIT_MS_MAX / 1_000)
    assert schedule.steps - before == 10


def test_a_failed_step_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    schedule = Schedule()
    schedule.fails = True
    schedule.add(10)
    schedule.clock.advance(0.5)
    schedule.fails = False
    schedule.clock.advance(FAILED_MS / 1_000)
    assert len(schedule.came_ms) == 1
    assert "delivery of delayed messages failed" in caplog.text
    assert list(schedule.delivering.failures()) == [("deliveries", 1)]


def test_after_a_stop_nothing_is_delivered() -> None:
    schedule = Schedule()
    schedule.add(10)
    schedule.delivering.stop()
    schedule.add(1)
    schedule.clock.advance(60)
    assert (schedule.came_ms, schedule.clock.timers) == ([], [])
