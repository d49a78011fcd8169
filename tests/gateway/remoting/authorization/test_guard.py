"""The guard: who asks, what is checked, and what a change does to requests that wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.authorization import needs
from rockgate.gateway.remoting.authorization.authentication import REJECTED, UNSIGNED, Signed
from rockgate.gateway.remoting.authorization.broker_needs import broker_needs
from rockgate.gateway.remoting.authorization.guard import RequestGuard
from rockgate.gateway.remoting.authorization.nameserver_needs import NAMESERVER
from rockgate.gateway.remoting.authorization.needs import Need, of_topic
from rockgate.gateway.remoting.server.caller import ALLOWED_MAX, Caller, Peer
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.handle import Reply
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.protocol.remoting import signature
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

SECRET = b"12345678"
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP


class Granted:
    """Access of the pairs that were granted to alice."""

    def __init__(self, *granted: tuple[Any, ...]) -> None:
        self.granted = {*granted}
        self.generation = 0
        self.asked: list[tuple[Principal, str]] = []

    def may(self, principal: Principal, host: str, *need: Any) -> bool:
        self.asked.append((principal, host))
        return principal.name == "alice" and need in self.granted

    def may_on_any(self, *need: Any) -> bool:
        raise NotImplementedError

    def change(self, *granted: tuple[Any, ...]) -> None:
        self.granted = {*granted}
        self.generation += 1


class Users:
    """alice signs with SECRET, as long as she is there."""

    def __init__(self) -> None:
        self.names = {"alice"}

    def secret(self, name: str) -> bytes | None:
        return SECRET if name in self.names else None


class Audit:
    """The lines that would be written."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def authenticated(self, principal: Principal, host: str, **more: str) -> None:
        self.lines.append(("authenticated", str(principal)))

    def rejected(self, principal: Principal, host: str, **more: str) -> None:
        self.lines.append((f"rejected {more['reason']}", str(principal)))

    def refused(self, principal: Principal, host: str, **more: str) -> None:
        self.lines.append((f"refused {more['api']} {more['resource']}", str(principal)))


def caller(certified: Principal | None = None) -> Any:
    where = Address("10.0.0.7", 1)
    peer = Peer(connection_id=1, local=where, remote=where)
    peer.certified = certified
    return SimpleNamespace(peer=peer, enter=lambda principal: principal.name != "crowd")


def signed(code: int, fields: dict[str, str], body: bytes = b"", user: str = "alice") -> Command:
    return Command(code, signature.sign(fields, body, access_key=user, secret=SECRET), body)


def ok(command: Command, caller: Caller) -> Reply:
    return Command(ResponseCode.SUCCESS, dict(command.fields))


SEND = RequestCode.SEND_MESSAGE_V2
PULL = RequestCode.PULL_MESSAGE


class Stored:
    def topic_at(self, address: int) -> str | None:
        return {7: "secrets"}.get(address)

    def target_of(self, half_offset: int) -> str | None:
        return {7: "secrets"}.get(half_offset)


def guarded(
    handle: Any = ok, code: RequestCode = SEND, access: Any = None, **more: Any
) -> Callable[[Command, Any], Any]:
    guard = RequestGuard(
        authentication=Signed(
            more.pop("users", Users()), audit=more.get("audit"), demands=more.pop("demands", _yes)
        ),
        access=access,
        **more,
    )
    return guard.around({code: handle}, {**NAMESERVER, **broker_needs(Stored())})[code]


def _yes(peer: Peer) -> bool:
    return True


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as refused:
        call()
    assert refused.value.code == ResponseCode.NO_PERMISSION
    return refused.value.remark


# Authentication


def test_a_signed_request_is_served_without_the_fields_of_its_signature() -> None:
    who = caller()
    answer = guarded()(signed(SEND, {"b": "orders"}), who)
    assert answer.fields == {"b": "orders"}
    assert who.peer.principal == Principal.user("alice")


