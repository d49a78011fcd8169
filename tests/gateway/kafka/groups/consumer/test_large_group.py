"""A thousand members: they settle within two heartbeat intervals and a second."""

from __future__ import annotations

import heapq

import pytest
from tests.gateway.kafka.groups.consumer.bench import ConsumerBench

from rockgate.gateway.kafka.groups.classic.events import GroupState

COUNT = 1_000
PARTITIONS = 2_000
INTERVAL_MS = 5_000


@pytest.mark.row("GRP-3")
def test_a_thousand_members_settle_within_two_heartbeat_intervals_and_a_second() -> None:
    bench = ConsumerBench(a=PARTITIONS)
    epochs: dict[str, int] = {}
    believes: dict[str, set[int]] = {}
    beats: list[tuple[int, str]] = []
    now_ms = 0
    for at in range(COUNT):
        # All of them start within a second.
        now_ms = at * 1_000 // COUNT
        name = f"m{at:04}"
        heapq.heappush(beats, (now_ms, name))
    started_ms, now_ms = 1_000, 0
    settled_ms = -1
    while settled_ms < 0 and now_ms < 60_000:
        at_ms, name = heapq.heappop(beats)
        bench.pass_time(at_ms - now_ms)
        now_ms = at_ms
        if name not in epochs:
            outcome = bench.join(name)
        elif believes.pop(f"{name} revoked", None):
            outcome = bench.beat(name, epochs[name], owned={"a": sorted(believes[name])})
        else:
            outcome = bench.beat(name, epochs[name])
        epochs[name] = outcome.epoch
        next_ms = now_ms + INTERVAL_MS
        if outcome.assigned is not None:
            given = set((bench.named(outcome.assigned) or {}).get("a", []))
            if believes.get(name, set()) - given:
                # A client acknowledges at once what it has given up.
                believes[f"{name} revoked"] = {1}
                next_ms = now_ms + 1
            believes[name] = given
        heapq.heappush(beats, (next_ms, name))
        if len(epochs) == COUNT and bench.group.state is GroupState.STABLE:
            settled_ms = now_ms
    assert 0 <= settled_ms - started_ms <= 2 * INTERVAL_MS + 1_000
    shares = [len(held) for name, held in believes.items() if name in epochs]
    assert (len(shares), set(shares), sum(shares)) == (COUNT, {2}, PARTITIONS)
