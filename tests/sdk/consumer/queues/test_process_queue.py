"""What is cached of a queue: the offset to commit never passes a message that is not finished."""

from dataclasses import dataclass, replace
from random import Random

import pytest
from tests.seeds import seeded

from rockgate.sdk.consumer.queues.process_queue import Limit, ProcessQueue
from rockgate.sdk.consumer.settings import FlowLimits


@dataclass(frozen=True)
class Message:
    offset: int
    body_size: int = 10


def messages(*offsets: int) -> list[Message]:
    return [Message(offset) for offset in offsets]


def queue_of(*offsets: int) -> ProcessQueue[Message]:
    queue: ProcessQueue[Message] = ProcessQueue(0.0)
    queue.put(messages(*offsets))
    return queue


# Concurrent


@pytest.mark.row("PQ-8")
def test_the_offset_to_commit_is_the_first_unfinished_one() -> None:
    queue = queue_of(5, 6, 7)
    assert queue.finish(messages(6), 1.0) == 5
    assert queue.finish(messages(5), 1.0) == 7
    assert queue.finish(messages(7), 1.0) == 8


@pytest.mark.row("PQ-8")
def test_nothing_is_committed_when_nothing_was_cached() -> None:
    assert queue_of().finish(messages(1), 1.0) is None


def test_finishing_twice_changes_nothing() -> None:
    queue = queue_of(1, 2, 3)
    assert queue.finish(messages(1), 1.0) == 2
    assert queue.finish(messages(1), 1.0) == 2
    assert (queue.count, queue.size) == (2, 20)


@pytest.mark.row("PQ-6")
def test_an_offset_that_is_pulled_again_is_not_counted_again() -> None:
    queue = queue_of(1, 2)
    queue.put([Message(2, 30), Message(3)])
    assert (queue.count, queue.size) == (3, 50)


@pytest.mark.row("PQ-8")
def test_offsets_that_were_left_out_by_a_filter_are_committed_over() -> None:
    queue = queue_of(1, 9)
    assert queue.finish(messages(1), 1.0) == 9
    assert queue.finish(messages(9), 1.0) == 10


@pytest.mark.row("PQ-1")
def test_a_lower_offset_is_put_where_it_belongs() -> None:
    queue = queue_of(8, 9)
    queue.put(messages(3))
    assert queue.first_offset == 3
    assert queue.finish(messages(3), 1.0) == 8


# Orderly


@pytest.mark.row("PQ-10", "PQ-9", "TRAP-13")
def test_messages_are_taken_in_order_and_committed_together() -> None:
    queue = queue_of(1, 2, 3)
    assert queue.take(2, 1.0) == messages(1, 2)
    assert queue.count == 3
    assert queue.commit() == 3
    assert queue.count == 1
    assert queue.commit() is None


@pytest.mark.row("PQ-11")
def test_what_is_put_back_is_taken_again_first() -> None:
    queue = queue_of(1, 2, 3)
    queue.take(2, 1.0)
    queue.put_back()
    assert queue.take(3, 1.0) == messages(1, 2, 3)


@pytest.mark.row("PQ-12")
def test_a_part_may_be_put_back() -> None:
    queue = queue_of(1, 2, 3)
    queue.take(2, 1.0)
    queue.put_back(messages(2))
    assert queue.commit() == 2
    assert queue.take(9, 1.0) == messages(2, 3)


def test_what_was_taken_is_not_cached_a_second_time() -> None:
    queue = queue_of(1)
    queue.take(1, 1.0)
    queue.put(messages(1, 2))
    assert queue.take(9, 1.0) == messages(2)
    assert queue.count == 2


# Limits


@pytest.mark.parametrize(
    ("limits", "is_orderly", "expected"),
    [
        (FlowLimits(count_max=3), False, None),
        (FlowLimits(count_max=2), False, Limit.COUNT),
        (FlowLimits(size_max=30), False, None),
        (FlowLimits(size_max=29), False, Limit.SIZE),
        (FlowLimits(span_max=8), False, None),
        (FlowLimits(span_max=7), False, Limit.SPAN),
        (FlowLimits(span_max=7), True, None),
    ],
)
def test_a_limit_holds_when_it_is_exceeded(
    limits: FlowLimits, is_orderly: bool, expected: Limit | None
) -> None:
    assert queue_of(1, 2, 9).limit(limits, is_orderly=is_orderly) == expected


