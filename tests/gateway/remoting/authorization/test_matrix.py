"""Every request of the broker and the name server by every kind of user, beside RocketMQ 5.5.0.

The real broker's answers are in tests/golden/rocketmq_access.json; compat-tests/capture has the
recorder. Only whether a request passes is compared: each processor here answers SUCCESS.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.gateway.remoting.authorization.samples import BROKER, CASES, SECRET, TOPIC

from rockgate.gateway.compose.remoting import table as remoting_table
from rockgate.gateway.compose.remoting.access import access_table
from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.access.policies import grants_of
from rockgate.gateway.remoting.authorization.authentication import Signed
from rockgate.gateway.remoting.authorization.broker_needs import broker_needs
from rockgate.gateway.remoting.authorization.guard import RequestGuard
from rockgate.gateway.remoting.authorization.nameserver_needs import NAMESERVER
from rockgate.gateway.remoting.nameserver import processors
from rockgate.gateway.remoting.server.caller import Caller, Peer
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.handle import Reply
from rockgate.gateway.security.authorizer import Authorizer
from rockgate.gateway.security.grant_index import GrantIndex
from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

CLUSTER = "DefaultCluster"
GOLDEN = Path(__file__).parents[3] / "golden" / "rocketmq_access.json"


class Stored:
    """Every message, and every half message, is one of `orders`."""

    def topic_at(self, address: int) -> str | None:
        return TOPIC

    def target_of(self, half_offset: int) -> str | None:
        return TOPIC


class Secrets:
    """All users of the cases have the same secret."""

    def secret(self, name: str) -> bytes | None:
        return SECRET.encode() if name in {case.user for case in CASES.values()} else None


def served(command: Command, caller: Caller) -> Reply:
    return Command(ResponseCode.SUCCESS)


def guarded(codes: dict[RequestCode, Any], needs: Any) -> dict[RequestCode, Any]:
    """A table in which everything succeeds, guarded with the grants of all cases."""
    index = GrantIndex()
    for case in CASES.values():
        for entry in case.entries:
            for grant in grants_of(f"User:{case.user}", entry, CLUSTER):
                index.was_set(grant, True)
    nobody_is = SimpleNamespace(is_super=lambda name: False)
    guard = RequestGuard(
        authentication=Signed(Secrets()), access=Authorizer(index=index, users=nobody_is)
    )
    return guard.around(dict.fromkeys(codes, served), needs)


def caller() -> Any:
    where = Address("127.0.0.1", 1)
    return SimpleNamespace(
        peer=Peer(connection_id=1, local=where, remote=where),
        is_open=True,
        enter=lambda principal: True,
    )


def ask(table: dict[RequestCode, Any], code: RequestCode, user: str | None) -> int:
    fields, body = BROKER.get(code, ({"topic": TOPIC}, b""))
    if user is not None:
        fields = signature.sign(fields, body, access_key=user, secret=SECRET)
    try:
        reply = table[code](Command(code, dict(fields), body), caller())
        if inspect.isawaitable(reply):
            asyncio.run(_awaited(reply))
    except Refused as refused:
        return int(refused.code)
    return int(ResponseCode.SUCCESS)


async def _awaited(reply: Any) -> Any:
    return await reply


COUNTED = (RequestCode.GET_TIMER_METRICS, RequestCode.VIEW_BROKER_STATS_DATA)
"""Their rows come from the processor itself."""
BROKER_CODES: dict[RequestCode, Any] = {
    **remoting_table.table(MagicMock()),
    **access_table(MagicMock(), MagicMock()),
    **dict.fromkeys(COUNTED),
}
NAMESERVER_CODES = processors.table(MagicMock())


def test_every_request_of_the_broker_has_needs_and_nothing_else_has() -> None:
    assert broker_needs(Stored()).keys() == BROKER_CODES.keys()
    assert BROKER.keys() == BROKER_CODES.keys()


def test_every_request_of_the_name_server_has_needs_and_nothing_else_has() -> None:
    assert NAMESERVER.keys() == NAMESERVER_CODES.keys()


ANYONE = {RequestCode.POP_ROLLBACK}
"""Served to whoever is authenticated: it does nothing."""


@pytest.mark.row("CI-4")
@pytest.mark.parametrize("code", BROKER_CODES, ids=lambda code: code.name)
def test_a_request_to_the_broker_is_served_to_who_was_granted_it_only(code: RequestCode) -> None:
    table = guarded(BROKER_CODES, broker_needs(Stored()))
    answers = {name: ask(table, code, case.user) for name, case in CASES.items()}
    refused = ResponseCode.SUCCESS if code in ANYONE else ResponseCode.NO_PERMISSION
    assert answers == {
        "no user": ResponseCode.NO_PERMISSION,
        "no grant": refused,
        "wrong resource": refused,
        "grant": ResponseCode.SUCCESS,
        "deny": refused,
    }


LISTS = {
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    RequestCode.GET_TOPICS_BY_CLUSTER,
    RequestCode.GET_UNIT_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
}
"""They list what the client may see."""


@pytest.mark.parametrize("code", NAMESERVER_CODES, ids=lambda code: code.name)
def test_a_request_to_the_name_server_is_served_to_who_was_granted_it_only(
    code: RequestCode,
) -> None:
    table = guarded(NAMESERVER_CODES, NAMESERVER)
    if code in LISTS:
        assert ask(table, code, None) == ResponseCode.NO_PERMISSION
        return
    answers = {name: ask(table, code, case.user) for name, case in CASES.items()}
    assert answers.pop("grant") == ResponseCode.SUCCESS
    assert set(answers.values()) == {ResponseCode.NO_PERMISSION}


OPEN_THERE = {
    # About the broker or everything in it: RocketMQ maps only requests with certain headers.
    "GET_ALL_TOPIC_CONFIG",
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
    "GET_ALL_MESSAGE_REQUEST_MODE",
    "GET_SYSTEM_TOPIC_LIST_FROM_BROKER",
    "GET_BROKER_CONFIG",
    "GET_BROKER_HA_STATUS",
    "GET_BROKER_RUNTIME_INFO",
    "GET_TIMER_METRICS",
    "UPDATE_BROKER_CONFIG",
    "CLEAN_EXPIRED_CONSUMEQUEUE",
    "CLEAN_UNUSED_TOPIC",
    "DELETE_EXPIRED_COMMITLOG",
    # Their topics and groups are in the body, which it does not read for these.
    "UPDATE_AND_CREATE_TOPIC_LIST",
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP",
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST",
    "SET_MESSAGE_REQUEST_MODE",
    "QUERY_ASSIGNMENT",
    "CHECK_CLIENT_CONFIG",
    "BATCH_ACK_MESSAGE",
    # Forgotten there: it reads messages as 11 does, and sends them as 310 does.
    "LITE_PULL_MESSAGE",
    "SEND_REPLY_MESSAGE",
    "SEND_REPLY_MESSAGE_V2",
    # Not served there.
    "TRIGGER_DELETE_FILES",
    "UPDATE_AND_CREATE_ACL_CONFIG",
    "DELETE_ACL_CONFIG",
    "GET_BROKER_CLUSTER_ACL_INFO",
    "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
    "GET_BROKER_CLUSTER_ACL_CONFIG",
}
"""Requests that RocketMQ 5.5.0 serves to whoever is authenticated, and that need a grant here."""


def is_refused(answer: dict[str, Any]) -> bool:
    """Whether RocketMQ refused a request, and not what it asks for."""
    return answer["code"] == ResponseCode.NO_PERMISSION and (
        "no permission" in answer["remark"] or "username" in answer["remark"]
    )


def test_rocketmq_refuses_the_same_requests_to_the_same_users() -> None:
    golden = json.loads(GOLDEN.read_text())["answers"]
    table = guarded(BROKER_CODES, broker_needs(Stored()))
    differing = {
        name
        for name, answers in golden.items()
        for case, answer in answers.items()
        if is_refused(answer)
        != (ask(table, RequestCode[name], CASES[case].user) == ResponseCode.NO_PERMISSION)
    }
    assert differing == OPEN_THERE


def test_everything_that_rocketmq_serves_is_recorded() -> None:
    golden = json.loads(GOLDEN.read_text())["answers"]
    own = {code.name for code in BROKER_CODES if 31_000 <= code < 31_100}
    assert golden.keys() == {code.name for code in BROKER_CODES} - own


def test_an_unsigned_request_and_a_wrong_signature_are_refused_as_rocketmq_refuses_them() -> None:
    refusals = json.loads(GOLDEN.read_text())["refusals"]
    table = guarded(BROKER_CODES, broker_needs(Stored()))
    wrong = {"AccessKey": "nogrant", "Signature": "x"}
    unknown = signature.sign({}, b"", access_key="nobody", secret=SECRET)
    for name, fields in (("unsigned", {}), ("wrong signature", wrong), ("unknown user", unknown)):
        with pytest.raises(Refused) as refused:
            table[RequestCode.GET_BROKER_CONFIG](Command(26, dict(fields)), caller())
        # RocketMQ tells who does not exist; here a wrong name is refused like a wrong signature.
        same = refusals["wrong signature" if name == "unknown user" else name]
        assert {"code": int(refused.value.code), "remark": refused.value.remark} == same
