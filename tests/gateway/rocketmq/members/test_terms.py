"""Terms of leadership: what is served when, as views of brokers change."""

from __future__ import annotations

import pytest
from tests.gateway.fakes import HandClock

from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.members.gateways import Gateway
from rockgate.gateway.rocketmq.members.leadership import NEVER
from rockgate.gateway.rocketmq.members.terms import FENCE_S, LINGER_S, WAIT_S, LeaderTerms

ME, OTHER = (Gateway.at(Address("10.0.0.1", port)) for port in (1, 2))
BOTH = sorted((ME, OTHER))


class Told:
    """What watchers learn."""

    def __init__(self) -> None:
        self.what: list[tuple[str, QueueName]] = []

    def gained(self, queue: QueueName) -> None:
        self.what.append(("gained", queue))

    def lost(self, queue: QueueName) -> None:
        self.what.append(("lost", queue))


class One:
    """The terms of one gateway, and a queue that the other one leads when it is there."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.stops = 0
        self.terms = LeaderTerms(ME.node_id, self.clock, on_stop=self.stopped)
        self.told = Told()
        self.terms.watch(self.told)
        self.beat(BOTH)
        queues = [QueueName("orders", "a", at) for at in range(64)]
        self.others = next(each for each in queues if self.terms.leader(each) == OTHER.node_id)
        self.mine = next(each for each in queues if self.terms.leader(each) == ME.node_id)
        self.terms.lease(self.mine)
        self.terms.lease(self.others)

    def stopped(self) -> None:
        self.stops += 1

    def beat(self, gateways: list[Gateway]) -> None:
        self.terms.seen("a", gateways, self.clock.time())

    def run(self, seconds: float, gateways: list[Gateway] = BOTH) -> None:
        for _ in range(round(seconds * 20)):
            self.clock.advance(0.05)
            self.beat(gateways)

    def serves(self, queue: QueueName) -> bool:
        return self.terms.lease(queue).is_served


def test_what_was_gained_is_refused_until_the_former_leader_has_ended() -> None:
    one = One()
    assert not one.serves(one.mine)
    assert one.terms.lease(one.mine).since == one.clock.time() + WAIT_S
    one.run(WAIT_S + 0.05)
    assert one.serves(one.mine)
    assert not one.serves(one.others)
    assert one.told.what == [("gained", one.mine)]
    one.beat([ME])
    one.run(LINGER_S, [ME])
    assert not one.serves(one.others)
    one.run(WAIT_S - LINGER_S + 0.05, [ME])
    assert one.serves(one.others)
    assert one.told.what[1:] == [("gained", one.others)]


@pytest.mark.parametrize("stopped_s", [[0.3], [0.5], [0.9], [0.3, 0.3], [0.5, 0.5]])
def test_what_was_lost_during_a_stop_is_no_longer_served_when_the_other_begins(
    stopped_s: list[float],
) -> None:
    one = One()
    one.run(2 * WAIT_S, [ME])
    assert one.serves(one.others)
    changed_at = one.clock.time()
    for seconds in stopped_s:
        # Nothing was run: the clock has jumped, and word of the change waits.
        one.clock.now += seconds
        assert one.serves(one.others), "the stop was short"
        one.clock.advance(0.05)
    one.beat(BOTH)
    assert one.stops == 0
    one.clock.advance(max(0.0, changed_at + WAIT_S - one.clock.time()))
    assert not one.serves(one.others)
    assert one.told.what[-1] == ("lost", one.others)


def test_a_stop_that_is_long_over_shortens_nothing() -> None:
    one = One()
    one.run(2 * WAIT_S, [ME])
    one.clock.now += 0.9
    one.run(LINGER_S + 0.1, [ME])
    one.run(LINGER_S - 0.05)
    assert one.serves(one.others)


def test_what_was_lost_is_served_for_a_moment_and_then_told() -> None:
    one = One()
    one.run(WAIT_S + 0.05, [ME])
    one.run(2.0, [ME])
    assert one.serves(one.others)
    since = one.terms.lease(one.others).since
    one.run(LINGER_S - 0.05)
    assert one.terms.lease(one.others).since == since
    assert not one.terms.is_elsewhere(one.others)
    one.run(0.2)
    assert not one.serves(one.others)
    assert one.terms.lease(one.others).since == NEVER
    assert one.terms.is_elsewhere(one.others)
    assert one.told.what[-1] == ("lost", one.others)


def test_a_lost_broker_ends_everything_at_once() -> None:
    one = One()
    one.run(2.0)
    one.terms.lost("a", "reset")
    assert not one.serves(one.mine)
    assert one.terms.leader(one.mine) is None
    assert not one.terms.is_elsewhere(one.others), "nobody knows"
    assert one.told.what[-1] == ("lost", one.mine)
    one.beat(BOTH)
    assert not one.serves(one.mine), "a new term begins with a wait"


def test_a_view_that_is_not_confirmed_is_void() -> None:
    one = One()
    one.run(2.0)
    for _ in range(round(FENCE_S * 20)):
        one.clock.advance(0.05)
        assert one.serves(one.mine)
    one.clock.advance(0.05)
    assert not one.serves(one.mine)
    assert one.stops == 0


def test_a_process_that_was_stopped_leads_nothing_before_any_timer_has_run() -> None:
    one = One()
    one.run(2.0)
    # Nothing was run: the clock has jumped.
    one.clock.now += 2.0
    assert not one.serves(one.mine)
    assert one.stops == 1
    assert one.told.what[-1] == ("lost", one.mine)


def test_an_answer_that_is_older_than_the_fence_counts_for_nothing() -> None:
    one = One()
    one.terms.lost("a", "reset")
    one.terms.seen("a", BOTH, one.clock.time() - FENCE_S - 0.1)
    assert one.terms.gateways("a") == ()


def test_a_broker_that_does_not_list_this_gateway_is_lost() -> None:
    one = One()
    one.run(2.0)
    one.beat([OTHER])
    assert not one.serves(one.mine)


def test_a_queue_that_comes_back_while_it_lingers_begins_a_new_term() -> None:
    one = One()
    one.run(3.0, [ME])
    since = one.terms.lease(one.others).since
    one.run(0.5)
    one.beat([ME])
    assert one.told.what[-1] == ("lost", one.others)
    one.run(WAIT_S + 0.05, [ME])
    assert one.terms.lease(one.others).since > since


def test_who_was_there_and_is_not_listed_is_gone() -> None:
    one = One()
    assert one.terms.gone(BOTH) == []
    one.beat([ME])
    assert one.terms.gone([ME]) == [OTHER]


def test_nothing_is_led_after_the_end() -> None:
    one = One()
    one.run(2.0)
    one.terms.close()
    one.beat(BOTH)
    assert not one.serves(one.mine)
