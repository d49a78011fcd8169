"""How long a message that failed waits: a level of the broker's, rounded up."""

from datetime import timedelta

import pytest

from rockgate.sdk.consumer.delivery.redelivery import (
    LEVELS_S,
    is_last_try,
    level_after,
    level_of_try,
)
from rockgate.sdk.consumer.settings import RETRY_COUNT_MAX


@pytest.mark.parametrize(
    ("after_s", "level"),
    [(0, 1), (0.1, 1), (1, 1), (1.001, 2), (5, 2), (7, 3), (600, 14), (601, 15), (7200, 18)],
)
def test_a_wish_is_rounded_up_to_a_level(after_s: float, level: int) -> None:
    assert level_after(timedelta(seconds=after_s)) == level


def test_beyond_the_last_level_is_the_last_level() -> None:
    assert level_after(timedelta(days=1)) == len(LEVELS_S) == 18


def test_a_brokers_own_levels_are_used_where_they_are_known() -> None:
    assert level_after(timedelta(seconds=3), (1.0, 2.0, 4.0)) == 3


def test_the_past_is_refused() -> None:
    with pytest.raises(ValueError, match="ago"):
        level_after(timedelta(seconds=-1))


def test_waits_grow_from_ten_seconds_to_two_hours() -> None:
    waits = [LEVELS_S[level_of_try(times) - 1] for times in range(RETRY_COUNT_MAX)]
    assert waits[:3] == [10, 30, 60]
    assert waits[-1] == 7200
    assert level_of_try(99) == 18


def test_the_last_try_is_followed_by_none() -> None:
    assert not is_last_try(15, RETRY_COUNT_MAX)
    assert is_last_try(16, RETRY_COUNT_MAX)
    assert is_last_try(0, 0)
    assert not is_last_try(10_000, -1)
