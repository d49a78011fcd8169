"""What is done next with a queue that is consumed in order, by tables and times of our own."""

from __future__ import annotations

import pytest
from tests.sdk.consumer.delivery.test_settlement import HeldQueue

from rockgate.sdk.consumer.delivery.order import Due, QueueOrder, Rest, Ruling, Run, Verdict
from rockgate.sdk.consumer.settings import ConsumerSettings, Model

DONE = Verdict(Ruling.DONE)
COMMIT = Verdict(Ruling.COMMIT)
AGAIN = Verdict(Ruling.AGAIN)
ROLLBACK = Verdict(Ruling.ROLLBACK)


class Machine:
    """One queue with messages, locked at time 0."""

    def __init__(self, *offsets: int, **settings: object) -> None:
        self.settings = ConsumerSettings(is_orderly=True, **settings)  # type: ignore[arg-type] # a test's own
        world = HeldQueue(*offsets, settings=self.settings)
        self.cached, self.messages = world.cached, world.messages
        self.cached.locked_at_s = 0.0
        self.order = QueueOrder(self.cached, self.settings)

    def run(self, now_s: float = 0.0) -> list[int]:
        """The offsets that are due now."""
        step = self.order.next(now_s)
        assert isinstance(step, Run), step
        return [message.offset for message in step.messages]

    def end(self, verdict: Verdict, now_s: float = 0.0, *, is_sent: bool = True) -> int | None:
        """A listener ends; the offset that is committed by that."""
        last = self.order.judged(verdict)
        found = self.order.settled(now_s, len(last) if is_sent else 0)
        return None if found is None else found[1]


# Automatic commit


@pytest.mark.row("ORD-5", "PQ-9", "PQ-10")
def test_what_is_done_is_committed_and_the_next_is_due() -> None:
    machine = Machine(5, 6)
    assert machine.run() == [5]
    assert machine.end(DONE) == 6
    assert machine.run() == [6]
    assert machine.end(COMMIT) == 7
    assert machine.order.next(0.0) is Due.IDLE


@pytest.mark.row("ORD-5", "ORD-7", "PQ-12")
def test_what_fails_is_due_again_after_a_rest_and_nothing_before_it() -> None:
    machine = Machine(5, 6)
    assert machine.run() == [5]
    assert machine.messages[0].tries == 1
    assert machine.end(AGAIN, 10.0) is None
    assert machine.order.next(10.0) == Rest(1.0)
    assert machine.order.next(10.5) == Rest(0.5)
    assert machine.run(11.0) == [5]
    assert machine.messages[0].tries == 2
    assert machine.end(DONE) == 6


@pytest.mark.row("ORD-7", "PROP-20")
@pytest.mark.parametrize(
    ("wish_s", "rest_s"), [(None, 2.0), (0.0, 0.01), (0.5, 0.5), (30.0, 30.0), (3600.0, 30.0)]
)
def test_a_queue_rests_as_it_is_set_or_as_the_listener_wishes_within_bounds(
    wish_s: float | None, rest_s: float
) -> None:
    machine = Machine(5, suspend_s=2.0)
    machine.run()
    machine.end(Verdict(Ruling.AGAIN, suspend_s=wish_s))
    assert machine.order.next(0.0) == Rest(rest_s)


@pytest.mark.row("PROP-20")
@pytest.mark.parametrize("suspend_s", [0.009, 30.1])
def test_a_rest_out_of_bounds_is_refused(suspend_s: float) -> None:
    with pytest.raises(ValueError, match="suspend_s must be"):
        ConsumerSettings(suspend_s=suspend_s)


@pytest.mark.row("ORD-5")
def test_of_a_batch_what_was_done_is_committed_and_the_rest_comes_again() -> None:
    machine = Machine(5, 6, 7, batch_max=3)
    assert machine.run() == [5, 6, 7]
    assert machine.end(Verdict(Ruling.AGAIN, done_count=1)) == 6
    assert machine.run(1.0) == [6, 7]
    # The second was not looked at: it has its tries before it.
    assert [message.tries for message in machine.messages] == [1, 2, 1]


# Limits of tries


@pytest.mark.row("ORD-8", "PROP-19")
def test_without_a_limit_a_message_is_tried_forever() -> None:
    machine = Machine(5)
    for now_s in range(100):
        machine.cached.locked_at_s = float(now_s)
        assert machine.run(float(now_s)) == [5]
        assert machine.order.judged(AGAIN) == []
        assert machine.order.settled(float(now_s)) is None


@pytest.mark.row("ORD-8")
def test_at_the_limit_a_message_is_sent_away_and_the_queue_continues() -> None:
    machine = Machine(5, 6, tries_max=2)
    for now_s in (0.0, 1.0):
        assert machine.run(now_s) == [5]
        assert machine.end(AGAIN, now_s) is None
    assert machine.run(2.0) == [5]
    assert machine.end(AGAIN, 2.0) == 6
    assert machine.run(2.0) == [6]


