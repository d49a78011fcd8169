"""Request and reply on an in-memory network: docs/reference/sdk.md, "Request and reply"."""

from __future__ import annotations

import asyncio
import zlib

import pytest
from tests.sdk.client.test_client import route
from tests.sdk.memorynet import now, run, settle
from tests.sdk.producer.test_producer import ProducerWorld, stored

from rockgate.protocol.entry import pack_properties, parse_properties
from rockgate.protocol.remoting.command import Command
from rockgate.sdk import InvalidMessage, Message, Received, Refused, TimedOut

PUSHED = {
    "producerGroup": "g",
    "topic": "c_REPLY_TOPIC",
    "defaultTopic": "",
    "sysFlag": "0",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "bornTimestamp": "1",
    "flag": "0",
    "bornHost": "h:1",
    "storeHost": "h:2",
    "storeTimestamp": "1",
}


def push(world: ProducerWorld, number: str, body: bytes, **more: str) -> None:
    properties = pack_properties({"CORRELATION_ID": number, "color": "blue"}.items()).decode()
    world.brokers["a"].ask(326, {**PUSHED, "properties": properties, **more}, body)


def asked(world: ProducerWorld) -> dict[str, str]:
    [(_, request)] = world.sent()
    return parse_properties(request.fields["i"].encode())


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_request_waits_for_the_reply_of_its_number(is_compressed: bool) -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            asking = asyncio.create_task(producer.request(Message("t", b"?"), timeout_s=5))
            await settle()
            properties = asked(world)
            assert properties["REPLY_TO_CLIENT"] == producer.client.id
            assert properties["TTL"] == "5000"
            push(world, "another", b"not this one")
            if is_compressed:
                number = properties["CORRELATION_ID"]
                push(world, number, zlib.compress(b"yes"), sysFlag=str(1 | 3 << 8))
            else:
                push(world, properties["CORRELATION_ID"], b"yes")
            reply = await asking
            assert (reply.body, reply.properties["color"]) == (b"yes", "blue")
            await settle()
            assert [answer.code for answer in world.brokers["a"].answers] == [0, 0]

    run(scenario())


def test_a_request_without_a_reply_ends_in_time() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            began = now()
            with pytest.raises(TimedOut, match="No reply from t within 3 s"):
                await producer.request(Message("t", b"?"))
            assert now() - began == pytest.approx(3)
            push(world, asked(world)["CORRELATION_ID"], b"late")
            await settle()
            assert [answer.code for answer in world.brokers["a"].answers] == [0]

    run(scenario())


def test_a_request_that_cannot_be_sent_fails_as_a_send_does() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[310] = lambda _: Command(13, remark="no")
        async with world.producer() as producer:
            with pytest.raises(Refused):
                await producer.request(Message("t", b"?"))

    run(scenario())


@pytest.mark.parametrize("fields", [{}, {**PUSHED, "sysFlag": str(1 | 3 << 8)}])
def test_a_reply_that_cannot_be_read_is_refused(fields: dict[str, str]) -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            await producer.send(Message("t", b"x"))
            world.brokers["a"].ask(326, fields, b"no zlib")
            await settle()
            assert [answer.code for answer in world.brokers["a"].answers] == [1]

    run(scenario())


def test_a_reply_goes_to_the_reply_topic_of_the_cluster_with_the_number() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.routes["c_REPLY_TOPIC"] = route({"a": "a:1"})
        world.brokers["a"].script[325] = stored
        wanted = {"CORRELATION_ID": "n", "REPLY_TO_CLIENT": "c1", "TTL": "3000"}
        async with world.producer() as producer:
            request = Received.of("t", b"?", properties={**wanted, "CLUSTER": "c"})
            await producer.reply(request, b"yes")
            [sent] = world.brokers["a"].of(325)
            properties = parse_properties(sent.fields["i"].encode())
            assert (sent.fields["b"], sent.body) == ("c_REPLY_TOPIC", b"yes")
            assert {name: properties[name] for name in wanted} == wanted
            assert properties["MSG_TYPE"] == "reply"
            with pytest.raises(
                InvalidMessage, match="is not a request: property 'CLUSTER' is missing"
            ):
                await producer.reply(Received.of("t", b"?"), b"yes")

    run(scenario())
