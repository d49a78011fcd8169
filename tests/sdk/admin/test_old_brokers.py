"""Administration of brokers before 5.0, which do less by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.gateway.server import RunningServer

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.sdk import (
    Admin,
    Client,
    Message,
    NotSupported,
    Producer,
    PullConsumer,
    Queue,
    Refused,
    TopicSettings,
)
from rockgate.sdk.admin.calls import AdminCalls


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("old"), rocketmq=True) as running:
        yield "{}:{}".format(*running.address("namesrv"))


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> dict[int, Exception]:
    """What the server does not do, by code, as an old broker would not."""
    found: dict[int, Exception] = {}
    ask = AdminCalls.ask

    async def asked(self: AdminCalls, address: str, code: RequestCode, *more: Any) -> Command:
        if code in found:
            raise found[code]
        return await ask(self, address, code, *more)

    monkeypatch.setattr(AdminCalls, "ask", asked)
    return found


async def send(name_server: str, topic: str, how_many: int) -> Queue:
    async with Producer(name_server, group="shop") as producer:
        for number in range(how_many):
            message = Message(topic, b"%d" % number)
            sent = await producer.send(message, selector=lambda queues: queues[0])
    return sent.queue


async def test_a_request_that_a_broker_does_not_know_is_distinguished(name_server: str) -> None:
    async with Admin(name_server) as admin:
        (broker,) = await admin.brokers.all()
        with pytest.raises(NotSupported, match=r"does not know NOTIFY_CONSUMER_IDS_CHANGED \(40\)"):
            await admin._open.ask(broker.addresses[0], RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)


async def test_a_topic_is_described_by_a_broker_that_tells_of_all_or_none(
    name_server: str, refusals: dict[int, Exception]
) -> None:
    refusals[RequestCode.GET_TOPIC_CONFIG] = NotSupported("it is old")
    async with Admin(name_server) as admin:
        await admin.topics.create("old-topic", TopicSettings(read_queues=3, write_queues=3))
        await admin.topics.update("old-topic", read_queues=5)
        (described,) = (await admin.topics.describe("old-topic")).values()
    assert (described.read_queues, described.write_queues) == (5, 3)


@pytest.mark.row("ADM-7")
@pytest.mark.parametrize("code", [ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.SYSTEM_ERROR])
async def test_a_group_without_members_is_reset_queue_by_queue(
    name_server: str, refusals: dict[int, Exception], code: ResponseCode
) -> None:
    topic = group = f"old-{code}"
    queue = await send(name_server, topic, 5)
    refusals[RequestCode.INVOKE_BROKER_TO_RESET_OFFSET] = Refused("reset", code, "nobody is there")
    early = datetime.now(UTC) - timedelta(hours=1)
    async with Admin(name_server) as admin:
        await admin.offsets.commit(group, queue, 2)
        assert (await admin.offsets.reset(group, topic, force=False))[queue] == 2
        found = await admin.offsets.reset(group, topic)
        assert (len(found), found[queue]) == (4, 5)
        assert await admin.offsets.committed(group, queue) == 5
        assert (await admin.offsets.reset(group, topic, early))[queue] == 0
        assert await admin.offsets.committed(group, queue) == 0


async def test_a_group_with_members_is_not_reset_behind_their_backs(
    name_server: str, refusals: dict[int, Exception]
) -> None:
    queue = await send(name_server, "old-members", 5)
    refused = Refused("reset", ResponseCode.SYSTEM_ERROR, "no")
    refusals[RequestCode.INVOKE_BROKER_TO_RESET_OFFSET] = refused
    async with (
        Admin(name_server) as admin,
        Client(name_server, instance="member") as client,
        PullConsumer(client=client, group="old-members", topics=["old-members"]),
    ):
        with pytest.raises(Refused, match="no"):
            await admin.offsets.reset("old-members", "old-members")
        assert await admin.offsets.committed("old-members", queue) is None
