"""What one group has in flight of one queue."""

from __future__ import annotations

from rockgate.store.inflight.changes import offsets_of, runs_of
from rockgate.store.inflight.window import DELIVERIES_MAX, IN_FLIGHT_MAX, Window

KEY = ("g", bytes(16), 0)


def window(*offsets: int, end: int = 10, deadline: int = 100, is_in_place: bool = False) -> Window:
    made = Window(KEY, 0, 0)
    made.acquire(offsets, end, deadline, is_in_place=is_in_place)
    return made


def test_everything_before_the_first_offset_in_flight_is_finished() -> None:
    w = window(2, 3, 5)
    assert (w.start, w.end) == (2, 10)
    w.finish([2])
    assert w.start == 3
    w.finish([5])
    assert w.start == 3
    w.finish([3])
    assert w.start == 10


def test_an_offset_that_is_finished_twice_changes_nothing() -> None:
    w = window(2, 3)
    w.finish([2, 2, 7])
    w.finish([2])
    assert [each.offset for each in w.all()] == [3]


def test_a_handle_holds_only_with_the_deadline_it_was_given() -> None:
    w = window(2)
    assert w.holds(2, 100)
    assert not w.holds(2, 101)
    assert not w.holds(3, 100)
    w.extend([2], 250)
    assert not w.holds(2, 100)
    assert w.holds(2, 250)


def test_what_is_returned_again_counts_its_deliveries_and_keeps_its_place() -> None:
    w = window(2, 3, is_in_place=True)
    w.acquire([2], 10, 500, is_in_place=True)
    found = w.find(2)
    assert found is not None
    assert (found.deliveries, found.deadline_ms, found.is_in_place) == (2, 500, True)
    assert [each.offset for each in w.all()] == [2, 3]


def test_deliveries_have_a_highest_count() -> None:
    w = window(2, is_in_place=True)
    for _ in range(DELIVERIES_MAX + 5):
        w.acquire([2], 10, 100, is_in_place=True)
    found = w.find(2)
    assert found is not None and found.deliveries == DELIVERIES_MAX
    assert found.deadline_ms == 100 and found.is_in_place


def test_offsets_stay_in_order_when_an_earlier_one_is_acquired_late() -> None:
    w = window(5, 6)
    w.acquire([1, 2], 10, 100, is_in_place=False)
    assert [each.offset for each in w.all()] == [1, 2, 5, 6]
    assert w.start == 1


def test_what_has_expired_is_reported_by_the_clock_alone() -> None:
    w = window(2, deadline=100)
    w.acquire([3], 10, 200, is_in_place=False)
    w.acquire([4], 10, 100, is_in_place=True)
    assert [each.offset for each in w.expired(99, is_in_place=False)] == []
    assert [each.offset for each in w.expired(100, is_in_place=False)] == [2]
    assert [each.offset for each in w.expired(100, is_in_place=True)] == [4]
    assert [each.offset for each in w.expired(200, is_in_place=False)] == [2, 3]


def test_the_next_deadline_is_the_earliest() -> None:
    w = window(2, deadline=100)
    w.acquire([3], 10, 50, is_in_place=True)
    assert w.next_deadline() == 50
    w.finish([2, 3])
    assert w.next_deadline() is None


def test_the_end_moves_ahead_and_never_back() -> None:
    w = window(2, end=10)
    w.acquire([], 8, 0, is_in_place=False)
    assert w.end == 10
    w.acquire([], 15, 0, is_in_place=False)
    assert (w.end, w.scanned) == (15, 15)


def test_a_reset_leaves_nothing_in_flight() -> None:
    w = window(2, 3)
    w.reset(1)
    assert (len(w), w.start, w.end, w.scanned) == (0, 1, 1, 1)


def test_the_room_is_what_is_left_of_the_limit() -> None:
    assert window(1, 2).room == IN_FLIGHT_MAX - 2


def test_runs_are_read_as_they_were_written() -> None:
    assert runs_of([]) == []
    assert runs_of([3, 4, 5, 9]) == [3, 3, 9, 1]
    assert list(offsets_of([3, 3, 9, 1])) == [3, 4, 5, 9]
