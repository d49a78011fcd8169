"""The consumer against a real server: what an application sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.sdk import Client, Closed, Message, Producer, PullConsumer, Refused
from rockgate.sdk.client.routes import UnknownTopic
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.delivery.listeners import OnMessage
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.errors import InvalidMessage
from rockgate.sdk.received import Received

MILLISECOND = timedelta(milliseconds=1)
BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.delay_levels=1s 2s 1s 1s 1s"]
    with RunningServer(
        tmp_path_factory.mktemp("consumer"), settings=settings, rocketmq=True
    ) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"orders-{next(numbers)}"


async def send(name_server: str, topic: str, *bodies: bytes, tag: str | None = None) -> None:
    async with Producer(name_server, group="shop") as producer:
        for body in bodies:
            await producer.send(Message(topic, body, tag=tag))


async def read(consumer: Consumer, how_many: int) -> list[Received]:
    found: list[Received] = []
    async with asyncio.timeout(20):
        async for message in consumer:
            found.append(message)
            if len(found) == how_many:
                await message.ack()
                break
    return found


async def bodies(consumer: Consumer, how_many: int) -> list[bytes]:
    return sorted(message.body for message in await read(consumer, how_many))


def numbered(how_many: int) -> list[bytes]:
    return [b"m%03d" % number for number in range(how_many)]


# One after the other


async def test_a_message_carries_what_its_producer_set(name_server: str, topic: str) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    async with Producer(name_server, group="shop") as producer:
        result = await producer.send(
            Message(topic, b"body", tag="paid", keys=["k1", "k2"], properties={"a": "b"}, flag=7)
        )
    async with Consumer(name_server, group="g", topics=[topic], settings=BEGINNING) as consumer:
        (message,) = await read(consumer, 1)
    assert (message.topic, message.body, message.tag) == (topic, b"body", "paid")
    assert (message.key, message.keys, message.flag) == ("k1", ("k1", "k2"), 7)
    assert message.properties["a"] == "b"
    assert message.message_id == result.message_id
    assert message.offset_message_id == result.offset_message_id
    assert (message.queue, message.offset) == (result.queue, result.offset)
    assert message.tries == 1
    assert before < message.born_at <= message.stored_at < datetime.now(UTC)


async def test_a_group_continues_where_it_was(name_server: str, topic: str) -> None:
    await send(name_server, topic, *numbered(20))
    async with Consumer(name_server, group="g", topics=[topic], settings=BEGINNING) as consumer:
        first = await bodies(consumer, 12)
    async with Consumer(name_server, group="g", topics=[topic], settings=BEGINNING) as consumer:
        second = await bodies(consumer, 8)
    assert sorted(first + second) == numbered(20)


@pytest.mark.parametrize("way", ["break", "exception", "cancellation"])
async def test_a_message_that_was_not_asked_beyond_comes_again(
    name_server: str, topic: str, way: str
) -> None:
    await send(name_server, topic, b"only")

    async def leave_in_the_middle() -> None:
        async with Consumer(name_server, group="g", topics=[topic], settings=BEGINNING) as consumer:
            async for _ in consumer:
                if way == "exception":
                    raise ZeroDivisionError
                if way == "cancellation":
                    raise asyncio.CancelledError
                break

    try:
        await leave_in_the_middle()
    except (ZeroDivisionError, asyncio.CancelledError):
        assert way != "break"
    async with Consumer(name_server, group="g", topics=[topic], settings=BEGINNING) as consumer:
        assert await bodies(consumer, 1) == [b"only"]


@pytest.mark.row("C-28", "SUB-1")
async def test_only_wanted_tags_come(name_server: str, topic: str) -> None:
    # Both have the same code, so that the server cannot tell them apart.
    await send(name_server, topic, b"no", tag="BBBB")
    await send(name_server, topic, b"yes", tag="AaAa")
    await send(name_server, topic, b"no", tag="other")
    await send(name_server, topic, b"yes too", tag="paid")
    topics = {topic: "AaAa || paid"}
    async with Consumer(name_server, group="g", topics=topics, settings=BEGINNING) as consumer:
        assert await bodies(consumer, 2) == [b"yes", b"yes too"]


@pytest.mark.row("CON-3")
async def test_a_retry_comes_again_with_its_topic_and_its_number(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"again")
    async with Consumer(name_server, group="g-retry", topics=[topic], settings=BEGINNING) as c:
        async with asyncio.timeout(20):
            first = await anext(c)
            await first.retry()
            second = await anext(c)
            await second.ack()
    assert (first.tries, second.tries) == (1, 2)
    assert second.topic == topic
    assert second.message_id == first.message_id
    assert second.queue.topic == "%RETRY%g-retry"


async def test_a_wish_is_rounded_up_to_a_delay_level(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"later")
    async with Consumer(name_server, group="g-later", topics=[topic], settings=BEGINNING) as c:
        async with asyncio.timeout(20):
            first = await anext(c)
            began = datetime.now(UTC)
            await first.retry(after=timedelta(seconds=1.5))
            await anext(c)
    # The server's second level is two seconds, RocketMQ's own is five.
    assert datetime.now(UTC) - began >= timedelta(seconds=1.9)


@pytest.mark.row("C-20")
async def test_a_new_group_begins_at_the_end_unless_it_is_told_otherwise(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, *numbered(4))
    # Times of messages are milliseconds: one passes before and after.
    stored = datetime.now(UTC)
    await until(lambda: datetime.now(UTC) - stored > 2 * MILLISECOND, "the clock has moved")
    since = datetime.now(UTC)
    await until(lambda: datetime.now(UTC) - since > 2 * MILLISECOND, "the clock has moved")
    await send(name_server, topic, b"new")
    at_time = ConsumerSettings(start=since)
    async with Consumer(name_server, group="g-time", topics=[topic], settings=at_time) as c:
        assert await bodies(c, 1) == [b"new"]
    async with Consumer(name_server, group="g-end", topics=[topic]) as c:
        await send(name_server, topic, b"newest")
        assert await bodies(c, 1) == [b"newest"]


# Listeners


@pytest.mark.row("START-5")
@pytest.mark.row("CON-14")
@pytest.mark.row("API-4")
@pytest.mark.row("C-01")
async def test_listeners_consume_and_what_fails_comes_again(name_server: str, topic: str) -> None:
    await send(name_server, topic, *numbered(6), tag="a")
    seen: list[tuple[bytes, int]] = []
    consumer = Consumer(name_server, group="g-listen", settings=BEGINNING)

    @consumer.on(topic, "a")
    async def listen(message: Received) -> None:
        seen.append((message.body, message.tries))
        if message.body == b"m003" and message.tries < 3:
            raise ZeroDivisionError

    async with consumer:
        await until(lambda: len(seen) >= 8, "eight deliveries")
    assert sorted(seen) == [
        (b"m000", 1),
        (b"m001", 1),
        (b"m002", 1),
        (b"m003", 1),
        (b"m003", 2),
        (b"m003", 3),
        (b"m004", 1),
        (b"m005", 1),
    ]


@pytest.mark.row("SUB-1", "SUB-3")
async def test_sql_is_the_servers(name_server: str, topic: str) -> None:
    async with Producer(name_server, group="shop") as producer:
        for price in (5, 15, 25):
            await producer.send(
                Message(topic, str(price).encode(), properties={"price": str(price)})
            )
    seen: list[bytes] = []
    consumer = Consumer(name_server, group="g-sql", settings=BEGINNING)

    @consumer.on(topic, sql="price > 10")
    async def listen(message: Received) -> None:
        seen.append(message.body)

    async with consumer:
        await until(lambda: len(seen) == 2, "two messages")
    assert sorted(seen) == [b"15", b"25"]


@pytest.mark.row("SUB-9")
@pytest.mark.row("BPULL-2")
async def test_a_retried_message_comes_whatever_is_subscribed_and_can_be_filtered_by_its_properties(
    name_server: str, topic: str
) -> None:
    async with Producer(name_server, group="shop") as producer:
        for price in (5, 15, 25):
            await producer.send(
                Message(topic, str(price).encode(), properties={"price": str(price)})
            )
    seen: list[tuple[bytes, int, str]] = []
    consumer = Consumer(name_server, group="g-sql-again", settings=BEGINNING)

    @consumer.on(topic, sql="price > 10")
    async def listen(message: Received) -> None:
        seen.append((message.body, message.tries, message.properties["price"]))
        if message.tries == 1:
            raise ZeroDivisionError

    async with consumer:
        await until(lambda: len(seen) >= 4, "both of them twice")
        assert sorted(seen) == [
            *[(b"15", 1, "15"), (b"15", 2, "15")],
            *[(b"25", 1, "25"), (b"25", 2, "25")],
        ]
        async with PullConsumer(name_server, group="g-sql-look") as looking:
            (retries,) = await looking.queues("%RETRY%g-sql-again")
            found = await looking.pull(retries, 0, sql="price > 20")
            assert [message.body for message in found.messages] == [b"25"]


@pytest.mark.row("START-4")
@pytest.mark.row("START-12")
async def test_a_condition_that_is_not_understood_is_refused_at_the_start(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"x")
    consumer = Consumer(name_server, group="g-bad-sql", settings=BEGINNING)
    consumer.on(topic, sql="price >")(_nothing)
    with pytest.raises(Refused, match="CHECK_CLIENT_CONFIG"):
        await consumer.open()


@pytest.mark.row("START-16")
async def test_closing_waits_for_listeners_and_commits_what_they_did(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, *numbered(3))
    ended: list[bytes] = []
    running, may_end = asyncio.Event(), asyncio.Event()
    consumer = Consumer(name_server, group="g-drain", settings=BEGINNING)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        running.set()
        await may_end.wait()
        ended.append(message.body)

    await consumer.open()
    async with asyncio.timeout(20):
        await running.wait()
        closing = asyncio.create_task(consumer.close())
        await send(name_server, topic, b"last")
        assert not closing.done()
        may_end.set()
        await closing
    assert ended
    async with Consumer(name_server, group="g-drain", topics=[topic], settings=BEGINNING) as again:
        rest = await bodies(again, 4 - len(ended))
    assert sorted(ended + rest) == [b"last", *numbered(3)]


# The group


@pytest.mark.row("C-02")
async def test_members_share_the_queues_and_take_over_from_each_other(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"first")
    seen: dict[str, list[bytes]] = {"one": [], "two": []}

    def member(name: str) -> Consumer:
        consumer = Consumer(name_server, group="g-share", settings=BEGINNING, instance=name)
        consumer.on(topic)(_into(seen[name]))
        return consumer

    async with member("one"):
        async with member("two"):
            await until(lambda: sum(map(len, seen.values())) >= 1, "a message")
            sent = 1
            while not all(len(found) >= 3 for found in seen.values()):
                await send(name_server, topic, *(b"m%03d" % n for n in range(sent, sent + 8)))
                sent += 8
                assert sent < 400
        before = len(seen["two"])
        last = {b"z%03d" % n for n in range(8)}
        await send(name_server, topic, *last)
        # What the other had not finished comes here as well, in between.
        await until(lambda: last <= set(seen["one"]), "the rest at one")
        assert len(seen["two"]) == before
    everything = seen["one"] + seen["two"]
    assert len(set(everything)) == sent + 8


# Refused


async def test_what_cannot_be_consumed_is_refused_with_a_reason(name_server: str) -> None:
    with pytest.raises(ValueError, match="subscribes to no topics"):
        await Consumer(name_server, group="g").open()
    with pytest.raises(UnknownTopic, match="nowhere does not exist"):
        await Consumer(name_server, group="g", topics=["nowhere"]).open()
    with pytest.raises(InvalidMessage, match="names no tags"):
        Consumer(name_server, group="g", topics={"orders": "||"})
    with pytest.raises(ValueError, match="not both"):
        Consumer(name_server, group="g", topics=["t"], client=Client(name_server))
    half = Consumer(name_server, group="g", topics=["heard", "unheard"])
    half.on("heard")(_nothing)
    with pytest.raises(ValueError, match="without a listener: unheard"):
        await half.open()


@pytest.mark.row("C-08")
async def test_a_consumer_is_opened_once_and_a_group_joined_once(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"x")
    consumer = Consumer(name_server, group="g-once", topics=[topic])
    async with consumer:
        with pytest.raises(Closed, match="only once"):
            await consumer.open()
        with pytest.raises(ValueError, match="already has a consumer of group g-once"):
            await Consumer(name_server, group="g-once", topics=[topic]).open()


def _into(found: list[bytes]) -> OnMessage:
    async def listen(message: Received) -> None:
        found.append(message.body)

    return listen


async def _nothing(message: Received) -> None:
    """A listener that wants nothing."""
