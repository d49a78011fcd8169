"""Java's clients at a broker that refuses and resets: on the server, and on real brokers.

The brokers are set alike: sends have room for one, and a group that is reset is sent its offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker
from behaviours.running import Answering
from bench.peers import rocketmq
from bench.peers.jars import pinned_version
from tests.gateway.remoting.client import Client
from tests.gateway.test_overload import Sticking

HERE = Path(__file__).resolve().parent
CLIENT = f"rocketmq-java {pinned_version(HERE / 'v5' / 'pom.xml')}"
OVERLOADED = "2 [OVERLOAD]system busy, start flow control for a while"
REJECTED = OVERLOADED.replace("OVERLOAD", "REJECTREQUEST")
OURS = ("store.flush=sync", "overload.send_in_flight_max=1", "remoting.server_side_reset=false")
THEIRS = {
    "flushDiskType": "SYNC_FLUSH",
    "sendMessageThreadPoolNums": "1",
    "sendThreadPoolQueueCapacity": "1",
    "asyncSendEnable": "false",
    "useServerSideResetOffset": "false",
}
THREADS, EACH = 16, 25
pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


class Java(Answering):
    """The Java process."""

    def __init__(self, folder: Path) -> None:
        java, *rest = java_program(HERE, "v5", "Program")
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
        running = Java(tmp_path_factory.mktemp("java"))
    except CannotRun as reason:
        leave_out(reason)
        raise
    yield running
    running.end()


@pytest.fixture(
    scope="module",
    params=[
        "rockgate",
        pytest.param(rocketmq.NAME, marks=pytest.mark.long),
        pytest.param(rocketmq.OLD, marks=pytest.mark.long),
    ],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    if request.param == "rockgate":
        made = rockgate_broker(tmp_path_factory.mktemp("server"), *OURS)
    else:
        made = apache_broker(request.param, **THEIRS)
    with made as found:
        yield found


def test_sends_beyond_the_bound_are_refused_as_busy_and_are_not_there(
    java: Java, broker: Broker
) -> None:
    broker.make_topic("overloaded", 4)
    said = java.run("overload", broker.namesrv, "overloaded", THREADS, EACH)
    assert said == OVERLOADED


def test_a_suspended_consumer_is_sent_the_offsets_of_a_reset(java: Java, broker: Broker) -> None:
    broker.make_topic("suspended", 4)
    assert java.run("reset-suspended", broker.namesrv, "suspended") == "24"


def test_a_send_to_a_broker_whose_disk_is_stuck_is_refused_at_once(
    java: Java, tmp_path: Path
) -> None:
    made = Sticking(tmp_path)
    with made.server as server:
        client = Client(server.address("remoting"))
        namesrv = "{}:{}".format(*server.address("namesrv"))
        assert java.run("send-once", namesrv, "shop") == "sent"
        made.busy(client)
        assert java.run("send-once", namesrv, "shop") == REJECTED
        made.free()
        client.socket.close()
