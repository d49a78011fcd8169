"""Limits, the time to delete by, and passes over queues in slices."""

from __future__ import annotations

import pytest
from tests.store.keeping import CONFIG, HOUR_MS, Keeping

from rockgate.store.clock import ManualClock
from rockgate.store.policy import QueuePolicy
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import Created
from rockgate.store.upkeep.expiry import DOUBT_MS, JUMP_MS, TrustedTime, limits_of


def topic(policy: QueuePolicy) -> Topic:
    created = Created(
        name="t",
        topic_id=b"i" * 16,
        queue_count=1,
        permission=6,
        is_internal=False,
        config={},
    )
    made = Topic(created, 0)
    made.policy = policy
    return made


# Limits


def test_a_topic_without_limits_of_its_own_has_the_stores() -> None:
    config = Keeping(retention_ms=5, retention_bytes=7).config
    assert limits_of(topic(QueuePolicy()), config) == (5, 7)
    assert limits_of(topic(QueuePolicy(retention_ms=9)), config) == (9, 7)
    assert limits_of(topic(QueuePolicy(retention_bytes=9)), config) == (5, 9)


@pytest.mark.parametrize("number", [-1, -2, -(1 << 63)])
def test_a_limit_below_zero_is_none(number: int) -> None:
    config = Keeping(retention_ms=5, retention_bytes=7).config
    unlimited = QueuePolicy(retention_ms=number, retention_bytes=number)
    assert limits_of(topic(unlimited), config) == (-1, -1)


def test_what_does_not_expire_has_no_limits() -> None:
    policy = QueuePolicy(expires=False, retention_ms=5, retention_bytes=7)
    assert limits_of(topic(policy), CONFIG) == (-1, -1)


def test_a_policy_is_read_once_for_each_config() -> None:
    keeping = Keeping()
    orders = keeping.topic("orders", retention_ms="9")
    policy = orders.policy
    assert policy == QueuePolicy(retention_ms=9)
    keeping.fill("orders", 5)
    assert keeping.store.topics.get("orders").policy is policy
    keeping.store.topics.set_config({orders: {"retention.bytes": "7"}})
    assert orders.policy == QueuePolicy(retention_bytes=7)
    keeping.reopen()
    assert keeping.store.topics.get("orders").policy == QueuePolicy(retention_bytes=7)


# Time


def test_time_that_passes_is_believed() -> None:
    clock = ManualClock()
    time = TrustedTime(clock)
    for _ in range(5):
        clock.advance(100 * HOUR_MS)
        assert time.now_ms() == clock.now_ms()


def test_a_clock_that_is_set_back_is_believed_at_once() -> None:
    clock = ManualClock()
    time = TrustedTime(clock)
    clock.step(-HOUR_MS)
    assert time.now_ms() == clock.now_ms()


def test_a_clock_that_is_corrected_a_little_is_believed_at_once() -> None:
    clock = ManualClock()
    time = TrustedTime(clock)
    for _ in range(5):
        clock.step(JUMP_MS)
        assert time.now_ms() == clock.now_ms()


def test_a_jump_ahead_is_believed_when_it_has_lasted() -> None:
    clock = ManualClock()
    time = TrustedTime(clock)
    before_ms = clock.now_ms()
    clock.step(JUMP_MS + 1)
    assert time.now_ms() == before_ms
    clock.advance(DOUBT_MS - 1)
    assert time.now_ms() == before_ms + DOUBT_MS - 1
    clock.advance(1)
    assert time.now_ms() == clock.now_ms()


def test_a_jump_that_was_taken_back_is_doubted_anew_when_it_comes_again() -> None:
    clock = ManualClock()
    time = TrustedTime(clock)
    clock.step(HOUR_MS)
    time.now_ms()
    clock.advance(DOUBT_MS - 1)
    clock.step(-HOUR_MS)
    assert time.now_ms() == clock.now_ms()
    clock.step(HOUR_MS)
    assert time.now_ms() == clock.now_ms() - HOUR_MS
    clock.advance(DOUBT_MS - 1)
    assert time.now_ms() == clock.now_ms() - HOUR_MS


# Passes


def test_a_pass_over_many_queues_takes_many_slices_of_bounded_work() -> None:
    keeping = Keeping(retention_ms=HOUR_MS, segment_bytes=1 << 20)
    topic = keeping.topic("orders", 500)
    for queue_id in range(500):
        keeping.fill("orders", 2, queue_id=queue_id, size=10)
    keeping.clock.advance(2 * HOUR_MS)
    moved_by_slice = []
    topics = keeping.store.topics
    topics.on_log_starts.append(lambda topic, starts: moved_by_slice.append(len(starts)))
    slices = list(keeping.store.retention.expiry.run([topic]))
    assert len(slices) > 5
    assert sum(moved_by_slice) == 500
    assert max(moved_by_slice) < 100
    assert all(queue.log_start == queue.next_offset for queue in keeping.store.queues.of(topic.id))


def test_a_queue_that_is_counted_grows_meanwhile_without_being_counted_forever() -> None:
    keeping = Keeping(segment_bytes=1 << 20)
    topic = keeping.topic("orders", retention_bytes="1")
    keeping.fill("orders", 3_000, size=10)
    passes = 0
    for _ in keeping.store.retention.expiry.run([topic]):
        keeping.fill("orders", 300, size=10)
        passes += 1
        assert passes < 40
    assert passes > 3


def test_a_topic_that_is_deleted_during_a_pass_ends_the_pass_over_it() -> None:
    keeping = Keeping(retention_ms=HOUR_MS, segment_bytes=1 << 20)
    doomed = keeping.topic("doomed", 400)
    other = keeping.topic("other")
    for queue_id in range(400):
        keeping.fill("doomed", 1, queue_id=queue_id, size=10)
    keeping.fill("other", 1)
    keeping.clock.advance(2 * HOUR_MS)
    for number, _ in enumerate(keeping.store.retention.expiry.run([doomed, other])):
        if number == 1:
            keeping.store.topics.delete([doomed])
    assert keeping.queue("other").log_start == 1


def test_an_empty_topic_and_one_without_limits_cost_next_to_nothing() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    empty = keeping.topic("empty", 900)
    endless = keeping.topic("endless", 10_000, retention_ms="-1")
    assert list(keeping.store.retention.expiry.run([empty, endless])) == []
