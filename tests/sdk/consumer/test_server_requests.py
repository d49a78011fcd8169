"""What brokers ask of a running consumer, through the server where it passes questions on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import cast

import msgspec
import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.queues import ConsumerStatus, MessageQueue, OffsetTable
from rockgate.protocol.remoting.bodies.running import DirectConsumption, RunningInfoBody
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.clients import ConsumeDirectlyHeader, RunningInfoHeader
from rockgate.protocol.remoting.headers.offsets import ResetOffsetHeader
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.sdk import Client, Message, Producer
from rockgate.sdk.client.connection import Link
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received

numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("asked"), rocketmq=True) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def broker(server: RunningServer) -> str:
    host, port = server.address("remoting")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"asked-{next(numbers)}"


class Asked:
    """A consumer with a listener, and whoever asks about it."""

    def __init__(
        self, name_server: str, topic: str, *, is_orderly: bool = False, rebalance_s: float = 600.0
    ) -> None:
        self.topic = topic
        self.group = f"g-{topic}"
        self.name_server = name_server
        self.seen: list[bytes] = []
        self.client = Client(name_server, instance=f"asked-{topic}")
        settings = ConsumerSettings(
            start=Start.BEGINNING, is_orderly=is_orderly, rebalance_s=rebalance_s
        )
        self.consumer = Consumer(client=self.client, group=self.group, settings=settings)
        self.answers: list[Command] = []

    address = "a broker of the test's"

    def respond(self, request: Command, answer: Command) -> None:
        self.answers.append(answer)

    async def ask(self, command: Command) -> Command:
        """Ask the member as a broker does; its answer."""
        before = len(self.answers)
        self.client.consumers.asked(cast("Link", self), command)
        await until(lambda: len(self.answers) > before, "the answer")
        return self.answers[-1]

    async def ask_through(self, broker: str, code: int, header: msgspec.Struct) -> Command:
        """Ask the server, which passes the question on."""
        async with Client(self.name_server, instance="admin") as admin:
            return await admin.broker(broker).request(code, headers.write(header), timeout_s=10.0)

    async def listen(self, message: Received) -> None:
        if message.body == b"bad":
            raise ZeroDivisionError("on purpose")
        if message.body == b"later":
            await message.retry()
        self.seen.append(message.body)

    async def __aenter__(self) -> Asked:
        async with Producer(self.name_server, group="shop") as producer:
            await producer.send(Message(self.topic, b"first"))
        await self.client.open()
        self.consumer.on(self.topic)(self.listen)
        await self.consumer.open()
        await until(lambda: self.seen, "the first message")
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.consumer.close()
        await self.client.close()


@pytest.mark.row("PQ-16")
@pytest.mark.parametrize("is_orderly", [False, True])
async def test_running_info_through_the_server(
    name_server: str, broker: str, topic: str, is_orderly: bool
) -> None:
    async with Asked(name_server, topic, is_orderly=is_orderly) as asked:
        answer = await asked.ask_through(
            broker,
            RequestCode.GET_CONSUMER_RUNNING_INFO,
            RunningInfoHeader(
                consumer_group=asked.group, client_id=asked.client.id, jstack_enable=True
            ),
        )
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    info = javajson.decode(answer.body, RunningInfoBody, "running info")
    assert info.properties["PROP_CONSUMEORDERLY"] == str(is_orderly).lower()
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert int(info.properties["PROP_CONSUMER_START_TIMESTAMP"]) > 1_500_000_000_000
    assert {each.topic for each in info.subscription_set} == {topic, f"%RETRY%{asked.group}"}
    queues = {
        each.queue_id: row for each, row in info.mq_table.items.items() if each.topic == topic
    }
    assert sorted(queues) == [0, 1, 2, 3]
    # As Java does, -1 where nothing was consumed yet.
    assert sorted(row["commitOffset"] for row in queues.values()) == [-1, -1, -1, 1]
    assert all(row["locked"] is is_orderly and not row["droped"] for row in queues.values())
    assert all(row["lastPullTimestamp"] > 1_500_000_000_000 for row in queues.values())
    assert set(info.status_table[topic]) == {
        *("pullRT", "pullTPS", "consumeRT", "consumeOKTPS", "consumeFailedTPS"),
        "consumeFailedMsgs",
    }
    assert info.jstack is not None
    assert "Puller.run" in info.jstack


@pytest.mark.parametrize(
    ("body", "result"),
    [(b"good", "CR_SUCCESS"), (b"later", "CR_LATER"), (b"bad", "CR_THROW_EXCEPTION")],
)
async def test_a_message_is_consumed_directly_through_the_server(
    name_server: str, broker: str, topic: str, body: bytes, result: str
) -> None:
    elsewhere = f"{topic}-elsewhere"
    async with Producer(name_server, group="shop") as producer:
        sent = await producer.send(Message(elsewhere, body))
    async with Asked(name_server, topic) as asked:
        asked.consumer._listeners.add(elsewhere, asked.listen, None)
        answer = await asked.ask_through(
            broker,
            RequestCode.CONSUME_MESSAGE_DIRECTLY,
            ConsumeDirectlyHeader(
                consumer_group=asked.group,
                client_id=asked.client.id,
                msg_id=sent.offset_message_id,
                topic=elsewhere,
            ),
        )
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        told = javajson.decode(answer.body, DirectConsumption, "consume directly")
        assert (told.consume_result, told.order, told.auto_commit) == (result, False, True)
        assert told.spent_time_mills >= 0
        assert (body in asked.seen) is (body != b"bad")
        assert told.remark is None or "on purpose" in told.remark


async def test_without_a_listener_nothing_is_consumed_directly(
    name_server: str, broker: str, topic: str
) -> None:
    async with Producer(name_server, group="shop") as producer:
        sent = await producer.send(Message(topic, b"x"))
    async with (
        Client(name_server, instance="iterating") as client,
        Client(name_server, instance="admin") as admin,
        Consumer(client=client, group="g-iterating", topics=[topic]),
    ):
        header = ConsumeDirectlyHeader(
            consumer_group="g-iterating",
            client_id=client.id,
            msg_id=sent.offset_message_id,
            topic=topic,
        )
        answer = await admin.broker(broker).request(
            RequestCode.CONSUME_MESSAGE_DIRECTLY, headers.write(header), timeout_s=10.0
        )
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "no listener" in (answer.remark or "")


async def test_a_reset_begins_again_at_the_offset_that_it_names(
    name_server: str, topic: str
) -> None:
    async with Asked(name_server, topic) as asked:
        status = Command(
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": topic, "group": asked.group}
        )
        answer = await asked.ask(status)
        known = javajson.decode(answer.body, ConsumerStatus, "status").message_queue_table.items
        ((queue, offset),) = [each for each in known.items() if each[1]]
        assert (queue.topic, offset) == (topic, 1)
        header = ResetOffsetHeader(topic=topic, group=asked.group, timestamp=0, is_force=True)
        elsewhere = MessageQueue(broker_name="nobody", queue_id=0, topic=topic)
        body = javajson.encode(OffsetTable(offset_table=Keyed({queue: 0, elsewhere: 7})))
        reset = Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, headers.write(header), body)
        assert (await asked.ask(reset)).code == ResponseCode.SUCCESS
        await until(lambda: asked.seen == [b"first", b"first"], "the first message again")


async def test_what_cannot_be_read_is_refused(name_server: str, topic: str) -> None:
    async with Asked(name_server, topic) as asked:
        header = headers.write(ResetOffsetHeader(topic=topic, group=asked.group))
        answer = await asked.ask(
            Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, b"nothing of ours")
        )
        assert answer.code == ResponseCode.SYSTEM_ERROR
        header = headers.write(ConsumeDirectlyHeader(consumer_group=asked.group, topic=topic))
        for body in (b"", b"nothing of ours"):
            answer = await asked.ask(Command(RequestCode.CONSUME_MESSAGE_DIRECTLY, header, body))
            assert answer.code == ResponseCode.SYSTEM_ERROR
        assert asked.seen == [b"first"]
