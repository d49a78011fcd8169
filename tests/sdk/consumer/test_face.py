"""What an application sees of a consumer, against a real server: listeners, names, observation."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from opentelemetry import trace
from tests.gateway.server import RunningServer
from tests.sdk.observe.test_telemetry import Spans
from tests.waiting import until

from rockgate.sdk import (
    Client,
    ConsumeHook,
    ConsumeKind,
    Consumer,
    ConsumerSettings,
    Consuming,
    Message,
    Producer,
    Queue,
    Received,
    Retry,
    Start,
)

BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
numbers = count()


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = ["remoting.delay_levels=1s 2s 1s 1s 1s"]
    with RunningServer(
        tmp_path_factory.mktemp("face"), settings=settings, rocketmq=True
    ) as running:
        yield "{}:{}".format(*running.address("namesrv"))


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"face-{next(numbers)}"


async def send(name_server: str, topic: str, *bodies: bytes, **more: Any) -> None:
    async with Producer(name_server, group="shop", **more) as producer:
        for body in bodies:
            await producer.send(Message(topic, body), key="one queue")


def four() -> list[bytes]:
    return [b"m%d" % number for number in range(4)]


# Listeners


@pytest.mark.row("C-32")
@pytest.mark.row("START-18")
async def test_plain_functions_run_in_threads_and_the_loop_continues(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, *four())
    consumer = Consumer(name_server, group="f-plain", settings=BEGINNING)
    together = threading.Barrier(4)
    seen: list[tuple[bytes, str]] = []

    @consumer.on(topic)
    def listen(message: Received) -> None:
        together.wait(20)
        seen.append((message.body, threading.current_thread().name))

    async with consumer:
        await until(lambda: len(seen) == 4, "four messages")
    assert sorted(body for body, _ in seen) == four()
    assert all(name.startswith("rockgate-listener") for _, name in seen)
    await until(
        lambda: not any("rockgate-listener" in each.name for each in threading.enumerate()),
        "the threads end with the consumer",
    )


@pytest.mark.row("API-5")
@pytest.mark.row("C-34")
async def test_part_of_a_batch_can_be_done_and_the_rest_comes_again(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, *four())
    consumer = Consumer(name_server, group="f-batch", settings=BEGINNING)
    calls: list[list[tuple[bytes, int]]] = []

    @consumer.on(topic, batch=4)
    async def listen(messages: Sequence[Received]) -> int | None:
        calls.append([(message.body, message.tries) for message in messages])
        return 1 if len(messages) == 4 else None

    async with consumer:
        await until(lambda: sum(map(len, calls)) == 7, "four messages, and three again")
    assert calls[0] == [(body, 1) for body in four()]
    assert sorted(each for call in calls[1:] for each in call) == [(body, 2) for body in four()[1:]]


async def test_a_listener_may_say_when_a_message_is_to_come_again(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"later")
    consumer = Consumer(name_server, group="f-wish", settings=BEGINNING)
    came: list[datetime] = []

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        came.append(datetime.now(UTC))
        if message.tries == 1:
            raise Retry(after=timedelta(seconds=1.5))

    async with consumer:
        await until(lambda: len(came) == 2, "the second try")
    # The server's second level is two seconds; without a wish it would take its third, one second.
    assert came[1] - came[0] >= timedelta(seconds=1.9)


async def test_each_topic_has_its_listener(name_server: str, topic: str) -> None:
    other = f"{topic}-other"
    for name in (topic, other):
        await send(name_server, name, name.encode())
    consumer = Consumer(name_server, group="f-topics", settings=BEGINNING)
    seen: dict[str, list[tuple[str, int]]] = {topic: [], other: []}

    for name in (topic, other):

        async def listen(message: Received, name: str = name) -> None:
            seen[name].append((message.topic, message.tries))
            if message.tries == 1:
                raise Retry

        consumer.on(name)(listen)

    async with consumer:
        await until(lambda: all(len(each) == 2 for each in seen.values()), "both, twice")
    assert seen == {name: [(name, 1), (name, 2)] for name in (topic, other)}


# Life


@pytest.mark.row("START-16")
@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "close"])
async def test_run_ends_with_a_signal_and_leaves_handlers_as_they_were(
    name_server: str, topic: str, way: str
) -> None:
    await send(name_server, topic, b"one")
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    consumer = Consumer(name_server, group=f"f-run-{way}", settings=BEGINNING)
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @consumer.on(topic)
    async def listen(_: Received) -> None:
        began.set()
        await may_end.wait()
        ended.set()

    async with asyncio.timeout(30):
        running = asyncio.create_task(consumer.run())
        await began.wait()
        closing = None
        if way == "close":
            closing = asyncio.create_task(consumer.close())
        else:
            os.kill(os.getpid(), getattr(signal, way))
        await until(lambda: consumer.statistics.queue_count == 0, "it is being closed")
        assert not running.done(), "it drains"
        may_end.set()
        await running
        if closing is not None:
            await closing
    assert ended.is_set()
    assert {each: signal.getsignal(each) for each in before} == before
    async with Consumer(
        name_server, group=f"f-run-{way}", topics=[topic], settings=BEGINNING
    ) as again:
        await send(name_server, topic, b"two")
        async with asyncio.timeout(20):
            assert (await anext(again)).body == b"two", "what was finished does not come again"


async def test_run_without_listeners_is_refused(name_server: str) -> None:
    with pytest.raises(ValueError, match="needs listeners"):
        await Consumer(name_server, group="g", topics=["t"]).run()


# Names


@pytest.mark.row("START-2")
async def test_a_namespace_is_on_the_wire_and_not_in_what_the_application_sees(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"hidden", namespace="shop")
    await send(name_server, topic, b"outside")
    assigned: list[Queue] = []
    client = Client(name_server)
    consumer = Consumer(
        client=client,
        group="f-names",
        namespace="shop",
        settings=BEGINNING,
        on_assigned=assigned.extend,
    )
    seen: list[tuple[str, str, bytes, int]] = []

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.append((message.topic, message.queue.topic, message.body, message.tries))
        if message.tries == 1:
            raise Retry

    async with client, consumer:
        assert set(client.consumers.groups) == {"shop%f-names"}
        assert set(consumer.statistics.topics) <= {topic}
        await until(lambda: len(seen) == 2, "the message, twice")
    assert seen == [(topic, topic, b"hidden", 1), (topic, "%RETRY%f-names", b"hidden", 2)]
    assert {queue.topic for queue in assigned} == {topic, "%RETRY%f-names"}
    wire = Consumer(name_server, group="f-wire", topics=[f"shop%{topic}"], settings=BEGINNING)
    async with wire, asyncio.timeout(20):
        assert (await anext(wire)).body == b"hidden"


# Observation


class Told(ConsumeHook):
    def __init__(self) -> None:
        self.ended: list[tuple[ConsumeKind | None, bytes, bool]] = []

    def after_consume(self, consuming: Consuming) -> None:
        [message] = consuming.messages
        self.ended.append((consuming.kind, message.body, consuming.is_iterated))


@pytest.mark.row("OBS-3")
@pytest.mark.row("C-43")
async def test_hooks_and_statistics_see_what_is_iterated_over(name_server: str, topic: str) -> None:
    await send(name_server, topic, *four())
    told = Told()
    consumer = Consumer(
        name_server, group="f-iterated", topics=[topic], settings=BEGINNING, hooks=[told]
    )
    async with consumer, asyncio.timeout(20):
        first = await anext(consumer)
        await first.ack()
        second = await anext(consumer)
        await second.retry(after=timedelta(hours=1))
        await anext(consumer)
        await anext(consumer)
        statistics = consumer.statistics
        assert (statistics.cached_count, statistics.queue_count) == (1, 4 + 1)
        assert statistics.cached_size == 2
    ok, failed = ConsumeKind.SUCCESS, ConsumeKind.FAILED
    assert [kind for kind, _, _ in told.ended] == [ok, failed, ok, failed]
    assert [body for _, body, _ in told.ended] == four()
    assert all(is_iterated for _, _, is_iterated in told.ended)
    counted = consumer.statistics.topics[topic]
    assert (counted.pulled_count, counted.ok_count, counted.failed_count) == (4, 2, 2)
    assert counted.pull_rate > 0
    assert counted.pull_s >= 0


async def test_a_listeners_span_belongs_to_the_trace_of_its_message(
    name_server: str, topic: str
) -> None:
    spans = Spans()
    await send(name_server, topic, b"tea", tracer_provider=spans.provider)
    [sent] = spans.ended
    consumer = Consumer(
        name_server, group="f-spans", settings=BEGINNING, tracer_provider=spans.provider
    )
    inside: list[int] = []

    @consumer.on(topic)
    def listen(message: Received) -> None:
        inside.append(trace.get_current_span().get_span_context().span_id)
        if message.tries == 1:
            raise ZeroDivisionError

    async with consumer:
        await until(lambda: len(spans.ended) == 3, "two calls")
    _, failed, done = spans.ended
    assert sent.context is not None
    for span in (failed, done):
        assert span.name == f"process {topic}"
        assert span.kind is trace.SpanKind.CONSUMER
        assert span.context is not None
        assert span.context.trace_id == sent.context.trace_id
        assert [link.context.span_id for link in span.links] == [sent.context.span_id]
        assert span.attributes is not None
        assert span.attributes["messaging.operation.type"] == "process"
        assert span.attributes["messaging.consumer.group.name"] == "f-spans"
        assert span.attributes["messaging.message.body.size"] == 3
    assert inside == [span.context.span_id for span in (failed, done) if span.context]
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "ZeroDivisionError"
    assert done.status.is_ok or done.status.is_unset


@pytest.mark.row("OBS-2")
@pytest.mark.row("START-17")
async def test_consumption_is_traced_in_rocketmqs_form(name_server: str, topic: str) -> None:
    traces = f"traces-{topic}"
    await send(name_server, traces, b"makes the topic")
    async with Producer(name_server, group="shop") as producer:
        result = await producer.send(Message(topic, b"tea", keys=["a", "b"]))
    consumer = Consumer(name_server, group="f-traced", settings=BEGINNING, trace=traces)
    seen: list[int] = []

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.append(message.tries)
        if message.tries == 1:
            raise ZeroDivisionError

    async with consumer:
        await until(lambda: seen == [1, 2], "two tries")
    records: list[list[str]] = []
    keys: set[str] = set()
    async with Consumer(
        name_server, group="f-tracer", topics=[traces], settings=BEGINNING
    ) as reader:
        async with asyncio.timeout(20):
            async for message in reader:
                if message.keys:
                    keys |= set(message.keys)
                    records += [
                        each.split("\x01") for each in message.body.decode().split("\x02")[:-1]
                    ]
                if len(records) == 4:
                    break
    assert keys == {result.message_id, "a", "b"}
    before = [each for each in records if each[0] == "SubBefore"]
    after = [each for each in records if each[0] == "SubAfter"]
    assert [each[2:4] + each[5:] for each in sorted(before, key=lambda each: each[6])] == [
        ["DefaultRegion", "f-traced", result.message_id, retries, "a b"] for retries in "01"
    ]
    assert sorted([each[2], *each[4:7], each[8]] for each in after) == [
        [result.message_id, "false", "a b", "2", "f-traced"],
        [result.message_id, "true", "a b", "0", "f-traced"],
    ]
    assert {each[4] for each in before} == {each[1] for each in after}


@pytest.mark.row("API-3")
async def test_a_trace_that_cannot_be_written_stops_no_consumer(
    name_server: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    await send(name_server, topic, b"tea")
    consumer = Consumer(name_server, group="f-no-trace", settings=BEGINNING, trace="bad.topic")
    seen: list[bytes] = []

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.append(message.body)

    async with consumer:
        await until(lambda: seen == [b"tea"], "the message")
    assert "message trace was not written" in caplog.text
