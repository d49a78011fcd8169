"""What polls return, in which order, and what may be committed by that."""

from __future__ import annotations

import pytest

from rockgate.sdk import Queue, Received
from rockgate.sdk.consumer.pull.polls import Polls
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue

A, B = Queue("t", "b", 0), Queue("t", "b", 1)


def message(offset: int) -> Received:
    found = Received.of("t", b"x")
    found.offset = offset
    return found


def polls(**cached: range) -> tuple[Polls, dict[str, ProcessQueue[Received]]]:
    found = Polls()
    queues: dict[str, ProcessQueue[Received]] = {}
    for name, offsets in cached.items():
        queues[name] = ProcessQueue(0.0)
        queues[name].put(map(message, offsets))
        found.begin({"a": A, "b": B}[name], queues[name], offsets.start)
    return found, queues


def offsets(messages: list[Received]) -> list[int]:
    return [each.offset for each in messages]


def test_a_queue_is_returned_in_order_and_its_position_follows() -> None:
    found, _ = polls(a=range(5, 9))
    assert found.positions.get(A) == 5
    assert offsets(found.take(3, 1.0)) == [5, 6, 7]
    assert found.positions.get(A) == 8
    assert offsets(found.take(3, 1.0)) == [8]
    assert found.take(3, 1.0) == []
    assert found.positions.get(A) == 9


def test_queues_take_turns() -> None:
    found, _ = polls(a=range(4), b=range(10, 14))
    assert offsets(found.take(2, 1.0)) == [0, 1]
    assert offsets(found.take(2, 1.0)) == [10, 11]
    assert offsets(found.take(8, 1.0)) == [2, 3, 12, 13]


def test_only_what_was_returned_before_the_last_poll_is_settled() -> None:
    found, _ = polls(a=range(6))
    found.settle()
    found.take(2, 1.0)
    assert found.settled.get(A) == 0
    found.settle()
    found.take(2, 1.0)
    assert (found.settled.get(A), found.positions.get(A)) == (2, 4)


def test_a_paused_queue_hands_nothing_out_until_it_is_resumed() -> None:
    found, _ = polls(a=range(2), b=range(10, 12))
    found.pause([A])
    assert offsets(found.take(9, 1.0)) == [10, 11]
    assert (found.positions.get(A), set(found.paused)) == (0, {A})
    found.resume([A])
    assert offsets(found.take(9, 1.0)) == [0, 1]


@pytest.mark.parametrize("way", ["dropped", "ended"])
def test_a_queue_of_someone_else_hands_nothing_out(way: str) -> None:
    found, queues = polls(a=range(2))
    found.pause([A])
    found.resume([A])
    if way == "dropped":
        queues["a"].is_dropped = True
    else:
        found.end(A)
        assert found.positions.get(A) is None
    assert found.take(9, 1.0) == []


def test_a_queue_that_begins_elsewhere_keeps_its_one_turn() -> None:
    found, _ = polls(a=range(2))
    again: ProcessQueue[Received] = ProcessQueue(0.0)
    again.put([message(7)])
    found.begin(A, again, 7)
    assert offsets(found.take(9, 1.0)) == [7]
    assert found.positions.get(A) == 8
