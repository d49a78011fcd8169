"""Apache's Java client pops: the broker allocates its queues, and tells it to pop.

On the server, and in the long run the same scenarios on a real broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.running import Answering
from bench.peers import RocketMQPeer
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer

HERE = Path(__file__).resolve().parent
pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]
SET_MODE = 401
CREATE_TOPIC = 17
CREATE_GROUP = 200


class Popping:
    """Where the client pops, and how it is set up for that."""

    def __init__(self, java: Answering, namesrv: str, broker: tuple[str, int]) -> None:
        self._java = java
        self._namesrv = namesrv
        self._broker = broker

    def run(self, scenario: str, topic: str, *words: object) -> str:
        line = " ".join(map(str, (scenario, self._namesrv, topic, *words)))
        _, said = self._java.ask(line)
        if said.startswith("FAIL"):
            raise AssertionError(said[5:].replace(" | ", "\n"))
        return said.removeprefix("ok").strip()

    def prepare(self, topic: str, group: str, mode: str = "POP") -> None:
        """Make topic and group, and let the group pop, or pull what the broker assigns."""
        topics = {"topic": topic, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
        kinds = {"defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}
        settings = json.dumps({"groupName": group, "retryMaxTimes": 16}).encode()
        chosen = {"topic": topic, "consumerGroup": group, "mode": mode, "popShareQueueNum": 0}
        client = Client(self._broker)
        with client.socket:
            made = client.ask(CREATE_TOPIC, {**topics, **kinds, "order": "false"})
            assert made.code == 0, made.remark
            assert client.ask(CREATE_GROUP, {}, settings).code == 0
            answer = client.ask(SET_MODE, {}, json.dumps(chosen).encode())
            assert answer.code == 0, answer.remark


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    folder = tmp_path_factory.mktemp("java")
    try:
        program, *rest = java_program(HERE, "v5", "Program")
        quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={folder}")
        brisk = "-Drocketmq.client.rebalance.waitInterval=1000"
        running = Answering([program, *quiet, brisk, *rest], folder / "java.log")
    except CannotRun as reason:
        leave_out(reason)
        raise
    yield running
    running.end()


@pytest.fixture(scope="module", params=["rockgate", pytest.param("5.5.0", marks=pytest.mark.long)])
def popping(
    request: pytest.FixtureRequest, java: Answering, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Popping]:
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "rockgate":
        with RunningServer(folder, rocketmq=True) as running:
            broker = running.address("remoting")
            yield Popping(java, "{}:{}".format(*running.address("namesrv")), broker)
            running.stop_cleanly()
        return
    with RocketMQPeer() as peer:
        yield Popping(java, "{}:{}".format(*peer.namesrv), peer.broker)


def test_every_message_comes_once_and_with_a_handle(popping: Popping) -> None:
    popping.prepare("popped", "popped-g")
    popping.run("produce", "popped", 0, 200)
    assert popping.run("pop", "popped", "popped-g", 200) == "200"


def test_members_share_every_queue(popping: Popping) -> None:
    popping.prepare("pop-shared", "pop-shared-g")
    assert int(popping.run("pop-shared", "pop-shared", "pop-shared-g", 400)) == 400


def test_a_message_that_failed_comes_again_with_one_try_more(popping: Popping) -> None:
    popping.prepare("pop-failed", "pop-failed-g")
    popping.run("produce", "pop-failed", 0, 6)
    assert popping.run("pop-fail", "pop-failed", "pop-failed-g") == "[0, 1]"


def test_an_orderly_listener_gets_each_queue_in_order(popping: Popping) -> None:
    popping.prepare("pop-ordered", "pop-ordered-g")
    popping.run("produce", "pop-ordered", 0, 100)
    assert popping.run("pop-ordered", "pop-ordered", "pop-ordered-g", 100) == "100"


def test_a_message_that_fails_in_order_comes_again_before_the_next(popping: Popping) -> None:
    popping.prepare("pop-resumed", "pop-resumed-g")
    assert popping.run("pop-ordered-fail", "pop-resumed", "pop-resumed-g") == "01222345"


def test_members_that_pull_get_the_queues_that_the_broker_assigns(popping: Popping) -> None:
    popping.prepare("assigned", "assigned-g", "PULL")
    assert popping.run("assigned", "assigned", "assigned-g", 100) == "2+2"
