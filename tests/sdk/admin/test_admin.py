"""Administration against a real server: topics, groups, brokers, messages and offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from tests.gateway.server import RunningServer

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerData, SubscriptionData
from rockgate.protocol.remoting.bodies.queues import ConsumerStatus, MessageQueue
from rockgate.protocol.remoting.bodies.running import DirectConsumption, RunningInfoBody
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.sdk import (
    Admin,
    Client,
    Closed,
    Message,
    Producer,
    PullConsumer,
    Queue,
    Refused,
    SendResult,
)
from rockgate.sdk.admin.values import GroupSettings, TopicSettings
from rockgate.sdk.client.connection import Link
from rockgate.sdk.client.routes import UnknownTopic
from rockgate.sdk.errors import InvalidMessage, NoRoute

numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("admin"), rocketmq=True) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"administered-{next(numbers)}"


@pytest.fixture
def group() -> str:
    """A group of the test's own."""
    return f"administered-{next(numbers)}"


async def send(name_server: str, topic: str, how_many: int, *, key: str = "k") -> list[SendResult]:
    async with Producer(name_server, group="shop") as producer:
        return [
            await producer.send(
                Message(topic, b"m%d" % number, keys=[key]), selector=lambda queues: queues[0]
            )
            for number in range(how_many)
        ]


class Member:
    """A consumer that only answers brokers, as a client of any language would."""

    def __init__(self, group: str, topic: str, queue: Queue) -> None:
        self._group = group
        self._topic = topic
        self._queue = MessageQueue(broker_name=queue.broker, queue_id=queue.id, topic=topic)
        self.consumed: list[str] = []

    def data(self) -> ConsumerData:
        """As a heartbeat says it."""
        wanted = SubscriptionData(topic=self._topic, sub_string="paid")
        return ConsumerData(group_name=self._group, subscription_data_set=[wanted])

    def route_changed(self, topic: str) -> None:
        """It has no queues to change."""

    def asked(self, link: Link, command: Command) -> None:
        """Answer what the test is about."""
        body: object = None
        if command.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
            body = ConsumerStatus(message_queue_table=Keyed({self._queue: 7}))
        elif command.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            body = RunningInfoBody(
                properties={"PROP_CLIENT_VERSION": "V5_5_0"},
                subscription_set=self.data().subscription_data_set,
                mq_table=Keyed({self._queue: {"cachedMsgCount": 3}}),
                status_table={self._topic: {"pullRT": 1.5}},
                jstack="main: waits" if command.fields["jstackEnable"] == "true" else None,
            )
        elif command.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            self.consumed.append(command.fields["msgId"])
            body = DirectConsumption(consume_result="CR_SUCCESS", spent_time_mills=12)
        if not command.is_oneway and body is not None:
            link.respond(command, Command(ResponseCode.SUCCESS, body=javajson.encode(body)))


# Topics


@pytest.mark.row("ADM-1")
async def test_a_topic_is_created_changed_and_deleted(name_server: str, topic: str) -> None:
    async with Admin(name_server) as admin:
        await admin.topics.create(topic, TopicSettings(read_queues=3, write_queues=3))
        assert topic in await admin.topics.names()
        ((name, made),) = (await admin.topics.describe(topic)).items()
        assert (made.read_queues, made.write_queues, made.perm) == (3, 3, 6)
        await admin.topics.update(topic, read_queues=5, write_queues=5, perm=4)
        changed = (await admin.topics.describe(topic))[name]
        assert (changed.read_queues, changed.write_queues, changed.perm) == (5, 5, 4)
        assert len((await admin.topics.route(topic)).readable) == 5
        await admin.topics.delete(topic)
        assert topic not in await admin.topics.names()
        with pytest.raises(UnknownTopic):
            await admin.topics.route(topic)


@pytest.mark.row("ADM-1")
async def test_senseless_settings_of_a_topic_are_refused(name_server: str, topic: str) -> None:
    async with Admin(name_server) as admin:
        with pytest.raises(ValueError, match="read_queues must be 1 to 65,536, not 0"):
            await admin.topics.create(topic, TopicSettings(read_queues=0))
        with pytest.raises(ValueError, match="perm must be 0 to 7, not 9"):
            await admin.topics.create(topic, TopicSettings(perm=9))
        with pytest.raises(InvalidMessage, match="Topic name"):
            await admin.topics.create("a b")
        with pytest.raises(NoRoute, match="No master of cluster nowhere is known"):
            await admin.topics.create(topic, cluster="nowhere")
        with pytest.raises(Refused) as refused:
            await admin.topics.create("SCHEDULE_TOPIC_XXXX")
        assert refused.value.code == ResponseCode.INVALID_PARAMETER
        assert topic not in await admin.topics.names()


