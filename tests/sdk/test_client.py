"""What producers of one process share: docs/sdk.md, "Routes" and "The client"."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.sdk.memorynet import MemoryNet, Peer, pass_time, run, settle

from rockgate.protocol.remoting.bodies.clients import HeartbeatBody
from rockgate.protocol.remoting.command import Command
from rockgate.sdk.client import Client
from rockgate.sdk.errors import Closed, NoRoute, Unreachable
from rockgate.sdk.routes import Queue


def route(brokers: dict[str, str], *, queues: int = 2, perm: int = 6) -> bytes:
    body: dict[str, Any] = {
        "brokerDatas": [
            {"brokerName": name, "cluster": "c", "brokerAddrs": {"0": address}}
            for name, address in brokers.items()
        ],
        "queueDatas": [
            {"brokerName": name, "perm": perm, "readQueueNums": 8, "writeQueueNums": queues}
            for name in brokers
        ],
    }
    return msgspec.json.encode(body)


def name_server(net: MemoryNet, routes: dict[str, bytes], address: str = "n:1") -> Peer:
    peer = net.listen(address)

    def find(request: Command) -> Command:
        body = routes.get(request.fields["topic"])
        return Command(17, remark="no route") if body is None else Command(0, body=body)

    peer.script[105] = find
    return peer


def test_a_route_is_asked_for_once_by_all_who_want_it() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        peer = name_server(net, {"t": route({"b": "b:1", "a": "a:1"})})
        async with Client("n:1", dial=net.dial) as client:
            found = await asyncio.gather(*(client.routes.get("t") for _ in range(5)))
            assert len(peer.of(105)) == 1
            assert found[0].queues == (
                *(Queue("t", "a", 0), Queue("t", "a", 1)),
                *(Queue("t", "b", 0), Queue("t", "b", 1)),
            )
            assert found[0].addresses == {"a": "a:1", "b": "b:1"}

    run(scenario())


@pytest.mark.row("PRD-3")
def test_an_unknown_topic_borrows_the_route_of_new_ones_until_it_has_its_own() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        routes = {"TBW102": route({"b": "b:1"}, queues=8)}
        name_server(net, routes)
        async with Client("n:1", dial=net.dial) as client:
            borrowed = await client.routes.get("t")
            assert borrowed.is_borrowed
            assert [queue.id for queue in borrowed.queues] == [0, 1, 2, 3]
            routes["t"] = route({"b": "b:1"}, queues=6)
            assert (await client.routes.get("t")) is borrowed
            await pass_time(1)
            own = await client.routes.get("t")
            assert (len(own.queues), own.is_borrowed) == (6, False)

    run(scenario())


@pytest.mark.row("PRD-3")
def test_a_topic_without_any_route_is_its_own_error() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {"read only": route({"b": "b:1"}, perm=4)})
        async with Client("n:1", dial=net.dial) as client:
            with pytest.raises(NoRoute, match="topic t is unknown"):
                await client.routes.get("t")
            with pytest.raises(NoRoute, match="no queue that may be written"):
                await client.routes.get("read only")

    run(scenario())


def test_the_next_name_server_is_asked_where_one_fails_and_stays_first() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        down = name_server(net, {}, "n:1")
        down.is_down = True
        second = name_server(net, {"t": route({"b": "b:1"}), "u": route({"b": "b:1"})}, "n:2")
        async with Client("n:1;n:2", dial=net.dial) as client:
            await client.routes.get("t")
            await client.routes.get("u")
            assert len(second.of(105)) == 2
            assert len(down.dial_times) == 1
            second.transport.lose()
            second.is_down = True
            await settle()
            with pytest.raises(Unreachable):
                await client.routes.get("v")

    run(scenario())


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"queueDatas": 5}'])
def test_a_route_that_is_none_is_an_error_of_its_name_server(body: bytes) -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {"t": body})
        async with Client("n:1", dial=net.dial) as client:
            with pytest.raises(NoRoute, match=r"n:1: route of t"):
                await client.routes.get("t")

    run(scenario())


def test_routes_are_asked_for_again_every_thirty_seconds() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        routes = {"t": route({"b": "b:1"}, queues=1)}
        peer = name_server(net, routes)
        async with Client("n:1", dial=net.dial) as client:
            assert len((await client.routes.get("t")).queues) == 1
            routes["t"] = route({"b": "b:1"}, queues=3)
            await pass_time(29)
            assert len((await client.routes.get("t")).queues) == 1
            await pass_time(2)
            assert len((await client.routes.get("t")).queues) == 3
            peer.transport.lose()
            peer.is_down = True
            await pass_time(60)
            assert len((await client.routes.get("t")).queues) == 3, "kept while nobody answers"
            peer.is_down = False
            del routes["t"]
            await pass_time(60)
            with pytest.raises(NoRoute):
                await client.routes.get("t")

    run(scenario())


def groups(command: Command) -> list[str]:
    body = msgspec.json.decode(command.body, type=HeartbeatBody)
    return [data.group_name for data in body.producer_data_set]


def test_brokers_are_told_who_produces_when_connected_and_every_thirty_seconds() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {"t": route({"b": "b:1"})})
        broker = net.listen("b:1")
        async with Client("n:1", dial=net.dial) as client:
            client.add_producer("shop")
            await client.routes.get("t")
            await client.broker("b:1").request(310, timeout_s=3)
            assert broker.codes == [34, 310], "told before anything is asked"
            assert groups(broker.asked[0]) == ["shop"]
            await pass_time(31)
            assert broker.codes == [34, 310, 34]
            broker.transport.lose()
            await pass_time(30)
            assert len(broker.transports) == 2, "dialled again by the next heartbeat"
            with pytest.raises(ValueError, match="a producer of the group shop already"):
                client.add_producer("shop")
        await settle()
        assert broker.codes[-1] == 35
        assert broker.asked[-1].fields["producerGroup"] == "shop"

    run(scenario())


def test_a_broker_that_no_route_names_any_more_is_left() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        routes = {"t": route({"a": "a:1", "b": "b:1"})}
        name_server(net, routes)
        old, _ = net.listen("a:1"), net.listen("b:1")
        async with Client("n:1", dial=net.dial) as client:
            await client.routes.get("t")
            await client.broker("a:1").request(1, timeout_s=3)
            routes["t"] = route({"b": "b:1"})
            await pass_time(31)
            assert old.transport.is_closing()

    run(scenario())


def test_what_a_broker_asks_and_nobody_serves_is_answered_so() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        broker = net.listen("b:1")
        async with Client("n:1", dial=net.dial) as client:
            await client.broker("b:1").request(1, timeout_s=3)
            broker.ask(307, {})
            await settle()
            assert [answer.code for answer in broker.answers] == [3]

    run(scenario())


def test_a_client_is_opened_once_and_not_used_before() -> None:
    async def scenario() -> None:
        client = Client("n:1", dial=MemoryNet().dial)
        with pytest.raises(Closed, match="is not open"):
            client.broker("b:1")
        async with client:
            with pytest.raises(Closed, match="opened once"):
                await client.open()
        await client.close()

    run(scenario())


@pytest.mark.row("PRD-3")
@pytest.mark.parametrize("given", ["", ";", []])
def test_no_name_server_is_an_error_of_its_own(given: str | list[str]) -> None:
    with pytest.raises(ValueError, match="no name server"):
        Client(given)