@pytest.mark.row("SEC-4")
def test_a_wrong_user_cannot_be_told_from_a_wrong_signature() -> None:
    audit = Audit()
    handle = guarded(audit=audit)
    wrong = signed(SEND, {"b": "orders"})
    wrong.body = b"changed"
    assert refusal(lambda: handle(wrong, caller())) == REJECTED
    assert refusal(lambda: handle(signed(SEND, {}, user="bob"), caller())) == REJECTED
    assert refusal(lambda: handle(Command(SEND, {"b": "orders"}), caller())) == UNSIGNED
    assert audit.lines == [
        ("rejected signature", "User:alice"),
        ("rejected signature", "User:bob"),
        ("rejected unsigned", "User:ANONYMOUS"),
    ]


def test_a_user_with_too_many_connections_is_refused() -> None:
    users = Users()
    users.names.add("crowd")
    audit, who = Audit(), caller()
    refusal(lambda: guarded(users=users, audit=audit)(signed(SEND, {}, user="crowd"), who))
    assert who.peer.principal == ANONYMOUS
    assert audit.lines == []


def test_a_certificate_stands_for_a_signature_but_not_for_a_wrong_one() -> None:
    carol = Principal.user("CN=carol")
    who = caller(carol)
    assert guarded()(Command(SEND, {"b": "orders"}), who).code == ResponseCode.SUCCESS
    assert who.peer.principal == carol
    wrong = signed(SEND, {}, user="bob")
    assert refusal(lambda: guarded()(wrong, who)) == REJECTED


def test_a_listener_that_demands_nothing_checks_no_signature() -> None:
    access, who = Granted(), caller()
    handle = guarded(access=access, demands=lambda peer: False)
    refusal(lambda: handle(signed(SEND, {"b": "orders"}), who))
    assert access.asked[0] == (ANONYMOUS, "10.0.0.7")


def test_a_failed_authentication_is_counted_and_its_response_delayed() -> None:
    hosts: list[str] = []

    class Failures:
        def count(self, host: str, now: float) -> None:
            hosts.append(host)

        def delay_seconds(self, host: str, now: float, *, has_failed: bool) -> float:
            assert has_failed
            return 0.0

    handle = guarded(failures=Failures(), now=lambda: 0.0)
    waiting = handle(Command(SEND, {"b": "orders"}), caller())
    assert refusal(lambda: asyncio.run(waiting)) == UNSIGNED
    assert hosts == ["10.0.0.7"]


def test_a_connection_is_audited_once_for_each_user() -> None:
    audit, who = Audit(), caller()
    handle = guarded(audit=audit)
    for _ in range(3):
        handle(signed(SEND, {"b": "orders"}), who)
    assert audit.lines == [("authenticated", "User:alice")]


# Needs


@pytest.mark.parametrize(
    ("topic", "need"),
    [
        ("orders", Need(WRITE, TOPIC, "orders")),
        ("orders|paid", Need(WRITE, TOPIC, "orders.paid")),
        ("%RETRY%readers", Need(READ, GROUP, "readers")),
        ("%RETRY%a|b", Need(READ, GROUP, "a.b")),
        ("%RETRY%readers+orders", Need(READ, GROUP, "readers")),
        ("%DLQ%readers", Need(READ, GROUP, "readers")),
    ],
)
def test_a_send_needs_write_and_one_to_a_retry_topic_its_group(topic: str, need: Need) -> None:
    assert of_topic(topic, WRITE) == need


@pytest.mark.row("SEC-2")
def test_a_refusal_names_the_resource_and_is_audited() -> None:
    audit = Audit()
    handle = guarded(access=Granted(), audit=audit)
    remark = refusal(lambda: handle(signed(SEND, {"b": "orders"}), caller()))
    assert remark == (
        "User:alice has no permission from 10.0.0.7 to access Topic:orders; it needs WRITE."
    )
    assert audit.lines[-1] == ("refused SEND_MESSAGE_V2 TOPIC:orders", "User:alice")


def needs_of(code: RequestCode, fields: dict[str, str], body: bytes = b"") -> Iterable[Need]:
    return [*broker_needs(Stored())[code](Command(code, fields, body))]


