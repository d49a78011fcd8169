"""The memory of how half messages ended: a byte each, for the latest of them."""

from __future__ import annotations

from rockgate.store.half import Outcomes

WINDOW = 8


def make(*ended: int, window: int = WINDOW) -> Outcomes:
    outcomes = Outcomes(window=window)
    for offset in range(max(ended, default=-1) + 1):
        outcomes.begin(offset)
    for offset in ended:
        outcomes.end(offset, 1)
    return outcomes


def test_what_never_was_and_what_is_undecided_has_no_outcome() -> None:
    outcomes = make(3)
    assert [outcomes.find(offset) for offset in (-9, -1, 0, 3, 4, 1 << 62)] == [0, 0, 0, 1, 0, 0]


def test_the_oldest_are_forgotten_as_new_ones_come() -> None:
    outcomes = make(*range(WINDOW))
    outcomes.begin(WINDOW)
    assert [outcomes.find(offset) for offset in range(WINDOW + 1)] == [0, *[1] * 7, 0]


def test_one_that_is_older_than_the_memory_leaves_no_trace_in_a_newer_ones_place() -> None:
    outcomes = make(WINDOW)
    outcomes.end(0, 2)
    assert outcomes.find(0) == 0
    assert outcomes.find(WINDOW) == 1


def test_a_gap_between_offsets_is_undecided() -> None:
    outcomes = make(*range(WINDOW))
    outcomes.begin(WINDOW + 4)
    assert [outcomes.find(offset) for offset in range(WINDOW + 5)] == [*[0] * 5, 1, 1, 1, *[0] * 5]
    outcomes.begin(1 << 40)
    assert not any(outcomes.find((1 << 40) - each) for each in range(WINDOW))


def test_slices_give_the_same_memory_back() -> None:
    for last in (0, 3, WINDOW - 1, WINDOW, 3 * WINDOW + 5):
        outcomes = make(*range(max(0, last - 5), last + 1))
        copied = Outcomes(window=WINDOW)
        for first, part in outcomes.slices(size=3):
            assert len(part) <= 3
            copied.put(first, part)
        seen = range(last + 2)
        assert [copied.find(each) for each in seen] == [outcomes.find(each) for each in seen]
    assert list(Outcomes(window=WINDOW).slices(size=3)) == []


def test_a_slice_of_a_larger_memory_fills_what_there_is() -> None:
    copied = Outcomes(window=WINDOW)
    copied.put(0, bytes([1]) * 20)
    assert [copied.find(each) for each in (0, 11, 12, 19, 20)] == [0, 0, 1, 1, 0]
