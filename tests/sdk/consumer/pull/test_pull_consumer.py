"""Plain pulls against a real server: statuses, filters, offsets, and the group around them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.sdk import Client, Closed, Message, Producer, Queue, Refused, SdkError
from rockgate.sdk.client.routes import UnknownTopic
from rockgate.sdk.consumer.broker_calls import PullStatus
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.pull.membership import MembershipSettings
from rockgate.sdk.consumer.pull.pull_consumer import PullConsumer
from rockgate.sdk.errors import InvalidMessage

QUICKLY = MembershipSettings(rebalance_s=0.3)
numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.delay_levels=1s 1s 1s", "remoting.suspend_ms_max=1500"]
    with RunningServer(
        tmp_path_factory.mktemp("pull"), settings=settings, rocketmq=True
    ) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"pulled-{next(numbers)}"


async def send(
    name_server: str, topic: str, how_many: int, *, tag: str | None = None, queue: int = 0
) -> Queue:
    """Messages m0, m1, … to one queue of a topic, which is named."""
    async with Producer(name_server, group="shop") as producer:
        for number in range(how_many):
            message = Message(topic, b"m%d" % number, tag=tag, properties={"n": str(number)})
            sent = await producer.send(message, selector=lambda queues: sorted(queues)[queue])
    return sent.queue


class Asked:
    """The requests of a client, by code."""

    def __init__(self) -> None:
        self.fields: list[tuple[int, Fields]] = []

    def before_request(self, address: str, code: int, fields: Fields, body: Buffer) -> None:
        self.fields.append((code, dict(fields)))

    def after_response(self, address: str, code: int, answer: Command) -> None:
        pass

    def of(self, code: int) -> list[Fields]:
        return [fields for each, fields in self.fields if each == code]


# Pulling


@pytest.mark.row("PC-2", "PC-7", "C-04")
async def test_the_four_statuses_are_distinguished_with_where_to_continue(
    name_server: str, topic: str
) -> None:
    queue = await send(name_server, topic, 5, tag="paid")
    async with PullConsumer(name_server, group="g") as consumer:
        found = await consumer.pull(queue, 1, count_max=3)
        unmatched = await consumer.pull(queue, 0, "other")
        ended = await consumer.pull(queue, 5)
        beyond = await consumer.pull(queue, 77)
    assert (found.status, found.next_offset) == (PullStatus.FOUND, 4)
    assert (found.min_offset, found.max_offset) == (0, 5)
    assert [message.body for message in found.messages] == [b"m1", b"m2", b"m3"]
    assert [message.offset for message in found.messages] == [1, 2, 3]
    assert (unmatched.status, unmatched.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 5)
    assert (ended.status, ended.next_offset) == (PullStatus.NO_NEW_MESSAGE, 5)
    assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 5)
    assert unmatched.messages == ended.messages == beyond.messages == ()


@pytest.mark.row("PC-6")
async def test_a_pull_filters_by_tags_or_by_sql(name_server: str, topic: str) -> None:
    await send(name_server, topic, 3, tag="a")
    queue = await send(name_server, topic, 3, tag="b")
    async with PullConsumer(name_server, group="g") as consumer:
        tagged = await consumer.pull(queue, 0, "b || c")
        conditioned = await consumer.pull(queue, 0, sql="n > 1")
        with pytest.raises(Refused):
            await consumer.pull(queue, 0, sql="n >")
    assert [message.offset for message in tagged.messages] == [3, 4, 5]
    assert [message.offset for message in conditioned.messages] == [2, 5]


async def test_two_tags_with_one_code_are_distinguished(name_server: str, topic: str) -> None:
    # "Aa" and "BB" have one hash code in Java, which is all that brokers compare.
    queue = await send(name_server, topic, 2, tag="Aa")
    async with PullConsumer(name_server, group="g") as consumer:
        found = await consumer.pull(queue, 0, "BB")
    assert (found.status, found.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 2)


@pytest.mark.row("PC-5")
async def test_a_blocking_pull_ends_with_the_message_that_comes(
    name_server: str, topic: str
) -> None:
    queue = await send(name_server, topic, 1)
    async with PullConsumer(name_server, group="g") as consumer:
        waiting = asyncio.create_task(consumer.pull(queue, 1, block=True))
        await send(name_server, topic, 1)
        found = await waiting
    assert [message.offset for message in found.messages] == [1]


@pytest.mark.row("PC-5")
async def test_a_blocking_pull_is_empty_after_its_hold_time(name_server: str, topic: str) -> None:
    queue = await send(name_server, topic, 1)
    asked = Asked()
    loop = asyncio.get_running_loop()
    async with (
        Client(name_server, rpc_hooks=[asked]) as client,
        PullConsumer(client=client, group="g") as consumer,
    ):
        began_at = loop.time()
        empty = await consumer.pull(queue, 1, block=True)
        held_s = loop.time() - began_at
        at_once = await consumer.pull(queue, 1)
    assert empty.status is at_once.status is PullStatus.NO_NEW_MESSAGE
    assert held_s > 1.4
    blocking, plain = asked.of(RequestCode.PULL_MESSAGE)
    # Bit 1 asks the broker to hold it, bit 2 says that the subscription is in the request.
    assert (blocking["sysFlag"], blocking["suspendTimeoutMillis"]) == ("6", "20000")
    assert plain["sysFlag"] == "4"


@pytest.mark.row("PC-6")
async def test_pulls_of_several_queues_are_under_way_at_once(name_server: str, topic: str) -> None:
    first = await send(name_server, topic, 1, queue=0)
    second = await send(name_server, topic, 1, queue=1)
    async with PullConsumer(name_server, group="g") as consumer:
        held = asyncio.create_task(consumer.pull(first, 1, block=True))
        found = await consumer.pull(second, 0)
        assert not held.done()
        assert len(found.messages) == 1
        await held


@pytest.mark.row("PC-6")
async def test_senseless_arguments_are_refused_before_any_request(
    name_server: str, topic: str
) -> None:
    queue = await send(name_server, topic, 1)
    asked = Asked()
    async with (
        Client(name_server, rpc_hooks=[asked]) as client,
        PullConsumer(client=client, group="g") as consumer,
    ):
        with pytest.raises(ValueError, match="Offset must be at least 0, not -1"):
            await consumer.pull(queue, -1)
        with pytest.raises(ValueError, match="count_max must be 1 to 1,024, not 0"):
            await consumer.pull(queue, 0, count_max=0)
        with pytest.raises(ValueError, match="timeout_s must be greater than 0"):
            await consumer.pull(queue, 0, timeout_s=0)
        with pytest.raises(InvalidMessage, match="names no tags"):
            await consumer.pull(queue, 0, "||")
        with pytest.raises(InvalidMessage, match="SQL expression is empty"):
            await consumer.pull(queue, 0, sql=" ")
        with pytest.raises(ValueError, match="Offset must be at least 0"):
            consumer.commit(queue, -5)
        with pytest.raises(ValueError, match="no time zone"):
            await consumer.search(queue, datetime(2026, 1, 1))
    assert asked.of(RequestCode.PULL_MESSAGE) == []


# Queues


@pytest.mark.row("PC-3")
async def test_all_queues_of_a_topic_are_listed(name_server: str, topic: str) -> None:
    queue = await send(name_server, topic, 1)
    async with PullConsumer(name_server, group="g") as consumer:
        queues = await consumer.queues(topic)
        assert queues == [Queue(topic, queue.broker, number) for number in range(4)]
        with pytest.raises(UnknownTopic):
            await consumer.queues("nobody-knows-it")


@pytest.mark.row("PC-8")
async def test_members_hear_which_queues_are_their_own(name_server: str, topic: str) -> None:
    await send(name_server, topic, 1)
    heard: list[tuple[int, int]] = []

    def on_queues(_: str, queues: Sequence[Queue], mine: Sequence[Queue]) -> None:
        heard.append((len(queues), len(mine)))

    def member(name: str, told: bool) -> PullConsumer:
        return PullConsumer(
            name_server,
            group="g-balanced",
            topics=[topic],
            on_queues=on_queues if told else None,
            settings=QUICKLY,
            instance=name,
        )

    async with member("one", told=True) as one:
        assert len(one.balanced(topic)) == 4
        async with member("two", told=False) as two:
            await until(lambda: len(one.balanced(topic)) == 2, "two queues each")
            await until(lambda: len(two.balanced(topic)) == 2, "two queues each")
            assert not set(one.balanced(topic)) & set(two.balanced(topic))
        await until(lambda: len(one.balanced(topic)) == 4, "all queues again")
    assert heard == [(4, 4), (4, 2), (4, 4)]


# Offsets


@pytest.mark.row("PC-4", "PC-9")
async def test_offsets_are_kept_here_and_told_to_the_broker(name_server: str, topic: str) -> None:
    queue = await send(name_server, topic, 5)
    async with PullConsumer(name_server, group="g-offsets") as consumer:
        assert await consumer.committed(queue) is None
        consumer.commit(queue, 3)
        assert await consumer.committed(queue) == 3
        assert await consumer.committed(queue, from_store=True) is None
    async with PullConsumer(name_server, group="g-offsets") as consumer:
        assert await consumer.committed(queue, from_store=True) == 3
        consumer.commit(queue, 1)
        await consumer.persist()
        assert await consumer.committed(queue, from_store=True) == 1


async def test_a_queue_has_bounds_and_a_time(name_server: str, topic: str) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    queue = await send(name_server, topic, 3)
    async with PullConsumer(name_server, group="g") as consumer:
        assert (await consumer.begin(queue), await consumer.end(queue)) == (0, 3)
        assert await consumer.search(queue, before) == 0
        assert await consumer.search(queue, datetime.now(UTC) + timedelta(hours=1)) == 3
        earliest = await consumer.earliest(queue)
        assert earliest is not None and before < earliest < datetime.now(UTC)
        assert await consumer.earliest(Queue(topic, queue.broker, 3)) is None


@pytest.mark.row("PC-9")
async def test_a_message_that_is_sent_back_comes_again_to_its_group(
    name_server: str, topic: str
) -> None:
    queue = await send(name_server, topic, 1)
    async with PullConsumer(name_server, group="g-back") as consumer:
        (message,) = (await consumer.pull(queue, 0)).messages
        with pytest.raises(SdkError, match="Only messages of a group's consumer"):
            await message.ack()
        await consumer.send_back(message, timedelta(seconds=1))
        consumer.commit(queue, 1)
    async with Consumer(name_server, group="g-back", topics=[topic]) as again:
        async with asyncio.timeout(30):
            retried = await anext(again)
    assert (retried.body, retried.tries, retried.topic) == (b"m0", 2, topic)


# Life


@pytest.mark.row("PC-1")
async def test_it_is_opened_once_and_its_group_is_there_once(name_server: str, topic: str) -> None:
    queue = await send(name_server, topic, 1)
    with pytest.raises(InvalidMessage, match="Group name"):
        PullConsumer(name_server, group="a b")
    consumer = PullConsumer(name_server, group="g-once")
    with pytest.raises(Closed, match="not open"):
        await consumer.pull(queue, 0)
    async with consumer:
        with pytest.raises(Closed, match="only once"):
            await consumer.open()
        with pytest.raises(ValueError, match="already has a consumer of group g-once"):
            await PullConsumer(name_server, group="g-once").open()
        assert (await consumer.pull(queue, 0)).status is PullStatus.FOUND
    with pytest.raises(Closed, match="not open"):
        await consumer.pull(queue, 0)
    with pytest.raises(UnknownTopic):
        await PullConsumer(name_server, group="g", topics=["nobody-knows-it"]).open()
