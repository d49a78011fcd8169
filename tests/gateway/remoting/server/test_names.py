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
def test_a_heartbeat_with_a_long_name_registers_nobody(broker: Client, body: bytes) -> None:
    answer = broker.ask(34, {}, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "are allowed" in (answer.remark or "")
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
    assert "are allowed" in (answer.remark or "")


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
    ],
)
def test_a_group_with_a_dot_is_refused_with_its_name_here(
    broker: Client, code: int, fields: dict[str, Any], body: bytes
) -> None:
    assert broker.publish("t").code == 0
    answer = broker.ask(code, fields, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "RocketMQ's name of it is 'a|b'" in (answer.remark or "")
    assert broker.heartbeat("c", "a|b", "t").code == 0


def test_a_half_message_of_a_group_with_a_long_name_is_refused() -> None:
    world = HalfWorld()
    with pytest.raises(Refused, match="a group name of 256 characters, 255 are allowed"):
        world.prepare(group=LONG)
    assert len(world.undecided) == 0
    world.prepare(group=LONG[1:])
