"""Requests between clients: a reply finds whoever asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from tests.gateway.remoting.client import Client, messages, properties
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.gateway.remoting.groups.clients import Client as Registered
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.names import CLIENT_ID_CHARS_MAX
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command

PUSH = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT


def ask(client: Client, topic: str, client_id: str) -> None:
    named = {"REPLY_TO_CLIENT": client_id, "CORRELATION_ID": "7", "TTL": "3000"}
    assert client.publish(topic, b"question", properties=named).code == 0


def reply(client: Client, client_id: str) -> int:
    """Begin a reply; the broker pushes it before it answers."""
    named = {"REPLY_TO_CLIENT": client_id, "CORRELATION_ID": "7", "MSG_TYPE": "reply"}
    fields = {
        "a": "repliers",
        "b": "DefaultCluster_REPLY_TOPIC",
        "c": "TBW102",
        "d": 4,
        "e": 0,
        "f": 0,
        "g": 1,
        "h": 0,
        "i": properties(named),
        "j": 0,
        "k": "false",
        "m": "false",
    }
    return client.send(RequestCode.SEND_REPLY_MESSAGE_V2, fields, b"answer")


def pushed(client: Client) -> Command:
    """What the requester receives; it acknowledges it."""
    while not client.told:
        client.receive()
    told = client.told.pop()
    client.connection.respond(told, Command(0))
    client.flush()
    return told


def test_a_request_brings_its_cluster_for_whoever_replies(connect: Callable[..., Client]) -> None:
    asker = connect()
    ask(asker, "requests", "asker-0")
    [message] = messages(asker.pull("requests"))
    assert message.properties["CLUSTER"] == "DefaultCluster"


@pytest.mark.parametrize("is_registered", [True, False], ids=["registered", "before its heartbeat"])
def test_a_reply_is_pushed_to_the_client_that_asked(
    connect: Callable[..., Client], is_registered: bool
) -> None:
    """4.9.7's producers send their first heartbeat a second after their start."""
    asker, replier = connect(), connect()
    client_id = f"asker-{is_registered}"
    if is_registered:
        asker.heartbeat(client_id, "")
    ask(asker, "asked", client_id)
    begun = reply(replier, client_id)
    told = pushed(asker)
    assert (told.code, bytes(told.body)) == (PUSH, b"answer")
    assert "CORRELATION_ID\x017\x02" in told.fields["properties"]
    assert replier.answer(begun).code == 0


def test_a_reply_to_no_one_is_refused_and_names_whom_it_was_for(
    connect: Callable[..., Client],
) -> None:
    replier = connect()
    answer = replier.answer(reply(replier, "nobody"))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "<nobody> not found" in (answer.remark or "")


def test_whoever_replied_is_not_taken_for_whoever_asked(connect: Callable[..., Client]) -> None:
    asker, replier = connect(), connect()
    asker.heartbeat("asker-1", "")
    begun = reply(replier, "asker-1")
    pushed(asker)
    assert replier.answer(begun).code == 0
    asker.socket.close()
    other = connect()
    wait_until(
        lambda: "not found" in (other.answer(reply(other, "asker-1")).remark or ""),
        "the asker is forgotten",
    )


def test_a_connection_that_is_lost_takes_its_request_with_it(
    server: RunningServer, connect: Callable[..., Client]
) -> None:
    asker, replier = connect(), connect()
    ask(asker, "asked", "asker-2")
    asker.socket.close()
    wait_until(
        lambda: "not found" in (replier.answer(reply(replier, "asker-2")).remark or ""),
        "the asker is forgotten",
    )


# The registry alone


class Line:
    """A connection."""

    is_open = True


def line() -> Caller:
    return cast(Caller, Line())


class Free:
    def take(self, group: str) -> bool:
        return True

    def give_back(self, group: str) -> None: ...


def test_of_who_asks_one_name_is_kept_for_each_connection_and_none_that_is_too_long() -> None:
    clients, one = Clients(Free(), 100), line()
    for number in range(10):
        clients.asks(f"c{number}", one)
    clients.asks("x" * (CLIENT_ID_CHARS_MAX + 1), line())
    assert (len(clients._askers), clients.find_producer("c9")) == (1, one)
    clients.lost(one)
    assert (clients._askers, clients._asker_ids) == ({}, {})


def test_no_one_gets_another_one_s_replies_by_taking_its_name() -> None:
    clients, first, second, third = Clients(Free(), 100), line(), line(), line()
    clients.asks("c", first)
    clients.asks("c", second)
    assert clients.find_producer("c") is first
    clients.produce("g", Registered("d", third, "JAVA", 513, 0))
    clients.asks("d", second)
    assert clients.find_producer("d") is third


def test_a_client_is_found_by_its_id_for_as_long_as_it_produces_in_any_group() -> None:
    clients, first, second = Clients(Free(), 100), line(), line()
    for group, caller in (("a", first), ("b", first), ("a", second)):
        clients.produce(group, Registered("same", caller, "JAVA", 513, 0))
    assert clients.find_producer("same") is first
    clients.leave(first, producer="a", consumer=None)
    assert clients.find_producer("same") is first
    cast(Line, first).is_open = False
    assert clients.find_producer("same") is second
    clients.lost(first)
    clients.lost(second)
    assert clients.find_producer("same") is None
    assert (clients.producer_groups(), clients._producing) == ([], {})
