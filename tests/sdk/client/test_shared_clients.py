"""Producers of one process share a client: docs/reference/sdk.md, "The client"."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.sdk.client.test_client import groups
from tests.sdk.memorynet import now, pass_time, run, settle
from tests.sdk.producer.test_producer import ProducerWorld, stored

from rockgate.protocol.remoting.command import Command
from rockgate.sdk import (
    Client,
    Closed,
    LinkSettings,
    Message,
    NoNameServer,
    Producer,
    SendFailed,
    SendStatus,
)
from rockgate.sdk.client import shared_clients


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProducerWorld]:
    """Clients that are made by sharing dial into this world."""
    made = ProducerWorld()

    def client(addresses: list[str], **options: Any) -> Client:
        return Client(addresses, dial=made.net.dial, **options)

    monkeypatch.setattr(shared_clients, "Client", client)
    yield made


@pytest.mark.row("P-05")
@pytest.mark.row("PRD-1")
def test_producers_of_the_same_servers_share_connections_and_heartbeats(
    world: ProducerWorld,
) -> None:
    async def scenario() -> None:
        async with (
            Producer("n:1;n:2", group="one") as one,
            Producer(["n:2", " n:1 "], group="two") as two,
        ):
            assert one.client is two.client
            await one.send(Message("t", b"x"))
            await two.send(Message("t", b"x"))
            await settle()
            broker = world.brokers["a"]
            assert len(broker.transports) == 1
            assert groups(broker.of(34)[-1]) == ["one", "two"]
        with pytest.raises(Closed, match="The producer is not open"):
            one.client  # noqa: B018 # reading it is what is tested

    run(scenario())


def test_a_client_is_closed_with_its_last_producer(world: ProducerWorld) -> None:
    async def scenario() -> None:
        first = await Producer("n:1", group="one").open()
        second = await Producer("n:1", group="two").open()
        shared = second.client
        await second.send(Message("t", b"x"))
        await first.close()
        await first.close()
        await second.send(Message("t", b"x"))
        broker = world.brokers["a"]
        await settle()
        assert [each.fields["producerGroup"] for each in broker.of(35)] == ["one"]
        await second.close()
        await settle()
        assert broker.transport.is_closing()
        async with Producer("n:1", group="one") as third:
            assert third.client is not shared

    run(scenario())


@pytest.mark.row("P-04")
@pytest.mark.row("PRD-1")
def test_a_group_is_there_once_in_a_process_unless_an_instance_is_named(
    world: ProducerWorld,
) -> None:
    async def scenario() -> None:
        async with Producer("n:1", group="shop") as producer:
            second = Producer("n:1", group="shop")
            with pytest.raises(
                ValueError, match=r"already has a producer of group shop\. Use another group"
            ):
                await second.open()
            async with Producer("n:1", group="shop", instance="blue") as other:
                assert other.client is not producer.client
                assert other.client.id.endswith("@blue")
            await producer.send(Message("t", b"x"))
        await second.open()
        await second.close()

    run(scenario())


def test_each_loop_has_a_client_of_its_own(world: ProducerWorld) -> None:
    async def scenario() -> Client:
        async with Producer("n:1", group="shop") as producer:
            return producer.client

    assert run(scenario()) is not run(scenario())


def test_what_a_loop_left_behind_is_forgotten(world: ProducerWorld) -> None:
    async def careless() -> None:
        await Producer("n:1", group="shop").open()

    run(careless())
    run(careless())
    assert len([loop for loop in shared_clients._by_loop if loop.is_closed()]) == 1


def test_closing_waits_for_what_is_under_way_and_tells_what_came_of_it(
    world: ProducerWorld,
) -> None:
    async def scenario() -> None:
        broker = world.brokers["a"]
        held: list[Command] = []
        broker.script[310] = lambda request: held.append(request)
        producer = await Producer("n:1", group="shop").open()
        sending = [asyncio.create_task(producer.send(Message("t", b"x"))) for _ in range(200)]
        await settle()
        closing = asyncio.create_task(producer.close())
        await settle()
        assert not closing.done()
        with pytest.raises(Closed, match="is not open"):
            await producer.send(Message("t", b"too late"))
        assert len(held) == 200
        for request in held:
            broker.transport.connection.respond(request, stored(request))
        broker.transport.flush()
        await closing
        assert [(await one).status for one in sending] == [SendStatus.OK] * 200
        assert broker.codes[-1] == 35, "leave was taken when all was answered"

    run(scenario())


def test_what_is_not_answered_in_time_fails_when_the_last_producer_closes(
    world: ProducerWorld,
) -> None:
    async def scenario() -> None:
        world.brokers["a"].script[310] = lambda _: None
        client = Client("n:1", dial=world.net.dial, settings=LinkSettings(silence_max_s=100))
        async with client, Producer(client=client, group="other") as other:
            theirs = asyncio.create_task(other.send(Message("t", b"x"), timeout_s=8))
            await settle()
            began = now()
            await other.close(timeout_s=2)
            assert now() - began == pytest.approx(2)
            with pytest.raises(SendFailed):
                await theirs
            assert now() - began == pytest.approx(8), "a client that stays open goes on with it"
        producer = await Producer("n:1", group="shop").open()
        sending = asyncio.create_task(producer.send(Message("t", b"x"), timeout_s=2.9))
        await settle()
        began = now()
        await producer.close(timeout_s=2)
        with pytest.raises(Closed):
            await sending
        assert now() - began == pytest.approx(2)

    run(scenario())


def test_closing_ends_a_wait_for_a_broker_that_is_away(world: ProducerWorld) -> None:
    async def scenario() -> None:
        world.brokers["a"].is_down = True
        producer = await Producer("n:1", group="shop").open()
        sending = asyncio.create_task(producer.send(Message("t", b"x"), timeout_s=60))
        await pass_time(1.55)
        assert not sending.done()
        await producer.close(timeout_s=0)
        await settle()
        assert sending.done(), "it does not wait for its back-off"
        with pytest.raises(Closed):
            await sending

    run(scenario())


@pytest.mark.parametrize("when", ["while it drains", "while it takes leave"])
def test_a_cancelled_close_leaves_nothing_open_and_can_be_repeated(
    world: ProducerWorld, when: str
) -> None:
    async def scenario() -> None:
        broker = world.brokers["a"]
        producer = await Producer("n:1", group="shop").open()
        await producer.send(Message("t", b"x"))
        broker.script[310] = lambda _: None
        sending = asyncio.create_task(producer.send(Message("t", b"x"), timeout_s=2.9))
        await settle()
        broker.reads = False
        closing = asyncio.create_task(producer.close(timeout_s=2))
        await pass_time(1 if when == "while it drains" else 2.5)
        assert not closing.done()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await settle()
        assert all(each.is_closing() for each in broker.transports + world.name_server.transports)
        with pytest.raises(Closed):
            await sending
        began = now()
        await producer.close()
        assert now() == began
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not shared_clients._by_loop.get(asyncio.get_running_loop())
        async with Producer("n:1", group="shop"):
            pass

    run(scenario())


def test_a_second_close_waits_for_the_first(world: ProducerWorld) -> None:
    async def scenario() -> None:
        world.brokers["a"].script[310] = lambda _: None
        producer = await Producer("n:1", group="shop").open()
        sending = asyncio.create_task(producer.send(Message("t", b"x"), timeout_s=2))
        await settle()
        began = now()
        await asyncio.gather(producer.close(), producer.close())
        assert now() - began == pytest.approx(2)
        with pytest.raises(SendFailed):
            await sending

    run(scenario())


def test_a_peer_that_does_not_read_holds_closing_up_for_a_second(world: ProducerWorld) -> None:
    async def scenario() -> None:
        broker = world.brokers["a"]
        producer = await Producer("n:1", group="shop").open()
        await producer.send(Message("t", b"x"))
        broker.reads = False
        began = now()
        await producer.close()
        assert now() - began == pytest.approx(1)
        assert broker.transport.is_closing()

    run(scenario())


def test_a_trace_that_cannot_be_written_holds_closing_up_no_longer_than_anything(
    world: ProducerWorld,
) -> None:
    async def scenario() -> None:
        producer = await Producer("n:1", group="shop", trace=True).open()
        await producer.send(Message("t", b"x"))
        world.routes["RMQ_SYS_TRACE_TOPIC"] = world.routes["t"]
        world.brokers["a"].script[310] = lambda _: None
        began = now()
        await producer.close(timeout_s=2)
        assert now() - began == pytest.approx(2, abs=0.1)

    run(scenario())


def test_who_waits_for_a_reply_is_notified_when_the_client_closes(world: ProducerWorld) -> None:
    async def scenario() -> None:
        producer = await Producer("n:1", group="shop").open()
        asking = asyncio.create_task(producer.request(Message("t", b"x"), timeout_s=600))
        await settle()
        await producer.close()
        with pytest.raises(Closed, match="before the reply arrived"):
            await asking

    run(scenario())


@pytest.mark.row("PRD-3")
def test_a_producer_without_a_name_server_is_refused_when_it_is_made() -> None:
    with pytest.raises(NoNameServer) as missing:
        Producer(" ; ", group="shop")
    assert missing.value.code == 10004
    with pytest.raises(ValueError, match="expected host:port"):
        Producer("n", group="shop")
