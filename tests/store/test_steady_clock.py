from __future__ import annotations

import pytest

from rockgate.store.clock import LASTS_MS, STEP_MS, ManualClock, SteadyClock


def test_time_passes_as_on_the_wall() -> None:
    clock = ManualClock(1_000)
    steady = SteadyClock(clock)
    clock.advance(10)
    assert steady.now_ms() == 1_010


def test_a_small_step_is_followed() -> None:
    clock = ManualClock(1_000_000)
    steady = SteadyClock(clock)
    clock.step(STEP_MS - 1)
    assert steady.now_ms() == 1_000_000 + STEP_MS - 1
    clock.step(-STEP_MS + 1)
    assert steady.now_ms() == 1_000_000


@pytest.mark.parametrize("step", [STEP_MS, -STEP_MS, 86_400_000, -86_400_000])
def test_a_large_step_is_believed_when_it_has_lasted(step: int) -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    start = steady.now_ms()
    clock.step(step)
    assert steady.now_ms() == start
    clock.advance(LASTS_MS - 1)
    assert steady.now_ms() == start + LASTS_MS - 1
    clock.advance(1)
    assert steady.now_ms() == start + LASTS_MS + step


def test_a_step_that_is_taken_back_leaves_nothing() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    start = steady.now_ms()
    clock.step(86_400_000)
    steady.now_ms()
    clock.advance(LASTS_MS // 2)
    clock.step(-86_400_000)
    steady.now_ms()
    clock.step(86_400_000)
    clock.advance(LASTS_MS // 2)
    assert steady.now_ms() == start + LASTS_MS


def test_a_time_of_day_is_never_ahead_of_the_wall() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    start = steady.now_ms()
    clock.step(-86_400_000)
    assert (steady.now_ms(), steady.day_ms()) == (start, start - 86_400_000)
    clock.step(2 * 86_400_000)
    assert steady.day_ms() == start
    clock.step(-86_400_000)
    assert steady.day_ms() == start


@pytest.mark.parametrize("step", [STEP_MS, -STEP_MS, 86_400_000, -86_400_000])
def test_time_that_passes_knows_no_steps_and_follows_what_is_small(step: int) -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    start = steady.read().passed_ms
    clock.step(step)
    for _ in range(10):
        clock.advance(LASTS_MS)
        assert steady.read().now_ms >= 0
    assert steady.read().passed_ms == start + 10 * LASTS_MS
    clock.step(STEP_MS - 1)
    assert steady.read() == (
        start + step + 10 * LASTS_MS + STEP_MS - 1,
        start + step + 10 * LASTS_MS + STEP_MS - 1,
        start + 10 * LASTS_MS + STEP_MS - 1,
    )