@pytest.mark.row("TRAP-6")
def test_the_three_limits_are_looked_at_one_by_one() -> None:
    queue = queue_of(1, 2, 9)
    limits = FlowLimits(count_max=2, size_max=29, span_max=7)
    found = []
    for eased in ({}, {"count_max": 3}, {"size_max": 30}, {"span_max": 8}):
        limits = replace(limits, **eased)
        found.append(queue.limit(limits, is_orderly=False))
    assert found == [Limit.COUNT, Limit.SIZE, Limit.SPAN, None]


def test_the_defaults_are_rocketmqs() -> None:
    assert FlowLimits() == FlowLimits(count_max=1000, size_max=100 << 20, span_max=2000)


@pytest.mark.row("PQ-5")
def test_times_are_exceeded_not_reached() -> None:
    queue = queue_of()
    assert not queue.is_pull_expired(120.0)
    assert queue.is_pull_expired(120.1)
    assert not queue.is_locked(0.0)
    queue.locked_at_s = 10.0
    assert queue.is_locked(40.0)
    assert not queue.is_locked(40.1)


@pytest.mark.row("PQ-7")
def test_the_span_is_from_the_first_to_the_last_and_forgets_what_is_finished() -> None:
    assert queue_of().span == 0
    assert queue_of(7).span == 0
    queue = queue_of(1, 5, 9)
    assert queue.span == 8
    queue.finish(messages(9), 1.0)
    assert queue.span == 4
    queue.finish(messages(1), 1.0)
    assert queue.span == 0


# What is held


@pytest.mark.row("PQ-1")
def test_messages_are_held_in_the_order_of_their_offsets_however_they_came() -> None:
    queue = queue_of(7, 3)
    queue.put(messages(5, 1))
    assert queue.bounds == (1, 7)
    assert queue.take(9, 1.0) == messages(1, 3, 5, 7)
    other = queue_of(4)
    assert other.take(9, 1.0) == messages(4), "each queue has its own"


@pytest.mark.row("PQ-3")
def test_counts_bytes_and_times_are_known_at_any_time() -> None:
    queue: ProcessQueue[Message] = ProcessQueue(5.0)
    assert (queue.count, queue.size) == (0, 0)
    assert (queue.pulled_at_s, queue.consumed_at_s, queue.locked_at_s) == (5.0, 5.0, None)
    queue.put([Message(1, 30), Message(2, 12)])
    assert (queue.count, queue.size) == (2, 42)
    queue.take(1, 6.0)
    assert (queue.count, queue.size) == (2, 42), "what is taken is still held"
    assert queue.consumed_at_s == 6.0
    queue.commit()
    assert (queue.count, queue.size) == (1, 12)
    queue.finish([Message(2)], 7.0)
    assert (queue.count, queue.size) == (0, 0)
    assert queue.consumed_at_s == 7.0


@pytest.mark.row("PQ-14")
def test_whether_messages_are_still_held_can_be_asked() -> None:
    queue = queue_of()
    assert queue.is_empty and not queue.has_taken
    queue.put(messages(1))
    assert not queue.is_empty
    queue.take(1, 1.0)
    assert queue.is_empty and queue.has_taken
    queue.put_back()
    assert not queue.is_empty and not queue.has_taken
    queue.finish(messages(1), 1.0)
    assert queue.is_empty


# Against a model that is slow and obvious


def test_it_answers_as_a_sorted_list_would() -> None:
    random = seeded()
    for _ in range(20):
        compare_with_a_sorted_list(random)


def compare_with_a_sorted_list(random: Random) -> None:
    queue: ProcessQueue[Message] = ProcessQueue(0.0)
    cached: dict[int, int] = {}
    last = -1
    for _ in range(300):
        match random.randrange(3):
            case 0:
                start = max(0, last + random.randrange(-3, 4))
                batch = [Message(start + n, random.randrange(50)) for n in range(5)]
                queue.put(batch)
                cached.update({message.offset: message.body_size for message in batch})
                last = max(last, *(message.offset for message in batch))
            case 1 if cached:
                chosen = random.sample(sorted(cached), min(len(cached), random.randrange(1, 6)))
                found = queue.finish(messages(*chosen), 1.0)
                for offset in chosen:
                    del cached[offset]
                assert found == (min(cached) if cached else last + 1)
            case _:
                taken = queue.take(random.randrange(4), 1.0)
                assert [message.offset for message in taken] == sorted(cached)[: len(taken)]
                queue.put_back()
        assert (queue.count, queue.size) == (len(cached), sum(cached.values()))
        assert queue.span == (max(cached) - min(cached) if cached else 0)