def test_a_message_that_is_named_by_its_place_needs_its_own_topic() -> None:
    fields = {"offset": "7", "group": "readers", "delayLevel": "1", "originTopic": "orders"}
    assert needs_of(RequestCode.CONSUMER_SEND_MSG_BACK, fields) == [
        Need(READ, GROUP, "readers"),
        Need(READ, TOPIC, "secrets"),
    ]
    assert needs_of(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "7", "topic": "orders"}) == [
        Need(READ, TOPIC, "secrets")
    ]
    cluster = needs.of_cluster(DESCRIBE)
    assert needs_of(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "9", "topic": "a"}) == [cluster]


@pytest.mark.row("SEC-6")
@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.VIEW_MESSAGE_BY_ID, {}),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "readers", "delayLevel": "1"}),
    ],
)
def test_a_refusal_does_not_tell_what_is_at_a_place_nor_whether_there_is_anything(
    code: RequestCode, fields: dict[str, str]
) -> None:
    audit = Audit()
    handle = guarded(code=code, access=Granted((READ, GROUP, "readers")), audit=audit)
    there, nowhere = (
        refusal(partial(handle, signed(code, {**fields, "offset": at}), caller()))
        for at in ("7", "9")
    )
    assert there == nowhere and "secrets" not in there
    assert any("TOPIC:secrets" in line for line, _ in audit.lines), "the audit does tell"


@pytest.mark.row("SEC-6")
def test_the_end_of_a_half_message_is_refused_without_naming_its_topic() -> None:
    fields = {
        "producerGroup": "senders",
        "topic": "orders",
        "tranStateTableOffset": "7",
        "commitLogOffset": "0",
        "commitOrRollback": "8",
    }
    code = RequestCode.END_TRANSACTION
    handle = guarded(code=code, access=Granted((WRITE, TOPIC, "orders")))
    assert "secrets" not in refusal(lambda: handle(signed(code, fields), caller()))


def test_the_end_of_a_half_message_needs_write_on_the_topic_that_it_is_for() -> None:
    fields = {
        "producerGroup": "senders",
        "topic": "orders",
        "tranStateTableOffset": "7",
        "commitLogOffset": "0",
        "commitOrRollback": "8",
    }
    assert needs_of(RequestCode.END_TRANSACTION, fields) == [Need(WRITE, TOPIC, "secrets")]


def test_a_heartbeat_needs_every_subscription_of_every_group() -> None:
    beat = {
        "clientID": "c",
        "producerDataSet": [{"groupName": "senders"}],
        "consumerDataSet": [
            {
                "groupName": name,
                "subscriptionDataSet": [{"topic": "orders"}, {"topic": f"%RETRY%{name}"}],
            }
            for name in ("a", "b")
        ],
    }
    found = needs_of(RequestCode.HEART_BEAT, {}, json.dumps(beat).encode())
    assert [*dict.fromkeys(found)] == [
        Need(READ, GROUP, "a"),
        Need(READ, TOPIC, "orders"),
        Need(READ, GROUP, "b"),
    ]


def test_creating_a_topic_is_also_granted_by_the_cluster() -> None:
    create = AclOperation.CREATE, AclResourceType.CLUSTER, "kafka-cluster"
    code = RequestCode.UPDATE_AND_CREATE_TOPIC
    handle = guarded(code=code, access=Granted(create))
    assert handle(signed(code, {"topic": "orders"}), caller()).code == ResponseCode.SUCCESS


# Waiting


def waiting_pull(access: Granted, users: Users | None = None) -> tuple[Any, Any]:
    """A pull that waits, and what ends it."""
    future = asyncio.get_running_loop().create_future()
    handle = guarded(lambda command, caller: future, PULL, access, users=users or Users())
    fields = {"topic": "orders", "consumerGroup": "readers"}
    return asyncio.ensure_future(handle(signed(PULL, fields), caller())), future


PULLING = ((READ, TOPIC, "orders"), (READ, GROUP, "readers"))


async def test_a_pull_that_waits_is_answered_if_nothing_has_changed() -> None:
    pull, future = waiting_pull(Granted(*PULLING))
    await asyncio.sleep(0)
    future.set_result([b"frame"])
    assert await pull == [b"frame"]


