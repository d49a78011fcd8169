"""What a lite pull consumer shares with one of listeners: models, names, observers and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import cast

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.queues import MessageQueue, OffsetTable
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.offsets import ResetOffsetHeader
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.sdk import (
    Admin,
    Client,
    ConsumeHook,
    ConsumeKind,
    Consuming,
    LitePullConsumer,
    LitePullSettings,
    Message,
    Model,
    Producer,
    Queue,
    Received,
    Refused,
    SdkError,
    Start,
)
from rockgate.sdk.client.connection import Link

SETTINGS = LitePullSettings(start=Start.BEGINNING, rebalance_s=0.3)
BY_HAND = LitePullSettings(start=Start.BEGINNING, rebalance_s=0.3, auto_commit=False)
numbers = count()


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("lite-member"), rocketmq=True) as running:
        yield "{}:{}".format(*running.address("namesrv"))


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"shared-{next(numbers)}"


async def send(name_server: str, topic: str, *bodies: bytes, namespace: str = "") -> None:
    async with Producer(name_server, group="shop", namespace=namespace) as producer:
        for body in bodies:
            await producer.send(Message(topic, body), key="one queue")


async def read(consumer: LitePullConsumer, how_many: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(30):
        while len(found) < how_many:
            found += [each.body for each in await consumer.poll(1.0)]
    return found


# Broadcasting


def broadcasting(folder: Path, *, auto_commit: bool = True) -> LitePullSettings:
    return LitePullSettings(
        model=Model.BROADCASTING,
        start=Start.BEGINNING,
        offsets_folder=folder,
        auto_commit=auto_commit,
    )


async def test_every_member_of_a_broadcasting_group_polls_everything(
    name_server: str, topic: str, tmp_path: Path
) -> None:
    await send(name_server, topic, b"a", b"b")
    for name in ("one", "two"):
        async with LitePullConsumer(
            name_server,
            group="l-all",
            topics=[topic],
            settings=broadcasting(tmp_path / name),
            instance=name,
        ) as consumer:
            assert await read(consumer, 2) == [b"a", b"b"]
            assert await consumer.queues(topic) == consumer.assignment()


async def test_a_broadcasting_member_continues_where_its_file_says(
    name_server: str, topic: str, tmp_path: Path
) -> None:
    await send(name_server, topic, b"a", b"b")
    settings = broadcasting(tmp_path, auto_commit=False)
    more = {"group": "l-file", "topics": [topic], "settings": settings, "instance": "same"}
    async with LitePullConsumer(name_server, **more) as consumer:  # type: ignore[arg-type] # as above
        assert await read(consumer, 2) == [b"a", b"b"]
        (queue,) = [each for each in consumer.assignment() if consumer.position(each)]
        assert await consumer.committed(queue) is None
        await consumer.commit()
        assert await consumer.committed(queue) == 2
    await send(name_server, topic, b"c")
    async with LitePullConsumer(name_server, **more) as consumer:  # type: ignore[arg-type] # as above
        assert await read(consumer, 1) == [b"c"]
    async with Admin(name_server) as admin:
        assert await admin.offsets.committed("l-file", queue) is None


async def test_a_commit_to_a_file_that_cannot_be_written_is_an_error(
    name_server: str, topic: str, tmp_path: Path
) -> None:
    await send(name_server, topic, b"a")
    folder = tmp_path / "offsets"
    async with LitePullConsumer(
        name_server,
        group="l-broken",
        topics=[topic],
        settings=broadcasting(folder, auto_commit=False),
        instance="broken",
    ) as consumer:
        await read(consumer, 1)
        folder.write_text("in its way")
        with pytest.raises(SdkError, match="Cannot save offsets"):
            await consumer.commit()


# Names


async def test_a_namespace_is_on_the_wire_and_not_in_what_polls_show(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"hidden", namespace="shop")
    await send(name_server, topic, b"outside")
    told: list[tuple[str, Sequence[Queue]]] = []
    client = Client(name_server, instance=topic)
    consumer = LitePullConsumer(
        client=client,
        group="l-names",
        namespace="shop",
        topics=[topic],
        settings=BY_HAND,
        on_queues=lambda name, queues, mine: told.append((name, mine)),
    )
    async with client, consumer:
        assert set(client.consumers.groups) == {"shop%l-names"}
        found: list[Received] = []
        async with asyncio.timeout(30):
            while not found:
                found = await consumer.poll(1.0)
        (message,) = found
        assert (message.body, message.topic, message.queue.topic) == (b"hidden", topic, topic)
        queue = message.queue
        assert queue in consumer.assignment() == await consumer.queues(topic)
        assert told == [(topic, consumer.assignment())]
        await consumer.commit({queue: 1})
        assert (await consumer.committed(queue), consumer.position(queue)) == (1, 1)
        consumer.pause([queue])
        assert consumer.paused == [queue]
        consumer.resume([queue])
        await consumer.seek_to_begin(queue)
        assert await read(consumer, 1) == [b"hidden"]
        await consumer.seek_to_end(queue)
        assert await consumer.offset_for_time(queue, datetime(2000, 1, 1, tzinfo=UTC)) == 0
        assert set(consumer.statistics.topics) == {topic}
        async with Admin(name_server, instance="admin") as admin:
            info = await admin.groups.running_info("shop%l-names", client.id)
        assert info.stats[f"shop%{topic}"]["pullTPS"] > 0
        await consumer.unsubscribe(topic)
        assert consumer.assignment() == []
        await consumer.assign([queue])
        assert consumer.assignment() == [queue]
    async with Admin(name_server) as admin:
        wire = Queue(f"shop%{topic}", queue.broker, queue.id)
        assert await admin.offsets.committed("shop%l-names", wire) == 1


# Observers


class Told(ConsumeHook):
    """Records its calls, and filters one message out."""

    def __init__(self) -> None:
        self.told: list[tuple[ConsumeKind | None, list[bytes]]] = []

    def filter(self, messages: Sequence[Received]) -> Sequence[Received]:
        return [each for each in messages if each.body != b"secret"]

    def before_consume(self, consuming: Consuming) -> None:
        self.told.append((None, [each.body for each in consuming.messages]))

    def after_consume(self, consuming: Consuming) -> None:
        self.told.append((consuming.kind, [each.body for each in consuming.messages]))


async def test_hooks_see_what_a_poll_returns_and_what_becomes_of_it(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"a", b"b", b"secret", b"c")
    hook = Told()
    async with LitePullConsumer(
        name_server, group="l-hooks", topics=[topic], settings=SETTINGS, hooks=[hook]
    ) as consumer:
        async with asyncio.timeout(30):
            while not await consumer.poll(1.0, count_max=1):
                pass
            assert hook.told == [(None, [b"a"])]
            assert [each.body for each in await consumer.poll(30, count_max=1)] == [b"b"]
            done = [(None, [b"a"]), (ConsumeKind.SUCCESS, [b"a"]), (None, [b"b"])]
            assert hook.told == done
            await consumer.commit()
            assert hook.told[3:] == [(ConsumeKind.SUCCESS, [b"b"])]
            assert [each.body for each in await consumer.poll(30, count_max=1)] == [b"c"]
        statistics = consumer.statistics.topics[topic]
    # The last one was not acknowledged: it comes again.
    assert hook.told[4:] == [(None, [b"c"]), (ConsumeKind.FAILED, [b"c"])]
    assert (statistics.pulled_count, statistics.ok_count, statistics.failed_count) == (3, 2, 0)
    ended = consumer.statistics
    assert (ended.queue_count, ended.topics[topic].failed_count) == (0, 1)


async def test_messages_of_several_queues_are_told_of_queue_by_queue(
    name_server: str, topic: str
) -> None:
    async with Producer(name_server, group="shop") as producer:
        for queue in await producer.queues(topic):
            await producer.send(Message(topic, b"q%d" % queue.id), queue=queue)
    hook = Told()
    async with LitePullConsumer(
        name_server, group="l-queues", topics=[topic], settings=SETTINGS, hooks=[hook]
    ) as consumer:
        await until(lambda: consumer.statistics.cached_count > 1, "messages of several queues")
        found = await consumer.poll(30)
    assert len(found) > 1
    assert hook.told[: len(found)] == [(None, [each.body]) for each in found]


async def test_polls_are_traced_in_rocketmqs_form(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"a")
    async with LitePullConsumer(
        name_server, group="l-trace", topics=[topic], settings=SETTINGS, trace=f"{topic}-trace"
    ) as consumer:
        await read(consumer, 1)
        await consumer.commit()
    async with LitePullConsumer(
        name_server, group="l-reads", topics=[f"{topic}-trace"], settings=SETTINGS
    ) as reader:
        records = b"".join(await read(reader, 1)).decode()
        if "SubAfter" not in records:
            records += b"".join(await read(reader, 1)).decode()
    assert [kind in records for kind in ("SubBefore", "SubAfter", "l-trace")] == [True] * 3


# What brokers ask


async def test_a_lite_pull_consumer_says_how_it_does_and_how_far_it_is(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"a", b"b", b"c")
    client = Client(name_server, instance=topic)
    consumer = LitePullConsumer(client=client, group="l-asked", topics=[topic], settings=BY_HAND)
    async with client, consumer, Admin(name_server, instance="admin") as admin:
        async with asyncio.timeout(30):
            while not await consumer.poll(1.0, count_max=2):
                pass
        await consumer.commit()
        info = await admin.groups.running_info("l-asked", client.id, with_stack=True)
        (queue,) = [each for each in consumer.assignment() if consumer.position(each)]
        assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
        assert info.properties["consumerGroup"] == "l-asked"
        assert info.subscriptions == {topic: "*"}
        assert set(info.queues) == set(consumer.assignment())
        assert (info.queues[queue]["commitOffset"], info.queues[queue]["cachedMsgCount"]) == (2, 1)
        assert info.stats[topic]["consumeOKTPS"] > 0
        assert info.stack is not None
        status = await admin.offsets.status("l-asked", topic)
        assert status[client.id][queue] == 2
        (message,) = await consumer.poll(30)
        with pytest.raises(Refused, match="no listener"):
            await admin.groups.consume_directly("l-asked", client.id, message.offset_message_id)


async def test_a_reset_moves_what_is_polled_and_committed(name_server: str, topic: str) -> None:
    await send(name_server, topic, b"a", b"b")
    async with (
        LitePullConsumer(
            name_server, group="l-reset", topics=[topic], settings=SETTINGS, instance="reset"
        ) as consumer,
        Admin(name_server, instance="admin") as admin,
    ):
        assert await read(consumer, 2) == [b"a", b"b"]
        (queue,) = [each for each in consumer.assignment() if consumer.position(each)]
        await consumer.commit()
        before = datetime.now(UTC) - timedelta(days=1)
        assert (await admin.offsets.reset("l-reset", topic, before))[queue] == 0
        await until(lambda: consumer.position(queue) == 0, "it is moved")
        (told,) = (await admin.offsets.status("l-reset", topic)).values()
        assert told[queue] == 0
        assert await read(consumer, 2) == [b"a", b"b"]
    async with Admin(name_server) as admin:
        # The last poll was never followed by another.
        assert await admin.offsets.committed("l-reset", queue) == 0


class Broker:
    """Asks a client as a broker does, and remembers its answers."""

    address = "a broker of the test's"

    def __init__(self) -> None:
        self.codes: list[int] = []

    def respond(self, request: Command, answer: Command) -> None:
        self.codes.append(answer.code)


async def test_a_broker_that_resets_a_member_by_itself_is_obeyed(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, b"a", b"b")
    client, broker = Client(name_server, instance=topic), Broker()
    consumer = LitePullConsumer(client=client, group="l-told", topics=[topic], settings=BY_HAND)
    async with client, consumer:
        assert await read(consumer, 2) == [b"a", b"b"]
        (queue,) = [each for each in consumer.assignment() if consumer.position(each)]
        header = ResetOffsetHeader(topic=topic, group="l-told", timestamp=0, is_force=True)
        named = MessageQueue(broker_name=queue.broker, queue_id=queue.id, topic=topic)
        body = javajson.encode(OffsetTable(offset_table=Keyed({named: 1})))
        code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        client.consumers.asked(cast("Link", broker), Command(code, headers.write(header), body))
        await until(lambda: broker.codes == [ResponseCode.SUCCESS], "the answer")
        assert await read(consumer, 1) == [b"b"]
