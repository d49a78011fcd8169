"""The producer on an in-memory network: docs/reference/sdk.md, "Sending"."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from tests.sdk.client.test_client import name_server, route
from tests.sdk.memorynet import MemoryNet, Peer, now, pass_time, run, settle

from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.message import decode_batch
from rockgate.sdk import (
    Client,
    Closed,
    ErrorCode,
    InvalidMessage,
    LinkSettings,
    Message,
    NoRoute,
    NotSupported,
    Outcome,
    Producer,
    Queue,
    Received,
    Refused,
    SdkError,
    SendFailed,
    SendResult,
    SendStatus,
    TimedOut,
    Unreachable,
)

NOW_MS = 1_700_000_000_000
SENT = {"msgId": "7F00000100002A9F00000000000000FF", "queueId": "1", "queueOffset": "5"}


def stored(request: Command) -> Command:
    return Command(0, {**SENT, "queueId": request.fields["e"]})


class ProducerWorld:
    def __init__(self, *brokers: str) -> None:
        self.net = MemoryNet()
        self.routes = {"t": route({name: f"{name}:1" for name in brokers or ("a",)})}
        self.name_server = name_server(self.net, self.routes)
        self.brokers = {name: self.listen(name) for name in brokers or ("a",)}

    def listen(self, name: str) -> Peer:
        peer = self.net.listen(f"{name}:1")
        peer.script[310] = peer.script[320] = stored
        return peer

    @asynccontextmanager
    async def producer(self, **more: Any) -> AsyncIterator[Producer]:
        async with (
            Client("n:1", dial=self.net.dial, now_ms=lambda: NOW_MS) as client,
            Producer(client=client, group="shop", **more) as producer,
        ):
            yield producer

    def sent(self) -> list[tuple[str, Command]]:
        return [
            (name, command)
            for name, peer in self.brokers.items()
            for command in peer.asked
            if command.code in (310, 320)
        ]


def refusing(code: int) -> Callable[[Command], Command]:
    return lambda _: Command(code, remark="no")


@pytest.mark.row("P-22")
@pytest.mark.row("P-19")
def test_a_send_carries_what_a_broker_needs_and_returns_where_it_lies() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            message = Message("t", b"hello", tag="T", keys=["k"], flag=7)
            result = await producer.send(message)
        [(_, request)] = world.sent()
        assert request.body == b"hello"
        fields = dict(request.fields)
        properties = parse_properties(fields.pop("i").encode())
        queue = int(fields.pop("e"))
        assert fields == {
            "a": "shop",
            "b": "t",
            "c": "TBW102",
            "d": "4",
            "f": "0",
            "g": str(NOW_MS),
            "h": "7",
            "j": "0",
            "k": "false",
            "m": "false",
            "n": "a",
        }
        assert properties["TAGS"] == "T"
        assert properties["UNIQ_KEY"] == result.message_id
        assert len(result.message_id) == 32
        assert (result.status, result.offset) == (SendStatus.OK, 5)
        assert result.queue == Queue("t", "a", queue)
        assert result.offset_message_id == SENT["msgId"]

    run(scenario())


def test_every_message_has_an_id_of_its_own() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            results = [await producer.send(Message("t", b"x")) for _ in range(50)]
            results += await producer.send_batch([Message("t", b"x")] * 50)
        assert len({result.message_id for result in results}) == 100

    run(scenario())


@pytest.mark.row("P-10")
def test_without_a_choice_queues_take_turns() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        async with world.producer() as producer:
            results = [await producer.send(Message("t", b"x")) for _ in range(8)]
        places = [(result.queue.broker, result.queue.id) for result in results]
        assert len(set(places[:4])) == 4
        assert places[:4] == places[4:]

    run(scenario())


def test_a_queue_is_chosen_by_itself_by_key_or_by_a_selector() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        message = Message("t", b"x")
        async with world.producer() as producer:
            queues = await producer.queues("t")
            assert len(queues) == 4
            assert (await producer.send(message, queue=queues[2])).queue == queues[2]
            by_key = {(await producer.send(message, key="o-1")).queue for _ in range(5)}
            assert by_key == {queues[zlib.crc32(b"o-1") % 4]}
            chosen = await producer.send(message, selector=lambda queues: queues[-1])
            assert chosen.queue == queues[3]
            with pytest.raises(InvalidMessage, match="Give only one of queue, key and selector"):
                await producer.send(message, key="k", queue=queues[0])

    run(scenario())


@pytest.mark.row("P-11")
def test_what_a_selector_does_wrong_reaches_the_caller() -> None:
    async def scenario() -> None:
        world = ProducerWorld()

        def raising(_: Any) -> Queue:
            raise ZeroDivisionError

        async with world.producer() as producer:
            with pytest.raises(ZeroDivisionError):
                await producer.send(Message("t", b"x"), selector=raising)
            with pytest.raises(InvalidMessage, match="must return a Queue, not None"):
                await producer.send(Message("t", b"x"), selector=lambda _: None)  # type: ignore[arg-type,return-value]  # on purpose
            world.brokers["a"].script[310] = lambda _: None
            with pytest.raises(TimedOut):
                await producer.send(Message("t", b"x"), selector=lambda queues: queues[0])
            assert len(world.sent()) == 1

    run(scenario())


@pytest.mark.row("P-20")
def test_a_large_body_travels_compressed_and_a_dense_one_as_it_is() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        body, dense = b"abc" * 2000, Random(1).randbytes(5000)
        async with world.producer() as producer:
            await producer.send(Message("t", b"x" * 4095))
            await producer.send(Message("t", body))
            await producer.send(Message("t", b"y" * 100_000))
            await producer.send(Message("t", dense))
        plain, packed, large, same = (request for _, request in world.sent())
        assert (plain.body, plain.fields["f"]) == (b"x" * 4095, "0")
        assert (zlib.decompress(packed.body), packed.fields["f"]) == (body, str(1 | 3 << 8))
        assert zlib.decompress(large.body) == b"y" * 100_000
        assert (same.body, same.fields["f"]) == (dense, "0")

    asyncio.run(scenario())


@pytest.mark.row("P-16")
@pytest.mark.row("P-30")
@pytest.mark.row("PRD-5")
def test_a_failed_send_is_tried_on_another_broker() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        world.brokers["a"].is_down = True
        async with world.producer() as producer:
            results = [await producer.send(Message("t", b"x")) for _ in range(8)]
        assert {result.queue.broker for result in results} == {"b"}

    run(scenario())


@pytest.mark.row("P-18")
@pytest.mark.row("PRD-9")
@pytest.mark.parametrize("code", [1, 14, 16, 17, 204, 205])
def test_an_answer_that_another_broker_may_give_otherwise_is_tried_there(code: int) -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        world.brokers["a"].script[310] = refusing(code)
        async with world.producer() as producer:
            for _ in range(4):
                assert (await producer.send(Message("t", b"x"))).queue.broker == "b"
            world.brokers["b"].script[310] = refusing(code)
            with pytest.raises(SendFailed, match=r"a: .*\. b: |b: .*\. a: ") as failed:
                await producer.send(Message("t", b"x"))
            assert len(failed.value.attempts) == 3
            assert "Send to t failed after 3 attempts in 0 s at a and b. " in str(failed.value)
            assert isinstance(failed.value.__cause__, Refused)

    run(scenario())


@pytest.mark.row("D-13")
@pytest.mark.parametrize("code", [2, 13, 215])
def test_any_other_answer_is_an_error_at_once(code: int) -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for peer in world.brokers.values():
            peer.script[310] = refusing(code)
        async with world.producer() as producer:
            with pytest.raises(Refused) as refused:
                await producer.send(Message("t", b"x"))
            assert (refused.value.code, refused.value.remark) == (code, "no")
            assert len(world.sent()) == 1

    run(scenario())


@pytest.mark.row("PRD-6")
def test_all_tries_share_one_time_budget() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for peer in world.brokers.values():
            peer.script[310] = lambda _: None
        async with world.producer() as producer:
            began = now()
            with pytest.raises(SendFailed, match=r"failed after 1 attempt in 3 s at [ab]\. [ab]: "):
                await producer.send(Message("t", b"x"))
            assert now() - began == pytest.approx(3)

    run(scenario())


def test_a_broker_that_comes_back_within_the_budget_gets_the_message() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            await producer.send(Message("t", b"x"))
            broker = world.brokers["a"]
            broker.is_down = True
            broker.transport.lose()
            sending = asyncio.create_task(producer.send(Message("t", b"y")))
            await pass_time(2)
            assert not sending.done()
            broker.is_down = False
            assert (await sending).queue.broker == "a"
            broker.is_down = True
            broker.transport.lose()
            await settle()
            with pytest.raises(SendFailed, match="nobody listens"):
                await producer.send(Message("t", b"z"))

    run(scenario())


@pytest.mark.row("P-17")
@pytest.mark.parametrize("retries", [False, True])
def test_a_weaker_status_is_returned_or_tried_again_if_asked_for(retries: bool) -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for peer in world.brokers.values():
            peer.script[310] = lambda _: Command(10, SENT)
        async with world.producer(retry_not_ok=retries) as producer:
            result = await producer.send(Message("t", b"x"))
        assert result.status is SendStatus.FLUSH_DISK_TIMEOUT
        assert len(world.sent()) == (3 if retries else 1)

    run(scenario())


def test_what_was_stored_weakly_counts_if_nothing_better_comes() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        answers = iter([refusing(1), lambda _: Command(10, SENT), refusing(1)])
        world.brokers["a"].script[310] = lambda request: next(answers)(request)
        async with world.producer(retry_not_ok=True) as producer:
            result = await producer.send(Message("t", b"x"))
            assert result.status is SendStatus.FLUSH_DISK_TIMEOUT, "better than nothing"
            assert len(world.sent()) == 3

    run(scenario())


@pytest.mark.row("P-15")
def test_a_queue_of_an_unknown_broker_is_looked_for_once_more() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            await producer.send(Message("t", b"x"))
            world.routes["t"] = route({"new": "new:1"})
            world.listen("new")
            sent = await producer.send(Message("t", b"x"), queue=Queue("t", "new", 0))
            assert sent.queue.broker == "new"
            with pytest.raises(NoRoute, match="has no broker lost"):
                await producer.send(Message("t", b"x"), queue=Queue("t", "lost", 0))

    run(scenario())


@pytest.mark.row("P-09")
@pytest.mark.row("P-39")
def test_a_oneway_send_waits_for_nothing() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            world.brokers["a"].script[310] = refusing(1)
            await producer.send_oneway(Message("t", b"x"))
            await settle()
            [(_, request)] = world.sent()
            assert request.is_oneway

    run(scenario())


@pytest.mark.row("M-08")
def test_oneway_sends_without_end_are_held_back_by_the_transport() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        broker = world.brokers["a"]
        dense = Random(1).randbytes(300_000)
        async with world.producer(compress_over=1 << 20) as producer:
            await producer.send(Message("t", b"x"))
            await settle()
            before = broker.transport.write_count
            for _ in range(100):
                # Nothing in this block lets the loop run.
                await producer.send_oneway(Message("t", b"x"))
            assert broker.transport.write_count - before == 6, "every 16 of them"
            await producer.send_oneway(Message("t", dense))
            assert broker.transport.write_count - before == 7, "and what is large"
            broker.transport.protocol.pause_writing()
            held = asyncio.create_task(producer.send_oneway(Message("t", b"y")))
            await settle()
            assert not held.done()
            broker.transport.protocol.resume_writing()
            await held
            broker.transport.protocol.pause_writing()
            with pytest.raises(TimedOut, match="was not sent"):
                await producer.send_oneway(Message("t", b"z"))
            broker.transport.protocol.resume_writing()
        assert len(world.sent()) == 103

    run(scenario())


@pytest.mark.row("P-40")
@pytest.mark.row("P-39")
def test_a_batch_is_split_by_size_and_stays_in_one_queue() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        count = 0

        def take(request: Command) -> Command:
            nonlocal count
            size = len(decode_batch(request.body).flags)
            ids = ",".join(f"{n:032X}" for n in range(count, count + size))
            answer = {"msgId": ids, "queueId": request.fields["e"], "queueOffset": str(count)}
            count += size
            return Command(0, answer)

        for peer in world.brokers.values():
            peer.script[320] = take
        bodies = [bytes([65 + n]) * 300 for n in range(10)]
        async with world.producer(body_size_max=1000) as producer:
            results = await producer.send_batch([Message("t", body) for body in bodies])
            assert await producer.send_batch([]) == []
        requests = [request for _, request in world.sent()]
        assert len(requests) == 5
        assert all(len(request.body) <= 1000 for request in requests)
        assert [bytes(m) for r in requests for m in decode_batch(r.body).bodies] == bodies
        assert len({result.queue for result in results}) == 1
        assert [result.offset for result in results] == list(range(10))
        assert [int(result.offset_message_id, 16) for result in results] == list(range(10))
        assert all(request.fields["m"] == "true" for request in requests)

    run(scenario())


def test_a_batch_that_stops_half_way_says_what_was_sent() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        answers = iter([stored, refusing(13)])
        world.brokers["a"].script[320] = lambda request: next(answers)(request)
        async with world.producer(body_size_max=1000) as producer:
            with pytest.raises(SendFailed, match="1 of 2 messages were sent") as failed:
                await producer.send_batch([Message("t", b"x" * 600)] * 2)
            assert len(failed.value.sent) == 1

    run(scenario())


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([Message("t", b"x"), Message("u", b"x")], "one topic, not t and u"),
        ([Message("t", b"x", delay=3)], "cannot be delayed"),
        ([Message("t", b"x" * 990)], "bytes of a batch; the maximum is 1,000"),
        ([Message("t", b"")], "Body is empty"),
    ],
)
def test_a_batch_that_no_broker_would_take_is_refused(messages: list[Message], why: str) -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer(body_size_max=1000) as producer:
            with pytest.raises(InvalidMessage, match=why):
                await producer.send_batch(messages)
        assert world.sent() == []

    run(scenario())


@pytest.mark.row("P-14")
@pytest.mark.row("P-04")
def test_a_producer_is_opened_once_and_sends_only_while_open() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with Client("n:1", dial=world.net.dial) as client:
            producer = Producer(client=client, group="shop")
            with pytest.raises(Closed, match="is not open"):
                await producer.send(Message("t", b"x"))
            async with producer:
                second = Producer(client=client, group="shop")
                with pytest.raises(ValueError, match="already has a producer of group shop"):
                    await second.open()
                with pytest.raises(Closed, match="opened only once"):
                    await producer.open()
                async with Producer(client=client, group="other") as other:
                    await other.send(Message("t", b"x"))
                with pytest.raises(InvalidMessage, match="Body is empty"):
                    await producer.send(Message("t", b""))
            with pytest.raises(Closed):
                await producer.send(Message("t", b"x"))
            assert len(world.sent()) == 1

    run(scenario())


def test_a_producer_is_given_name_servers_or_a_client() -> None:
    with pytest.raises(ValueError, match="not both"):
        Producer("n:1", group="g", client=Client("n:1"))
    with pytest.raises(ValueError, match="No name server"):
        Producer(group="g")
    with pytest.raises(InvalidMessage, match="Group name is blank"):
        Producer("n:1", group="")


def test_an_answer_that_cannot_be_read_is_an_error_of_its_broker() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[310] = lambda _: Command(0, {"msgId": "x"})
        async with world.producer() as producer:
            with pytest.raises(Refused, match="cannot decode the response"):
                await producer.send(Message("t", b"x"))

    run(scenario())


@pytest.mark.row("PRD-10")
def test_a_cancelled_send_ends_at_once_and_blames_no_one() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for peer in world.brokers.values():
            peer.script[310] = lambda _: None
        async with world.producer(avoid_slow=True) as producer:
            sending = asyncio.create_task(producer.send(Message("t", b"x")))
            await settle()
            sending.cancel()
            await settle()
            assert sending.cancelled()
            assert len(world.sent()) == 1
            for peer in world.brokers.values():
                peer.script[310] = stored
            results = [await producer.send(Message("t", b"x")) for _ in range(4)]
            assert {result.queue.broker for result in results} == {"a", "b"}

    run(scenario())


def answering_after(seconds: float, peer: Peer) -> Callable[[Command], None]:
    def late(request: Command) -> None:
        def answer() -> None:
            peer.transport.connection.respond(request, stored(request))
            peer.transport.flush()

        asyncio.get_running_loop().call_later(seconds, answer)

    return late


@pytest.mark.row("P-27")
@pytest.mark.row("P-28")
@pytest.mark.row("PRD-12")
@pytest.mark.parametrize(
    ("latency_s", "over_s"), [(0.1, 0), (0.6, 30), (1.5, 60), (2.5, 120), (None, 600)]
)
def test_a_slow_broker_is_passed_over_for_its_penalty(latency_s: float, over_s: float) -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        slow = world.brokers["a"]
        slow.script[310] = answering_after(latency_s, slow) if latency_s else refusing(1)
        async with world.producer(avoid_slow=True) as producer:
            while not slow.of(310):
                await producer.send(Message("t", b"x"))
            seen = len(slow.of(310))
            slow.script[310] = stored
            if over_s:
                await pass_time(over_s - 1)
                for _ in range(4):
                    await producer.send(Message("t", b"x"))
                assert len(slow.of(310)) == seen
                await pass_time(2)
            for _ in range(4):
                await producer.send(Message("t", b"x"))
            assert len(slow.of(310)) == seen + 2

    run(scenario())


@pytest.mark.row("P-29")
def test_slow_brokers_are_used_where_there_are_no_others_and_unless_it_is_asked_for() -> None:
    async def scenario() -> None:
        for is_asked_for in (False, True):
            world = ProducerWorld("a", "b")
            for name, latency_s in (("a", 0.6), ("b", 0.6 if is_asked_for else 0)):
                peer = world.brokers[name]
                peer.script[310] = answering_after(latency_s, peer)
            async with world.producer(avoid_slow=is_asked_for) as producer:
                results = [await producer.send(Message("t", b"x")) for _ in range(8)]
            assert {result.queue.broker for result in results} == {"a", "b"}

    run(scenario())


def test_a_message_without_a_handle_cannot_be_taken_back() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer() as producer:
            result = await producer.send(Message("t", b"x"))
            with pytest.raises(InvalidMessage, match="no recall handle"):
                await producer.recall(result)

    run(scenario())


@pytest.mark.row("P-23")
def test_the_counts_of_a_message_of_a_retry_topic_move_into_the_header() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        world.routes["%RETRY%g"] = route({"a": "a:1"})
        counts = {"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"}
        async with world.producer() as producer:
            await producer.send(Message("%RETRY%g", b"x", properties={**counts, "p": "q"}))
            with pytest.raises(InvalidMessage, match="RECONSUME_TIME is reserved by RocketMQ"):
                await producer.send(Message("t", b"x", properties=counts))
            with pytest.raises(InvalidMessage, match="must be a count, not 'many'"):
                await producer.send(
                    Message("%RETRY%g", b"x", properties={"RECONSUME_TIME": "many"})
                )
        [(_, request)] = world.sent()
        assert (request.fields["j"], request.fields["l"]) == ("3", "16")
        found = parse_properties(request.fields["i"].encode())
        assert found.keys() == {"p", "UNIQ_KEY", "WAIT"}

    run(scenario())


@pytest.mark.row("P-25")
def test_a_broker_is_dialled_at_its_second_port_only_if_that_is_asked_for() -> None:
    async def scenario() -> None:
        for is_vip in (False, True):
            world = ProducerWorld()
            world.routes["t"] = route({"a": "a:11"})
            ports = {False: world.net.listen("a:11"), True: world.net.listen("a:9")}
            ports[is_vip].script[310] = stored
            async with (
                Client("n:1", dial=world.net.dial, vip_channel=is_vip) as client,
                Producer(client=client, group="shop") as producer,
            ):
                await producer.send(Message("t", b"x"))
                await pass_time(61)
                await producer.send(Message("t", b"x"))
            assert len(ports[is_vip].of(310)) == 2
            assert len(ports[is_vip].transports) == 1
            assert not ports[not is_vip].dial_times

    run(scenario())


def version(number: int) -> Callable[[Command], Command]:
    return lambda _: Command(0, version=number)


@pytest.mark.parametrize("delay", [timedelta(minutes=1), datetime(2040, 1, 1, tzinfo=UTC)])
def test_a_time_is_not_sent_to_a_broker_that_does_not_know_it(delay: timedelta | datetime) -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        broker = world.brokers["a"]
        broker.script[34] = version(407)
        broker.script[310] = lambda request: Command(0, SENT, version=407)
        async with world.producer() as producer:
            for send in (producer.send, producer.send_oneway):
                with pytest.raises(NotSupported, match=r"a is older than 5\.0") as old:
                    await send(Message("t", b"x", delay=delay))
                assert old.value.code == 15
            assert world.sent() == []
            await producer.send(Message("t", b"x", delay=3))
            [(_, request)] = world.sent()
            assert parse_properties(request.fields["i"].encode())["DELAY"] == "3"
            broker.script[34] = version(413)
            broker.script[310] = stored
            broker.transport.lose()
            await settle()
            await producer.send(Message("t", b"x", delay=delay))
            assert len(world.sent()) == 2, "it was upgraded"

    run(scenario())


@pytest.mark.row("P-32")
@pytest.mark.parametrize("delay", [3, timedelta(minutes=1)])
def test_a_delayed_half_message_is_not_sent_to_a_broker_that_would_lose_it(
    delay: int | timedelta,
) -> None:
    async def checker(_: Received) -> Outcome:
        return Outcome.UNKNOWN

    async def scenario() -> None:
        world = ProducerWorld()
        world.brokers["a"].script[34] = lambda _: Command(0, language="JAVA")
        async with world.producer(checker=checker) as producer:
            with pytest.raises(NotSupported, match="a is Apache RocketMQ, which loses"):
                async with producer.transaction(Message("t", b"x", delay=delay)):
                    raise AssertionError("the block does not run")
            assert world.sent() == []

    run(scenario())


@pytest.mark.row("PRD-11")
def test_the_final_error_has_a_code_that_tells_what_failed() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        async with world.producer(timeout_s=0.5) as producer:
            broker = world.brokers["a"]
            broker.script[310] = refusing(1)
            assert await code_of(producer, SendFailed) == 1
            broker.script[310] = refusing(13)
            assert await code_of(producer, Refused) == 13
            broker.script[310] = lambda _: None
            assert await code_of(producer, SendFailed) == ErrorCode.ACCESS_BROKER_TIMEOUT
            broker.is_down = True
            broker.transport.lose()
            assert await code_of(producer, SendFailed) == ErrorCode.CONNECT_BROKER
            lost = Queue("t", "lost", 0)
            assert await code_of(producer, NoRoute, lost) == ErrorCode.BROKER_NOT_EXIST
            del world.routes["t"]
            await pass_time(61)
            assert await code_of(producer, NoRoute) == ErrorCode.NOT_FOUND_TOPIC

    run(scenario())


async def code_of(
    producer: Producer, kind: type[SdkError], queue: Queue | None = None
) -> int | None:
    with pytest.raises(kind) as failed:
        await producer.send(Message("t", b"x"), queue=queue)
    return failed.value.code


@pytest.mark.row("P-02")
def test_the_defaults_are_rocketmqs() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for peer in world.brokers.values():
            peer.script[310] = refusing(1)
        async with world.producer() as producer:
            with pytest.raises(SendFailed):
                await producer.send(Message("t", b"x"))
            assert len(world.sent()) == 3, "two tries more"
            assert world.sent()[0][1].fields["d"] == "4", "queues of a new topic"
            with pytest.raises(InvalidMessage, match="the maximum is 4,194,304"):
                await producer.send(Message("t", bytes(4 * 1024 * 1024 + 1)))
            for peer in world.brokers.values():
                peer.script[310] = lambda _: None
            began = now()
            with pytest.raises(SendFailed):
                await producer.send(Message("t", b"x"))
            assert now() - began == pytest.approx(3)
        async with world.producer(
            timeout_s=1, retry_count=0, body_size_max=10, compress_over=1
        ) as other:
            began = now()
            with pytest.raises(SendFailed):
                await other.send(Message("t", b"x"))
            assert now() - began == pytest.approx(1)
            with pytest.raises(InvalidMessage, match="the maximum is 10\\."):
                await other.send(Message("t", bytes(11)))

    run(scenario())


@pytest.mark.row("P-01")
@pytest.mark.row("P-07")
@pytest.mark.row("PRD-7")
def test_a_send_returns_when_its_broker_has_answered_and_with_its_status() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        broker = world.brokers["a"]
        held: list[Command] = []
        broker.script[310] = lambda request: held.append(request)
        async with world.producer() as producer:
            sending = asyncio.create_task(producer.send(Message("t", b"x")))
            await settle()
            assert held and not sending.done()
            broker.transport.connection.respond(held[0], Command(12, SENT))
            broker.transport.flush()
            assert (await sending).status is SendStatus.FLUSH_SLAVE_TIMEOUT
        assert broker.of(35), "it took leave"

    run(scenario())


@pytest.mark.row("PRD-4")
@pytest.mark.row("PRD-8")
@pytest.mark.row("PRD-13")
def test_a_send_is_tried_three_times_a_chosen_queue_and_a_oneway_send_once() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        for peer in world.brokers.values():
            peer.script[310] = breaking(peer)
        async with world.producer() as producer:
            with pytest.raises(SendFailed):
                await producer.send(Message("t", b"x"))
            assert len(world.sent()) == 3
            with pytest.raises(Unreachable):
                await producer.send(Message("t", b"x"), selector=lambda queues: queues[0])
            assert len(world.sent()) == 4
            await producer.send_oneway(Message("t", b"x"))
            await settle()
            assert len(world.sent()) == 5

    run(scenario())


def breaking(peer: Peer) -> Callable[[Command], None]:
    return lambda _: peer.transport.lose()


@pytest.mark.row("P-03")
@pytest.mark.row("PRD-14")
def test_many_sends_at_once_share_a_connection_and_wait_for_their_turn() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        broker = world.brokers["a"]
        held: list[Command] = []
        broker.script[310] = lambda request: held.append(request)
        bounds = LinkSettings(in_flight_max=10, in_flight_bytes_max=4096)
        async with (
            Client("n:1", dial=world.net.dial, settings=bounds) as client,
            Producer(client=client, group="shop") as producer,
        ):
            sending = [asyncio.create_task(producer.send(Message("t", b"x"))) for _ in range(25)]
            await settle()
            assert len(held) == 7, "of 4096 bytes each takes a head and a body"
            sending[-1].cancel()
            while held:
                request = held.pop(0)
                broker.transport.connection.respond(request, stored(request))
                broker.transport.flush()
                await settle()
            done = await asyncio.gather(*sending, return_exceptions=True)
            assert sum(isinstance(each, SendResult) for each in done) == 24
            assert len(broker.of(310)) == 24, "the cancelled one never left"
            assert len(broker.transports) == 1

    run(scenario())


def test_without_a_loop_of_its_own_it_has_no_thread() -> None:
    async def scenario() -> None:
        world = ProducerWorld()
        before = threading.active_count()
        async with world.producer(checker=None) as producer:
            await asyncio.gather(*(producer.send(Message("t", b"x" * 5000)) for _ in range(50)))
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            assert len(tasks) == 1, "the upkeep"
            assert threading.active_count() == before

    run(scenario())


async def go_away_after(world: ProducerWorld, producer: Producer, last: Queue) -> None:
    """All brokers are away from now on, and the queues behind this one have the next turns."""
    while (await producer.send(Message("t", b"x"))).queue != last:
        pass
    for broker in world.brokers.values():
        broker.is_down = True
        for transport in broker.transports:
            transport.lose()
        broker.dial_times.clear()
    await settle()
    world.name_server.asked.clear()


@pytest.mark.parametrize("last", [Queue("t", broker, queue) for broker in "ab" for queue in (0, 1)])
def test_brokers_that_are_all_away_are_waited_for_and_not_tried_without_end(last: Queue) -> None:
    """Each send may find one of them away, and know it of the other by another's send."""

    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        find = world.name_server.script[105]

        def answer(request: Command) -> Command | asyncio.Future[Command] | None:
            # Time goes by only where something is waited for: who asks without pause must fail.
            return find(request) if len(world.name_server.of(105)) < 200 else None

        world.name_server.script[105] = answer
        async with world.producer(timeout_s=3) as producer:
            await go_away_after(world, producer, last)
            sending = [producer.send(Message("t", b"x")) for _ in range(4)]
            failed = await asyncio.gather(*sending, return_exceptions=True)
            assert all(isinstance(each, SendFailed) for each in failed)
            assert max(len(broker.dial_times) for broker in world.brokers.values()) < 10
            assert len(world.name_server.of(105)) < 50

    run(scenario())


def test_a_broker_that_another_found_away_is_waited_for_and_not_tried_around() -> None:
    """The next hundred turns are the other broker's, so the send never tries this one itself."""

    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        world.routes["t"] = route({"a": "a:1", "b": "b:1"}, queues=100)
        async with world.producer(timeout_s=3) as producer:
            await go_away_after(world, producer, Queue("t", "a", 99))
            with pytest.raises(Unreachable):
                await producer.client.broker("a:1").connect(1)
            with pytest.raises(SendFailed):
                await producer.send(Message("t", b"x"))
            assert len(world.brokers["b"].dial_times) < 10
            assert len(world.name_server.of(105)) < 20

    run(scenario())


def test_a_chosen_broker_that_is_away_is_waited_for_though_there_are_others() -> None:
    async def scenario() -> None:
        world = ProducerWorld("a", "b")
        async with world.producer(timeout_s=3) as producer:
            world.brokers["a"].is_down = True
            with pytest.raises(Unreachable):
                await producer.send(Message("t", b"x"), queue=Queue("t", "a", 0))
            assert len(world.brokers["a"].dial_times) < 10
            assert len(world.name_server.of(105)) < 10

    run(scenario())
