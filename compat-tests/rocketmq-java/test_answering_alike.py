"""What a member tells of itself: Apache's Java client and ours, asked alike, field by field."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.java_member import Java
from behaviours.rocketmq_brokers import Broker, rockgate_broker
from behaviours.sdk_suites import BEGINNING, Listening, numbered, send

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.headers.clients import ConsumeDirectlyHeader, RunningInfoHeader
from rockgate.sdk import Admin, Client, SendResult

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]

JAVA_ALONE = {
    # Objects of the program, by their addresses.
    *("defaultMQPushConsumerImpl", "log", "messageListener", "offsetStore", "socksProxyConfig"),
    # What a Python client has no setting for, or in another place: on its client.
    *("accessChannel", "adjustThreadPoolNumsThreshold", "awaitTerminationMillisWhenShutdown"),
    *("clientCallbackExecutorThreads", "clientIP", "clientRebalance"),
    *("concurrentHeartbeatThreadPoolSize", "consumeTimestamp", "decodeDecompressBody"),
    *("decodeReadBody", "detectInterval", "detectTimeout", "enableConcurrentHeartbeat"),
    *("enableHeartbeatChannelEventListener", "enableStreamRequestType", "enableTrace"),
    *("heartbeatBrokerInterval", "instanceName", "maxPageSizeInGetMetadata"),
    *("mqClientApiTimeout", "namespaceInitialized", "pollNameServerInterval"),
    *("popBatchNums", "popInvisibleTime", "popThresholdForQueue", "postSubscriptionWhenPull"),
    *("pullBatchSizeInBytes", "pullInterval", "sendLatencyEnable", "startDetectorEnable"),
    *("subscription", "traceMsgBatchNum", "unitMode", "useHeartbeatV2", "useTLS"),
    "vipChannelEnabled",
}
"""Settings that Java's client tells and ours does not."""
OTHERWISE = {
    *("PROP_CLIENT_VERSION", "PROP_CONSUMER_START_TIMESTAMP", "language", "consumerGroup"),
    # Java's is the object's address; ours says after how many tries a message is a dead letter.
    *("allocateMessageQueueStrategy", "maxReconsumeTimes"),
}
"""Settings that both tell, and not with the same words."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with rockgate_broker(tmp_path_factory.mktemp("alike")) as found:
        yield found


@pytest.fixture(scope="module", params=["v5", pytest.param("v4", marks=pytest.mark.long)])
def java_client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Java]:
    try:
        found = Java(request.param, tmp_path_factory.mktemp("java"))
    except CannotRun as reason:
        leave_out(reason)
        raise
    yield found
    found.end()


class Asker:
    """Asks members of groups, by way of the broker."""

    def __init__(self, admin: Admin, broker: Broker, sent: SendResult) -> None:
        self._admin = admin
        self._address = "{}:{}".format(*broker.address)
        self._sent = sent

    async def running(self, group: str, client_id: str) -> dict[str, Any]:
        """307, as it comes."""
        header = RunningInfoHeader(consumer_group=group, client_id=client_id, jstack_enable=True)
        return await self._ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)

    async def directly(self, group: str, client_id: str) -> dict[str, Any]:
        """309, as it comes."""
        header = ConsumeDirectlyHeader(
            consumer_group=group,
            client_id=client_id,
            msg_id=self._sent.offset_message_id,
            topic=self._sent.queue.topic,
            broker_name=self._sent.queue.broker,
        )
        return await self._ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)

    async def _ask(self, code: RequestCode, header: Any) -> dict[str, Any]:
        answer = await self._admin._open.ask(self._address, code, header)
        found: dict[str, Any] = json.loads(javajson.legalise(bytes(answer.body)))
        # Java leaves out what is null.
        return {name: value for name, value in found.items() if value is not None}


def shape(values: Mapping[str, Any]) -> dict[str, str]:
    """The names of a map, each with the kind of its value in JSON."""
    kinds = {bool: "truth", int: "number", float: "number", str: "text", list: "list"}
    return {name: kinds.get(type(value), "map") for name, value in values.items()}


def queue_rows(running: Mapping[str, Any], topic: str) -> dict[int, dict[str, Any]]:
    rows = {}
    for name, row in running["mqTable"].items():
        queue = json.loads(name)
        if queue["topic"] == topic:
            rows[queue["queueId"]] = row
    return rows


@pytest.mark.row("PQ-16")
@pytest.mark.parametrize("kind", ["concurrently", "orderly"])
async def test_both_clients_answer_with_the_same_fields(
    broker: Broker, java_client: Java, request: pytest.FixtureRequest, kind: str
) -> None:
    version = request.node.callspec.params["java_client"]
    topic = f"alike-{version}-{kind}"
    theirs, ours = f"{topic}-java", f"{topic}-python"
    sent, *_ = await send(broker, topic, *numbered(8))
    await java_client.ask("mix-join", broker.namesrv, topic, theirs, kind)
    async with asyncio.timeout(60):
        while len(await java_client.ask("mix-seen", theirs)) < 8:
            pass
    (java_id,) = await java_client.ask("mix-id", theirs)
    settings = replace(BEGINNING, is_orderly=kind == "orderly")
    async with (
        Admin(broker.namesrv, instance="admin") as admin,
        Client(broker.namesrv, instance="ours") as client,
        Listening(broker, ours, topic, settings=settings, client=client) as listening,
    ):
        await listening.expect(*numbered(8))
        asker = Asker(admin, broker, sent)
        java, python = await asker.running(theirs, java_id), await asker.running(ours, client.id)
        java_direct = await asker.directly(theirs, java_id)
        python_direct = await asker.directly(ours, client.id)
    await java_client.ask("mix-leave", theirs)

    missing_in_4 = {"mqPopTable", "userConsumerInfo"} if version == "v4" else set()
    assert shape(java) == {k: v for k, v in shape(python).items() if k not in missing_in_4}
    check_queues(queue_rows(java, topic), queue_rows(python, topic), kind == "orderly")
    assert shape(java["statusTable"][topic]) == shape(python["statusTable"][topic])
    java_wants, python_wants = subscription(java, topic), subscription(python, topic)
    assert shape(java_wants) == shape(python_wants)
    assert {**java_wants, "subVersion": 0} == {**python_wants, "subVersion": 0}
    check_properties(java["properties"], python["properties"])
    assert shape(java_direct) == shape(python_direct)
    assert {**java_direct, "spentTimeMills": 0} == {**python_direct, "spentTimeMills": 0}


def subscription(running: Mapping[str, Any], topic: str) -> dict[str, Any]:
    (found,) = [each for each in running["subscriptionSet"] if each["topic"] == topic]
    return dict(found)


def check_queues(
    java: Mapping[int, dict[str, Any]], python: Mapping[int, dict[str, Any]], is_orderly: bool
) -> None:
    assert sorted(java) == sorted(python) == [0, 1, 2, 3]
    for queue, theirs in java.items():
        ours = python[queue]
        assert shape(theirs) == shape(ours)
        times = {name for name in theirs if name.startswith("last")}
        # Java's broker says that a queue is locked although no client has locked it.
        times |= set() if is_orderly else {"locked"}
        assert {k: v for k, v in theirs.items() if k not in times} == {
            k: v for k, v in ours.items() if k not in times
        }


def check_properties(java: Mapping[str, str], python: Mapping[str, str]) -> None:
    assert {name for name in java if name.startswith("PROP_")} == {
        name for name in python if name.startswith("PROP_")
    }
    assert java.keys() - python.keys() <= JAVA_ALONE
    shared = java.keys() & python.keys() - OTHERWISE
    assert {name: java[name] for name in shared} == {name: python[name] for name in shared}
