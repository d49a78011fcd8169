"""The lite pull consumer against a real server: subscribed, assigned, moved and committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.sdk import (
    Client,
    Closed,
    LitePullConsumer,
    LitePullSettings,
    Message,
    Producer,
    Queue,
    Received,
    Refused,
    SdkError,
    Start,
)
from rockgate.sdk.consumer.broker_calls import BrokerCalls, Pulled

SETTINGS = LitePullSettings(start=Start.BEGINNING, rebalance_s=0.3)
BY_HAND = LitePullSettings(start=Start.BEGINNING, auto_commit=False, auto_commit_s=1.0)
numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("lite"), rocketmq=True) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"polled-{next(numbers)}"


@pytest.fixture
def group() -> str:
    """A group of the test's own."""
    return f"polling-{next(numbers)}"


async def send(
    name_server: str, topic: str, bodies: Sequence[bytes], tag: str | None = None
) -> list[Queue]:
    async with Producer(name_server, group="shop") as producer:
        return [(await producer.send(Message(topic, body, tag=tag))).queue for body in bodies]


async def send_to_one(name_server: str, topic: str, how_many: int) -> Queue:
    async with Producer(name_server, group="shop") as producer:
        for number in range(how_many):
            message = Message(topic, b"m%d" % number)
            sent = await producer.send(message, selector=lambda queues: queues[0])
    return sent.queue


async def read(consumer: LitePullConsumer, how_many: int, count_max: int = 10) -> list[Received]:
    found: list[Received] = []
    async with asyncio.timeout(30):
        while len(found) < how_many:
            found += await consumer.poll(1.0, count_max=count_max)
    return found


def bodies(messages: Sequence[Received]) -> list[bytes]:
    return [message.body for message in messages]


def numbered(how_many: int) -> list[bytes]:
    return [b"n%03d" % number for number in range(how_many)]


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


# Subscribed


@pytest.mark.row("LITE-1", "LITE-3")
async def test_a_subscribed_topic_is_polled_in_batches(
    name_server: str, topic: str, group: str
) -> None:
    await send(name_server, topic, numbered(50))
    asked = Asked()
    async with (
        Client(name_server, rpc_hooks=[asked]) as client,
        LitePullConsumer(client=client, group=group, topics=[topic], settings=SETTINGS) as consumer,
    ):
        assert len(consumer.assignment()) == 4
        batch = await consumer.poll(10, count_max=7)
        assert 1 <= len(batch) <= 7
        rest = await read(consumer, 50 - len(batch))
        assert sorted(bodies(batch + rest)) == numbered(50)
        assert await consumer.poll(0) == []
        with pytest.raises(SdkError, match="Only messages of a group's consumer"):
            await batch[0].ack()
    pulls = asked.of(RequestCode.LITE_PULL_MESSAGE)
    # Held by the broker (2), with its subscription (4), lite (16); nothing is committed by it (1).
    assert {pull["sysFlag"] for pull in pulls} == {"22"}
    assert asked.of(RequestCode.PULL_MESSAGE) == []


@pytest.mark.row("LITE-1")
async def test_members_share_queues_and_hear_of_it(
    name_server: str, topic: str, group: str
) -> None:
    await send(name_server, topic, numbered(8))
    heard: list[int] = []

    def member(name: str) -> LitePullConsumer:
        return LitePullConsumer(
            name_server,
            group=group,
            topics=[topic],
            settings=SETTINGS,
            instance=name,
            on_queues=lambda _, queues, mine: heard.append(len(mine)),
        )

    async with member("one") as one:
        assert heard == [4]
        first = await read(one, 8)
        await one.commit()
        async with member("two") as two:
            await until(lambda: len(one.assignment()) == len(two.assignment()) == 2, "two each")
            await send(name_server, topic, [b"x%d" % n for n in range(8)])
            shared = await asyncio.gather(read(one, 4), read(two, 4))
        await until(lambda: len(one.assignment()) == 4, "all again")
    assert sorted(bodies(first)) == numbered(8)
    assert sorted(bodies(shared[0]) + bodies(shared[1])) == [b"x%d" % n for n in range(8)]


