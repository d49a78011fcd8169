"""A namespace on the wire, and none for the caller: docs/reference/sdk.md, "Names"."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.sdk.client.test_client import groups, route
from tests.sdk.memorynet import run, settle
from tests.sdk.producer.test_producer import ProducerWorld
from tests.sdk.producer.test_transaction import Checked, check_for

from rockgate.protocol.entry import parse_properties
from rockgate.sdk import Client, Message, Outcome, Producer, Queue
from rockgate.sdk.namespaces import unwrap, wrap


@pytest.mark.parametrize(
    ("plain", "wrapped"),
    [
        ("orders", "shop%orders"),
        ("%RETRY%payers", "%RETRY%shop%payers"),
        ("%DLQ%payers", "%DLQ%shop%payers"),
        ("RMQ_SYS_TRACE_TOPIC", "RMQ_SYS_TRACE_TOPIC"),
        ("DefaultCluster_REPLY_TOPIC", "DefaultCluster_REPLY_TOPIC"),
    ],
)
def test_names_are_wrapped_once_and_come_back(plain: str, wrapped: str) -> None:
    assert wrap("shop", plain) == wrapped
    assert wrap("shop", wrapped) == wrapped
    assert unwrap("shop", wrapped) == plain
    assert wrap("", plain) == unwrap("", plain) == plain


@pytest.mark.row("P-21")
def test_a_namespace_is_on_the_wire_and_not_in_what_the_caller_reads() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.routes["ns%t"] = world.routes.pop("t")
        seen: list[Queue] = []
        checker = Checked(Outcome.COMMIT)

        def select(queues: Sequence[Queue]) -> Queue:
            seen.extend(queues)
            return queues[1]

        async with (
            Client("n:1", dial=world.net.dial) as client,
            Producer(client=client, group="shop", namespace="ns", checker=checker) as producer,
        ):
            assert producer.group == "shop"
            result = await producer.send(Message("t", b"x"), selector=select)
            assert (result.queue.topic, {queue.topic for queue in seen}) == ("t", {"t"})
            await producer.send(Message("t", b"x"), queue=(await producer.queues("t"))[0])
            await producer.send_batch([Message("t", b"x")])
            await producer.send_oneway(Message("t", b"x"))
            async with producer.transaction(Message("t", b"x")) as tx:
                pass
            assert tx.is_confirmed
            check_for(world, "ns%shop", topic="ns%t")
            await settle()
        broker = world.brokers["a"]
        assert groups(broker.of(34)[0]) == ["ns%shop"]
        for _, request in world.sent():
            assert (request.fields["a"], request.fields["b"]) == ("ns%shop", "ns%t")
        properties = parse_properties(world.sent()[0][1].fields["i"].encode())
        assert properties["INSTANCE_ID"] == "ns"
        assert {end.fields["topic"] for end in broker.of(37)} == {"ns%t"}
        assert {end.fields["producerGroup"] for end in broker.of(37)} == {"ns%shop"}
        assert [message.topic for message in checker.asked] == ["t"]
        assert broker.of(35)[0].fields["producerGroup"] == "ns%shop"

    run(scenario())


@pytest.mark.row("P-21")
def test_a_moved_topic_of_a_namespace_is_found_again() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.routes["ns%t"] = world.routes.pop("t")
        async with (
            Client("n:1", dial=world.net.dial) as client,
            Producer(client=client, group="shop", namespace="ns") as producer,
        ):
            await producer.send(Message("t", b"x"))
            world.routes["ns%t"] = route({"new": "new:1"})
            world.listen("new")
            world.brokers["a"].is_down = True
            world.brokers["a"].transport.lose()
            assert (await producer.send(Message("t", b"x"))).queue.broker == "new"

    run(scenario())
