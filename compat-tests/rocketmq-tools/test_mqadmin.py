"""Apache RocketMQ's mqadmin, unmodified, against the server: as an operator types it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.mqadmin import MqAdmin, rows
from bench.peers import PeerError, jars
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.remoting.command import Command

CLIENT = f"rocketmq-tools {jars.version('rocketmq')}"
CLUSTER, BROKER = "DefaultCluster", "rockgate"
TOPIC, GROUP = "orders", "readers"
UNIQUE = "7F000001000018B4AAC20000000000"

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(240)]


def feature(text: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(text, "mqadmin")


class Admin(MqAdmin):
    """The tool, and the server that it is pointed at."""

    def __init__(self, server: RunningServer, folder: Path) -> None:
        self.broker = "{}:{}".format(*server.address("remoting"))
        super().__init__("{}:{}".format(*server.address("namesrv")), folder)


@pytest.fixture(scope="module")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("server"), rocketmq=True) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(scope="module")
def client(rocketmq: RunningServer) -> Iterator[Client]:
    """A producer and consumer with eight messages and some progress."""
    client = Client(rocketmq.address("remoting"))
    for number in range(8):
        named = {"KEYS": f"k{number}", "UNIQ_KEY": f"{UNIQUE}{number:02X}", "TAGS": "A"}
        answer = client.publish(TOPIC, b"order %d" % number, queue=number % 4, properties=named)
        assert answer.code == 0
    client.heartbeat("a-client", GROUP, TOPIC)
    asked = {"topic": TOPIC, "queueId": 0, "consumerGroup": GROUP, "commitOffset": 1}
    assert client.ask(15, asked).code == 0
    yield client
    client.socket.close()


@pytest.fixture(scope="module")
def admin(
    rocketmq: RunningServer, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Admin]:
    try:
        admin = Admin(rocketmq, tmp_path_factory.mktemp("mqadmin"))
    except (CannotRun, PeerError) as reason:
        leave_out(CannotRun(str(reason)))
        raise
    yield admin
    admin.end()


@feature("clusterList, brokerStatus")
def test_the_cluster_and_its_broker(admin: Admin) -> None:
    [found] = rows(admin("clusterList"), CLUSTER)
    assert found[1:4] == [BROKER, "0", admin.broker]
    assert found[-1] == "true" and "null" not in " ".join(found)
    status = admin("brokerStatus", "-b", admin.broker)
    assert "brokerVersion                   : 513" in status
    assert "commitLogMaxOffset" in admin("brokerStatus", "-c", CLUSTER)


@feature("topicList, topicRoute, topicStatus, topicClusterList")
def test_topics_are_listed(admin: Admin) -> None:
    assert {TOPIC, "TBW102"} <= set(admin("topicList").split())
    assert [CLUSTER, TOPIC, GROUP] in rows(admin("topicList", "-c"), CLUSTER)
    route = admin("topicRoute", "-t", TOPIC)
    assert f'"{admin.broker}"' in route and '"readQueueNums":4' in route
    status = rows(admin("topicStatus", "-t", TOPIC), BROKER)
    assert [each[1:4] for each in status] == [[str(queue), "0", "2"] for queue in range(4)]
    assert admin("topicClusterList", "-t", TOPIC).strip() == CLUSTER


@feature("updateTopic, updateTopicPerm, deleteTopic")
def test_topics_are_made_changed_and_deleted(admin: Admin) -> None:
    made = ("-c", CLUSTER, "-t", "made-here", "-r", "3", "-w", "3")
    assert "success" in admin("updateTopic", *made)
    assert len(rows(admin("topicStatus", "-t", "made-here"), BROKER)) == 3
    changed = admin("updateTopicPerm", "-c", CLUSTER, "-t", "made-here", "-p", "4")
    assert f"from 6 to 4 in {admin.broker} success" in changed
    assert "from NameServer success" in admin("deleteTopic", "-c", CLUSTER, "-t", "made-here")
    assert "made-here" not in admin("topicList").split()


@feature("consumerProgress, brokerConsumeStats, statsAll")
def test_how_far_groups_are(admin: Admin) -> None:
    [whole] = rows(admin("consumerProgress"), GROUP)
    assert (whole[1], whole[-1]) == ("1", "7")
    progress = rows(admin("consumerProgress", "-g", GROUP), TOPIC)
    assert [each[2:6] for each in progress][:2] == [["0", "2", "1", "1"], ["1", "2", "0", "2"]]
    # The tool leaves out queues of which nothing was read.
    [stats] = rows(admin("brokerConsumeStats", "-b", admin.broker), TOPIC)
    assert stats[1:7] == [GROUP, BROKER, "0", "2", "1", "1"]
    [told] = rows(admin("statsAll", "-t", TOPIC), TOPIC)
    assert told[1:3] == [GROUP, "7"]


@feature("consumerConnection, producerConnection, producer, consumerStatus")
def test_who_is_connected(admin: Admin, client: Client) -> None:
    said = admin("consumerConnection", "-g", GROUP)
    assert "a-client" in said and "MessageModel: CLUSTERING" in said
    assert "a-client" in admin("producerConnection", "-g", "producers", "-t", TOPIC)
    assert "clientId=a-client" in admin("producer", "-b", admin.broker)
    # It asks the client itself, through the broker.
    teller = threading.Thread(target=tell_how_it_runs, args=(client,))
    teller.start()
    said = admin("consumerStatus", "-g", GROUP)
    teller.join(60)
    assert "a-client" in said and "Exception" not in said


def tell_how_it_runs(client: Client) -> None:
    def is_asked() -> bool:
        client.ask(99)
        return any(each.code == 307 for each in client.told)

    wait_until(is_asked, "the client is asked")
    [asked] = [each for each in client.told if each.code == 307]
    properties = {"PROP_CONSUMER_START_TIMESTAMP": "1", "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"}
    tables = {"subscriptionSet": [], "mqTable": {}, "statusTable": {}}
    body = json.dumps({"properties": properties, **tables}).encode()
    client.connection.respond(asked, Command(0, body=body))
    client.flush()


@feature("queryMsgById, queryMsgByKey, queryMsgByUniqueKey, queryMsgByOffset, queryCq")
def test_messages_are_found(admin: Admin, client: Client) -> None:
    by_offset = admin("queryMsgByOffset", "-t", TOPIC, "-b", BROKER, "-i", "1", "-o", "0")
    [[_, offset_id]] = rows(by_offset, "OffsetID:")
    assert "Keys:                [k1]" in admin("queryMsgById", "-t", TOPIC, "-i", offset_id)
    [by_key] = rows(admin("queryMsgByKey", "-t", TOPIC, "-k", "k1"), f"{UNIQUE}01")
    assert by_key[1:3] == ["1", "0"]
    by_id = admin("queryMsgByUniqueKey", "-t", TOPIC, "-i", f"{UNIQUE}02")
    assert "Queue ID:            2" in by_id
    one = ("-t", TOPIC, "-q", "1", "-i", "0", "-c", "1", "-b", admin.broker)
    index = admin("queryCq", *one, "-g", GROUP)
    assert "max: 2, min: 0" in index and "Exception" not in index
    assert str(int(offset_id[-16:], 16)) in index


@feature("printMsg, printMsgByQueue, consumeMessage, sendMessage, checkMsgSendRT")
def test_messages_are_printed_read_and_sent(admin: Admin) -> None:
    assert admin("printMsg", "-t", TOPIC, "-d", "true").count("MSGID: ") == 8
    queue = ("-t", TOPIC, "-a", BROKER, "-i", "1", "-p", "true", "-d", "true")
    assert "order 1" in admin("printMsgByQueue", *queue)
    two = ("-t", TOPIC, "-b", BROKER, "-i", "1", "-o", "0", "-c", "2")
    assert admin("consumeMessage", *two).count("BODY: order") == 2
    [sent] = rows(admin("sendMessage", "-t", "sent-here", "-p", "hello", "-k", "x"), BROKER)
    assert sent[2] == "SEND_OK"
    assert "Avg RT" in admin("checkMsgSendRT", "-t", "timed-here", "-a", "3", "-s", "10")


@feature("resetOffsetByTime, skipAccumulatedMessage, cloneGroupOffset")
def test_progress_is_set(admin: Admin, client: Client) -> None:
    reset = rows(admin("resetOffsetByTime", "-g", "settled", "-t", TOPIC, "-s", "-1"), BROKER)
    assert [each[1:3] for each in reset] == [[str(queue), "2"] for queue in range(4)]
    asked = {"topic": TOPIC, "queueId": 3, "consumerGroup": "settled"}
    assert client.ask(14, asked).fields == {"offset": "2"}
    cloned = admin("cloneGroupOffset", "-s", GROUP, "-d", "cloned", "-t", TOPIC)
    assert "clone group offset success" in cloned
    asked = {"topic": TOPIC, "queueId": 0, "consumerGroup": "cloned"}
    assert client.ask(14, asked).fields == {"offset": "1"}
    skipped = rows(admin("skipAccumulatedMessage", "-g", "skipping", "-t", TOPIC), BROKER)
    assert [each[2] for each in skipped] == ["2"] * 4


@feature("updateSubGroup, getConsumerConfig, deleteSubGroup")
def test_groups_are_set(admin: Admin) -> None:
    made = admin("updateSubGroup", "-c", CLUSTER, "-g", "made-group", "-r", "3")
    assert f"create subscription group to {admin.broker} success" in made
    config = admin("getConsumerConfig", "-g", "made-group")
    assert ["retryMaxTimes", "=", "3"] in rows(config, "retryMaxTimes")
    gone = admin("deleteSubGroup", "-c", CLUSTER, "-g", "made-group")
    assert f"from broker [{admin.broker}] in cluster [{CLUSTER}] success" in gone


@feature("getBrokerConfig, getNamesrvConfig, updateBrokerConfig, updateNamesrvConfig")
def test_settings_are_shown_and_some_are_changed(admin: Admin) -> None:
    assert ["brokerName", "=", BROKER] in rows(
        admin("getBrokerConfig", "-b", admin.broker), "brokerName"
    )
    assert admin.namesrv in admin("getNamesrvConfig")
    change = ("-k", "transactionCheckMax", "-v", "9")
    assert "success" in admin("updateBrokerConfig", "-b", admin.broker, *change)
    shown = rows(admin("getBrokerConfig", "-b", admin.broker), "transactionCheckMax")
    assert shown == [["transactionCheckMax", "=", "9"]]
    why = "cannot be changed at run time; set"
    change = ("-k", "flushDiskType", "-v", "SYNC_FLUSH")
    refused = admin("updateBrokerConfig", "-b", admin.broker, *change)
    assert f"flushDiskType {why} store.flush" in refused
    why = "cannot be changed at run time; those that can are"
    assert f"x {why} enableAllTopicList" in admin("updateNamesrvConfig", "-k", "x", "-v", "y")
    for value in ("true", "false"):
        change = ("-k", "orderMessageEnable", "-v", value)
        assert "success" in admin("updateNamesrvConfig", *change)


@feature("updateKvConfig, deleteKvConfig, updateOrderConf, wipeWritePerm, addWritePerm, allocateMQ")
def test_the_name_server_is_reported(admin: Admin) -> None:
    assert "success" in admin("updateKvConfig", "-s", "space", "-k", "a", "-v", "b")
    assert "success" in admin("deleteKvConfig", "-s", "space", "-k", "a")
    order = ("-t", TOPIC, "-m")
    assert "success" in admin("updateOrderConf", *order, "put", "-v", "rockgate:4")
    assert "orderConf=[rockgate:4]" in admin("updateOrderConf", *order, "get")
    assert "OK" in admin("wipeWritePerm", "-b", BROKER)
    assert '"perm":4' in admin("topicRoute", "-t", TOPIC)
    assert "OK" in admin("addWritePerm", "-b", BROKER)
    assert '"perm":6' in admin("topicRoute", "-t", TOPIC)
    assert '"a":[{"brokerName":"rockgate"' in admin("allocateMQ", "-t", TOPIC, "-i", "a,b")


@feature("cleanUnusedTopic, cleanExpiredCQ, deleteExpiredCommitLog: done by the server itself")
def test_tidying_up_is_done_by_itself(admin: Admin) -> None:
    for command in ("cleanUnusedTopic", "cleanExpiredCQ", "deleteExpiredCommitLog"):
        assert admin(command, "-b", admin.broker).strip() == "success"


@feature("setConsumeMode (POP)")
def test_a_group_is_set_to_pop(admin: Admin) -> None:
    mode = ("-b", admin.broker, "-t", TOPIC, "-g", "poppers", "-m", "POP")
    assert "success" in admin("setConsumeMode", *mode)


@feature("haStatus; unsupported commands are refused with the reason")
def test_what_is_not_there_is_refused_with_the_reason(admin: Admin) -> None:
    assert ["#SlaveNum", "0"] in rows(admin("haStatus", "-b", admin.broker), "#SlaveNum")
    refused = admin("getColdDataFlowCtrInfo", "-b", admin.broker)
    assert "request type 2003 not supported: reads of old messages are not limited by" in refused
