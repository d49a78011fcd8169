"""Java's clients while a broker is administered, their hooks, and what the broker counts of them.

On the server, and in the long run on Apache's brokers of both lines.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker
from behaviours.running import Answering
from bench.peers import rocketmq
from bench.peers.jars import pinned_version
from tests.gateway.remoting.client import Client
from tests.waiting import wait_until

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
ROCKGATE = "rockgate"
LEVELS = "1s 1s 1s 1s 1s"
LONG = pytest.mark.long
pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
C = RequestCode


class Java(Answering):
    """The Java process."""

    def __init__(self, version: str, folder: Path) -> None:
        java, *rest = java_program(HERE, version, "Program")
        quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={folder}")
        brisk = "-Drocketmq.client.rebalance.waitInterval=1000"
        super().__init__([java, *quiet, brisk, *rest], folder / "java.log")

    def run(self, *words: object) -> str:
        _, said = self.ask(" ".join(map(str, words)))
        if said.startswith("FAIL"):
            raise AssertionError(said[5:].replace(" | ", "\n"))
        return said.removeprefix("ok").strip()


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    try:
        running = Java("v5", tmp_path_factory.mktemp("java"))
    except CannotRun as reason:
        leave_out(reason)
        raise
    yield running
    running.run("close-all")
    running.end()


class Operated:
    """A broker, and an operator's connection."""

    def __init__(self, kind: str, broker: Broker) -> None:
        self.kind = kind
        self.namesrv = broker.namesrv
        self.make_topic = broker.make_topic
        self.client = Client(broker.address)

    def must(self, code: RequestCode, fields: dict[str, Any], body: Any = None) -> Any:
        """The body of a response, which has to be a success."""
        answer = self.client.ask(code, fields, json.dumps(body).encode() if body else b"")
        assert answer.code == 0, (answer.code, answer.remark)
        return json.loads(bytes(answer.body)) if answer.body else None

    def set_topic(self, name: str, queue_count: int, permission: int) -> None:
        """Change a topic."""
        fields = {
            "topic": name,
            "defaultTopic": "TBW102",
            "readQueueNums": queue_count,
            "writeQueueNums": queue_count,
            "perm": permission,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": "false",
        }
        self.must(C.UPDATE_AND_CREATE_TOPIC, fields)

    def counted(self, name: str, key: str) -> int:
        """What a statistic has counted, as the tools take it; 0 while it has no such label."""
        answer = self.client.ask(C.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})
        if answer.code == ResponseCode.SYSTEM_ERROR:
            return 0
        assert answer.code == 0, answer.remark
        found = json.loads(bytes(answer.body))
        # Apache's brokers have a day's sum after an hour.
        sums = [int(found[each]["sum"]) for each in ("statsDay", "statsHour", "statsMinute")]
        return next(filter(None, sums), 0)

    def wait_for_route(self, topic: str, **wanted: int) -> None:
        """Wait until name server and clients can know how a topic's queues are."""
        host, _, port = self.namesrv.partition(":")
        asker = Client((host, int(port)))

        def is_known() -> bool:
            answer = asker.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            queues = json.loads(bytes(answer.body))["queueDatas"][0]
            return all(queues[name] == value for name, value in wanted.items())

        wait_until(is_known, f"the route of {topic} has {wanted}")
        asker.socket.close()


@pytest.fixture(
    scope="module",
    params=[
        ROCKGATE,
        pytest.param(rocketmq.NAME, marks=LONG),
        pytest.param(rocketmq.OLD, marks=LONG),
    ],
)
def operated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operated]:
    if request.param == ROCKGATE:
        levels = f"remoting.delay_levels={LEVELS}"
        made = rockgate_broker(tmp_path_factory.mktemp("server"), levels)
    else:
        made = apache_broker(request.param, messageDelayLevel=LEVELS)
    with made as broker:
        found = Operated(request.param, broker)
        yield found
        found.client.socket.close()


def bodies(first: int, count: int) -> list[str]:
    return [f"m{number}" for number in range(first, first + count)]


