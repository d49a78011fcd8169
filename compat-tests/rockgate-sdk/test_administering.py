"""Our own Python client administers: the same on the server and on Apache RocketMQ.

What a broker does otherwise is a value of its class, and a line in FINDINGS.md.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from behaviours.rocketmq_brokers import QUEUE_COUNT, Broker
from behaviours.sdk_suites import (
    READ_S,
    Listening,
    OnBroker,
    OnRocketMQ4,
    OnRocketMQ5,
    OnRockgate,
    asked,
    has,
    is_committed,
    numbered,
    send,
    send_to_one,
)
from tests.waiting import until

from rockgate.protocol.remoting.codes import RequestCode
from rockgate.sdk import (
    Admin,
    Client,
    GroupSettings,
    Message,
    NotSupported,
    Producer,
    Received,
    Refused,
    Retry,
    TopicSettings,
)
from rockgate.sdk.client.routes import UnknownTopic

pytestmark = pytest.mark.timeout(240)
EARLY = timedelta(hours=1)


TOPICS = asked("admin: topics, routes and bounds")
GROUPS = asked("admin: groups, their lag and who is connected")
BROKERS = asked("admin: cluster, broker and their settings")
MESSAGES = asked("admin: messages by id, key and unique key")
MEMBERS = asked("admin: a consumer's running info, status and direct consumption")
OFFSETS = asked("admin: offsets reset, cloned, and by time")
LACKING = asked("a request that a broker does not have is `NotSupported`")


def admin_of(broker: Broker) -> Admin:
    return Admin(broker.namesrv, timeout_s=15, instance="admin")


class Administering(OnBroker):
    """What a broker does for an administrator, whoever wrote it."""

    version = ""
    """How the broker's version begins."""
    lacks = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    """A request that it does not have."""

    @TOPICS
    @pytest.mark.row("ADM-1")
    async def test_a_topic_is_created_changed_and_deleted(self, broker: Broker, topic: str) -> None:
        async with admin_of(broker) as admin:
            await admin.topics.create(topic, TopicSettings(read_queues=3, write_queues=3))
            await known(admin, topic, 3)
            assert topic in await admin.topics.names()
            ((name, made),) = (await admin.topics.describe(topic)).items()
            assert (made.read_queues, made.write_queues, made.perm) == (3, 3, 6)
            await admin.topics.update(topic, read_queues=5, write_queues=5)
            await known(admin, topic, 5)
            changed = (await admin.topics.describe(topic))[name]
            assert (changed.read_queues, changed.write_queues, changed.perm) == (5, 5, 6)
            await admin.topics.delete(topic)
            assert topic not in await admin.topics.names()
            with pytest.raises(UnknownTopic):
                await admin.topics.route(topic)

    @TOPICS
    @pytest.mark.row("ADM-3")
    async def test_what_queues_hold_is_reported(self, broker: Broker, topic: str) -> None:
        before = datetime.now(UTC) - timedelta(minutes=1)
        queue = (await send_to_one(broker, topic, 2))[0].queue
        async with admin_of(broker) as admin:
            ranges = await admin.topics.bounds(topic)
            assert [each.queue.id for each in ranges] == list(range(QUEUE_COUNT))
            (found,) = [each for each in ranges if each.queue == queue]
            assert (found.min_offset, found.max_offset) == (0, 2)
            assert found.written_at is not None and before < found.written_at <= datetime.now(UTC)
            route = await admin.topics.route(topic)
            assert len(route.readable) == QUEUE_COUNT
            assert await admin.offsets.begin(queue) == 0
            assert await admin.offsets.end(queue) == 2
            assert await admin.offsets.search(queue, before) == 0
            late = datetime.now(UTC) + EARLY
            assert await admin.offsets.search(queue, late) == 2 + self.behind_all

    @BROKERS
    @pytest.mark.row("ADM-2")
    async def test_brokers_say_what_they_are_and_how_they_are_set(self, broker: Broker) -> None:
        async with admin_of(broker) as admin:
            (found,) = await admin.brokers.all()
            assert found.addresses == {0: "{}:{}".format(*broker.address)}
            assert found.cluster == "DefaultCluster"
            runtime = await admin.brokers.runtime(found.name)
            config = await admin.brokers.config(found.name)
        assert runtime.version.startswith(self.version)
        assert runtime.booted_at is not None and runtime.booted_at < datetime.now(UTC)
        assert runtime.values["bootTimestamp"].isdecimal()
        assert config["brokerName"] == found.name

    @MESSAGES
    @pytest.mark.row("ADM-4")
    async def test_a_message_is_found_by_place_key_and_id(self, broker: Broker, topic: str) -> None:
        first, second = await send_to_one(broker, topic, 2, key="order-7")
        async with admin_of(broker) as admin:
            viewed = await admin.messages.view(second.offset_message_id)
            assert (viewed.topic, viewed.body, viewed.offset) == (topic, b"m1", second.offset)
            # Apache's index follows its log a little later.
            by_key: list[Received] = []
            deadline = datetime.now(UTC) + timedelta(seconds=READ_S)
            while len(by_key) < 2:
                assert datetime.now(UTC) < deadline
                by_key = await admin.messages.by_key(topic, "order-7")
            assert [each.message_id for each in by_key] == [first.message_id, second.message_id]
            assert by_key[0].queue == first.queue
            assert len(await admin.messages.by_key(topic, "order-7", limit=1)) == 1
            (by_id,) = await admin.messages.by_message_id(topic, first.message_id)
            assert by_id.body == b"m0"
            soon = datetime.now(UTC) + EARLY
            assert await admin.messages.by_key(topic, "order-7", since=soon) == []
            assert await admin.messages.by_key(topic, "order-8") == []

    @GROUPS
    @pytest.mark.row("ADM-1")
    async def test_a_group_is_created_changed_and_deleted(self, broker: Broker, topic: str) -> None:
        async with admin_of(broker) as admin:
            assert await admin.groups.describe(topic) is None
            wanted = GroupSettings(retry_count_max=3, may_broadcast=False)
            await admin.groups.create(topic, wanted)
            assert topic in await admin.groups.names()
            assert await admin.groups.describe(topic) == wanted
            await admin.groups.create(topic, GroupSettings(retry_count_max=4))
            changed = await admin.groups.describe(topic)
            assert changed is not None and changed.retry_count_max == 4
            await admin.groups.delete(topic, with_offsets=True)
            assert topic not in await admin.groups.names()

    @GROUPS
    @pytest.mark.row("ADM-5")
    async def test_lag_and_connections_are_reported(self, broker: Broker, topic: str) -> None:
        await send(broker, topic, *numbered(8))
        async with (
            admin_of(broker) as admin,
            Client(broker.namesrv, instance=topic) as client,
            Producer(client=client, group=topic, timeout_s=15) as producer,
        ):
            assert await admin.groups.consumers(topic) is None
            assert await admin.groups.producers("nobody") == ()
            await producer.send(Message(topic, b"one more"))
            listening = Listening(broker, topic, topic, client=client)
            async with listening:
                await listening.expect(b"one more", *numbered(8))
                consumers = await admin.groups.consumers(topic)
                producers = await admin.groups.producers(topic)
            assert consumers is not None
            assert [each.client_id for each in consumers.connections] == [client.id]
            assert consumers.subscriptions[topic] == "*"
            assert (consumers.model, consumers.consume_type) == ("CLUSTERING", "CONSUME_PASSIVELY")
            assert consumers.start == "CONSUME_FROM_FIRST_OFFSET"
            assert [each.client_id for each in producers] == [client.id]
            assert producers[0].language == "PYTHON"
            await send(broker, topic, b"behind", b"behind too")
            await broker.when(topic, 11)
            lag = await admin.groups.lag(topic, topic)
            assert (lag.lag, len(lag.queues)) == (2, QUEUE_COUNT)
            assert sum(each.committed for each in lag.queues) == 9
            assert (await admin.groups.lag(topic)).lag == 2
            assert topic in await admin.topics.groups(topic)

    @MEMBERS
    @pytest.mark.row("ADM-6")
    async def test_a_consumer_is_asked_for_itself(self, broker: Broker, topic: str) -> None:
        (sent,) = await send(broker, topic, b"first")
        async with (
            admin_of(broker) as admin,
            Client(broker.namesrv, instance=topic) as client,
            Listening(broker, topic, topic, client=client) as listening,
        ):
            await listening.expect(b"first")
            info = await admin.groups.running_info(topic, client.id, with_stack=True)
            assert info.subscriptions[topic] == "*"
            queues = {queue.id: row for queue, row in info.queues.items() if queue.topic == topic}
            assert sorted(queues) == list(range(QUEUE_COUNT))
            assert info.stack is not None and "Puller.run" in info.stack
            status = await admin.offsets.status(topic, topic)
            assert status[client.id][sent.queue] == 1
            one = await admin.offsets.status(topic, topic, client.id)
            assert one == {client.id: status[client.id]}
            with pytest.raises(Refused):
                await admin.groups.running_info(topic, "somebody")
            with pytest.raises(Refused):
                await admin.groups.consume_directly(topic, "somebody", sent.offset_message_id)

    @MEMBERS
    @pytest.mark.row("ADM-6")
    @pytest.mark.parametrize(
        ("body", "result"),
        [(b"good", "CR_SUCCESS"), (b"later", "CR_LATER"), (b"bad", "CR_THROW_EXCEPTION")],
    )
    async def test_a_consumer_is_given_one_message_to_consume_now(
        self, broker: Broker, topic: str, body: bytes, result: str
    ) -> None:
        (sent,) = await send(broker, topic, body)
        await broker.when(topic, 1)
        seen: list[bytes] = []
        async with admin_of(broker) as admin, Client(broker.namesrv, instance=topic) as client:
            await admin.groups.create(topic)
            await admin.offsets.commit(topic, sent.queue, 1)
            listening = Listening(broker, topic, client=client)

            @listening.consumer.on(topic)
            async def listen(message: Received) -> None:
                seen.append(message.body)
                if message.body == b"later":
                    raise Retry
                if message.body == b"bad":
                    raise ZeroDivisionError("on purpose")

            async with listening:
                async with asyncio.timeout(READ_S):
                    # A broker may know a member a little after it has been told.
                    while await admin.groups.consumers(topic) is None:
                        pass
                place = sent.offset_message_id
                found = await admin.groups.consume_directly(topic, client.id, place)
        assert seen == [body]
        assert (found.result, found.is_consumed) == (result, body == b"good")
        assert found.took < timedelta(seconds=READ_S)
        assert "on purpose" in (found.remark or "") if body == b"bad" else not found.remark

    @OFFSETS
    @pytest.mark.row("ADM-7")
    async def test_a_group_is_reset_to_a_time(self, broker: Broker, topic: str) -> None:
        sent = await send_to_one(broker, topic, 5)
        queue = sent[0].queue
        async with admin_of(broker) as admin:
            await admin.groups.create(topic)
            await admin.offsets.commit(topic, queue, 2)
            assert await admin.offsets.committed(topic, queue) == 2
            early = datetime.now(UTC) - EARLY
            assert (await admin.offsets.reset(topic, topic, early))[queue] == 0
            assert await admin.offsets.committed(topic, queue) == 0
            assert (await admin.offsets.reset(topic, topic))[queue] == 5
            assert await admin.offsets.committed(topic, queue) == 5

    @OFFSETS
    @pytest.mark.row("ADM-7")
    async def test_a_member_reads_again_after_its_group_is_reset(
        self, broker: Broker, topic: str
    ) -> None:
        await send(broker, topic, *numbered(8))
        async with admin_of(broker) as admin, Listening(broker, topic, topic) as listening:
            await listening.expect(*numbered(8))
            # RocketMQ 4 resets no queue of which it has no offset yet.
            await until(partial(is_committed, broker, topic, 2), "offsets are committed", READ_S)
            for times in (2, 3):
                wanted = sorted(numbered(8) * times)
                await admin.offsets.reset(topic, topic, datetime.now(UTC) - EARLY)
                await until(partial(has, listening, wanted), "all of them again", READ_S)
            await send(broker, topic, b"and on")
            await listening.expect(b"and on")

    @OFFSETS
    @pytest.mark.row("ADM-7")
    async def test_a_group_continues_where_another_one_is(self, broker: Broker, topic: str) -> None:
        queue = (await send_to_one(broker, topic, 5))[0].queue
        other = f"{topic}-other"
        async with admin_of(broker) as admin:
            await admin.groups.create(topic)
            await admin.groups.create(other)
            await admin.offsets.commit(topic, queue, 4)
            await admin.offsets.clone(topic, other, topic)
            assert await admin.offsets.committed(other, queue) == 4

    @LACKING
    async def test_what_a_broker_does_not_have_is_distinguished(self, broker: Broker) -> None:
        async with admin_of(broker) as admin:
            address = "{}:{}".format(*broker.address)
            with pytest.raises(NotSupported, match=rf"does not know {self.lacks.name}"):
                await admin._open.ask(address, self.lacks)


async def known(admin: Admin, topic: str, count: int) -> None:
    """Wait until name servers know that many queues of a topic."""
    deadline = datetime.now(UTC) + timedelta(seconds=READ_S)
    while datetime.now(UTC) < deadline:
        try:
            if len((await admin.topics.route(topic)).readable) == count:
                return
        except UnknownTopic:
            pass
    raise AssertionError(f"{topic} is not known")


class TestRockgate(OnRockgate, Administering):
    version = "rockgate"


class TestRocketMQ5(OnRocketMQ5, Administering):
    version = "V5_5_0"
    lacks = RequestCode.GET_ROUTEINFO_BY_TOPIC


class TestRocketMQ4(OnRocketMQ4, Administering):
    version = "V4_9_7"
    lacks = RequestCode.GET_TOPIC_CONFIG