@pytest.mark.row("ORD-8")
def test_what_no_one_takes_stays_and_the_queue_rests() -> None:
    machine = Machine(5, 6, tries_max=0)
    assert machine.run() == [5]
    assert machine.end(AGAIN, is_sent=False) is None
    assert machine.order.next(0.0) == Rest(1.0)
    assert machine.run(1.0) == [5]


@pytest.mark.parametrize(
    ("verdict", "sent", "again"),
    [
        (Verdict(Ruling.AGAIN, dead_count=1), [5], [6, 7]),
        (Verdict(Ruling.AGAIN, 1, dead_count=1), [6], [7]),
        (Verdict(Ruling.AGAIN, 1, dead_count=2), [6, 7], []),
        (Verdict(Ruling.AGAIN, dead_count=9), [5, 6, 7], []),
    ],
)
def test_what_a_listener_gives_up_is_sent_away_and_the_rest_comes_again(
    verdict: Verdict, sent: list[int], again: list[int]
) -> None:
    machine = Machine(5, 6, 7, batch_max=3)
    assert machine.run() == [5, 6, 7]
    assert [message.offset for message in machine.order.judged(verdict)] == sent
    machine.order.settled(0.0, len(sent))
    if again:
        assert machine.run(1.0) == again
    else:
        assert machine.order.next(1.0) is Due.IDLE


# Manual commit


@pytest.mark.row("ORD-6")
def test_only_a_commit_moves_the_offset_past_all_that_is_open() -> None:
    machine = Machine(5, 6, 7, auto_commit=False)
    assert machine.run() == [5]
    assert machine.end(DONE) is None
    assert machine.run() == [6]
    assert machine.end(COMMIT) == 7
    assert machine.run() == [7]
    assert machine.end(DONE) is None
    assert machine.cached.has_taken


@pytest.mark.row("ORD-6", "PQ-11")
def test_a_rollback_takes_all_that_is_open_back() -> None:
    machine = Machine(5, 6, 7, auto_commit=False)
    for offset in (5, 6):
        assert machine.run() == [offset]
        machine.end(DONE)
    assert machine.run() == [7]
    assert machine.end(ROLLBACK) is None
    assert machine.order.next(0.0) == Rest(1.0)
    assert machine.run(1.0) == [5]


@pytest.mark.row("ORD-6")
def test_a_failure_takes_back_what_failed_alone() -> None:
    machine = Machine(5, 6, auto_commit=False)
    assert machine.run() == [5]
    machine.end(DONE)
    assert machine.run() == [6]
    assert machine.end(AGAIN) is None
    assert machine.run(1.0) == [6]
    assert machine.end(COMMIT) == 7


# Locks and turns


@pytest.mark.row("ORD-3", "PQ-4")
def test_a_queue_whose_lock_is_stale_asks_for_it_before_anything_is_consumed() -> None:
    machine = Machine(5)
    assert machine.order.next(31.0) == Rest(0.1)
    assert machine.order.next(31.5) is Due.ASK_LOCK
    machine.order.lock_answered(is_had=False, now_s=32.0)
    assert machine.order.next(32.0) == Rest(3.0)
    assert machine.order.next(35.0) is Due.ASK_LOCK
    machine.order.lock_answered(is_had=True, now_s=36.0)
    assert isinstance(machine.order.next(36.0), Rest)
    assert machine.run(36.5) == [5]


@pytest.mark.row("ORD-3")
def test_a_lock_of_exactly_thirty_seconds_still_holds() -> None:
    assert Machine(5).run(30.0) == [5]


@pytest.mark.row("ORD-3")
def test_a_broadcasting_member_needs_no_lock() -> None:
    assert Machine(5, model=Model.BROADCASTING).run(1000.0) == [5]


@pytest.mark.row("ORD-4")
def test_a_queue_gives_up_its_turn_after_a_minute_without_pause() -> None:
    machine = Machine(*range(200))
    now_s = 0.0
    while now_s <= 60.0:
        machine.cached.locked_at_s = now_s
        machine.run(now_s)
        machine.end(DONE)
        now_s += 1.0
    machine.cached.locked_at_s = now_s
    assert machine.order.next(now_s) == Rest(0.01)
    assert machine.run(now_s + 0.02)


@pytest.mark.row("ORD-4")
def test_a_queue_that_was_lost_is_noticed_before_each_batch() -> None:
    machine = Machine(5, 6)
    machine.run()
    machine.end(DONE)
    machine.cached.is_dropped = True
    assert machine.order.next(0.0) is Due.END


def test_what_no_one_looked_at_is_due_again_at_once() -> None:
    machine = Machine(5)
    machine.run()
    assert machine.end(Verdict(Ruling.ABANDONED)) is None
    assert machine.run() == [5]
    assert machine.messages[0].tries == 1
