"""The lag of groups over time, by partition, and how long it will last."""

from __future__ import annotations

from collections import deque

import pytest

from rockgate.console.session.lag_history import (
    GROUPS_MAX,
    PARTITIONS_MAX,
    WATCHED_MS,
    LagHistory,
    LagSample,
    catch_up_ms,
)

START = 1_000_000


def line(*samples: tuple[int, int]) -> deque[LagSample]:
    return deque(LagSample(START + second * 1_000, lag) for second, lag in samples)


@pytest.mark.parametrize(
    ("samples", "left"),
    [
        ([], None),
        ([(0, 5)], None),
        ([(0, 0)], 0),
        ([(0, 100), (10, 50)], 10_000),
        ([(0, 100), (10, 100)], -1),
        ([(0, 100), (10, 150)], -1),
        # Only the last minute counts.
        ([(0, 10_000), (100, 100), (110, 90)], 90_000),
    ],
)
def test_the_time_to_catch_up_is_by_the_pace_of_the_last_minute(
    samples: list[tuple[int, int]], left: int | None
) -> None:
    assert catch_up_ms(line(*samples)) == left


def test_a_group_is_watched_for_an_hour_after_its_page_was_visited() -> None:
    history = LagHistory()
    history.visit("a", START)
    assert history.watched(START + WATCHED_MS) == ["a"]
    assert history.watched(START + WATCHED_MS + 1) == []


def test_the_group_that_was_visited_first_gives_way() -> None:
    history = LagHistory()
    for number in range(GROUPS_MAX + 1):
        history.visit(str(number), START)
    assert "0" not in history.watched(START)
    assert len(history.watched(START)) == GROUPS_MAX


def test_each_partition_has_a_line_of_its_own() -> None:
    history = LagHistory()
    watched = history.visit("a", START)
    history.add("a", {("t", 0): 5, ("t", 1): 7}, START)
    history.add("a", {("t", 0): 4, ("t", 1): 9}, START + 5_000)
    assert [each.lag for each in watched.total] == [12, 13]
    assert [each.lag for each in watched.places["t", 1]] == [7, 9]
    assert history.is_old("a", START + 5_000) and not history.is_old("a", START + 4_999)


def test_of_a_group_with_many_partitions_the_largest_lags_are_remembered() -> None:
    history = LagHistory()
    watched = history.visit("a", START)
    history.add("a", {("t", number): number for number in range(PARTITIONS_MAX + 5)}, START)
    assert len(watched.places) == PARTITIONS_MAX
    assert ("t", 0) not in watched.places


def test_what_nobody_watches_is_not_remembered() -> None:
    history = LagHistory()
    history.add("a", {("t", 0): 5}, START)
    assert history.watched(START) == []
