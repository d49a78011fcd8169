"""How a consumer starts, on a virtual clock, and the client that a process shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.sdk.consumer.memory_cluster import (
    BEGINNING,
    Heard,
    MemoryCluster,
    subscriptions,
)
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.protocol.remoting.bodies.clients import HeartbeatBody
from rockgate.protocol.remoting.command import Command
from rockgate.sdk import (
    Consumer,
    ConsumerSettings,
    InvalidMessage,
    Producer,
    Received,
    Refused,
)
from rockgate.sdk.client import shared_clients

# The start


@pytest.mark.row("START-11")
def test_the_start_asks_for_routes_checks_the_filter_says_who_it_is_and_balances_at_once() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            heard.consumer.on("t", sql="price > 10")(heard.listen)
            async with heard:
                told = cluster.heartbeats()
                # A heartbeat without groups only asks which version a broker has.
                codes = [each.code for each in cluster.asked if each.code != 34 or each in told]
                firsts = sorted({105, 46, 34, 38, 11} & set(codes), key=codes.index)
                assert firsts == [105, 46, 34, 38, 11]
                assert cluster.now_s == 0.0

    run(scenario())


@pytest.mark.row("C-07")
def test_a_subscription_that_is_added_reaches_brokers_at_once_and_a_bad_one_is_refused() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1})
        cluster.topics |= {"u", "v"}
        async with cluster.client() as client, Heard(cluster, client) as heard:
            await pass_time(7)
            for topic, wanted in (("u", {"tags": "red"}), ("v", {"sql": "price > 10"})):
                before = len(cluster.heartbeats())
                await heard.consumer.subscribe(topic, listener=heard.listen, **wanted)
                told = cluster.heartbeats()[before : before + 2]
                assert {each.broker for each in told} == {"a", "b"}
                for each in told:
                    (expression,) = wanted.values()
                    assert subscriptions(each, "g")[topic].sub_string == expression
            assert cluster.now_s == 7.0
            await pass_time(1)
            cluster["a"].put("u", 0, b"red", tag="red")
            cluster["a"].put("u", 0, b"blue", tag="blue")
            await settle()
            assert heard.bodies == [b"red"]
            before = len(cluster.heartbeats())
            with pytest.raises(InvalidMessage, match="names no tags"):
                await heard.consumer.subscribe("t", "||")
            cluster["b"].refusing[46] = Command(23, remark="cannot be parsed")
            with pytest.raises(Refused, match="cannot be parsed"):
                await heard.consumer.subscribe("t", sql="price >")
            # Brokers have not heard of either.
            assert len(cluster.heartbeats()) == before
            cluster["a"].put("t", 0, b"as before")
            await settle()
            assert heard.bodies[1:] == [b"as before"]

    run(scenario())


# The shared client


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> list[MemoryCluster]:
    """Clients that are made by sharing dial into the cluster that a test puts here."""
    clusters: list[MemoryCluster] = []

    def client(_: list[str], instance: str | None, **_options: object) -> Any:
        return clusters[0].client(instance or "shared")

    monkeypatch.setattr(shared_clients, "Client", client)
    return clusters


@pytest.mark.row("START-10", "START-7")
def test_consumers_and_producers_of_a_process_share_one_client_that_the_first_opens(
    sharing: list[MemoryCluster],
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        sharing.append(cluster)
        seen: list[bytes] = []
        one = Consumer("n:1", group="one", settings=BEGINNING)
        two = Consumer("n:1", group="two", settings=BEGINNING)
        for consumer in (one, two):

            @consumer.on("t", "wanted")
            async def listen(message: Received) -> None:
                seen.append(message.body)

        async with one, two, Producer("n:1", group="shop"):
            cluster["a"].put("t", 0, b"yes", tag="wanted")
            cluster["a"].put("t", 0, b"no", tag="other")
            await pass_time(31)
            # Rounds, pulls and what is filtered by go over one connection, in one heartbeat.
            assert seen == [b"yes", b"yes"]
            assert len(cluster["a"].peer.transports) == 1
            body = cluster.of(34)[-1].body(HeartbeatBody)
            assert [each.group_name for each in body.consumer_data_set] == ["one", "two"]
            assert [each.group_name for each in body.producer_data_set] == ["shop"]
            heartbeats = [each for each in cluster.of(34) if each.at_s > 29]
            assert len(heartbeats) == 1

    run(scenario())


@pytest.mark.row("CI-1")
def test_one_client_serves_a_process_and_each_user_is_told_why_it_cannot(
    sharing: list[MemoryCluster],
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        sharing.append(cluster)
        cluster.name_server.is_down = True
        async with Producer("n:1", group="shop"):
            # Opening dials nothing, so it cannot fail: the first request gets the error.
            for group in ("one", "two"):
                with pytest.raises(Exception, match="n:1"):
                    await Consumer("n:1", group=group, topics=["t"]).open()
            cluster.name_server.is_down = False
            await pass_time(2)
            async with (
                Consumer("n:1", group="one", topics=["t"]),
                Consumer("n:1", group="two", topics=["t"]),
            ):
                assert len(cluster["a"].peer.transports) == 1

    run(scenario())


@pytest.mark.row("CI-2")
def test_a_client_starts_with_its_timers_and_connects_when_something_is_asked_for() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client:
            await settle()
            assert cluster.name_server.dial_times == []
            async with Heard(cluster, client):
                pass
            order = {
                "name server": cluster.name_server.dial_times[0],
                "broker": cluster["a"].peer.dial_times[0],
            }
            assert list(order.values()) == sorted(order.values())
            codes = [each.code for each in cluster.asked]
            assert codes.index(105) < codes.index(34) < codes.index(38) < codes.index(11)

    run(scenario())


@pytest.mark.row("PROP-23")
def test_routes_and_heartbeats_go_every_thirty_seconds_and_that_can_be_set() -> None:
    def scenario_of(period_s: float | None, expected: list[float]) -> None:
        async def scenario() -> None:
            cluster = MemoryCluster({"a": 1})
            more: dict[str, Any] = {} if period_s is None else {"upkeep_s": period_s}
            async with cluster.client(**more) as client, Heard(cluster, client):
                await pass_time(61)
                for code in (105, 34):
                    times = sorted({time for time in cluster.times(code) if time})
                    assert times == expected, code

        run(scenario())

    scenario_of(None, [30.0, 60.0])
    scenario_of(20.0, [20.0, 40.0, 60.0])


@pytest.mark.row("PROP-23")
def test_unit_mode_and_the_second_port_are_off_unless_set_and_a_failed_pull_waits_as_set() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client:
            settings = replace(BEGINNING, retry_s=4.0)
            cluster["a"].refusing[11] = Command(1, remark="no")
            async with Heard(cluster, client, settings=settings):
                await pass_time(9)
                assert [round(each.at_s) for each in cluster.pulls()] == [0, 4, 8]
                (data,) = cluster.members["g"].values()
                assert not data.unit_mode
            assert client.broker("a:10").address == "a:10"
        settings = replace(BEGINNING, unit_mode=True)
        async with cluster.client("two", vip_channel=True) as client:
            assert client.broker("a:10").address == "a:8"
        async with cluster.client("two") as client, Heard(cluster, client, settings=settings):
            (data,) = cluster.members["g"].values()
            assert data.unit_mode

    run(scenario())
    assert ConsumerSettings().retry_s == 1.0
