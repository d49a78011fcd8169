"""What producers of one process share: docs/reference/sdk.md, "Routes" and "The client"."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from tests.sdk.memorynet import MemoryNet, Peer, now, pass_time, run, settle
from tests.waiting import until

from rockgate.protocol.remoting.bodies.clients import HeartbeatBody
from rockgate.protocol.remoting.command import Command
from rockgate.sdk import Outcome, Received
from rockgate.sdk.client.checks import GroupChecker
from rockgate.sdk.client.client import Client
from rockgate.sdk.errors import Closed, NoRoute, Unreachable
from rockgate.sdk.results import Queue


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
    peer.script[106] = lambda _: Command(0, body=cluster(routes))
    return peer


def cluster(routes: dict[str, bytes]) -> bytes:
    """Every broker that some route names."""
    table: dict[str, Any] = {}
    for body in routes.values():
        with suppress(msgspec.DecodeError, TypeError, KeyError):
            named = msgspec.json.decode(body)["brokerDatas"]
            table |= {broker["brokerName"]: broker for broker in named}
    return msgspec.json.encode({"brokerAddrTable": table, "clusterAddrTable": {}})


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
            with pytest.raises(NoRoute, match="Topic t does not exist"):
                await client.routes.get("t")
            with pytest.raises(NoRoute, match="no writable queues"):
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
            with pytest.raises(NoRoute, match=r"name server n:1: route of t"):
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
            with pytest.raises(ValueError, match="already has a producer of group shop"):
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


def test_what_a_broker_asks_and_no_one_serves_is_answered_so() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        broker = net.listen("b:1")
        async with Client("n:1", dial=net.dial) as client:
            await client.broker("b:1").request(1, timeout_s=3)
            broker.ask(999, {})
            await settle()
            assert [answer.code for answer in broker.answers] == [3]

    run(scenario())


def test_a_client_is_opened_once_and_not_used_before() -> None:
    async def scenario() -> None:
        client = Client("n:1", dial=MemoryNet().dial)
        with pytest.raises(Closed, match="is not open"):
            client.broker("b:1")
        async with client:
            with pytest.raises(Closed, match="opened only once"):
                await client.open()
        await client.close()

    run(scenario())


@pytest.mark.row("PRD-3")
@pytest.mark.parametrize("given", ["", ";", []])
def test_no_name_server_is_an_error_of_its_own(given: str | list[str]) -> None:
    with pytest.raises(ValueError, match="No name server"):
        Client(given)


def test_a_short_answer_does_not_become_millions_of_queues() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        brokers = {f"b{number}": "b:1" for number in range(30)}
        routes = {
            "many": route(brokers, queues=65_536),
            "most": route({"b": "b:1"}, queues=65_536),
            "below": route(brokers, queues=-1),
            "absurd": route(brokers, queues=2**63),
        }
        assert len(routes["many"]) < 5000
        name_server(net, routes)
        async with Client("n:1", dial=net.dial) as client:
            with pytest.raises(NoRoute, match="30 brokers have 1,966,080 queues"):
                await client.routes.get("many")
            for topic in ("below", "absurd"):
                with pytest.raises(NoRoute, match="Invalid route of topic"):
                    await client.routes.get(topic)
            assert len((await client.routes.get("most")).queues) == 65_536

    run(scenario())


def test_a_broker_that_is_named_twice_is_one() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        body = msgspec.json.decode(route({"b": "b:1"}, queues=3))
        body["queueDatas"] *= 1000
        name_server(net, {"t": msgspec.json.encode(body)})
        async with Client("n:1", dial=net.dial) as client:
            assert [queue.id for queue in (await client.routes.get("t")).queues] == [0, 1, 2]

    run(scenario())


@pytest.mark.parametrize("address", ["", "b", "b:0", "b:99999", "b:-1", "b:x", ":1", "b:1:"])
def test_a_broker_whose_address_is_none_is_left_out(address: str) -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(
            net, {"t": route({"good": "b:1", "bad": address}), "u": route({"bad": address})}
        )
        async with Client("n:1", dial=net.dial) as client:
            found = await client.routes.get("t")
            assert found.addresses == {"good": "b:1"}
            assert {queue.broker for queue in found.queues} == {"good"}
            with pytest.raises(NoRoute):
                await client.routes.get("u")

    run(scenario())


def test_an_answer_of_a_name_server_has_a_size() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        large = route({f"broker-{number:04}": "b:1" for number in range(1000)}, queues=1)
        assert len(large) > 100_000
        name_server(net, {"large": large, "t": b"[" + b" " * (1 << 20) + b"]"})
        async with Client("n:1", dial=net.dial) as client:
            with pytest.raises(NoRoute, match="1,048,578 bytes, the maximum is 1,048,576"):
                await client.routes.get("t")

    run(scenario())


async def test_a_large_route_is_read_beside_the_loop() -> None:
    net = MemoryNet()
    body = route({f"broker-{number:04}": "b:1" for number in range(1000)}, queues=1)
    name_server(net, {"t": body})
    async with Client("n:1", dial=net.dial) as client:
        assert len((await client.routes.get("t")).queues) == 1000


def test_a_borrowed_route_is_used_while_no_name_server_answers() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        peer = name_server(net, {"TBW102": route({"b": "b:1"}, queues=8)})
        async with Client("n:1", dial=net.dial) as client:
            borrowed = await client.routes.get("t")
            peer.transport.lose()
            peer.is_down = True
            await pass_time(100)
            assert await client.routes.get("t") is borrowed

    run(scenario())


def test_a_route_that_can_only_be_read_is_none_to_write_while_no_name_server_answers() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        peer = name_server(net, {"t": route({"b": "b:1"}, perm=4)})
        async with Client("n:1", dial=net.dial) as client:
            assert (await client.routes.readable("t")).readable
            peer.transport.lose()
            peer.is_down = True
            with pytest.raises(Unreachable):
                await client.routes.get("t")

    run(scenario())


def test_a_name_server_that_was_started_anew_takes_no_route_away() -> None:
    """It knows nothing until the brokers have told it, which they do within 30 s."""

    async def scenario() -> None:
        net = MemoryNet()
        routes = {"t": route({"b": "b:1"})}
        name_server(net, routes)
        broker = net.listen("b:1")
        async with Client("n:1", dial=net.dial) as client:
            known = await client.routes.get("t")
            await client.broker("b:1").request(1, timeout_s=3)
            kept = dict(routes)
            routes.clear()
            await pass_time(31)
            assert await client.routes.get("t") is known
            assert not broker.transport.is_closing()
            routes.update(kept)
            await pass_time(31)
            routes.clear()
            await pass_time(31)
            assert (await client.routes.get("t")).queues == known.queues
            await pass_time(31)
            with pytest.raises(NoRoute):
                await client.routes.get("t")

    run(scenario())


def test_what_one_name_server_does_not_know_another_may() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {}, "n:1")
        second = name_server(net, {"t": route({"b": "b:1"})}, "n:2")
        async with Client("n:1;n:2", dial=net.dial) as client:
            known = await client.routes.get("t")
            second.transport.lose()
            second.is_down = True
            await pass_time(200)
            assert await client.routes.get("t") is known, "who is away may still know it"

    run(scenario())


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"brokerDatas":[],"queueDatas":5}'])
def test_an_answer_that_cannot_be_read_takes_no_route_away(body: bytes) -> None:
    async def scenario() -> None:
        net = MemoryNet()
        routes = {"t": route({"b": "b:1"})}
        name_server(net, routes)
        async with Client("n:1", dial=net.dial) as client:
            known = await client.routes.get("t")
            routes["t"] = body
            await pass_time(100)
            assert await client.routes.get("t") is known

    run(scenario())


def test_a_name_server_that_says_nothing_leaves_time_for_the_next() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        net.listen("n:1").script[105] = lambda _: None
        name_server(net, {"t": route({"b": "b:1"})}, "n:2")
        async with Client("n:1;n:2", dial=net.dial) as client:
            began = now()
            await client.routes.get("t")
            assert now() - began == pytest.approx(1)

    run(scenario())


class Forbidding:
    """A hook that forbids some code."""

    def __init__(self, code: int) -> None:
        self.code = code

    def before_request(self, address: str, code: int, fields: Any, body: Any) -> None:
        if code == self.code:
            raise LookupError("no key to sign with")

    def after_response(self, address: str, code: int, answer: Command) -> None:
        pass


@pytest.mark.parametrize("code", [34, 35, 105, 106])
def test_the_upkeep_continues_whatever_a_hook_raises(code: int) -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {"t": route({"b": "b:1"})})
        broker = net.listen("b:1")
        hook = Forbidding(0)
        async with Client("n:1", dial=net.dial, rpc_hooks=[hook]) as client:
            client.add_producer("shop", GroupChecker(checker=unknown))
            await client.routes.get("t")
            await client.broker("b:1").request(1, timeout_s=3)
            hook.code = code
            await pass_time(100)
            client.add_producer("forbidden")
            client.remove_producer("forbidden")
            hook.code = 0
            count = len(broker.of(34))
            await pass_time(65)
            assert len(broker.of(34)) > count
            hook.code = code
        await settle()
        assert broker.transport.is_closing()

    run(scenario())


async def unknown(_: Received) -> Outcome:
    return Outcome.UNKNOWN


def test_the_upkeep_continues_though_a_broker_has_no_host() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {"t": route({"bad": f"{'x' * 70}:1", "worse": "b", "good": "b:1"})})
        broker = net.listen("b:1")
        dialled: list[str] = []

        async def dial(factory: Any, host: str, port: int) -> Any:
            dialled.append(host)
            if len(host) > 63:
                # As getaddrinfo does.
                host.encode("idna")
            return await net.dial(factory, host, port)

        async with Client("n:1", dial=dial) as client:
            client.add_producer("shop", GroupChecker(checker=unknown))
            await pass_time(100)
            assert len(broker.of(34)) >= 3
            assert dialled.count("x" * 70) >= 3

    run(scenario())


def test_who_answers_checks_is_made_known_to_every_master_at_once() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        routes = {"t": route({"a": "a:1"}), "u": route({"b": "b:1"})}
        name_server(net, routes)
        a, b, c = (net.listen(f"{name}:1") for name in "abc")
        async with Client("n:1", dial=net.dial) as client:
            client.add_producer("plain")
            await pass_time(40)
            assert a.codes == b.codes == [], "one without a checker waits for its first send"
            client.add_producer("shop", GroupChecker(checker=unknown))
            await settle()
            for broker in (a, b):
                assert [groups(beat) for beat in broker.of(34)] == [["plain", "shop"]]
            routes["v"] = route({"c": "c:1"})
            await pass_time(31)
            assert groups(c.of(34)[0]) == ["plain", "shop"], "one that appeared"
            a.transport.lose()
            await pass_time(31)
            assert len(a.transports) == 2
            assert not b.transport.is_closing(), "it is kept though no route names it"
            client.remove_producer("shop")
            await pass_time(31)
            assert a.transport.is_closing(), "nobody here answers checks any more"

    run(scenario())


def test_brokers_are_asked_for_again_soon_while_no_name_server_answers() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        peer = name_server(net, {"t": route({"a": "a:1"})})
        peer.is_down = True
        broker = net.listen("a:1")
        async with Client("n:1", dial=net.dial) as client:
            client.add_producer("shop", GroupChecker(checker=unknown))
            await pass_time(5)
            assert broker.codes == []
            peer.is_down = False
            await pass_time(8)
            assert [groups(beat) for beat in broker.of(34)] == [["shop"]]
            assert len(peer.of(106)) == 1

    run(scenario())


async def test_a_name_server_that_names_absurdly_many_brokers_is_believed_some() -> None:
    net = MemoryNet()
    peer = name_server(net, {"t": route({"a": "a:1"})})
    brokers = {f"b{number}": f"b:{number + 1}" for number in range(5000)}
    peer.script[106] = lambda _: Command(0, body=cluster({"": route(brokers)}))
    async with Client("n:1", dial=net.dial) as client:
        client.add_producer("shop", GroupChecker(checker=unknown))
        await until(lambda: client._brokers, "the brokers are known")
        assert len(client._brokers) == 4096


def test_a_broker_that_is_left_is_left_when_no_one_waits_for_it() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        routes = {"t": route({"a": "a:1", "b": "b:1"})}
        name_server(net, routes)
        old, _ = net.listen("a:1"), net.listen("b:1")
        held: list[Command] = []
        old.script[1] = lambda request: held.append(request)
        async with Client("n:1", dial=net.dial) as client:
            await client.routes.get("t")
            asking = asyncio.create_task(client.broker("a:1").request(1, timeout_s=100))
            routes["t"] = route({"b": "b:1"})
            await pass_time(65)
            old.transport.connection.respond(held[0], Command(0))
            old.transport.flush()
            assert (await asking).code == 0
            await pass_time(31)
            assert old.transport.is_closing()

    run(scenario())


def test_a_request_that_cannot_be_served_leaves_the_connection_open() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        broker = net.listen("b:1")
        async with Client("n:1", dial=net.dial) as client:

            def failing(_link: object, _command: Command) -> None:
                raise ZeroDivisionError

            client.handlers[307] = failing
            await client.broker("b:1").request(1, timeout_s=3)
            broker.ask(307, {})
            await settle()
            assert [answer.code for answer in broker.answers] == [1]
            await client.broker("b:1").request(1, timeout_s=3)
            assert len(broker.transports) == 1

    run(scenario())


def test_a_cancelled_close_closes_everything_at_once() -> None:
    async def scenario() -> None:
        net = MemoryNet()
        name_server(net, {"t": route({"b": "b:1"})})
        broker = net.listen("b:1")
        client = await Client("n:1", dial=net.dial).open()
        await client.routes.get("t")
        await client.broker("b:1").request(1, timeout_s=3)
        broker.reads = False
        closing = asyncio.create_task(client.close())
        await pass_time(0.5)
        closing.cancel()
        await settle()
        assert all(peer.transport.is_closing() for peer in net.peers.values())
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await client.close()

    run(scenario())
