"""What is checked before a pull reads, over the wire: each failure has a code of its own."""

import json
from typing import Any

import pytest
from tests.gateway.remoting.client import Client, messages

from rockgate.protocol.remoting.codes import ResponseCode

MADE = {
    "defaultTopic": "TBW102",
    "readQueueNums": 4,
    "writeQueueNums": 4,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "order": "false",
}


@pytest.mark.row("BPULL-1")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"topic": "write-only"}, ResponseCode.NO_PERMISSION),
        ({"consumerGroup": "forbidden"}, ResponseCode.NO_PERMISSION),
        ({"queueId": 4}, ResponseCode.SYSTEM_ERROR),
        ({"queueId": -1}, ResponseCode.SYSTEM_ERROR),
        ({"subscription": "||"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        (
            {"expressionType": "SQL92", "subscription": "a >"},
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        ),
        ({"expressionType": "CLASS", "subscription": "x"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ({"sysFlag": 0, "consumerGroup": "unheard"}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ({"sysFlag": 0, "consumerGroup": "elsewhere"}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ({"sysFlag": 0, "consumerGroup": "not-by-broadcast"}, ResponseCode.NO_PERMISSION),
        ({"queueOffset": "x"}, ResponseCode.INVALID_PARAMETER),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else each.name,
)
def test_what_cannot_be_pulled_has_its_own_code(
    broker: Client, changes: dict[str, Any], code: ResponseCode
) -> None:
    broker.publish("checked", b"there")
    assert broker.ask(17, {**MADE, "topic": "write-only", "perm": 2}).code == 0
    settings = {"groupName": "forbidden", "consumeEnable": False}
    assert broker.ask(200, {}, json.dumps(settings).encode()).code == 0
    assert broker.heartbeat("c", "elsewhere", "another-topic").code == 0
    settings = {"groupName": "not-by-broadcast", "consumeBroadcastEnable": False}
    assert broker.ask(200, {}, json.dumps(settings).encode()).code == 0
    heard = broker.heartbeat("c", "not-by-broadcast", "checked", model="BROADCASTING")
    assert heard.code == 0
    assert [message.body for message in messages(broker.pull("checked"))][:1] == [b"there"]
    topic = str(changes.pop("topic", "checked"))
    assert broker.pull(topic, **changes).code == code


@pytest.mark.row("BPULL-1")
def test_the_version_of_a_subscription_is_not_compared(broker: Client) -> None:
    """A client's pulls say a new version before its heartbeat does."""
    broker.publish("versions", properties={"TAGS": "A"})
    broker.heartbeat("c1", "versioned", "versions")
    for version in (0, 1, 2**62):
        answer = broker.pull("versions", sysFlag=0, consumerGroup="versioned", subVersion=version)
        assert answer.code == 0


@pytest.mark.row("BPULL-1")
def test_a_group_that_no_one_made_may_pull(broker: Client) -> None:
    broker.publish("for-anybody", b"there")
    found = broker.pull("for-anybody", consumerGroup="made-by-nobody")
    assert [message.body for message in messages(found)] == [b"there"]


@pytest.mark.row("SUB-4")
def test_no_code_is_uploaded_and_who_wants_a_class_to_filter_is_refused(broker: Client) -> None:
    broker.publish("by-class", b"there")
    source = b"public class Picky implements MessageFilter {}"
    uploaded = {"consumerGroup": "pickers", "topic": "by-class", "className": "Picky"}
    answer = broker.ask(302, {**uploaded, "classCRC": 0}, source)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    asked = broker.pull("by-class", sysFlag=4 | 8, subscription="Picky")
    assert asked.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert broker.heartbeat("c", "pickers", "by-class", expression="Picky", by_class=True).code == 0
    asked = broker.pull("by-class", sysFlag=0, consumerGroup="pickers")
    assert asked.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert "only tag and SQL filters are supported" in (asked.remark or "")
    assert [message.body for message in messages(broker.pull("by-class"))] == [b"there"]


def heartbeat_by_sql(broker: Client, topic: str, expression: str, version: int) -> None:
    """A member of `choosers` that is given what an expression chooses, by its heartbeat alone."""
    data = {
        "topic": topic,
        "subString": expression,
        "expressionType": "SQL92",
        "subVersion": version,
    }
    consumer = {"groupName": "choosers", "subscriptionDataSet": [data]}
    body = json.dumps({"clientID": "c", "consumerDataSet": [consumer], "producerDataSet": []})
    assert broker.ask(34, {}, body.encode()).code == 0


@pytest.mark.parametrize("version", [0, 1, 7, 2**62])
def test_an_expression_of_a_heartbeat_is_used_whatever_version_a_pull_has(
    broker: Client, version: int
) -> None:
    """RocketMQ may answer FILTER_DATA_NOT_EXIST or _NOT_LATEST until it has compiled it."""
    topic = f"by-sql-{version}"
    for number in range(4):
        named = {"UNIQ_KEY": f"u{number}", "a": str(number)}
        assert broker.publish(topic, b"%d" % number, properties=named).code == 0

    def bodies() -> list[bytes]:
        asked: dict[str, Any] = {
            "consumerGroup": "choosers",
            "subVersion": version,
            "subscription": "",
        }
        answer = broker.pull(topic, sysFlag=0, expressionType="SQL92", **asked)
        assert answer.code == 0
        return [message.body for message in messages(answer)]

    heartbeat_by_sql(broker, topic, "a > 1", 3)
    assert bodies() == [b"2", b"3"]
    heartbeat_by_sql(broker, topic, "a < 1", 4)
    assert bodies() == [b"0"]
