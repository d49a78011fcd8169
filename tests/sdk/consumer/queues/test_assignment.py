"""The queues of one member: dropped before they are released, taken up when they are missing."""

from collections.abc import Callable

import pytest
from tests.sdk.consumer.queues.test_process_queue import Message, messages
from tests.seeds import seeded

from rockgate.sdk.consumer.allocation import Averagely
from rockgate.sdk.consumer.queues.assignment import Assignment
from rockgate.sdk.results import Queue


def queues(count: int, topic: str = "orders") -> list[Queue]:
    return [Queue(topic, "a", number) for number in range(count)]


def assignment_of(*held: Queue) -> Assignment[Message]:
    found: Assignment[Message] = Assignment()
    for queue in held:
        found.acquire(queue, 0.0)
    return found


def test_a_queue_that_is_not_wanted_is_dropped_at_once_and_held_until_it_is_released() -> None:
    first, second = queues(2)
    assignment = assignment_of(first, second)
    lost = assignment.get(first)
    assert lost is not None
    assert assignment.release("orders", [second], 1.0) == [first]
    assert lost.is_dropped
    assert first in assignment
    assignment.released(first)
    assert list(assignment) == [second]


def test_a_queue_whose_release_fails_is_named_again() -> None:
    first, second = queues(2)
    assignment = assignment_of(first, second)
    assert assignment.release("orders", [second], 1.0) == [first]
    assert assignment.release("orders", [second], 2.0) == [first]
    # It is not taken up again while it is still to be released.
    assert assignment.missing([first, second]) == []


def test_a_queue_that_was_dropped_and_is_wanted_again_is_taken_up_anew() -> None:
    first, second = queues(2)
    assignment = assignment_of(first, second)
    assert assignment.release("orders", [second], 1.0) == [first]
    assert assignment.release("orders", [first, second], 2.0) == [first]


def test_other_topics_are_left_alone() -> None:
    assignment = assignment_of(*queues(1), *queues(1, "other"))
    assert assignment.release("orders", [], 1.0) == queues(1)
    assert assignment.truncate(["other"]) == queues(1)


def test_a_topic_that_is_not_subscribed_any_more_is_released() -> None:
    assignment = assignment_of(*queues(2), *queues(1, "other"))
    assert assignment.truncate(["other"]) == queues(2)


def test_a_queue_that_no_one_pulls_is_released_though_it_is_wanted() -> None:
    assignment = assignment_of(*queues(1))
    assert assignment.release("orders", queues(1), 120.0) == []
    assert assignment.release("orders", queues(1), 121.0) == queues(1)


def test_what_is_missing_is_named_until_it_is_acquired() -> None:
    assignment = assignment_of()
    assert assignment.missing(queues(2)[::-1]) == queues(2)
    assignment.acquire(queues(1)[0], 1.0)
    assert assignment.missing(queues(2)) == queues(2)[1:]


def test_a_queue_is_held_once() -> None:
    assignment = assignment_of(*queues(1))
    with pytest.raises(AssertionError):
        assignment.acquire(queues(1)[0], 1.0)


def test_a_queue_can_be_dropped_by_name() -> None:
    assignment = assignment_of(*queues(1))
    assert assignment.drop(queues(1)[0]) == queues(1)
    assert assignment.drop(Queue("orders", "b", 9)) == []


@pytest.mark.row("PQ-15")
def test_a_queue_that_is_taken_up_again_has_nothing_of_before() -> None:
    (queue,) = queues(1)
    assignment = assignment_of(queue)
    before = assignment.get(queue)
    assert before is not None
    before.put(messages(1, 2))
    assignment.drop(queue)
    assignment.released(queue)
    again = assignment.acquire(queue, 1.0)
    assert again.is_empty
    assert (again.count, again.size, again.span) == (0, 0, 0)
    assert again.finish(messages(1), 1.0) is None


@pytest.mark.row("REB-18")
def test_whoever_comes_and_goes_every_queue_ends_with_one_member() -> None:
    random = seeded()
    topic = queues(13)
    assignments: dict[str, Assignment[Message]] = {"m0": assignment_of()}
    for turn in range(200):
        if random.random() < 0.3:
            name = f"m{random.randrange(6)}"
            if name in assignments and len(assignments) > 1:
                del assignments[name]
            else:
                assignments.setdefault(name, assignment_of())
        # Only some hear of it at once, and of these some cannot release or acquire everything.
        for name in random.sample(sorted(assignments), random.randrange(len(assignments) + 1)):
            one_round(assignments, name, topic, turn, lambda: random.random() < 0.8)
    for name in assignments:
        one_round(assignments, name, topic, 200.0, lambda: True)
    for name in assignments:
        one_round(assignments, name, topic, 200.0, lambda: True)
    held = sorted(queue for assignment in assignments.values() for queue in assignment)
    assert held == topic
    assert not any(each.is_dropped for found in assignments.values() for _, each in found.items())


def one_round(
    assignments: dict[str, Assignment[Message]],
    name: str,
    topic: list[Queue],
    now_s: float,
    succeeds: Callable[[], bool],
) -> None:
    wanted = Averagely().allocate("g", name, topic, sorted(assignments))
    assignment = assignments[name]
    for queue in assignment.release("orders", wanted, now_s):
        if succeeds():
            assignment.released(queue)
    for queue in assignment.missing(wanted):
        if succeeds():
            assignment.acquire(queue, now_s)
    for queue in assignment:
        held = assignment.get(queue)
        assert held is not None
        held.pulled_at_s = now_s
