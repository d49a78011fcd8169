"""Every code of the name server's, asked over the wire as RocketMQ's tools ask."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.remoting.client import Client

from rockgate.protocol.remoting.bodies.nameserver import RegisterBody
from rockgate.protocol.remoting.bodies.registration import encode_registration
from rockgate.protocol.remoting.bodies.topics import TopicConfig, TopicConfigTable
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command

BROKER = {"brokerName": "far", "brokerAddr": "10.0.0.9:10911", "clusterName": "c", "brokerId": 0}


def register(client: Client, *topics: str) -> Command:
    table = TopicConfigTable(
        topic_config_table={name: TopicConfig(topic_name=name, perm=6) for name in topics}
    )
    packed = encode_registration(RegisterBody(topic_config_serialize_wrapper=table))
    fields = {**BROKER, "haServerAddr": "10.0.0.9:10912", "compressed": "true"}
    return client.ask(103, fields, packed)


def listed(answer: Command) -> set[str]:
    assert answer.code == 0, answer.remark
    return set(json.loads(bytes(answer.body))["topicList"])


@pytest.mark.row("N-06")
def test_a_registration_is_in_routes_cluster_and_lists_until_it_is_taken_back(
    namesrv: Client, connect: Callable[..., Client]
) -> None:
    far = connect("namesrv")
    assert register(far, "far-topic").code == 0
    route = json.loads(bytes(namesrv.ask(105, {"topic": "far-topic"}).body))
    assert [each["brokerName"] for each in route["queueDatas"]] == ["far"]
    cluster = json.loads(bytes(namesrv.ask(106).body))
    assert cluster["brokerAddrTable"]["far"]["brokerAddrs"] == {"0": BROKER["brokerAddr"]}
    assert "far-topic" in listed(namesrv.ask(206))
    assert listed(namesrv.ask(224, {"cluster": "c"})) == {"far-topic"}
    assert "far" in listed(namesrv.ask(304))
    assert far.ask(104, BROKER).code == 0
    assert namesrv.ask(105, {"topic": "far-topic"}).code == ResponseCode.TOPIC_NOT_EXIST
    assert "far-topic" not in listed(namesrv.ask(206))


@pytest.mark.row("N-06")
def test_a_broker_s_permissions_and_topics_are_changed(
    namesrv: Client, connect: Callable[..., Client]
) -> None:
    def permission() -> int:
        route = json.loads(bytes(namesrv.ask(105, {"topic": "held"}).body))
        return int(route["queueDatas"][0]["perm"])

    far = connect("namesrv")
    assert register(far, "held").code == 0
    assert namesrv.ask(205, {"brokerName": "far"}).fields["wipeTopicCount"] == "1"
    assert permission() == 4
    assert namesrv.ask(327, {"brokerName": "far"}).fields["addTopicCount"] == "1"
    assert permission() == 6
    assert namesrv.ask(216, {"topic": "held", "clusterName": "c"}).code == 0
    assert namesrv.ask(105, {"topic": "held"}).code == ResponseCode.TOPIC_NOT_EXIST
    assert far.ask(104, BROKER).code == 0


@pytest.mark.row("N-06")
def test_keys_and_values_versions_and_settings_are_asked_for(namesrv: Client) -> None:
    space = {"namespace": "codes", "key": "k"}
    assert namesrv.ask(101, space).code == ResponseCode.QUERY_NOT_FOUND
    assert namesrv.ask(100, {**space, "value": "v"}).code == 0
    assert namesrv.ask(101, space).fields == {"value": "v"}
    found: Any = json.loads(bytes(namesrv.ask(219, {"namespace": "codes"}).body))
    assert found == {"table": {"k": "v"}}
    assert namesrv.ask(102, space).code == 0
    assert namesrv.ask(101, space).code == ResponseCode.QUERY_NOT_FOUND
    version = namesrv.ask(322, BROKER, b'{"counter":1,"timestamp":1}')
    assert version.fields == {"changed": "true"}
    for code in (311, 312, 313):
        assert listed(namesrv.ask(code)) == set(), "there are no units"
    assert b"rocketmqHome=" in bytes(namesrv.ask(319).body)
    assert namesrv.ask(318, {}, b"rocketmqHome=/elsewhere\n").code == ResponseCode.NO_PERMISSION


@pytest.mark.row("N-06")
@pytest.mark.parametrize("code", [0, 10, 99, 107, 320, 12345])
def test_an_unknown_code_is_answered_as_unsupported(namesrv: Client, code: int) -> None:
    assert namesrv.ask(code).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert namesrv.ask(106).code == 0
