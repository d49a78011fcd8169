"""Deliberate differences: the step, the two responses, and the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.differential.player import Answer, Step


class Departure(NamedTuple):
    """One kind of difference that is not a fault."""

    step: str
    is_meant: Callable[[Step, Answer, Answer], bool]
    """Whether a difference between their response and ours is this one."""
    reason: str
    is_lasting: bool = False
    """Whether the two servers differ from then on, so that the rest cannot be compared."""
    is_silent: bool = False
    """Whether the responses are equal but the effects on the two servers are not: then the
    comparison ends with the next difference."""


DEPARTURES: tuple[Departure, ...] = (
    *(
        Departure(
            step,
            lambda step, theirs, ours: (
                (theirs, ours)
                in (
                    ("NONE", "GROUP_ID_NOT_FOUND"),
                    (["NONE", "Empty", "", 0], ["NONE", "Dead", "", 0]),
                )
            ),
            "a group of which nothing is left is gone here at once, and in Kafka when it is next "
            "looked at, within ten minutes",
        )
        for step in ("forget", "delete", "describe")
    ),
    Departure(
        "join",
        lambda step, theirs, ours: _unled(theirs) == _unled(ours),
        "when the leader has left, the oldest member leads here, and in Kafka the one whose id "
        "comes first in a hash table",
        is_lasting=True,
    ),
    Departure(
        "produce",
        lambda step, theirs, ours: (
            step[3] > 0 and (theirs, ours) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", "NONE")
        ),
        "a partition that a transaction only added gets no marker here, so its producer is not "
        "known there and may begin anywhere; Kafka's marker makes it begin from 0",
        is_lasting=True,
    ),
    Departure(
        "produce",
        lambda step, theirs, ours: (
            step[3] < 0 and (theirs, ours) == ("NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER")
        ),
        "a sequence of a transaction that has ended is no duplicate here: librdkafka can give the "
        "sequence of a message that it dropped to the next, which would be acknowledged and lost",
    ),
    Departure(
        "init",
        lambda step, theirs, ours: step[3] and ours == ["PRODUCER_FENCED"],
        "who asks to go on with an epoch that another has taken over is refused and no more; "
        "Kafka aborts the other's open transaction before it says the same",
        is_silent=True,
    ),
    *(
        Departure(
            step,
            lambda step, theirs, ours: _code(theirs) == 29 and _code(ours) == 1,
            "a queue that a topic does not have is SYSTEM_ERROR here, as in RocketMQ 4.9; 5.5 says "
            "INVALID_PARAMETER, and clients do not tell the two apart",
        )
        for step in ("pull", "send", "half")
    ),
    Departure(
        "pull",
        lambda step, theirs, ours: _code(theirs) == 29 and _code(ours) in (0, 19, 20, 21),
        "a topic that is given fewer queues is written to in those, and what lies in the others "
        "is still read here: a Kafka client has seen them as partitions",
    ),
    *(
        Departure(
            step,
            lambda step, theirs, ours: _code(ours) in (1, 17) and _code(theirs) in (0, 22),
            "of a topic or a queue that is not there nothing is told here, nor kept for it; "
            "RocketMQ answers with offset 0, or that nothing was committed, and keeps what is",
        )
        for step in ("ends", "at", "committed", "commit")
    ),
    Departure(
        "get",
        lambda step, theirs, ours: (
            step[2] == "min.insync.replicas" and theirs[1][0][:2] == ours[1][0][:2]
        ),
        "Kafka keeps this default with the cluster's dynamic configs; ours is a plain default",
    ),
)


def differences(
    sequence: Sequence[Step], theirs: Sequence[Answer], ours: Sequence[Answer]
) -> list[str]:
    """Yield the differences that are not deliberate, a line each."""
    found = []
    is_doubtful = False
    for number, (step, expected, answer) in enumerate(zip(sequence, theirs, ours, strict=True)):
        meant = _meant(step, expected, answer)
        if expected == answer:
            is_doubtful = is_doubtful or (meant is not None and meant.is_silent)
        elif meant is None and is_doubtful:
            break
        elif meant is None:
            found.append(f"step {number} {step}: theirs {expected}, ours {answer}")
        elif meant.is_lasting:
            break
    return found


def _unled(answer: Answer) -> Answer:
    """Who joined what, and that one of them leads, but not which."""
    return [[[row[:3] for row in round_], sorted(row[3:] for row in round_)] for round_ in answer]


def _code(answer: Answer) -> Answer:
    """The code of a RocketMQ response."""
    return answer[0] if isinstance(answer, list) and answer else answer


def _meant(step: Step, theirs: Answer, ours: Answer) -> Departure | None:
    is_same = theirs == ours
    for each in DEPARTURES:
        if (each.step, each.is_silent) == (step[0], is_same) and each.is_meant(step, theirs, ours):
            return each
    return None
