"""Clients, offsets, locks, topics and groups over the wire."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.gateway.remoting.groups import clients as clients_module
from rockgate.gateway.remoting.groups import locks as locks_module
from rockgate.gateway.remoting.groups.clients import Client as Registered
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.locks import Locks
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerData, SubscriptionData
from rockgate.protocol.remoting.bodies.queues import ConsumeStats, MessageQueue, TopicStats
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode


class Line:
    """A connection that records what is sent to it."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []
        self.is_open = True

    def send_oneway(self, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        self.told.append((code, fields["consumerGroup"]))


class Free:
    """Every group is ours, but for one."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def take(self, group: str) -> bool:
        if group == "kafka":
            return False
        self.taken.append(group)
        return True

    def give_back(self, group: str) -> None:
        self.taken.remove(group)


def data(group: str = "g", *topics: str, model: str = "CLUSTERING") -> ConsumerData:
    return ConsumerData(
        group_name=group,
        message_model=model,
        subscription_data_set=[SubscriptionData(topic=topic) for topic in topics or ("t",)],
    )


def joined(clients: Clients, line: Line, given: ConsumerData, client_id: str = "c") -> bool | None:
    member = Registered(client_id, line, "JAVA", 513, 0)  # type: ignore[arg-type]
    return clients.consume(given, member, notifies=True)


@pytest.mark.row("BRB-1")
@pytest.mark.row("BRB-4")
def test_members_are_notified_when_others_come_and_go() -> None:
    clients = Clients(Free(), expiry_ms=100)
    one, two = Line(), Line()
    assert joined(clients, one, data(), "c1") is True
    assert joined(clients, two, data(), "c2") is True
    assert joined(clients, two, data(), "c2") is False
    told = (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, "g")
    assert (one.told, two.told) == ([told, told], [told])
    clients.lost(two)  # type: ignore[arg-type]
    assert one.told == [told] * 3
    group = clients.consumer_group("g")
    assert group is not None and group.client_ids == ["c1"]


def test_a_group_that_reads_by_broadcast_is_not_notified() -> None:
    clients = Clients(Free(), expiry_ms=100)
    one, two = Line(), Line()
    joined(clients, one, data(model="BROADCASTING"), "c1")
    joined(clients, two, data(model="BROADCASTING"), "c2")
    assert one.told == two.told == []


@pytest.mark.row("BRB-5")
def test_a_silent_client_is_forgotten_and_its_group_given_back() -> None:
    ownership = Free()
    clients = Clients(ownership, expiry_ms=100)
    line = Line()
    joined(clients, line, data())
    assert ownership.taken == ["g"]
    assert clients.expire(100) == 0
    assert clients.touch(line, 50)  # type: ignore[arg-type]
    assert clients.expire(150) == 0
    assert clients.expire(151) == 1
    assert (clients.consumer_group("g"), ownership.taken) == (None, [])


def test_a_group_of_kafka_s_takes_no_members_here() -> None:
    assert joined(Clients(Free(), expiry_ms=100), Line(), data("kafka")) is None


def test_the_topics_of_a_group_are_those_of_its_last_heartbeat() -> None:
    clients = Clients(Free(), expiry_ms=100)
    line = Line()
    joined(clients, line, data("g", "a", "b"))
    assert joined(clients, line, data("g", "b", "c")) is True
    group = clients.consumer_group("g")
    assert group is not None and set(group.subscriptions) == {"b", "c"}


@pytest.mark.row("BRB-3")
def test_other_topics_are_told_to_every_member_and_a_new_version_of_the_same_to_none() -> None:
    clients = Clients(Free(), expiry_ms=100)
    one, two = Line(), Line()
    for line, name in ((one, "c1"), (two, "c2")):
        joined(clients, line, data("g", "a"), name)
    before = len(one.told), len(two.told)
    newer = data("g", "a")
    newer.subscription_data_set[0].sub_version = 7
    newer.subscription_data_set[0].sub_string = "A || B"
    assert joined(clients, one, newer, "c1") is False
    assert (len(one.told), len(two.told)) == before
    group = clients.consumer_group("g")
    assert group is not None and group.subscriptions["a"].sub_string == "A || B"
    assert joined(clients, one, data("g", "a", "b"), "c1") is True
    assert (len(one.told), len(two.told)) == (before[0] + 1, before[1] + 1)


# Locks


def queue(number: int) -> MessageQueue:
    return MessageQueue(broker_name="b", queue_id=number, topic="t")


@pytest.mark.row("BRB-6")
def test_a_queue_is_one_client_s_until_it_gives_it_up_or_does_not_renew() -> None:
    locks = Locks(expiry_ms=60_000)
    both = [queue(0), queue(1)]
    assert locks.lock("g", "c1", both, 0) == both
    assert locks.lock("g", "c2", both, 10) == []
    assert locks.lock("other", "c2", both, 10) == both
    assert locks.lock("g", "c1", both, 50_000) == both
    assert locks.lock("g", "c2", both, 110_000) == []
    locks.unlock("g", "c2", both)
    assert locks.lock("g", "c2", both, 110_000) == []
    locks.unlock("g", "c1", [queue(0)])
    assert locks.lock("g", "c2", both, 110_000) == [queue(0)]
    assert locks.lock("g", "c2", both, 110_001) == both


def test_locks_over_the_wire(broker: Client) -> None:
    def ask(code: int, client: str) -> Any:
        mq = [{"brokerName": "rockgate", "queueId": 0, "topic": "locked"}]
        body = {"clientId": client, "consumerGroup": "lockers", "mqSet": mq}
        answer = broker.ask(code, {}, json.dumps(body).encode())
        assert answer.code == 0
        return json.loads(bytes(answer.body)) if len(answer.body) else None

    assert len(ask(41, "one")["lockOKMQSet"]) == 1
    assert ask(41, "two")["lockOKMQSet"] == []
    ask(42, "one")
    assert len(ask(41, "two")["lockOKMQSet"]) == 1


# Over the wire


def test_a_heartbeat_makes_the_retry_topic_and_the_list_of_members(
    broker: Client, namesrv: Client, connect: Callable[..., Client]
) -> None:
    broker.publish("beaten")
    answer = broker.heartbeat("c1", "members", "beaten")
    assert answer.fields == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
    assert namesrv.ask(105, {"topic": "%RETRY%members"}).code == 0
    other = connect()
    other.heartbeat("c2", "members", "beaten")
    found = json.loads(bytes(broker.ask(38, {"consumerGroup": "members"}).body))
    assert found == {"consumerIdList": ["c1", "c2"]}
    wait_until(lambda: (broker.ask(99), len(broker.told) >= 2)[1], "both changes are told")
    assert {each.code for each in broker.told} == {40}
    other.socket.close()
    wait_until(lambda: (broker.ask(99), len(broker.told) >= 3)[1], "the loss is told")
    assert broker.ask(35, {"clientID": "c1", "consumerGroup": "members"}).code == 0
    assert broker.ask(38, {"consumerGroup": "members"}).code == ResponseCode.SYSTEM_ERROR


def test_a_short_heartbeat_of_a_stranger_asks_for_a_whole_one(broker: Client) -> None:
    body = {"clientID": "new", "heartbeatFingerprint": 7, "withoutSub": True}
    answer = broker.ask(34, {}, json.dumps(body).encode())
    assert answer.fields["IS_SUB_CHANGE"] == "true"
    broker.heartbeat("new", "short", "t")
    answer = broker.ask(34, {}, json.dumps(body).encode())
    assert answer.fields["IS_SUB_CHANGE"] == "false"


def test_progress_is_shared_with_kafka_s_groups(broker: Client, server: RunningServer) -> None:
    from confluent_kafka import Consumer, TopicPartition

    for _ in range(5):
        broker.publish("progress")
    asked = {"topic": "progress", "queueId": 0, "consumerGroup": "sharers"}
    assert broker.ask(14, asked).fields == {"offset": "0"}
    assert broker.ask(14, {**asked, "queueId": 1}).code == ResponseCode.QUERY_NOT_FOUND
    assert broker.ask(15, {**asked, "commitOffset": 3}).code == 0
    assert broker.ask(15, {**asked, "commitOffset": -1}).code == ResponseCode.INVALID_PARAMETER
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "sharers"})
    [found] = consumer.committed([TopicPartition("progress", 0)], timeout=60)
    assert found.offset == 3
    consumer.commit(offsets=[TopicPartition("progress", 0, 5)], asynchronous=False)
    consumer.close()
    assert broker.ask(14, asked).fields == {"offset": "5"}


def test_a_group_with_kafka_members_is_theirs(broker: Client, server: RunningServer) -> None:
    from confluent_kafka import Consumer

    broker.publish("theirs")
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "kafkaesque"})
    consumer.subscribe(["theirs"])
    wait_until(lambda: (consumer.poll(0.1), bool(consumer.assignment()))[1], "it is a member")
    refused = broker.heartbeat("c", "kafkaesque", "theirs")
    assert refused.code == ResponseCode.NO_PERMISSION
    asked = {"topic": "theirs", "queueId": 0, "consumerGroup": "kafkaesque", "commitOffset": 1}
    assert broker.ask(15, asked).code == ResponseCode.NO_PERMISSION
    consumer.close()
    wait_until(lambda: broker.heartbeat("c", "kafkaesque", "theirs").code == 0, "it is free")


def test_bounds_and_times(broker: Client) -> None:
    for _ in range(4):
        broker.publish("bounds")
    asked = {"topic": "bounds", "queueId": 0}
    assert broker.ask(30, asked).fields == {"offset": "4"}
    assert broker.ask(31, asked).fields == {"offset": "0"}
    first_ms = int(broker.ask(32, asked).fields["timestamp"])
    assert first_ms > 1_700_000_000_000
    assert broker.ask(29, {**asked, "timestamp": 0}).fields == {"offset": "0"}
    assert broker.ask(29, {**asked, "timestamp": first_ms}).fields == {"offset": "0"}
    assert broker.ask(29, {**asked, "timestamp": 2**62}).fields == {"offset": "4"}
    upper = {**asked, "timestamp": 2**62, "boundaryType": "UPPER"}
    assert broker.ask(29, upper).fields == {"offset": "3"}


def test_a_topic_is_made_changed_and_deleted(broker: Client, namesrv: Client) -> None:
    made = {
        "topic": "made",
        "defaultTopic": "TBW102",
        "readQueueNums": 8,
        "writeQueueNums": 8,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": "false",
        "attributes": "+message.type=FIFO",
    }
    assert broker.ask(17, made).code == 0
    found = json.loads(bytes(broker.ask(351, {"topic": "made"}).body))
    assert (found["readQueueNums"], found["attributes"]) == (8, {"message.type": "FIFO"})
    shrunk = {**made, "writeQueueNums": 2, "readQueueNums": 8, "perm": 4, "attributes": ""}
    assert broker.ask(17, shrunk).code == 0
    found = json.loads(bytes(broker.ask(351, {"topic": "made"}).body))
    assert (found["writeQueueNums"], found["perm"]) == (2, 4)
    assert broker.publish("made").code == ResponseCode.NO_PERMISSION
    stats = javajson.decode(broker.ask(202, {"topic": "made"}).body, TopicStats, "202")
    assert len(stats.offset_table.items) == 8
    assert broker.ask(215, {"topic": "made"}).code == 0
    assert namesrv.ask(105, {"topic": "made"}).code == 17
    assert broker.ask(215, {"topic": "TBW102"}).code == ResponseCode.SYSTEM_ERROR
    for bad in ({"readQueueNums": 0}, {"perm": 99}, {"topic": "a b"}, {"attributes": "+x=1"}):
        assert broker.ask(17, {**made, **bad}).code == ResponseCode.INVALID_PARAMETER


def test_groups_are_set_listed_and_deleted(broker: Client) -> None:
    body = {"groupName": "configured", "retryMaxTimes": 5, "consumeEnable": False}
    assert broker.ask(200, {}, json.dumps(body).encode()).code == 0
    table = json.loads(bytes(broker.ask(201).body))["subscriptionGroupTable"]
    assert table["configured"]["retryMaxTimes"] == 5
    broker.publish("configured-topic")
    refused = broker.pull("configured-topic", consumerGroup="configured")
    assert refused.code == ResponseCode.NO_PERMISSION
    assert broker.ask(207, {"groupName": "configured", "cleanOffset": "true"}).code == 0
    assert broker.pull("configured-topic", consumerGroup="configured").code == 0


def test_lag_and_reset(broker: Client) -> None:
    for _ in range(6):
        broker.publish("lagging")
    asked = {"topic": "lagging", "queueId": 0, "consumerGroup": "laggards", "commitOffset": 2}
    broker.ask(15, asked)
    stats = javajson.decode(
        broker.ask(208, {"consumerGroup": "laggards", "topic": "lagging"}).body, ConsumeStats, "208"
    )
    key = MessageQueue(broker_name="rockgate", queue_id=0, topic="lagging")
    assert (
        stats.offset_table.items[key].broker_offset,
        stats.offset_table.items[key].consumer_offset,
    ) == (6, 2)
    reset = {"topic": "lagging", "group": "laggards", "timestamp": 0, "isForce": "true"}
    assert broker.ask(222, reset).code == 0
    assert broker.ask(14, asked).fields == {"offset": "0"}
    found = json.loads(bytes(broker.ask(300, {"topic": "lagging"}).body))
    assert found == {"groupList": ["laggards"]}


@pytest.mark.parametrize("code", [1, 99, 12345, 2001, 200070])
def test_an_unknown_code_is_told_so_and_the_connection_lives(broker: Client, code: int) -> None:
    answer = broker.ask(code)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert broker.ask(28).code == 0


def test_a_body_that_is_no_json_is_refused_and_the_connection_lives(broker: Client) -> None:
    for code in (34, 41, 42, 46, 200):
        for body in (b"", b"{", b"[]", b"\xff\xff"):
            assert broker.ask(code, {}, body).code == ResponseCode.INVALID_PARAMETER


def test_what_heartbeats_keep_is_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "BEATS_BYTES_MAX", 1_000)
    monkeypatch.setattr(clients_module, "MEMBERSHIPS_MAX", 3)
    clients, one, other = Clients(Free(), 1_000), Line(), Line()
    first: Any = one
    second: Any = other
    clients.reserve(first, 600, 1, 10)
    clients.reserve(first, 900, 1, 10)
    with pytest.raises(Refused, match=r"Heartbeats of all clients exceed 1,000 bytes\."):
        clients.reserve(second, 200, 1, 10)
    clients.lost(first)
    clients.reserve(second, 200, 3, 10)
    for group in ("a", "b", "c"):
        clients.produce(group, Registered("id", second, "JAVA", 1, 0))
    clients.reserve(second, 200, 3, 10)
    with pytest.raises(Refused, match=r"The maximum of 3 clients in groups has been reached\."):
        clients.reserve(first, 200, 1, 10)
    clients.leave(second, producer="a", consumer=None)
    clients.reserve(first, 200, 1, 10)
    clients.lost(second)
    assert clients.expire(10**9) == 0


def test_locks_that_no_one_renewed_are_forgotten_over_several_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locks_module, "TURN_SECONDS", 1e-9)
    locks = locks_module.Locks(expiry_ms=10)
    queue = MessageQueue(broker_name="b", queue_id=0, topic="t")
    for number in range(5):
        assert locks.lock(f"g{number}", "c", [queue], 0) == [queue]
    locks.expire(11)
    assert 0 < len(locks) < 5, "some, and others have their turn"
    for _ in range(5):
        locks.expire(11)
    assert len(locks) == 0
