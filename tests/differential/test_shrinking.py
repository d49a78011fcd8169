from __future__ import annotations

from tests.differential.shrinking import shrunk


def test_what_does_not_matter_is_left_out() -> None:
    sequence = [["step", number] for number in range(40)]
    found = shrunk(sequence, lambda steps: ["step", 7] in steps and ["step", 31] in steps)
    assert found == [["step", 7], ["step", 31]]


def test_a_single_step_that_matters_is_what_is_left() -> None:
    sequence = [["step", number] for number in range(9)]
    assert shrunk(sequence, lambda steps: ["step", 8] in steps) == [["step", 8]]


def test_a_sequence_of_which_all_matters_stays() -> None:
    sequence = [["step", number] for number in range(5)]
    assert shrunk(sequence, lambda steps: len(steps) == 5) == sequence