@pytest.mark.row("LITE-1")
async def test_topics_come_and_go_while_it_is_open(
    name_server: str, topic: str, group: str
) -> None:
    await send(name_server, topic, [b"a"], tag="a")
    await send(name_server, topic, [b"b"], tag="b")
    async with LitePullConsumer(name_server, group=group, settings=SETTINGS) as consumer:
        assert await consumer.poll(0) == []
        await consumer.subscribe(topic, "b")
        assert bodies(await read(consumer, 1)) == [b"b"]
        with pytest.raises(SdkError, match="Topics are subscribed"):
            await consumer.assign([])
        await consumer.unsubscribe(topic)
        assert consumer.assignment() == []
        await send(name_server, topic, [b"c"], tag="b")
        assert await consumer.poll(0.5) == []


# Assigned


@pytest.mark.row("LITE-2")
async def test_queues_are_assigned_by_hand(name_server: str, topic: str, group: str) -> None:
    queue = await send_to_one(name_server, topic, 3)
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        other = next(each for each in await consumer.queues(topic) if each != queue)
        await consumer.assign([queue])
        assert consumer.assignment() == [queue]
        assert bodies(await read(consumer, 3)) == [b"m0", b"m1", b"m2"]
        await consumer.assign([other])
        assert consumer.assignment() == [other]
        await send_to_one(name_server, topic, 1)
        assert await consumer.poll(0.5) == []
        with pytest.raises(SdkError, match="assigned by hand"):
            await consumer.subscribe(topic)
        elsewhere = await send_to_one(name_server, f"{topic}-2", 1)
        await consumer.assign([elsewhere])
        assert consumer.assignment() == [elsewhere]
        with pytest.raises(SdkError, match="is not read by this consumer"):
            consumer.position(queue)
    async with LitePullConsumer(
        name_server, group=group, topics=[topic], settings=BY_HAND
    ) as subscribed:
        with pytest.raises(SdkError, match="Topics are subscribed"):
            await subscribed.assign([queue])


@pytest.mark.row("LITE-4")
async def test_it_seeks(name_server: str, topic: str, group: str) -> None:
    queue = await send_to_one(name_server, topic, 6)
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        await consumer.assign([queue])
        assert len(await read(consumer, 6)) == 6
        assert consumer.position(queue) == 6
        await consumer.seek(queue, 4)
        assert consumer.position(queue) == 4
        assert bodies(await read(consumer, 2)) == [b"m4", b"m5"]
        await consumer.seek_to_begin(queue)
        assert bodies(await read(consumer, 1, count_max=1)) == [b"m0"]
        await consumer.seek_to_end(queue)
        assert await consumer.poll(0.2) == []
        before = datetime.now(UTC) - timedelta(hours=1)
        assert await consumer.offset_for_time(queue, before) == 0
        with pytest.raises(ValueError, match="Offset must be 0 to 6, not 7"):
            await consumer.seek(queue, 7)


@pytest.mark.row("LITE-4")
async def test_paused_queues_are_not_handed_out(name_server: str, topic: str, group: str) -> None:
    queue = await send_to_one(name_server, topic, 3)
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        await consumer.assign([queue])
        consumer.pause([queue])
        assert consumer.paused == [queue]
        assert await consumer.poll(0.5) == []
        waiting = asyncio.create_task(consumer.poll(20))
        consumer.resume([queue])
        assert (await waiting)[0].body == b"m0"


async def test_a_wrong_offset_is_corrected(name_server: str, topic: str, group: str) -> None:
    queue = await send_to_one(name_server, topic, 3)
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        await consumer.assign([queue])
        await consumer.commit({queue: 77})
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        await consumer.assign([queue])
        assert consumer.position(queue) == 77
        await until(lambda: consumer.position(queue) == 3, "the end of the queue")
        await send_to_one(name_server, topic, 1)
        assert [each.offset for each in await read(consumer, 1)] == [3]


