"""What mqadmin asks a broker besides topics and groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer

from rockgate.protocol.entry.tagcode import tag_code
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.queues import ConsumeStatsList, QueueUnits
from rockgate.protocol.remoting.codes import ResponseCode


def test_settings_that_are_read_at_the_start_are_shown_and_not_changed(broker: Client) -> None:
    told = bytes(broker.ask(26).body)
    host, port = broker.socket.getpeername()
    assert {b"brokerName=rockgate", b"flushDiskType=ASYNC_FLUSH", b"fileReservedTime=168"} <= {
        *told.splitlines()
    }
    assert f"brokerIP1={host}\nlistenPort={port}\n".encode() in told
    assert broker.ask(25, {}, told).code == 0
    answer = broker.ask(25, {}, b"flushDiskType=SYNC_FLUSH\n")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "flushDiskType cannot be changed at run time" in (answer.remark or "")
    assert broker.ask(25, {}, b"\xff=\n").code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize("code", [27, 306, 316, 329])
def test_tidying_up_is_done_by_itself(broker: Client, code: int) -> None:
    assert broker.ask(code).code == 0


def test_all_producers_are_reported_by_group(broker: Client) -> None:
    broker.heartbeat("administered", "", "orders")
    table = json.loads(bytes(broker.ask(328).body))["data"]
    [found] = [each for each in table["producers"] if each["clientId"] == "administered"]
    host, port = broker.socket.getsockname()
    assert found["remoteIP"] == f"{host}:{port}"
    assert found["lastUpdateTimestamp"] > 1_700_000_000_000


def test_the_broker_tells_since_when_it_has_messages_and_how_full_its_disk_is(
    broker: Client,
) -> None:
    broker.publish("running")
    table = json.loads(bytes(broker.ask(28).body))["table"]
    assert 1_700_000_000_000 < int(table["earliestMessageTimeStamp"]) < 2**53
    assert 0 <= float(table["commitLogDiskRatio"]) <= 1
    assert int(table["commitLogMaxOffset"]) > int(table["commitLogMinOffset"]) >= 0


# Many at once


def test_many_topics_are_made_or_changed_by_one_request(broker: Client) -> None:
    topics = [
        {"topicName": f"many-{number}", "readQueueNums": number, "writeQueueNums": 2, "perm": 6}
        for number in (1, 2, 3)
    ]
    body = json.dumps({"topicConfigList": topics}).encode()
    assert broker.ask(18, {}, body).code == 0
    for number in (1, 2, 3):
        told = json.loads(bytes(broker.ask(351, {"topic": f"many-{number}"}).body))
        assert (told["readQueueNums"], told["writeQueueNums"]) == (number, 2)


@pytest.mark.parametrize(
    "wrong", [{"topicName": "a b"}, {"topicName": "TBW102"}, {"topicName": "fine", "perm": 9}]
)
def test_one_topic_that_cannot_be_made_leaves_all_as_they_are(
    broker: Client, wrong: dict[str, object]
) -> None:
    topics = [{"topicName": "unmade", "readQueueNums": 1, "writeQueueNums": 1}, wrong]
    assert broker.ask(18, {}, json.dumps({"topicConfigList": topics}).encode()).code != 0
    assert broker.ask(351, {"topic": "unmade"}).code == ResponseCode.TOPIC_NOT_EXIST


def test_many_groups_are_set_by_one_request(broker: Client) -> None:
    groups = [{"groupName": f"many-{number}", "retryMaxTimes": number} for number in (1, 2)]
    assert broker.ask(225, {}, json.dumps({"groupConfigList": groups}).encode()).code == 0
    for number in (1, 2):
        told = json.loads(bytes(broker.ask(352, {"group": f"many-{number}"}).body))
        assert told["retryMaxTimes"] == number
    wrong = [{"groupName": "many-1", "retryMaxTimes": 9}, {"groupName": ""}]
    assert broker.ask(225, {}, json.dumps({"groupConfigList": wrong}).encode()).code != 0
    told = json.loads(bytes(broker.ask(352, {"group": "many-1"}).body))
    assert told["retryMaxTimes"] == 1, "all or none"


@pytest.mark.parametrize("code", [200, 225])
@pytest.mark.parametrize("name", ["no name!", "a b", "gr\u00fcppe", ""])
def test_a_group_with_a_name_that_no_client_of_rocketmq_takes_is_not_set(
    broker: Client, code: int, name: str
) -> None:
    wrong: dict[str, Any] = {"groupName": name}
    body = wrong if code == 200 else {"groupConfigList": [{"groupName": "not-set"}, wrong]}
    answer = broker.ask(code, {}, json.dumps(body).encode())
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "name" in (answer.remark or "")
    known = broker.ask(201).body
    assert b"not-set" not in bytes(known)
    assert not name or f'"{name}"'.encode() not in bytes(known)


def test_what_a_group_subscribes_to_is_reported(broker: Client) -> None:
    broker.heartbeat("asked-about", "subscribers", "orders")
    told = json.loads(bytes(broker.ask(345, {"group": "subscribers", "topic": "orders"}).body))
    assert told["subscriptionData"]["topic"] == "orders"
    told = json.loads(bytes(broker.ask(345, {"group": "subscribers", "topic": "other"}).body))
    assert "subscriptionData" not in told


def test_the_times_between_which_a_group_reads_are_reported(broker: Client) -> None:
    for _ in range(3):
        broker.publish("spans")
    asked = {"topic": "spans", "queueId": 0, "consumerGroup": "spanning", "commitOffset": 2}
    assert broker.ask(15, asked).code == 0
    answer = broker.ask(303, {"topic": "spans", "group": "spanning"})
    spans = json.loads(bytes(answer.body))["consumeTimeSpanSet"]
    first, *others = sorted(spans, key=lambda span: span["messageQueue"]["queueId"])
    least, at, most = (first[name] for name in ("minTimeStamp", "consumeTimeStamp", "maxTimeStamp"))
    assert 1_700_000_000_000 < least <= at <= most
    assert first["delayTime"] >= 0
    assert all(span["minTimeStamp"] == span["maxTimeStamp"] == -1 for span in others)
    assert broker.ask(303, {"topic": "none", "group": "g"}).code == ResponseCode.TOPIC_NOT_EXIST


# How far groups are behind


def test_every_group_s_lag_is_reported_topic_by_topic(broker: Client) -> None:
    for topic in ("lag-one", "lag-two"):
        for number in range(6):
            broker.publish(topic, queue=number % 2)
    for group, topic, offset in (
        ("lag-a", "lag-one", 1),
        ("lag-a", "lag-two", 3),
        ("lag-b", "lag-two", 2),
    ):
        asked = {"topic": topic, "queueId": 1, "consumerGroup": group, "commitOffset": offset}
        assert broker.ask(15, asked).code == 0
    answer = broker.ask(317, {"isOrder": "false"})
    found = javajson.decode(answer.body, ConsumeStatsList, "317")
    rows = {
        (group, key.topic, key.queue_id): (row.consumer_offset, row.broker_offset)
        for each in found.consume_stats_list
        for group, told in each.items()
        for stats in told
        for key, row in stats.offset_table.items.items()
        if group.startswith("lag-")
    }
    assert rows["lag-a", "lag-one", 1] == (1, 3)
    assert rows["lag-a", "lag-two", 1] == (3, 3)
    assert rows["lag-b", "lag-two", 1] == (2, 3)
    assert rows["lag-b", "lag-two", 0] == (0, 3)
    assert ("lag-b", "lag-one", 0) not in rows
    assert found.total_diff >= 2 + 3 + 0 + 3 + 1 + 3
    host, port = broker.socket.getpeername()
    assert found.broker_addr == f"{host}:{port}"


# What a queue's index has


def index_of(broker: Client, **asked: object) -> QueueUnits:
    fields = {"topic": "indexed", "queueId": 0, "index": 0, "count": 10, **asked}
    answer = broker.ask(321, fields)
    assert answer.code == 0, answer.remark
    return javajson.decode(answer.body, QueueUnits, "321")


def test_a_queue_s_index_has_a_row_for_each_offset_and_a_message_behind_each(
    broker: Client, server: RunningServer
) -> None:
    broker.publish("indexed", b"tagged", properties={"TAGS": "A"})
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 100})
    for number in range(3):
        producer.produce("indexed", b"record %d" % number, partition=0)
    assert producer.flush(60) == 0
    producer.produce("indexed", b"alone", partition=0)
    assert producer.flush(60) == 0
    broker.publish("indexed", b"untagged", properties={})
    found = index_of(broker)
    assert (found.min_queue_index, found.max_queue_index) == (0, 6)
    assert [row.tags_code for row in found.queue_data] == [tag_code(b"A"), 0, 0, 0, 0, 0]
    assert [row.extend_data_json for row in found.queue_data[1:5]] == [
        "record 0 of 3 in a batch",
        "record 1 of 3 in a batch",
        "record 2 of 3 in a batch",
        "record 0 of 1 in a batch",
    ]
    bodies = []
    for row in found.queue_data:
        viewed = broker.ask(33, {"offset": row.physic_offset, "topic": "indexed"})
        bodies += [message.body for message in messages(viewed)]
    assert bodies == [b"tagged", b"record 0", b"record 1", b"record 2", b"alone", b"untagged"]
    middle = index_of(broker, index=2, count=2)
    assert middle.queue_data == found.queue_data[2:4]
    assert index_of(broker, index=99).queue_data == []
    assert len(index_of(broker, index=-5, count=2**31 - 1).queue_data) == 6


def test_a_queue_s_index_says_what_a_group_would_be_given(
    broker: Client, connect: Callable[..., Client]
) -> None:
    for tag in ("A", "B"):
        broker.publish("indexed-tags", properties={"TAGS": tag})
    asked = {"topic": "indexed-tags", "consumerGroup": "index-readers"}
    found = index_of(broker, **asked)
    assert found.filter_data == "index-readers@indexed-tags is not online!"
    connect().heartbeat("c1", "index-readers", "indexed-tags", expression="B")
    found = index_of(broker, **asked)
    assert found.subscription_data is not None and found.subscription_data.sub_string == "B"
    assert [row.eval for row in found.queue_data] == [False, True]


def test_the_index_of_a_queue_that_is_not_there_is_refused(broker: Client) -> None:
    broker.publish("indexed-few")
    asked = {"topic": "indexed-few", "queueId": 99, "index": 0, "count": 1}
    answer = broker.ask(321, asked)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "99@indexed-few" in (answer.remark or "")
    assert broker.ask(321, {**asked, "topic": "no-such"}).code == ResponseCode.TOPIC_NOT_EXIST


# What is there from the start

# Of RocketMQ 5.5.0, as its broker answers 21 and 201 when it is new; without what its pop, its
# slaves and its other store have for themselves.
THEIR_TOPICS = {
    "DefaultCluster": (16, 7),
    "DefaultCluster_REPLY_TOPIC": (1, 6),
    "OFFSET_MOVED_EVENT": (1, 6),
    "RMQ_SYS_TRACE_TOPIC": (1, 6),
    "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
    "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
    "SCHEDULE_TOPIC_XXXX": (18, 6),
    "SELF_TEST_TOPIC": (1, 6),
    "rmq_sys_wheel_timer": (1, 6),
}
THEIR_GROUPS = {
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_OWNER",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_PULL",
    "CID_RMQ_SYS_TRANS",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "TOOLS_CONSUMER",
}


def test_system_topics_and_groups_are_those_of_the_real_broker(broker: Client) -> None:
    table = json.loads(bytes(broker.ask(21).body))["topicConfigTable"]
    ours = {
        name: (each["readQueueNums"], each["perm"])
        for name, each in table.items()
        if name in THEIR_TOPICS and each["readQueueNums"] == each["writeQueueNums"]
    }
    assert ours == THEIR_TOPICS
    assert (table["TBW102"]["perm"], table["rockgate"]["perm"]) == (7, 7)
    groups = json.loads(bytes(broker.ask(201).body))["subscriptionGroupTable"]
    assert groups.keys() >= THEIR_GROUPS


# What Kafka's side sees of it


def test_system_topics_are_internal_on_kafka_s_side(broker: Client, server: RunningServer) -> None:
    system = json.loads(bytes(broker.ask(305).body))["topicList"]
    assert {"TBW102", "SELF_TEST_TOPIC", "RMQ_SYS_TRACE_TOPIC", "OFFSET_MOVED_EVENT"} <= set(system)
    broker.publish("users-own")
    found = AdminClient({"bootstrap.servers": server.bootstrap}).describe_topics
    from confluent_kafka import TopicCollection

    futures = found(TopicCollection([*system, "users-own"]))
    internal = {name: future.result(60).is_internal for name, future in futures.items()}
    assert internal == {**dict.fromkeys(system, True), "users-own": False}


def test_queues_may_differ_and_shrink_and_kafka_has_as_many_partitions_as_there_ever_were(
    broker: Client, namesrv: Client, server: RunningServer
) -> None:
    def set_queues(read: int, write: int) -> tuple[int, int, int]:
        """What a route has, and a Kafka client."""
        asked = {"topic": "resized", "defaultTopic": "TBW102", "perm": 6, "topicSysFlag": 0}
        sizes = {"readQueueNums": read, "writeQueueNums": write, "order": "false"}
        assert broker.ask(17, {**asked, "topicFilterType": "SINGLE_TAG", **sizes}).code == 0
        [route] = json.loads(bytes(namesrv.ask(105, {"topic": "resized"}).body))["queueDatas"]
        listed = AdminClient({"bootstrap.servers": server.bootstrap}).list_topics("resized", 20)
        partitions = len(listed.topics["resized"].partitions)
        return route["readQueueNums"], route["writeQueueNums"], partitions

    assert set_queues(4, 8) == (4, 8, 8)
    assert broker.publish("resized", b"kept", queue=7).code == 0
    assert set_queues(2, 1) == (2, 1, 8)
    assert broker.publish("resized", queue=7).code == ResponseCode.SYSTEM_ERROR
    assert [m.body for m in messages(broker.pull("resized", queue=7))] == [b"kept"]
    assert set_queues(3, 9) == (3, 9, 9)


def test_all_groups_are_reported_at_once_or_in_pages(broker: Client) -> None:
    for number in range(5):
        body = json.dumps({"groupName": f"paged-{number}", "retryMaxTimes": number}).encode()
        assert broker.ask(200, {}, body).code == 0
    whole = broker.ask(201)
    table = json.loads(bytes(whole.body))["subscriptionGroupTable"]
    assert table["paged-3"]["retryMaxTimes"] == 3
    assert table["paged-3"]["groupName"] == "paged-3"
    assert int(whole.fields["totalGroupNum"]) == len(table)
    paged: dict[str, object] = {}
    while len(paged) < len(table):
        page = broker.ask(201, {"groupSeq": len(paged), "maxGroupNum": 2})
        found = json.loads(bytes(page.body))["subscriptionGroupTable"]
        assert 0 < len(found) <= 2
        paged |= found
    assert paged == table


def test_settings_of_a_group_are_bounded_and_read_once(broker: Client) -> None:
    large = json.dumps({"groupName": "large", "attributes": {"a": "x" * 20_000}}).encode()
    answer = broker.ask(200, {}, large)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "the maximum of 16,384" in (answer.remark or "")


def test_a_heartbeat_of_many_groups_makes_all_their_retry_topics(broker: Client) -> None:
    groups = [{"groupName": f"many-{number}", "subscriptionDataSet": []} for number in range(40)]
    body = {"clientID": "c", "consumerDataSet": groups, "producerDataSet": []}
    assert broker.ask(34, {}, json.dumps(body).encode()).code == 0
    for number in (0, 39):
        assert broker.ask(351, {"topic": f"%RETRY%many-{number}"}).code == 0
        assert broker.ask(38, {"consumerGroup": f"many-{number}"}).code == 0
