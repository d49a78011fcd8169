"""Producers of one process share a client: docs/sdk.md, "The client"."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.sdk.memorynet import run, settle
from tests.sdk.test_client import groups
from tests.sdk.test_producer import World

from rockgate.sdk import Client, Closed, Message, NoNameServer, Producer, sharing


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Clients that are made by sharing dial into this world."""
    made = World()

    def client(addresses: list[str], instance: str | None) -> Client:
        return Client(addresses, instance=instance, dial=made.net.dial)

    monkeypatch.setattr(sharing, "Client", client)
    yield made


@pytest.mark.row("P-05")
@pytest.mark.row("PRD-1")
def test_producers_of_the_same_servers_share_connections_and_heartbeats(world: World) -> None:
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
        with pytest.raises(Closed, match="the producer is not open"):
            one.client  # noqa: B018 # reading it is what is tested

    run(scenario())


def test_a_client_is_closed_with_its_last_producer(world: World) -> None:
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
def test_a_group_is_there_once_in_a_process_unless_an_instance_is_named(world: World) -> None:
    async def scenario() -> None:
        async with Producer("n:1", group="shop") as producer:
            second = Producer("n:1", group="shop")
            with pytest.raises(ValueError, match="the group shop already: give the second another"):
                await second.open()
            async with Producer("n:1", group="shop", instance="blue") as other:
                assert other.client is not producer.client
                assert other.client.id.endswith("@blue")
            await producer.send(Message("t", b"x"))
        await second.open()
        await second.close()

    run(scenario())


def test_each_loop_has_a_client_of_its_own(world: World) -> None:
    async def scenario() -> Client:
        async with Producer("n:1", group="shop") as producer:
            return producer.client

    assert run(scenario()) is not run(scenario())


def test_what_a_loop_left_behind_is_forgotten(world: World) -> None:
    async def careless() -> None:
        await Producer("n:1", group="shop").open()

    run(careless())
    run(careless())
    assert len([loop for loop in sharing._held if loop.is_closed()]) == 1


def test_sends_under_way_fail_when_the_last_producer_closes(world: World) -> None:
    async def scenario() -> None:
        world.brokers["a"].script[310] = lambda _: None
        producer = await Producer("n:1", group="shop").open()
        sending = asyncio.create_task(producer.send(Message("t", b"x")))
        await settle()
        await producer.close()
        with pytest.raises(Closed):
            await sending

    run(scenario())


@pytest.mark.row("PRD-3")
def test_a_producer_without_a_name_server_is_refused_when_it_is_made() -> None:
    with pytest.raises(NoNameServer) as missing:
        Producer(" ; ", group="shop")
    assert missing.value.code == 10004
    with pytest.raises(ValueError, match="not host:port"):
        Producer("n", group="shop")
