from __future__ import annotations

import pytest

from rockgate.store.delay.changes import (
    DUE_MAX,
    MINUTE_MS,
    MINUTES_MAX,
    bounded,
    due_after,
    due_at,
    due_ms,
    moved,
)

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize("time_ms", [0, 5, NOW_MS, NOW_MS + 366 * DAY_MS])
def test_a_time_of_day_is_its_own_number(time_ms: int) -> None:
    assert due_at(time_ms) == due_ms(time_ms) == time_ms <= DUE_MAX


@pytest.mark.parametrize("delay_ms", [-5, 0, 1, MINUTE_MS, MINUTE_MS + 1, 366 * DAY_MS])
def test_a_delay_is_told_from_a_time_of_day_and_has_its_due_time(delay_ms: int) -> None:
    when = due_after(NOW_MS, delay_ms)
    assert DUE_MAX < when < 1 << 63
    assert due_ms(when) == NOW_MS + delay_ms


def test_no_number_is_too_large_for_a_unit() -> None:
    assert due_at(10**18) == DUE_MAX
    assert DUE_MAX < due_after(NOW_MS, 10**18) < 1 << 63
    assert due_ms(due_at(-1)) == due_ms(due_after(0, -1)) == 0


def test_what_is_moved_keeps_its_length() -> None:
    when = due_after(NOW_MS, 90_000)
    assert moved(moved(when, DAY_MS), -DAY_MS) == when
    assert due_ms(moved(when, -2 * NOW_MS)) == 0
    assert moved(when, 1 << 62) >> 43 == when >> 43 == 2


def test_a_delay_is_bounded_by_its_own_length_in_whole_minutes() -> None:
    when = due_after(NOW_MS, 90_000)
    assert bounded(when, NOW_MS) == when
    assert bounded(when, NOW_MS + DAY_MS) == when
    assert due_ms(bounded(when, NOW_MS - DAY_MS)) == NOW_MS - DAY_MS + 2 * MINUTE_MS
    longest = due_after(NOW_MS, (MINUTES_MAX + 1) * MINUTE_MS)
    assert bounded(longest, NOW_MS - DAY_MS) == longest
