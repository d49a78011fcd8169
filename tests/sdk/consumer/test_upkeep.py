"""A running member: paused, resubscribed, notified of queues, and rid of listeners that hang."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.topics import CreateTopicHeader
from rockgate.sdk import Client, Message, Producer
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Start
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.delay_levels=1s 1s 1s 1s 1s"]
    with RunningServer(
        tmp_path_factory.mktemp("upkeep"), settings=settings, rocketmq=True
    ) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"upkeep-{next(numbers)}"


async def send(name_server: str, topic: str, *bodies: bytes) -> None:
    async with Producer(name_server, group="shop") as producer:
        for body in bodies:
            await producer.send(Message(topic, body))


async def make(client: Client, broker: str, topic: str, queue_count: int) -> None:
    header = CreateTopicHeader(
        topic=topic, read_queue_nums=queue_count, write_queue_nums=queue_count, perm=6
    )
    answer = await client.broker(broker).request(
        RequestCode.UPDATE_AND_CREATE_TOPIC, headers.write(header), timeout_s=5.0
    )
    assert answer.code == ResponseCode.SUCCESS


class Seen:
    """A consumer with listeners, and what they were given."""

    def __init__(
        self, name_server: str, group: str, *topics: str, settings: ConsumerSettings = BEGINNING
    ) -> None:
        self.bodies: list[bytes] = []
        self.assigned: list[Queue] = []
        self.revoked: list[Queue] = []
        self.consumer = Consumer(
            name_server,
            group=group,
            settings=settings,
            on_assigned=self.assigned.extend,
            on_revoked=self.was_revoked,
        )
        for topic in topics:
            self.consumer.on(topic)(self.listen)

    async def listen(self, message: Received) -> None:
        self.bodies.append(message.body)

    async def was_revoked(self, queues: Sequence[Queue]) -> None:
        self.revoked.extend(queues)

    async def expect(self, *bodies: bytes) -> None:
        await until(lambda: set(bodies) <= set(self.bodies), f"{bodies!r}")


# Pausing


@pytest.mark.row("START-15", "PULL-4")
async def test_a_paused_topic_is_not_pulled_until_it_is_resumed(
    name_server: str, topic: str
) -> None:
    other = f"{topic}-other"
    await send(name_server, topic, b"a0")
    await send(name_server, other, b"b0")
    seen = Seen(name_server, "u-pause", topic, other)
    async with seen.consumer:
        await seen.expect(b"a0", b"b0")
        seen.consumer.pause(topic)
        # A pull that is under way may still bring one message for each queue; no more.
        await send(name_server, topic, *(b"a%d" % n for n in range(1, 5)))
        await send(name_server, topic, b"held back", b"held back", b"held back", b"held back")
        await send(name_server, other, b"b1")
        await seen.expect(b"b1")
        assert b"held back" not in seen.bodies
        seen.consumer.resume(topic)
        await seen.expect(b"held back")


@pytest.mark.row("START-15", "REB-3")
async def test_a_paused_consumer_takes_no_part_in_rounds_until_it_is_resumed(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"a0")
    settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=600.0)
    seen = Seen(name_server, "u-suspend", topic, settings=settings)
    async with seen.consumer:
        await seen.expect(b"a0")
        seen.consumer.pause()
        member = seen.consumer._running
        before = set(member.queues)
        await seen.consumer.unsubscribe(topic)
        assert await member.rebalance()
        assert set(member.queues) == before
        seen.consumer.resume()
        await until(lambda: not any(queue.topic == topic for queue in member.queues), "a round")


# Subscribing while it runs


@pytest.mark.row("START-13", "START-14", "REB-5")
async def test_topics_come_and_go_while_it_runs(name_server: str, topic: str) -> None:
    other = f"{topic}-other"
    await send(name_server, topic, b"a0")
    await send(name_server, other, b"b0")
    seen = Seen(name_server, "u-live", topic, settings=ConsumerSettings(start=Start.BEGINNING))
    async with seen.consumer:
        await seen.expect(b"a0")
        await seen.consumer.subscribe(other, listener=seen.listen)
        await seen.expect(b"b0")
        await seen.consumer.unsubscribe(topic)
        await until(lambda: topic in {each.topic for each in seen.revoked}, "it was given up")
        await send(name_server, topic, b"a1")
        await send(name_server, other, b"b1")
        await seen.expect(b"b1")
        assert b"a1" not in seen.bodies
        await seen.consumer.subscribe(topic)
        await seen.expect(b"a1")


@pytest.mark.row("START-13", "REB-14")
async def test_a_change_of_what_is_wanted_is_a_later_version(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"a0")
    seen = Seen(name_server, "u-version", topic)
    async with seen.consumer:
        member = seen.consumer._running
        (before,) = {each.sub_version for each in member.data().subscription_data_set}
        await seen.consumer.subscribe(topic, "TagA")
        (after,) = {each.sub_version for each in member.data().subscription_data_set}
        assert after > before
        async with Producer(name_server, group="shop") as producer:
            await producer.send(Message(topic, b"other", tag="TagB"))
            await producer.send(Message(topic, b"wanted", tag="TagA"))
        await seen.expect(b"wanted")
        assert b"other" not in seen.bodies


async def test_a_listener_is_needed_where_others_are_and_only_there(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"a0")
    seen = Seen(name_server, "u-listener", topic)
    async with seen.consumer:
        with pytest.raises(ValueError, match="listener is needed"):
            await seen.consumer.subscribe("unheard")
    async with Consumer(name_server, group="u-iter", topics=[topic]) as consumer:
        with pytest.raises(ValueError, match="listener is needed"):
            await consumer.subscribe(topic, listener=seen.listen)


@pytest.mark.parametrize("is_orderly", [False, True], ids=["concurrent", "in order"])
async def test_a_listener_that_comes_later_may_take_batches(
    name_server: str, topic: str, is_orderly: bool
) -> None:
    other = f"{topic}-other"
    await send(name_server, topic, b"a0")
    async with Producer(name_server, group="shop") as producer:
        for number in range(6):
            await producer.send(Message(other, b"b%d" % number), key="one queue")
    settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5, is_orderly=is_orderly)
    seen = Seen(name_server, f"u-batch-{is_orderly}", topic, settings=settings)
    calls: list[list[bytes]] = []

    async def listen(messages: Sequence[Received]) -> None:
        calls.append([each.body for each in messages])

    async with seen.consumer:
        await seen.expect(b"a0")
        with pytest.raises(ValueError, match="nothing to give a batch to"):
            await seen.consumer.subscribe(topic, batch=3)  # type: ignore[call-overload] # on purpose
        await seen.consumer.subscribe(other, listener=listen, batch=3)
        await until(lambda: sum(map(len, calls)) == 6, "six messages")
    assert calls == [[b"b0", b"b1", b"b2"], [b"b3", b"b4", b"b5"]]


# Queues


async def test_queues_are_told_of_when_they_come_and_go(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"a0")
    seen = Seen(name_server, "u-told", topic)
    async with seen.consumer:
        mine = [queue for queue in seen.assigned if queue.topic == topic]
        assert len(mine) == 4
        assert seen.revoked == []
    assert sorted(queue for queue in seen.revoked if queue.topic == topic) == sorted(mine)


async def test_a_callback_that_fails_stops_nothing(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"a0")

    def fail(queues: Sequence[Queue]) -> None:
        raise ZeroDivisionError

    async with Consumer(
        name_server, group="u-fail", topics=[topic], settings=BEGINNING, on_assigned=fail
    ) as consumer:
        async with asyncio.timeout(30):
            assert (await anext(consumer)).body == b"a0"


async def test_queues_that_are_added_are_taken_up_after_the_route_is_asked_for(
    server: RunningServer, name_server: str, topic: str
) -> None:
    host, port = server.address("remoting")
    broker = f"{host}:{port}"
    async with Client(name_server, instance="added") as client:
        await make(client, broker, topic, 2)
        seen: list[bytes] = []
        consumer = Consumer(client=client, group="u-added", settings=BEGINNING)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            seen.append(message.body)

        async with consumer:
            await make(client, broker, topic, 6)
            await client.routes.refresh()
            async with Producer(name_server, group="shop") as producer:
                queues = await producer.queues(topic)
                assert len(queues) == 6
                for queue in queues:
                    await producer.send(Message(topic, b"%d" % queue.id), queue=queue)
            await until(lambda: len(seen) >= 6, "one of each queue")
        assert sorted(seen) == [b"%d" % number for number in range(6)]


@pytest.mark.row("PROP-14", "REB-14")
async def test_limits_of_a_topic_are_divided_by_the_queues_that_are_held(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"a0")
    flow = FlowLimits(topic_count_max=100, topic_size_max=1000)
    settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5, flow=flow)
    seen = Seen(name_server, "u-flow", topic, settings=settings)
    async with seen.consumer:
        limits = seen.consumer._running.holding.limits(topic)
        assert (limits.count_max, limits.size_max) == (25, 250)


@pytest.mark.row("PROP-14")
@pytest.mark.parametrize(
    ("topic_max", "queue_count", "each_max"),
    [(None, 4, 1000), (100, 4, 25), (100, 3, 33), (3, 4, 1), (100, 0, 100)],
)
def test_each_queue_has_its_part_of_a_limit_and_one_at_least(
    topic_max: int | None, queue_count: int, each_max: int
) -> None:
    assert FlowLimits(topic_count_max=topic_max).shared_by(queue_count).count_max == each_max


# What hangs


@pytest.mark.row("CON-13", "PROP-21")
async def test_a_message_whose_listener_hangs_comes_again(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"slow")
    tries: list[int] = []
    settings = ConsumerSettings(
        start=Start.BEGINNING, rebalance_s=0.5, consume_timeout_s=0.2, workers=2
    )
    consumer = Consumer(name_server, group="u-hang", settings=settings)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        tries.append(message.tries)
        if message.tries == 1:
            await asyncio.Event().wait()

    await consumer.open()
    await until(lambda: tries == [1, 2], "the second try, while the first hangs")
    await consumer.close(0.1)
