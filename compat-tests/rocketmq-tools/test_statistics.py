"""Statistics as mqadmin prints them: the same scenario on the server and on Apache's brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.mqadmin import MqAdmin, rows
from behaviours.rocketmq_brokers import Broker, apache_broker, rockgate_broker
from bench.peers import PeerError, jars, rocketmq
from tests.gateway.remoting.client import Client
from tests.waiting import wait_until

CLIENT = f"rocketmq-tools {jars.version('rocketmq')}"
TOPIC, GROUP = "measured", "measurers"
SENT, READ, COMMITTED = 8, 5, 3
RATES = ("putTps", "getFoundTps", "getMissTps", "getTotalTps")
FIGURES = (
    "bootTimestamp",
    "putMessageTimesTotal",
    "putMessageFailedTimes",
    "putMessageEntireTimeMax",
    "getMessageEntireTimeMax",
    "commitLogMinOffset",
    "commitLogMaxOffset",
    "msgPutTotalYesterdayMorning",
    "msgPutTotalTodayMorning",
    "msgPutTotalTodayNow",
    "msgGetTotalYesterdayMorning",
    "msgGetTotalTodayMorning",
    "msgGetTotalTodayNow",
    "dispatchBehindBytes",
    "pageCacheLockTimeMills",
    "earliestMessageTimeStamp",
    "sendThreadPoolQueueSize",
    "pullThreadPoolQueueSize",
    "sendThreadPoolQueueHeadWaitTimeMills",
)
"""Whole numbers that tools read."""

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(600)]


class Scene:
    """A broker with eight messages in one queue, of which a group read five and committed three."""

    def __init__(self, broker: Broker, folder: Path, line: str) -> None:
        broker.make_topic(TOPIC, 1)
        client = Client(broker.address)
        for number in range(SENT):
            assert client.publish(TOPIC, b"message %d" % number, queue=0).code == 0
        client.heartbeat("a-client", GROUP, TOPIC)
        wait_until(lambda: client.pull(TOPIC, SENT - 1).code == 0, "the last one is there")
        pulled = client.pull(TOPIC, 0, consumerGroup=GROUP, maxMsgNums=READ)
        assert pulled.code == 0, pulled.remark
        asked = {"topic": TOPIC, "queueId": 0, "consumerGroup": GROUP, "commitOffset": COMMITTED}
        assert client.ask(15, asked).code == 0
        self.client = client
        self.address = "{}:{}".format(*broker.address)
        self.admin = MqAdmin(broker.namesrv, folder, line)
        self.folder = folder

    def end(self) -> None:
        self.admin.end()
        self.client.socket.close()


@pytest.fixture(
    scope="module",
    params=[
        (server, line)
        for line in (rocketmq.NAME, rocketmq.OLD)
        for server in ("rockgate", "apache")
    ],
    ids=lambda each: f"{each[0]}, {each[1]}",
)
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    server, line = request.param
    folder = tmp_path_factory.mktemp("statistics")
    made = rockgate_broker(folder) if server == "rockgate" else apache_broker(line)
    with made as broker:
        try:
            scene = Scene(broker, tmp_path_factory.mktemp("mqadmin"), line)
        except (CannotRun, PeerError) as reason:
            leave_out(CannotRun(str(reason)))
            raise
        yield scene
        scene.end()


@pytest.mark.feature("statsAll with true figures", "mqadmin")
def test_what_topics_and_groups_did_in_a_day(scene: Scene) -> None:
    def counted() -> list[str]:
        [row] = rows(scene.admin("statsAll", "-t", TOPIC), TOPIC)
        return row

    # Apache's brokers take a snapshot every ten seconds.
    wait_until(lambda: counted()[-2:] == [str(SENT), str(READ)], "the day is counted", 60)
    row = counted()
    assert row[1:3] == [GROUP, str(SENT - COMMITTED)]
    assert 0 < float(row[3]) <= SENT and 0 < float(row[4]) <= READ


@pytest.mark.feature("brokerStatus with true figures", "mqadmin")
def test_the_figures_of_the_broker(scene: Scene) -> None:
    def figures() -> dict[str, str]:
        printed = scene.admin("brokerStatus", "-b", scene.address)
        pairs = (line.partition(":") for line in printed.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}

    wait_until(lambda: len(figures()["putTps"].split()) >= 1, "there are rates", 60)
    found = figures()
    assert [name for name in FIGURES if not found[name].lstrip("-").isdecimal()] == []
    assert int(found["msgPutTotalTodayNow"]) >= SENT
    assert int(found["msgGetTotalTodayNow"]) >= READ
    assert int(found["putMessageTimesTotal"]) >= SENT
    # RocketMQ 4 spells it with one r.
    transferred = {"getTransferredTps", "getTransferedTps"} & set(found)
    for name in (*RATES, *transferred):
        assert all(float(each) >= 0 for each in found[name].split())
    assert 0 <= float(found["commitLogDiskRatio"]) <= 1
    assert found["runtime"].startswith("[ 0 days, ") and found["runtime"].endswith(" seconds ]")


@pytest.mark.feature("topicStatus, consumerProgress with what is in flight", "mqadmin")
def test_what_a_queue_holds_and_how_far_a_group_is(scene: Scene) -> None:
    printed = scene.admin("topicStatus", "-t", TOPIC)
    [row] = [line.split() for line in printed.splitlines() if line.split()[1:2] == ["0"]]
    assert row[2:4] == ["0", str(SENT)]
    printed = scene.admin("consumerProgress", "-g", GROUP)
    [row] = rows(printed, TOPIC)
    assert row[3:5] == [str(SENT), str(COMMITTED)]
    assert f"Diff Total: {SENT - COMMITTED}" in printed
    if "Inflight" in printed:
        assert f"Inflight Total: {READ - COMMITTED}" in printed


@pytest.mark.feature("time spans of queues (303)", "mqadmin")
def test_between_which_times_messages_were_stored_and_which_one_a_group_has_read(
    scene: Scene,
) -> None:
    [row] = rows(scene.admin("timeSpans", "-t", TOPIC, "-g", GROUP), "0")
    _, first, read, last, behind = map(int, row)
    assert 0 < first <= read <= last
    assert last - first < 3_600_000
    # The next message has waited since it was stored.
    assert 0 < behind < 3_600_000


@pytest.mark.feature("exportMetrics", "mqadmin")
def test_metrics_are_exported(scene: Scene) -> None:
    folder = scene.folder / "exported"
    folder.mkdir(exist_ok=True)
    printed = scene.admin("exportMetrics", "-c", "DefaultCluster", "-f", str(folder))
    assert "success" in printed, printed
    found = json.loads((folder / "metrics.json").read_text())
    assert set(found["totalData"]["totalTps"]) >= {"totalNormalInTps", "totalNormalOutTps"}
    [report] = found["evaluateReport"].values()
    assert float(report["runtimeQuota"]["messageAverageSize"]) > 0
    assert report["runtimeQuota"]["tps"]["normalInTps"] >= 0
