from __future__ import annotations

from tests.differential.departures import differences
from tests.differential.player import Step


def test_equal_answers_are_no_difference() -> None:
    assert differences([["end", "a1", True]], [["NONE"]], [["NONE"]]) == []


def test_a_difference_is_reported_with_its_step_and_both_answers() -> None:
    found = differences([["x"], ["forget"]], ["A", "NONE"], ["A", "UNKNOWN_SERVER_ERROR"])
    assert found == ["step 1 ['forget']: theirs NONE, ours UNKNOWN_SERVER_ERROR"]


def test_what_departs_on_purpose_is_passed_over() -> None:
    sequence: list[Step] = [["forget"], ["commit", 1]]
    assert differences(sequence, ["NONE", "A"], ["GROUP_ID_NOT_FOUND", "B"]) == [
        "step 1 ['commit', 1]: theirs A, ours B"
    ]


def test_after_a_lasting_departure_nothing_is_compared() -> None:
    sequence: list[Step] = [["produce", "a1", 1, 1], ["read", 1, True]]
    theirs, ours = ["OUT_OF_ORDER_SEQUENCE_NUMBER", []], ["NONE", [1]]
    assert differences(sequence, theirs, ours) == []


def test_after_a_silent_departure_the_first_difference_ends_what_is_compared() -> None:
    sequence: list[Step] = [["init", "a", "a1", True], ["describe", "a"], ["read", 1, True]]
    fenced = ["PRODUCER_FENCED"]
    theirs, ours = [fenced, ["CompleteAbort"], []], [fenced, ["Ongoing"], [1]]
    assert differences(sequence, theirs, ours) == []
    assert len(differences(sequence[1:], theirs[1:], ours[1:])) == 2
    given = ["NONE", "p0", 2]
    assert len(differences(sequence, [given, *theirs[1:]], [given, *ours[1:]])) == 2


def test_another_leader_departs_and_two_leaders_or_none_do_not() -> None:
    def joined(*leading: bool) -> list[list[list[object]]]:
        return [[["xyz"[at], "NONE", 4, is_, 2 * is_] for at, is_ in enumerate(leading)]]

    sequence: list[Step] = [["join", ["x"]]]
    assert differences(sequence, [joined(True, False)], [joined(False, True)]) == []
    for other in (joined(False, False), joined(True, True)):
        assert len(differences(sequence, [joined(True, False)], [other])) == 1
