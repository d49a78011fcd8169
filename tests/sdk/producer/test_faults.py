"""Brokers that are passed over: which, for how long, and what is done where that leaves none."""

from __future__ import annotations

import pytest
from tests.sdk.memorynet import run
from tests.sdk.producer.test_producer import ProducerWorld, answering_after, refusing

from rockgate.sdk import Message
from rockgate.sdk.producer.faults import FAILED_S, Faults, penalty_s


@pytest.mark.row("U-01")
@pytest.mark.parametrize(
    ("latency_ms", "over_s"),
    [
        (49, 0),
        (50, 0),
        (100, 0),
        (549, 0),
        (550, 30),
        (999, 30),
        (1000, 60),
        (2000, 120),
        (3000, 180),
        (14999, 180),
        (15000, 600),
    ],
)
def test_the_steps_are_rocketmqs(latency_ms: int, over_s: int) -> None:
    assert penalty_s(latency_ms / 1000) == over_s


@pytest.mark.row("U-01")
def test_an_error_counts_as_thirty_seconds_and_nothing_is_noted_unless_it_is_on() -> None:
    assert FAILED_S == 30
    on, off = Faults(is_on=True), Faults(is_on=False)
    for faults in (on, off):
        faults.note("a", FAILED_S, now=0)
    assert on.is_avoided("a", now=599) and not on.is_avoided("a", now=600)
    assert not off.is_avoided("a", now=1)


@pytest.mark.row("U-01")
def test_where_all_are_passed_over_the_better_half_takes_turns() -> None:
    async def scenario() -> None:
        latencies = {"a": 3.1, "b": 0.6, "c": 2.1, "d": 1.1}
        world = ProducerWorld(*latencies)
        for name, latency_s in latencies.items():
            peer = world.brokers[name]
            peer.script[310] = answering_after(latency_s, peer)
        async with world.producer(avoid_slow=True, timeout_s=10) as producer:
            for _ in latencies:
                await producer.send(Message("t", b"x"))
            assert all(peer.of(310) for peer in world.brokers.values()), "each is slow now"
            results = [await producer.send(Message("t", b"x")) for _ in range(8)]
        assert {result.queue.broker for result in results} == {"b", "d"}

    run(scenario())


@pytest.mark.row("D-05")
def test_a_retry_avoids_the_broker_that_failed_even_where_all_are_passed_over() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for name, latency_s in (("a", 0.6), ("b", 1.1)):
            peer = world.brokers[name]
            peer.script[310] = answering_after(latency_s, peer)
        async with world.producer(avoid_slow=True, timeout_s=10) as producer:
            for _ in range(2):
                await producer.send(Message("t", b"x"))
            failing = world.brokers["a"]
            failing.script[310] = refusing(1)
            seen = len(failing.of(310))
            result = await producer.send(Message("t", b"x"))
            assert result.queue.broker == "b"
            assert len(failing.of(310)) == seen + 1, "tried there once, as the better of the two"

    run(scenario())