async def test_a_broker_that_knows_no_lite_pulls_is_pulled_plainly(
    name_server: str, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(name_server, topic, numbered(8))
    pull = BrokerCalls.pull
    kinds: list[bool] = []

    async def old(self: BrokerCalls, *given: Any, is_lite: bool, **more: Any) -> Pulled:
        kinds.append(is_lite)
        if is_lite:
            raise Refused("pull", ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "not supported")
        return await pull(self, *given, is_lite=is_lite, **more)

    monkeypatch.setattr(BrokerCalls, "pull", old)
    async with LitePullConsumer(
        name_server, group=group, topics=[topic], settings=SETTINGS
    ) as consumer:
        assert sorted(bodies(await read(consumer, 8))) == numbered(8)
    # Each queue's first pull may find it out by itself.
    assert 1 <= kinds.count(True) <= 4 < kinds.count(False)


# Commits


@pytest.mark.row("LITE-5")
async def test_commits_by_hand_are_the_only_ones(name_server: str, topic: str, group: str) -> None:
    queue = await send_to_one(name_server, topic, 5)
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        await consumer.assign([queue])
        await read(consumer, 5, count_max=1)
        await consumer.poll(1.1)
        await consumer.poll(0)
        assert await consumer.committed(queue) is None
        await consumer.commit({queue: 2})
        assert await consumer.committed(queue) == 2
    async with LitePullConsumer(name_server, group=group, settings=BY_HAND) as consumer:
        await consumer.assign([queue])
        assert bodies(await read(consumer, 3)) == [b"m2", b"m3", b"m4"]
        await consumer.commit()
        assert await consumer.committed(queue) == 5
        with pytest.raises(ValueError, match="Offset must be at least 0"):
            await consumer.commit({queue: -1})


@pytest.mark.row("LITE-5")
async def test_what_the_last_poll_handed_out_comes_again_if_no_other_followed(
    name_server: str, topic: str, group: str
) -> None:
    queue = await send_to_one(name_server, topic, 5)
    settings = LitePullSettings(start=Start.BEGINNING)
    async with LitePullConsumer(name_server, group=group, settings=settings) as consumer:
        await consumer.assign([queue])
        await read(consumer, 3, count_max=3)
        assert bodies(await consumer.poll(10, count_max=1)) == [b"m3"]
    async with LitePullConsumer(name_server, group=group, settings=settings) as consumer:
        await consumer.assign([queue])
        assert bodies(await read(consumer, 2)) == [b"m3", b"m4"]


@pytest.mark.row("LITE-5")
async def test_polls_commit_now_and_then(name_server: str, topic: str, group: str) -> None:
    queue = await send_to_one(name_server, topic, 5)
    settings = LitePullSettings(start=Start.BEGINNING, auto_commit_s=1.0)
    async with LitePullConsumer(name_server, group=group, settings=settings) as consumer:
        await consumer.assign([queue])
        await read(consumer, 5)
        assert await consumer.committed(queue) is None
        async with asyncio.timeout(30):
            while await consumer.committed(queue) != 5:
                assert await consumer.poll(0.1) == []


# Life


async def test_it_is_opened_once_and_checks_its_arguments(name_server: str, group: str) -> None:
    with pytest.raises(ValueError, match="auto_commit_s must be at least 1"):
        LitePullSettings(auto_commit_s=0.5)
    consumer = LitePullConsumer(name_server, group=group)
    with pytest.raises(Closed, match="not open"):
        await consumer.poll()
    async with consumer:
        with pytest.raises(Closed, match="only once"):
            await consumer.open()
        with pytest.raises(ValueError, match="timeout_s must be at least 0"):
            await consumer.poll(-1)
        with pytest.raises(ValueError, match="count_max must be 1 to 1,024"):
            await consumer.poll(count_max=0)
        waiting = asyncio.create_task(consumer.poll(60))
        await asyncio.sleep(0)
    with pytest.raises(Closed, match="not open"):
        await waiting