@pytest.mark.row("ADM-3")
async def test_what_queues_hold_is_reported(name_server: str, topic: str) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    (_, last) = await send(name_server, topic, 2)
    async with Admin(name_server) as admin:
        ranges = await admin.topics.bounds(topic)
        assert [each.queue.id for each in ranges] == [0, 1, 2, 3]
        found = next(each for each in ranges if each.queue == last.queue)
        assert (found.min_offset, found.max_offset) == (0, 2)
        assert found.written_at is not None and before < found.written_at < datetime.now(UTC)
        assert await admin.offsets.begin(last.queue) == 0
        assert await admin.offsets.end(last.queue) == 2
        assert await admin.offsets.search(last.queue, before) == 0
        assert await admin.offsets.search(last.queue, datetime.now(UTC) + timedelta(hours=1)) == 2


# Brokers


@pytest.mark.row("ADM-2")
async def test_brokers_say_what_they_are_and_how_they_are_set(
    server: RunningServer, name_server: str
) -> None:
    host, port = server.address("remoting")
    async with Admin(name_server) as admin:
        (broker,) = await admin.brokers.all()
        assert broker.addresses == {0: f"{host}:{port}"}
        runtime = await admin.brokers.runtime(broker.name)
        config = await admin.brokers.config(broker.name)
        with pytest.raises(NoRoute, match="No master of broker nobody is known"):
            await admin.brokers.runtime("nobody")
    assert runtime.version == "rockgate as V5_5_0"
    assert runtime.booted_at is not None and runtime.booted_at < datetime.now(UTC)
    assert runtime.values["brokerActive"] == "true"
    assert config["brokerName"] == broker.name


# Messages


@pytest.mark.row("ADM-4")
async def test_a_message_is_found_by_place_key_and_id(name_server: str, topic: str) -> None:
    first, second = await send(name_server, topic, 2, key="order-7")
    async with Admin(name_server) as admin:
        viewed = await admin.messages.view(second.offset_message_id)
        assert (viewed.topic, viewed.body, viewed.offset) == (topic, b"m1", second.offset)
        by_key = await admin.messages.by_key(topic, "order-7")
        assert [each.message_id for each in by_key] == [first.message_id, second.message_id]
        assert by_key[0].queue == first.queue
        assert len(await admin.messages.by_key(topic, "order-7", limit=1)) == 1
        (by_id,) = await admin.messages.by_message_id(topic, first.message_id)
        assert by_id.body == b"m0"
        soon = datetime.now(UTC) + timedelta(hours=1)
        assert await admin.messages.by_key(topic, "order-7", since=soon) == []
        assert await admin.messages.by_key(topic, "order-8") == []
        with pytest.raises(InvalidMessage, match="Not an offset message id"):
            await admin.messages.view("xyz")
        with pytest.raises(InvalidMessage, match="names port 0"):
            await admin.messages.view("7F000001" + "00000000" + "0" * 16)
        with pytest.raises(ValueError, match="limit must be 1 to 64"):
            await admin.messages.by_key(topic, "order-7", limit=65)
        with pytest.raises(ValueError, match="no time zone"):
            await admin.messages.by_key(topic, "order-7", since=datetime(2026, 1, 1))


# Groups


@pytest.mark.row("ADM-1")
async def test_a_group_is_created_and_deleted(name_server: str, group: str) -> None:
    async with Admin(name_server) as admin:
        assert await admin.groups.describe(group) is None
        wanted = GroupSettings(retry_count_max=3, may_broadcast=False)
        await admin.groups.create(group, wanted)
        assert group in await admin.groups.names()
        assert await admin.groups.describe(group) == wanted
        await admin.groups.create(group, GroupSettings(retry_count_max=4))
        changed = await admin.groups.describe(group)
        assert changed is not None and changed.retry_count_max == 4
        await admin.groups.delete(group, with_offsets=True)
        assert group not in await admin.groups.names()
        with pytest.raises(InvalidMessage, match="Group name"):
            await admin.groups.create("a b")


@pytest.mark.row("ADM-5")
async def test_lag_and_readers_of_a_topic_are_reported(
    name_server: str, topic: str, group: str
) -> None:
    sent = await send(name_server, topic, 5)
    queue = sent[0].queue
    async with Admin(name_server) as admin:
        await admin.offsets.commit(group, queue, 2)
        lag = await admin.groups.lag(group, topic)
        assert (lag.lag, len(lag.queues)) == (3, 4)
        (behind,) = [each for each in lag.queues if each.queue == queue]
        assert (behind.end, behind.committed, behind.lag) == (5, 2, 3)
        assert behind.consumed_at is not None
        assert (await admin.groups.lag(group)).lag == 3
        assert await admin.topics.groups(topic) == [group]
        assert await admin.offsets.committed(group, queue) == 2