def test_a_topic_grows_while_it_is_read(java: Java, operated: Operated) -> None:
    topic, group = "growing", "growing-g"
    operated.make_topic(topic, 2)
    java.run("begin", operated.namesrv, topic, group)
    java.run("produce", operated.namesrv, topic, 0, 10)
    java.run("seen", group, *bodies(0, 10))
    operated.set_topic(topic, 6, 6)

    operated.wait_for_route(topic, readQueueNums=6)
    java.run("produce", operated.namesrv, topic, 10, 60)
    java.run("seen", group, *bodies(10, 60))
    java.run("halt", group)


def test_a_group_that_is_disabled_reads_on_where_it_was_once_it_is_enabled(
    java: Java, operated: Operated
) -> None:
    topic, group = "switched", "switched-g"
    operated.make_topic(topic, 2)
    operated.must(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, {"groupName": group})
    java.run("begin", operated.namesrv, topic, group)
    java.run("produce", operated.namesrv, topic, 0, 6)
    java.run("seen", group, *bodies(0, 6))
    settings = {"groupName": group, "consumeEnable": False}
    operated.must(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, settings)
    refused = operated.client.pull(topic, 0, consumerGroup=group)
    assert refused.code == ResponseCode.NO_PERMISSION
    # A pull that was held from before is answered with the first message that comes.
    java.run("produce", operated.namesrv, topic, 6, 6)
    operated.must(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, {**settings, "consumeEnable": True})
    said = java.run("seen", group, *bodies(6, 6)).split(",")
    assert sorted(said) == sorted(bodies(0, 12))
    java.run("halt", group)


def test_a_topic_that_may_not_be_written_is_still_read(java: Java, operated: Operated) -> None:
    topic, group = "read-only", "read-only-g"
    operated.make_topic(topic, 2)
    java.run("produce", operated.namesrv, topic, 0, 4)
    java.run("open-producer", topic, operated.namesrv)
    assert java.run("try-send", topic, topic) == "sent"
    operated.set_topic(topic, 2, 4)
    operated.wait_for_route(topic, perm=4)
    # Apache's brokers leave it to producers, which ask for routes twice a minute.
    said = java.run("try-send", topic, topic)
    assert said.startswith("16 ") == (operated.kind == ROCKGATE), said
    java.run("open-producer", f"{topic}-new", operated.namesrv)
    assert java.run("try-send", f"{topic}-new", topic) != "sent"
    count = 5 if operated.kind == ROCKGATE else 6
    found = java.run("consume", operated.namesrv, topic, group, count)
    assert sorted(set(found.split(","))) == bodies(0, 4)


def test_the_broker_counts_what_a_client_sends_gets_and_gives_back(
    java: Java, operated: Operated
) -> None:
    topic, group = "counted", "counted-g"
    operated.make_topic(topic, 4)
    if operated.kind == rocketmq.OLD:
        # Its dead letters can be written only, until an operator changes that.
        operated.make_topic(f"%DLQ%{group}", 1)
    java.run("produce", operated.namesrv, topic, 0, 20)
    told = java.run("fail-one", operated.namesrv, topic, group, 20, "m7")
    assert told == f"key-7 {topic} red"
    expected = {
        ("TOPIC_PUT_NUMS", topic): 20,
        ("GROUP_GET_NUMS", f"{topic}@{group}"): 20,
        ("SNDBCK_PUT_NUMS", f"{topic}@{group}"): SENT_BACK[operated.kind],
        ("TOPIC_PUT_NUMS", f"%DLQ%{group}"): 1,
    }

    highest = dict.fromkeys(expected, 0)

    def is_all_counted() -> bool:
        # Apache's brokers take a snapshot every ten seconds, and forget it a minute later: what
        # came first may be gone when the last one is counted.
        for pair, count in highest.items():
            highest[pair] = max(count, operated.counted(*pair))
        return highest == expected

    with contextlib.suppress(AssertionError):
        wait_until(is_all_counted, "all is counted", 60)
    assert highest == expected


SENT_BACK = {ROCKGATE: 3, rocketmq.NAME: 2, rocketmq.OLD: 2}
"""Whether the last one, which becomes a dead letter, counts as sent back."""


HOOKS = (
    "{after-consume-failure=1,after-consume-success=4,after-send-SEND_OK=5,before-consume=5,"
    "before-send=5,forbidden=1}"
)


def test_hooks_see_what_became_of_sends_and_messages(java: Java, operated: Operated) -> None:
    operated.make_topic("hooked", 4)
    assert java.run("hooks", operated.namesrv, "hooked") == HOOKS
