"""A group that is set to other offsets while it has members: their next pulls hear of it."""

from __future__ import annotations

from collections.abc import Callable

from tests.gateway.remoting.client import Client

from rockgate.gateway.remoting.processors.offsets import COMMITS_AT_ONCE
from rockgate.protocol.remoting.codes import ResponseCode

SUSPEND, COMMIT = 2, 1


def fill(broker: Client, topic: str) -> None:
    for number in range(6):
        assert broker.publish(topic, b"%d" % number).code == 0


def reset(broker: Client, topic: str, group: str, **more: object) -> None:
    fields = {"topic": topic, "group": group, "timestamp": 0, "isForce": "true", **more}
    answer = broker.ask(222, fields)
    assert answer.code == 0, answer.remark


def committed(broker: Client, topic: str, group: str) -> str:
    asked = {"topic": topic, "consumerGroup": group, "queueId": 0}
    return broker.ask(14, asked).fields["offset"]


def test_the_next_pull_is_told_the_new_offset_once(broker: Client) -> None:
    fill(broker, "reset-a")
    broker.heartbeat("client-a", "group-a", "reset-a")
    told = broker.pull("reset-a", 4, consumerGroup="group-a")
    assert told.code == 0
    reset(broker, "reset-a", "group-a", queueId=0, offset=2)
    told = broker.pull("reset-a", 6, consumerGroup="group-a")
    assert told.code == ResponseCode.PULL_OFFSET_MOVED
    assert told.fields["nextBeginOffset"] == "2"
    assert broker.pull("reset-a", 2, consumerGroup="group-a").code == 0
    # Another group of the topic hears nothing of it.
    assert broker.pull("reset-a", 4, consumerGroup="group-z").code == 0


def test_a_pull_that_waits_is_woken(connect: Callable[..., Client], broker: Client) -> None:
    fill(broker, "reset-b")
    broker.heartbeat("client-b", "group-b", "reset-b")
    waiting = broker.begin_pull(
        "reset-b", 6, consumerGroup="group-b", sysFlag=4 | SUSPEND, suspendTimeoutMillis=15_000
    )
    reset(connect(), "reset-b", "group-b")
    answer = broker.answer(waiting)
    assert answer.code == ResponseCode.PULL_OFFSET_MOVED
    assert answer.fields["nextBeginOffset"] == "0"


def test_what_members_commit_before_they_hear_of_it_counts_for_nothing(broker: Client) -> None:
    fill(broker, "reset-c")
    broker.heartbeat("client-c", "group-c", "reset-c")
    reset(broker, "reset-c", "group-c", queueId=0, offset=1)
    old = {"topic": "reset-c", "consumerGroup": "group-c", "queueId": 0, "commitOffset": 5}
    assert broker.ask(15, old).code == 0
    assert committed(broker, "reset-c", "group-c") == "1"
    piggyback = {"sysFlag": 4 | COMMIT, "commitOffset": 5}
    told = broker.pull("reset-c", 5, consumerGroup="group-c", **piggyback)
    assert told.fields["nextBeginOffset"] == "1"
    assert committed(broker, "reset-c", "group-c") == "1"
    assert broker.ask(15, {**old, "commitOffset": 2}).code == 0
    assert committed(broker, "reset-c", "group-c") == "2"


def test_members_that_are_gone_are_not_notified(
    connect: Callable[..., Client], broker: Client
) -> None:
    fill(broker, "reset-d")
    member = connect()
    member.heartbeat("client-d", "group-d", "reset-d")
    reset(broker, "reset-d", "group-d", queueId=0, offset=3)
    leaving = {"clientID": "client-d", "consumerGroup": "group-d"}
    assert member.ask(35, leaving).code == 0
    # Whoever comes next has read what is committed, and may have moved on by itself.
    assert committed(broker, "reset-d", "group-d") == "3"
    broker.heartbeat("client-e", "group-d", "reset-d")
    assert broker.pull("reset-d", 5, consumerGroup="group-d").code == 0


def clone(broker: Client, source: str, target: str, topic: str | None = None) -> int:
    fields = {"srcGroup": source, "destGroup": target}
    return broker.ask(314, fields | ({} if topic is None else {"topic": topic})).code


def test_a_cloned_group_is_where_the_other_is_and_its_members_hear_of_it(broker: Client) -> None:
    fill(broker, "reset-k")
    reset(broker, "reset-k", "group-k", queueId=0, offset=3)
    assert clone(broker, "group-k", "group-l", "reset-k") == 0
    assert committed(broker, "reset-k", "group-l") == "3"
    broker.heartbeat("client-m", "group-m", "reset-k")
    # Without a topic it is everything that the other group reads.
    assert clone(broker, "group-k", "group-m") == 0
    assert committed(broker, "reset-k", "group-m") == "3"
    told = broker.pull("reset-k", 6, consumerGroup="group-m")
    assert told.code == ResponseCode.PULL_OFFSET_MOVED
    assert told.fields["nextBeginOffset"] == "3"


def test_a_clone_names_a_topic_that_is_there_and_a_group_that_can_be(broker: Client) -> None:
    assert clone(broker, "group-k", "group-n", "reset-none") == ResponseCode.TOPIC_NOT_EXIST
    assert clone(broker, "group-k", "a.b") == ResponseCode.INVALID_PARAMETER


def test_a_clone_of_more_queues_than_one_entry_sets_reaches_the_last(broker: Client) -> None:
    queue_count = 400
    for name in ("wide-a", "wide-b", "wide-c"):
        queues = {"readQueueNums": queue_count, "writeQueueNums": queue_count, "perm": 6}
        assert broker.ask(17, {"topic": name, "defaultTopic": "TBW102", **queues}).code == 0
        reset(broker, name, "group-wide", timestamp=-1)
        reset(broker, name, "group-wide", queueId=queue_count - 1, offset=7)
    assert 3 * queue_count > COMMITS_AT_ONCE
    assert clone(broker, "group-wide", "group-cloned") == 0
    for name in ("wide-a", "wide-b", "wide-c"):
        assert committed(broker, name, "group-cloned") == "0"
        fields = {"consumerGroup": "group-cloned", "topic": name, "queueId": queue_count - 1}
        assert broker.ask(14, fields).fields["offset"] == "7"