async def test_a_pull_that_waits_is_refused_once_its_grant_was_revoked() -> None:
    access = Granted(*PULLING)
    pull, future = waiting_pull(access)
    await asyncio.sleep(0)
    access.change(PULLING[0])
    future.set_result([b"frame"])
    with pytest.raises(Refused, match="Group:readers"):
        await pull


async def test_a_pull_that_waits_is_refused_once_its_user_was_removed() -> None:
    access, users = Granted(*PULLING), Users()
    pull, future = waiting_pull(access, users)
    await asyncio.sleep(0)
    users.names.clear()
    access.change(*PULLING)
    future.set_result([b"frame"])
    with pytest.raises(Refused, match="removed"):
        await pull


# Sends and pulls of a connection


def frequent(code: int, topic: str, group: str = "readers") -> Command:
    """A request whose header was decoded at once, as those of RocketMQ's clients are."""
    return Command(code, header=SimpleNamespace(topic=topic, consumer_group=group))


def one_list(command: Command, caller: Caller) -> Reply:
    return [b"frame"]


def unsigned(handle: Any, code: RequestCode, access: Granted) -> Callable[[Command, Any], Any]:
    return guarded(handle, code, access, demands=lambda peer: False)


@pytest.mark.row("SEC-3")
@pytest.mark.parametrize(
    ("code", "granted"), [(SEND, [(WRITE, TOPIC, "orders")]), (PULL, [*PULLING])]
)
def test_what_a_connection_may_do_is_asked_once_until_grants_change(
    code: RequestCode, granted: list[tuple[Any, ...]]
) -> None:
    access, connection = Granted(*granted), caller(Principal.user("alice"))
    handle = unsigned(one_list, code, access)
    for _ in range(3):
        assert handle(frequent(code, "orders"), connection) == [b"frame"]
    assert len(access.asked) == len(granted)
    access.change(*granted[1:])
    with pytest.raises(Refused, match="orders"):
        handle(frequent(code, "orders"), connection)
    access.change(*granted)
    assert handle(frequent(code, "orders"), connection) == [b"frame"]


def test_a_pull_in_another_group_is_another_decision() -> None:
    connection = caller(Principal.user("alice"))
    handle = unsigned(one_list, PULL, Granted(*PULLING))
    assert handle(frequent(PULL, "orders"), connection) == [b"frame"]
    with pytest.raises(Refused, match="Group:others"):
        handle(frequent(PULL, "orders", "others"), connection)


def test_what_another_user_of_the_connection_may_do_is_another_decision() -> None:
    connection = caller(Principal.user("alice"))
    handle = unsigned(one_list, SEND, Granted((WRITE, TOPIC, "orders")))
    assert handle(frequent(SEND, "orders"), connection) == [b"frame"]
    connection.peer.become(ANONYMOUS)
    assert not connection.peer.sendable


def test_a_connection_remembers_a_bounded_number_of_decisions() -> None:
    connection = caller(Principal.user("alice"))
    names = [f"t{number}" for number in range(ALLOWED_MAX + 1)]
    topics = [(READ, TOPIC, name) for name in names]
    groups = [(READ, GROUP, name) for name in names]
    handle = unsigned(one_list, PULL, Granted(*topics, *groups))
    for name in names:
        handle(frequent(PULL, names[0], name), connection)
    assert connection.peer.pullable == {names[0]: {names[-1]: 0}}


# Lists


@pytest.mark.row("SEC-6")
async def test_a_list_of_topics_has_only_those_that_the_client_may_see() -> None:
    code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
    body = json.dumps({"topicList": ["orders", "secrets", "%RETRY%readers"]}).encode()
    access = Granted((DESCRIBE, TOPIC, "orders"), (DESCRIBE, GROUP, "readers"))
    handle = guarded(lambda command, caller: Command(0, body=body), code, access)
    answer = await handle(signed(code, {}), caller())
    assert json.loads(answer.body) == {"topicList": ["orders", "%RETRY%readers"]}
