"""Readings of RocketMQ's client that concern a consumer, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.sdk.consumer.memory_cluster import BEGINNING, Heard, MemoryCluster
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.periodic import LOOK_MS
from rockgate.protocol.remoting.command import Command, Fields
from rockgate.sdk import (
    Averagely,
    ByMachineRoom,
    Client,
    Configured,
    ConsistentHash,
    ConsumerSettings,
    InCircles,
    Nearby,
    Queue,
    Start,
)
from rockgate.sdk.consumer.allocation import Allocation

QUEUES = [Queue("t", broker, number) for broker in ("east@a", "west@b") for number in range(3)]
SIX: list[Allocation] = [
    Averagely(),
    InCircles(),
    Configured(QUEUES[:2]),
    ByMachineRoom({"east"}),
    Nearby(
        Averagely(),
        room_of_broker=lambda queue: queue.broker.split("@")[0],
        room_of_member=lambda member: member.split("@")[0],
    ),
    ConsistentHash(),
]


@pytest.mark.row("U-02")
def test_six_strategies_are_offered_and_the_average_one_is_the_default() -> None:
    assert [each.name for each in SIX] == [
        "AVG",
        "AVG_BY_CIRCLE",
        "CONFIG",
        "MACHINE_ROOM",
        "MACHINE_ROOM_NEARBY-AVG",
        "CONSISTENT_HASH",
    ]
    assert ConsumerSettings().allocation.name == "AVG"
    members = ["east@1", "west@2"]
    for strategy in SIX:
        if not isinstance(strategy, Configured):
            # A member that the broker does not list, or not yet.
            assert strategy.allocate("g", "east@9", QUEUES, members) == [], strategy.name
    taken = [queue for each in members for queue in SIX[3].allocate("g", each, QUEUES, members)]
    assert sorted(taken) == QUEUES[:3]


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.row("U-05")
@pytest.mark.parametrize(
    ("start", "saved", "begins_at", "retries_begin_at"),
    [
        (Start.END, 7, 7, 7),
        (NOON, 7, 7, 7),
        (Start.END, None, 9, 0),
        (Start.BEGINNING, None, 5, 0),
        (NOON, None, 5, 0),
    ],
)
def test_a_queue_starts_at_saved_progress_else_as_the_policy_says_and_retries_at_their_first(
    start: Start | datetime, saved: int | None, begins_at: int, retries_begin_at: int
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, b"5", b"6", b"7", b"8", begin=5)
        cluster["a"].put("%RETRY%g", 0, *(b"%d" % number for number in range(9)))
        if saved is not None:
            cluster["a"].set_progress("g", saved)
            cluster["a"].set_progress("g", saved, "%RETRY%g")
        settings = ConsumerSettings(start=start)
        # Where a queue begins that has lost its first messages, the broker says.
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            await pass_time(2)
            first = {
                topic: [m.offset for m in heard.messages if m.queue.topic == topic][:1]
                for topic in ("t", "%RETRY%g")
            }
            assert first["%RETRY%g"] == [retries_begin_at]
            assert first["t"] == ([] if begins_at == 9 else [begins_at])

    run(scenario())


@pytest.mark.row("U-05")
def test_a_queue_whose_start_cannot_be_read_is_not_started() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        for code in (14, 30):
            cluster["a"].refusing = {code: Command(1, remark="not now")}
            async with (
                cluster.client() as client,
                Heard(cluster, client, settings=ConsumerSettings()) as heard,
            ):
                await pass_time(15)
                assert not [queue for queue in heard.consumer.queues if queue.topic == "t"]
        assert cluster.pulls() == []

    run(scenario())


@pytest.mark.row("CI-3")
def test_a_new_broker_and_a_new_topic_are_seen_within_thirty_seconds() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1})
        del cluster.queue_counts["b"]
        async with cluster.client() as client, Heard(cluster, client) as heard:
            await pass_time(3)
            cluster.queue_counts["b"] = 1
            cluster["b"].put("t", 0, b"at the new broker")
            await pass_time(30)
            assert heard.bodies == [b"at the new broker"]
            assert heard.times[0] <= 33.0
            assert cluster.of(34, "b")
            # Progress at both is saved by its timer.
            await pass_time(6)
            assert cluster["b"].progress("g") == 1
            cluster.topics.add("u")
            cluster["a"].put("u", 0, b"of the new topic")
            await heard.consumer.subscribe("u", listener=heard.listen)
            await pass_time(30)
            assert heard.bodies[1:] == [b"of the new topic"]

    run(scenario())


class Noting:
    """A hook that notes what is asked for."""

    def __init__(self) -> None:
        self.codes: list[int] = []

    def before_request(self, address: str, code: int, fields: Fields, body: object) -> None:
        self.codes.append(code)

    def after_response(self, address: str, code: int, answer: Command) -> None:
        """What is answered is not looked at."""


@pytest.mark.row("CI-4")
def test_hooks_of_a_client_see_every_request_of_its_consumers() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        noting = Noting()
        settings = replace(BEGINNING, is_orderly=True)
        async with cluster.client(rpc_hooks=[noting]) as client:
            async with Heard(cluster, client, settings=settings) as heard:
                cluster["a"].put("t", 0, b"x")
                await pass_time(40)
                assert heard.bodies == [b"x"]
            await settle()
        assert sorted(noting.codes) == sorted(each.code for each in cluster.asked)
        assert {105, 34, 38, 14, 41, 11, 15, 42, 35} <= set(noting.codes)

    run(scenario())


@pytest.mark.row("U-06")
def test_the_periods_of_a_client_and_of_a_broker_that_looks_for_it_are_rocketmqs() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client, Heard(cluster, client):
            cluster["a"].put("t", 0, b"x")
            await pass_time(14)
            # No broker answers from now on.
            cluster["a"].silent = {11}
            await pass_time(50)
            for code in (105, 34):
                # A connection that is made anew begins with a heartbeat as well.
                assert {time for time in cluster.times(code) if time} >= {30.0, 60.0}
            assert [each.at_s for each in cluster.of(15) if each.fields["topic"] == "t"] == [5.0]
            times = [round(each.at_s) for each in cluster.pulls()]
            # Held for fifteen seconds; then given up after thirty, and made again a second later.
            assert times == [0, 0, 15, 46]
            assert {each.fields["maxMsgNums"] for each in cluster.pulls()} == {"32"}
            assert {each.fields["suspendTimeoutMillis"] for each in cluster.pulls()} == {"15000"}

    run(scenario())
    assert RemotingConfig().client_expiry_ms == 120_000
    # Twice as often as RocketMQ does.
    assert LOOK_MS == 5_000


@pytest.mark.row("TRAP-5")
def test_name_servers_are_those_that_were_given_and_no_other_address_is_asked_for_them() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        dialled: set[str] = set()

        async def dial(factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Any:
            dialled.add(f"{host}:{port}")
            return await cluster.net.dial(factory, host, port)

        async with Client("n:1", dial=dial) as client, Heard(cluster, client):
            await pass_time(600)
        assert dialled == {"n:1", "a:10"}

    run(scenario())
