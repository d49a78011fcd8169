"""Listeners that demand signatures: a server whose users were made before it demanded any."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer

from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection

C = RequestCode
DENIED = ResponseCode.NO_PERMISSION
DEMANDING = [
    "remoting.authentication=signature",
    "namesrv.authentication=signature",
    "security.super_users=User:admin",
]


class SigningClient(Client):
    """A client that signs its requests as a user."""

    def __init__(self, address: tuple[str, int], user: str) -> None:
        super().__init__(address)
        self.user = user
        self.connection = Connection()

    def send(
        self, code: int, fields: dict[str, Any] | None = None, body: bytes = b"", **flags: bool
    ) -> int:
        texts = {name: str(value) for name, value in (fields or {}).items()}
        secret = f"secret-of-{self.user}"
        signed = signature.sign(texts, body, access_key=self.user, secret=secret)
        return super().send(code, signed, body, **flags)


def grant(
    client: Client, user: str, *pairs: tuple[str, str], code: int = C.AUTH_CREATE_ACL
) -> None:
    entries = [
        {"resource": resource, "actions": [action], "decision": "Allow"}
        for resource, action in pairs
    ]
    body = {"subject": f"User:{user}", "policies": [{"policyType": "Custom", "entries": entries}]}
    answer = client.ask(code, {"subject": f"User:{user}"}, json.dumps(body).encode())
    assert answer.code == ResponseCode.SUCCESS, answer.remark


@pytest.fixture(scope="module")
def demanding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("signed")
    with RunningServer(folder, rocketmq=True) as open_server:
        client = Client(open_server.address("remoting"))
        for name in ("admin", "alice", "bob"):
            body = json.dumps({"password": f"secret-of-{name}"}).encode()
            answer = client.ask(C.AUTH_CREATE_USER, {"username": name}, body)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
        grant(client, "alice", ("Topic:orders", "Pub"))
        grant(client, "bob", ("Topic:orders", "Sub"), ("Group:readers", "Sub"))
        client.socket.close()
    with RunningServer(folder, rocketmq=True, settings=DEMANDING) as running:
        yield running


Dial = Callable[..., Client]


@pytest.fixture
def dial(demanding: RunningServer) -> Iterator[Dial]:
    """Connects as a user, or without a signature."""
    made: list[Client] = []

    def connect(user: str | None, listener: str = "remoting") -> Client:
        address = demanding.address(listener)
        made.append(Client(address) if user is None else SigningClient(address, user))
        return made[-1]

    yield connect
    for client in made:
        client.socket.close()


def code_of(answer: Command) -> int:
    return int(answer.code)


@pytest.mark.row("CI-4")
def test_who_may_publish_may_not_read_and_the_other_way_round(dial: Dial) -> None:
    alice, bob = dial("alice"), dial("bob")
    assert code_of(alice.publish("orders", b"one")) == ResponseCode.SUCCESS
    assert code_of(bob.publish("orders", b"two")) == DENIED
    assert code_of(alice.publish("others", b"three")) == DENIED
    fields = {
        "consumerGroup": "readers",
        "topic": "orders",
        "queueId": 0,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": 4,
        "subscription": "*",
    }
    assert code_of(bob.ask(C.PULL_MESSAGE, fields)) == ResponseCode.SUCCESS
    assert code_of(alice.ask(C.PULL_MESSAGE, fields)) == DENIED
    assert code_of(bob.ask(C.PULL_MESSAGE, {**fields, "consumerGroup": "others"})) == DENIED


@pytest.mark.row("CI-4")
def test_requests_that_prove_nobody_are_refused_and_the_connection_lives(dial: Dial) -> None:
    for listener in ("remoting", "namesrv"):
        plain = dial(None, listener)
        code = C.GET_BROKER_CONFIG if listener == "remoting" else C.GET_NAMESRV_CONFIG
        for fields in ({}, {"AccessKey": "alice", "Signature": "wrong"}, {"AccessKey": "nobody"}):
            assert code_of(plain.ask(code, fields)) == DENIED


def test_a_wrong_signature_costs_a_tenth_of_a_second(dial: Dial) -> None:
    plain, began = dial(None), time.monotonic()
    plain.ask(C.GET_BROKER_CONFIG, {"AccessKey": "alice", "Signature": "wrong"})
    # Timers of the loop have a resolution of a millisecond.
    assert time.monotonic() - began >= 0.098


def test_the_name_server_shows_routes_and_topics_that_the_client_may_see(dial: Dial) -> None:
    dial("alice").publish("orders")
    alice, admin = dial("alice", "namesrv"), dial("admin", "namesrv")
    route, lists = C.GET_ROUTEINFO_BY_TOPIC, C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
    assert code_of(alice.ask(route, {"topic": "orders"})) == ResponseCode.SUCCESS
    assert code_of(alice.ask(route, {"topic": "others"})) == DENIED
    assert code_of(alice.ask(route, {"topic": "TBW102"})) == ResponseCode.SUCCESS
    assert json.loads(bytes(alice.ask(lists).body))["topicList"] == ["orders"]
    assert len(json.loads(bytes(admin.ask(lists).body))["topicList"]) > 3


def test_a_revoked_grant_and_a_disabled_user_have_an_effect_on_open_connections(dial: Dial) -> None:
    admin = dial("admin")
    body = json.dumps({"password": "secret-of-carol"}).encode()
    admin.ask(C.AUTH_CREATE_USER, {"username": "carol"}, body)
    carol = dial("carol")
    assert code_of(carol.publish("orders")) == DENIED
    grant(admin, "carol", ("Topic:ord*", "Pub"))
    assert code_of(carol.publish("orders")) == ResponseCode.SUCCESS
    admin.ask(C.AUTH_DELETE_ACL, {"subject": "User:carol", "resource": "Topic:ord*"})
    assert code_of(carol.publish("orders")) == DENIED
    grant(admin, "carol", ("Topic:ord*", "Pub"))
    body = json.dumps({"userStatus": "disable"}).encode()
    assert code_of(admin.ask(C.AUTH_UPDATE_USER, {"username": "carol"}, body)) == 0
    refused = carol.publish("orders")
    assert (refused.code, refused.remark) == (DENIED, "check signature failed.")


def test_a_pull_that_waits_is_refused_when_its_grant_is_revoked(dial: Dial) -> None:
    admin = dial("admin")
    body = json.dumps({"password": "secret-of-dora"}).encode()
    admin.ask(C.AUTH_CREATE_USER, {"username": "dora"}, body)
    admin.publish("waiting")
    grant(admin, "dora", ("Topic:waiting", "Sub"), ("Group:waiters", "Sub"))
    dora = dial("dora")
    fields = {
        "consumerGroup": "waiters",
        "topic": "waiting",
        "queueId": 1,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": 6,
        "suspendTimeoutMillis": 60_000,
        "subscription": "*",
    }
    waiting = dora.send(C.PULL_MESSAGE, fields)
    assert code_of(dora.ask(C.QUERY_CONSUMER_OFFSET, fields)) != DENIED
    admin.ask(C.AUTH_DELETE_ACL, {"subject": "User:dora", "resource": "Topic:waiting"})
    admin.publish("waiting", queue=1)
    assert code_of(dora.answer(waiting)) == DENIED


def test_only_a_super_user_makes_another(dial: Dial) -> None:
    admin = dial("admin")
    body = json.dumps({"password": "secret-of-erin"}).encode()
    admin.ask(C.AUTH_CREATE_USER, {"username": "erin"}, body)
    grant(admin, "erin", ("Cluster:*", "Update"))
    erin = dial("erin")
    normal = json.dumps({"password": "x", "userType": "Normal"}).encode()
    assert code_of(erin.ask(C.AUTH_CREATE_USER, {"username": "new1"}, normal)) == 0
    boss = json.dumps({"password": "x", "userType": "Super"}).encode()
    refused = erin.ask(C.AUTH_CREATE_USER, {"username": "new2"}, boss)
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert "super user" in (refused.remark or "")
    assert code_of(admin.ask(C.AUTH_CREATE_USER, {"username": "new2"}, boss)) == 0


def test_a_one_way_request_that_is_refused_gets_no_answer(dial: Dial) -> None:
    plain = dial(None)
    plain.send(C.HEART_BEAT, {}, b"{}", oneway=True)
    assert code_of(plain.ask(C.GET_BROKER_CONFIG)) == DENIED
    assert plain.told == []