@pytest.mark.row("ADM-5")
async def test_who_is_connected_is_reported(name_server: str, topic: str, group: str) -> None:
    await send(name_server, topic, 1)
    async with Admin(name_server) as admin:
        assert await admin.groups.consumers(group) is None
        assert await admin.groups.producers(group) == ()
        async with (
            Client(name_server, instance="c") as client,
            PullConsumer(client=client, group=group, topics=[topic]),
            Producer(client=client, group=group) as producer,
        ):
            await producer.send(Message(topic, b"m"))
            consumers = await admin.groups.consumers(group)
            producers = await admin.groups.producers(group)
        assert consumers is not None
        assert [each.client_id for each in consumers.connections] == [client.id]
        assert consumers.subscriptions == {topic: "*"}
        assert (consumers.model, consumers.consume_type) == ("CLUSTERING", "CONSUME_ACTIVELY")
        assert [each.client_id for each in producers] == [client.id]
        assert producers[0].language == "PYTHON"


@pytest.mark.row("ADM-6")
async def test_members_are_asked_for_themselves(name_server: str, topic: str, group: str) -> None:
    (sent,) = await send(name_server, topic, 1)
    member = Member(group, topic, sent.queue)
    async with Admin(name_server) as admin, Client(name_server) as client:
        await client.routes.readable(topic)
        client.add_consumer(group, member)
        for address in (await client.routes.readable(topic)).addresses.values():
            client.broker(address)
        await client.announce()
        info = await admin.groups.running_info(group, client.id)
        assert info.properties["PROP_CLIENT_VERSION"] == "V5_5_0"
        assert info.subscriptions == {topic: "paid"}
        assert info.queues == {sent.queue: {"cachedMsgCount": 3}}
        assert info.stats == {topic: {"pullRT": 1.5}}
        assert info.stack is None
        stack = (await admin.groups.running_info(group, client.id, with_stack=True)).stack
        assert stack == "main: waits"
        place = sent.offset_message_id
        result = await admin.groups.consume_directly(group, client.id, place)
        assert (result.is_consumed, result.took) == (True, timedelta(milliseconds=12))
        assert member.consumed == [place]
        assert await admin.offsets.status(group, topic) == {client.id: {sent.queue: 7}}
        assert await admin.offsets.status(group, topic, client.id) == {client.id: {sent.queue: 7}}
        with pytest.raises(Refused, match="not online"):
            await admin.offsets.status(group, topic, "somebody")
        with pytest.raises(Refused, match="not online"):
            await admin.groups.running_info(group, "somebody")
        with pytest.raises(InvalidMessage, match="Not an offset message id"):
            await admin.groups.consume_directly(group, client.id, "xyz")


# Offsets


@pytest.mark.row("ADM-7")
async def test_a_group_is_reset_to_a_time(name_server: str, topic: str, group: str) -> None:
    sent = await send(name_server, topic, 5)
    queue = sent[0].queue
    early = datetime.now(UTC) - timedelta(hours=1)
    async with Admin(name_server) as admin:
        await admin.offsets.commit(group, queue, 2)
        kept = await admin.offsets.reset(group, topic, force=False)
        assert kept[queue] == 2
        assert (await admin.offsets.reset(group, topic))[queue] == 5
        assert await admin.offsets.committed(group, queue) == 5
        assert (await admin.offsets.reset(group, topic, early))[queue] == 0
        assert await admin.offsets.committed(group, queue) == 0
        with pytest.raises(ValueError, match="Offset must be at least 0"):
            await admin.offsets.commit(group, queue, -1)


@pytest.mark.row("ADM-7")
async def test_a_group_continues_where_another_one_is(
    name_server: str, topic: str, group: str
) -> None:
    sent = await send(name_server, topic, 5)
    queue = sent[0].queue
    other = f"{group}-other"
    async with Admin(name_server) as admin:
        await admin.offsets.commit(group, queue, 4)
        await admin.offsets.clone(group, other, topic)
        assert await admin.offsets.committed(other, queue) == 4
        unread = next(each for each in await _queues(admin, topic) if each != queue)
        assert await admin.offsets.committed(other, unread) is None
        with pytest.raises(UnknownTopic):
            await admin.offsets.clone(group, other, "nobody-knows-it")


async def _queues(admin: Admin, topic: str) -> list[Queue]:
    return [each.queue for each in await admin.topics.bounds(topic)]


# Life


async def test_it_is_opened_once_and_asks_nothing_when_closed(name_server: str) -> None:
    with pytest.raises(ValueError, match="timeout_s must be greater than 0"):
        Admin(name_server, timeout_s=0)
    admin = Admin(name_server)
    with pytest.raises(Closed, match="not open"):
        await admin.topics.names()
    async with admin:
        with pytest.raises(Closed, match="only once"):
            await admin.open()
        await asyncio.gather(*(admin.topics.names() for _ in range(3)))
    with pytest.raises(Closed, match="not open"):
        await admin.topics.names()
