"""The checker itself: it finds what it looks for, and nothing in a history that is right."""

from __future__ import annotations

import pytest
from tests.jepsen.checker import check
from tests.jepsen.history import History, Outcome, Poll, Read, Send, Transaction


def committed(
    worker: int, *sends: tuple[int, int, int], polls: list[Poll] | None = None, ending: float = 1.0
) -> Transaction:
    return Transaction(
        worker=worker,
        session=0,
        polls=polls or [],
        sends=[Send(*each) for each in sends],
        ending=ending,
        outcome=Outcome.OK,
    )


def reads(*triples: tuple[int, int, int], ended: float = 2.0) -> Poll:
    return Poll([Read(*each) for each in triples], ended)


def right() -> History:
    return History(
        [
            committed(0, (0, 10, 0), (1, 11, 0)),
            committed(1, (0, 20, 2), polls=[reads((0, 0, 10), (1, 0, 11))], ending=3.0),
            Transaction(0, 0, sends=[Send(0, 30, 4)], ending=4.0, outcome=Outcome.FAIL),
            Transaction(1, 0, sends=[Send(1, 40, 2)], ending=5.0, outcome=Outcome.INFO),
        ],
        [Read(0, 0, 10), Read(0, 2, 20), Read(1, 0, 11), Read(1, 2, 40)],
    )


def test_a_history_that_is_right_has_no_violation() -> None:
    assert check(right()) == []


def spoil_aborted(history: History) -> None:
    history.final.append(Read(0, 4, 30))


def spoil_unsent(history: History) -> None:
    history.final.append(Read(0, 9, 99))


def spoil_early(history: History) -> None:
    history.transactions[0].ending = 2.5


def spoil_offset(history: History) -> None:
    history.transactions[0].sends[0].offset = 2


def spoil_twice(history: History) -> None:
    history.final.append(Read(1, 7, 40))


def spoil_lost(history: History) -> None:
    history.final.remove(Read(1, 0, 11))


def spoil_torn(history: History) -> None:
    history.transactions[3].sends.append(Send(0, 41))


def spoil_back(history: History) -> None:
    history.transactions[1].polls.append(reads((0, 0, 10)))


def spoil_skip(history: History) -> None:
    history.transactions[3].polls.append(reads((0, 5, 50), ended=9.0))
    history.transactions.append(committed(0, (0, 50, 5), ending=6.0))
    history.final.append(Read(0, 5, 50))


def spoil_order(history: History) -> None:
    history.transactions[3].sends.insert(0, Send(0, 42, 1))
    history.final.append(Read(0, 1, 42))


def spoil_circle(history: History) -> None:
    history.transactions[0].polls.append(reads((0, 2, 20), ended=4.0))


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (spoil_aborted, "aborted read"),
        (spoil_unsent, "aborted read"),
        (spoil_early, "precommitted read"),
        (spoil_offset, "inconsistent offset"),
        (spoil_twice, "duplicate"),
        (spoil_lost, "lost write"),
        (spoil_torn, "torn transaction"),
        (spoil_back, "nonmonotonic poll"),
        (spoil_skip, "poll skip"),
        (spoil_order, "nonmonotonic send"),
        (spoil_circle, "cycle"),
    ],
)
def test_each_kind_of_violation_is_found(spoil: object, kind: str) -> None:
    history = right()
    spoil(history)  # type: ignore[operator]
    assert kind in {violation.kind for violation in check(history)}
