"""What names may be: each place where a client gives one refuses a longer one, and dots."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.remoting.halfworld import HalfWorld

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting.codes import ResponseCode

LONG = "g" * 256


def heartbeat(**given: Any) -> bytes:
    beat = {"clientID": "c", "consumerDataSet": [], "producerDataSet": [], **given}
    return json.dumps(beat).encode()


@pytest.mark.parametrize(
    "body",
    [
        heartbeat(clientID="c" * 1_001),
        heartbeat(producerDataSet=[{"groupName": LONG}]),
        heartbeat(consumerDataSet=[{"groupName": LONG, "subscriptionDataSet": []}]),
        heartbeat(
            consumerDataSet=[{"groupName": "g", "subscriptionDataSet": [{"topic": "t" * 263}]}]
        ),
    ],
)
def test_a_heartbeat_with_a_long_name_registers_no_one(broker: Client, body: bytes) -> None:
    answer = broker.ask(34, {}, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "the maximum is" in (answer.remark or "")
    assert broker.ask(34, {}, heartbeat()).code == 0


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (15, {"consumerGroup": LONG, "topic": "t", "queueId": 0, "commitOffset": 0}, b""),
        (222, {"group": LONG, "topic": "t", "timestamp": 0, "isForce": "true"}, b""),
        (200, {}, json.dumps({"groupName": LONG}).encode()),
        (41, {}, json.dumps({"consumerGroup": LONG, "clientId": "c", "mqSet": []}).encode()),
        (42, {}, json.dumps({"consumerGroup": "g", "clientId": LONG * 4, "mqSet": []}).encode()),
    ],
)
def test_a_request_with_a_long_name_is_refused(
    broker: Client, code: int, fields: dict[str, Any], body: bytes
) -> None:
    assert broker.publish("t").code == 0
    answer = broker.ask(code, fields, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "the maximum is" in (answer.remark or "")


def test_a_name_with_a_dot_is_no_topic_even_if_its_topic_is_there(
    broker: Client, namesrv: Client
) -> None:
    assert broker.publish("orders|paid").code == 0
    assert broker.pull("orders|paid").code == 0
    assert namesrv.ask(105, {"topic": "orders|paid"}).code == 0
    assert broker.publish("orders.paid").code == ResponseCode.INVALID_PARAMETER
    assert broker.pull("orders.paid").code == ResponseCode.TOPIC_NOT_EXIST
    assert namesrv.ask(105, {"topic": "orders.paid"}).code == ResponseCode.TOPIC_NOT_EXIST
    for code in (202, 351):
        assert broker.ask(code, {"topic": "orders.paid"}).code == ResponseCode.TOPIC_NOT_EXIST
    asked = {"topic": "orders.paid", "queueId": 0}
    assert broker.ask(30, asked).code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (34, {}, heartbeat(consumerDataSet=[{"groupName": "a.b", "subscriptionDataSet": []}])),
        (34, {}, heartbeat(producerDataSet=[{"groupName": "a.b"}])),
        (15, {"consumerGroup": "a.b", "topic": "t", "queueId": 0, "commitOffset": 0}, b""),
        (222, {"group": "a.b", "topic": "t", "timestamp": 0, "isForce": "true"}, b""),
        (200, {}, json.dumps({"groupName": "a.b"}).encode()),
        (41, {}, json.dumps({"consumerGroup": "a.b", "clientId": "c", "mqSet": []}).encode()),
        (14, {"consumerGroup": "a.b", "topic": "t", "queueId": 0}, b""),
        (35, {"clientID": "c", "consumerGroup": "a.b"}, b""),
        (36, {"offset": 0, "group": "a.b", "delayLevel": 0}, b""),
        (38, {"consumerGroup": "a.b"}, b""),
        (203, {"consumerGroup": "a.b"}, b""),
        (207, {"groupName": "a.b"}, b""),
        (208, {"consumerGroup": "a.b"}, b""),
        (208, {"consumerGroup": "a.b", "topic": "t"}, b""),
        (307, {"consumerGroup": "a.b", "clientId": "c"}, b""),
        (309, {"consumerGroup": "a.b", "clientId": "c", "msgId": "0" * 32}, b""),
        (321, {"consumerGroup": "a.b", "topic": "t", "queueId": 0, "index": 0, "count": 1}, b""),
        (343, {"group": "a.b"}, b""),
        (352, {"group": "a.b"}, b""),
    ],
)
def test_a_group_with_a_dot_is_refused_with_its_name_here(
    broker: Client, code: int, fields: dict[str, Any], body: bytes
) -> None:
    """Whatever is asked, and though the group is there."""
    assert broker.publish("t").code == 0
    assert broker.heartbeat("c", "a|b", "t").code == 0
    answer = broker.ask(code, fields, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "its name in RocketMQ is 'a|b'" in (answer.remark or "")
    assert broker.ask(38, {"consumerGroup": "a|b"}).code == 0, "it still has its member"


def test_a_pull_of_a_group_with_a_dot_is_refused_and_commits_nothing(broker: Client) -> None:
    assert broker.publish("t").code == 0
    committing = {"sysFlag": 1 | 4, "commitOffset": 1}
    answer = broker.pull("t", consumerGroup="c.d", **committing)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "its name in RocketMQ is 'c|d'" in (answer.remark or "")
    asked = {"topic": "t", "queueId": 0, "setZeroIfNotFound": "false"}
    unknown = broker.ask(14, {"consumerGroup": "c|d", **asked})
    assert unknown.code == ResponseCode.QUERY_NOT_FOUND
    assert broker.pull("t", consumerGroup="c|d", **committing).code == 0
    assert broker.ask(14, {"consumerGroup": "c|d", **asked}).fields["offset"] == "1"


def test_a_group_with_a_bar_has_settings_under_that_name(broker: Client) -> None:
    settings = {"groupName": "a|b", "retryMaxTimes": 3}
    answer = broker.ask(200, {}, json.dumps(settings).encode())
    assert answer.code == 0, answer.remark
    kept = json.loads(bytes(broker.ask(352, {"group": "a|b"}).body))
    assert (kept["groupName"], kept["retryMaxTimes"]) == ("a|b", 3)
    assert broker.ask(207, {"groupName": "a|b"}).code == 0


def test_a_half_message_of_a_group_with_a_long_name_is_refused() -> None:
    world = HalfWorld()
    with pytest.raises(Refused, match=r"Group name is 256 characters; the maximum is 255\."):
        world.prepare(group=LONG)
    assert len(world.undecided) == 0
    world.prepare(group=LONG[1:])
