"""RocketMQ's message trace: docs/reference/sdk.md, "Traces"."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sdk.client.test_client import route
from tests.sdk.memorynet import pass_time, run, settle
from tests.sdk.producer.test_producer import NOW_MS, ProducerWorld, refusing
from tests.sdk.producer.test_transaction import Checked, check_for

from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.compression import Compression, decompress
from rockgate.sdk import Message, Outcome, Refused
from rockgate.sdk.observe.message_trace import MESSAGE_RECORDS_MAX, RECORDS_MAX

PLACE = "7F00000100002A9F00000000000000FF"


class Traced(ProducerWorld):
    """A world whose broker has the trace topic."""

    def __init__(self, topic: str = "RMQ_SYS_TRACE_TOPIC") -> None:
        super().__init__()
        self.topic = topic
        self.routes[topic] = route({"a": "a:1"})

    def traces(self) -> list[Command]:
        return [request for _, request in self.sent() if request.fields["b"] == self.topic]

    def records(self) -> list[list[str]]:
        found: list[list[str]] = []
        for request in self.traces():
            body = bytes(request.body)
            if int(request.fields["f"]) & 1:
                body = decompress(body, Compression.ZLIB)
            found += [each.split("\x01") for each in body.decode().split("\x02")[:-1]]
        return found


def test_what_was_sent_is_reported_in_rocketmqs_form() -> None:
    async def scenario() -> None:
        world = Traced()
        async with world.producer(trace=True) as producer:
            result = await producer.send(Message("t", b"tea", tag="T", keys=["a", "b"]))
            await producer.send(Message("t", b"late", delay=3))
            assert world.traces() == [], "gathered first"
            await pass_time(0.1)
            [request] = world.traces()
        first, second = world.records()
        assert first == [
            *("Pub", str(NOW_MS), "DefaultRegion", "shop", "t", result.message_id, "T", "a b"),
            *("127.0.0.1:10911", "3", "0", "0", PLACE, "true"),
        ]
        assert second[11] == "3", "a delayed one"
        keys = parse_properties(request.fields["i"].encode())["KEYS"].split()
        assert keys[:3] == [result.message_id, "a", "b"]
        assert request.fields["a"] == "_INNER_TRACE_PRODUCER-shop"

    run(scenario())


def test_batches_oneway_sends_and_failures_are_reported_too() -> None:
    async def scenario() -> None:
        world = Traced()
        async with world.producer(trace=True) as producer:
            await producer.send_batch([Message("t", b"x"), Message("t", b"y")])
            await producer.send_oneway(Message("t", b"x"))
            world.brokers["a"].script[310] = lambda request: (
                refusing(13)(request) if request.fields["b"] == "t" else Command(0)
            )
            with pytest.raises(Refused):
                await producer.send(Message("t", b"x", keys=["odd\x01key"]))
        *sent, failed = world.records()
        assert [record[13] for record in sent] == ["true"] * 3
        assert len({record[5] for record in sent}) == 3
        assert (failed[7], failed[8], failed[12], failed[13]) == ("odd key", "", "", "false")

    run(scenario())


def test_the_end_of_a_transaction_is_reported() -> None:
    async def scenario() -> None:
        world = Traced()
        checker = Checked(Outcome.ROLLBACK)
        async with world.producer(trace=True, checker=checker) as producer:
            async with producer.transaction(Message("t", b"x", keys=["k"])) as tx:
                pass
            check_for(world, "shop")
            await settle()
        half, end, checked = world.records()
        assert half[11] == "1"
        assert end[0] == "EndTransaction"
        assert end[3:10] == ["shop", "t", tx.result.message_id, "", "k", "a:1", "2"]
        assert end[11:] == ["COMMIT_MESSAGE", "false"]
        assert (checked[5], *checked[11:]) == ("u", "ROLLBACK_MESSAGE", "true")

    run(scenario())


@pytest.mark.row("P-06")
def test_a_trace_that_cannot_be_written_stops_no_send(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = Traced()
        del world.routes[world.topic]
        async with world.producer(trace=True) as producer:
            await producer.send(Message("t", b"x"))
            await pass_time(10)
            await producer.send(Message("t", b"x"))
        assert len(world.sent()) == 2

    run(scenario())
    assert "the message trace was not written" in caplog.text


def test_another_topic_may_be_named_and_many_records_are_several_messages() -> None:
    async def scenario() -> None:
        world = Traced("own-trace")
        async with world.producer(trace="own-trace") as producer:
            for _ in range(MESSAGE_RECORDS_MAX + 1):
                await producer.send(Message("t", b"x"))
        assert len(world.traces()) == 2
        assert len(world.records()) == MESSAGE_RECORDS_MAX + 1

    run(scenario())


def test_records_that_no_one_can_take_are_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        world = Traced()
        async with world.producer(trace=True) as producer:
            await producer.send_batch([Message("t", b"x")] * (RECORDS_MAX + 7))
        assert len(world.records()) == RECORDS_MAX

    run(scenario())
    assert "7 trace records were dropped" in caplog.text


@pytest.mark.parametrize("trace", [False, ""])
def test_nothing_is_traced_unless_it_is_asked_for(trace: Any) -> None:
    async def scenario() -> None:
        world = Traced()
        async with world.producer(trace=trace) as producer:
            await producer.send(Message("t", b"x"))
        assert world.traces() == []

    run(scenario())
