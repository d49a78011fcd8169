"""The table of the largest requests: what is in it, and how an answer is read."""

import socket
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import MagicMock

import pytest
from bench.requests.run import REQUESTS, read_frame
from bench.requests.world import QUICK, Loaded, Request

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.compose.remoting.access import access_table
from rockgate.gateway.compose.remoting.table import table as broker_table
from rockgate.gateway.remoting.nameserver.processors import table as name_table
from rockgate.protocol.remoting.codes import RequestCode


def _world() -> Loaded:
    return Loaded(
        listeners={},
        size=QUICK,
        topics=[f"topic-{number}" for number in range(QUICK.topics)],
        topic_ids=[bytes([number]) * 16 for number in range(QUICK.topics)],
        groups=[f"group-{number}" for number in range(QUICK.groups)],
        transactions=[f"txn-{number}" for number in range(QUICK.transactions)],
        producers=[(number, 0) for number in range(QUICK.transactions)],
    )


def test_each_request_has_a_name_of_its_own() -> None:
    names = [request.name for request in REQUESTS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: each.name)
def test_each_request_can_be_made(request_: Request) -> None:
    frames = list(request_.make(_world()))
    assert frames
    assert all(frames)


def users_table(services: Any) -> Mapping[RequestCode, object]:
    return access_table(services, services)


@pytest.mark.parametrize(
    ("listener", "table"),
    [("remoting", broker_table), ("remoting", users_table), ("namesrv", name_table)],
)
def test_every_code_that_is_answered_has_a_row(
    listener: str, table: Callable[[Any], Mapping[RequestCode, object]]
) -> None:
    rows = {request.name.split(",")[0] for request in REQUESTS if request.listener == listener}
    codes = {f"{int(code)} {code.name}" for code in table(MagicMock())}
    assert codes - rows == set()


def test_each_api_of_kafka_s_wire_that_is_advertised_has_a_request() -> None:
    asked = {request.name.split(" v")[0] for request in REQUESTS if request.listener == "kafka"}
    served = {"".join(word.title() for word in row.key.name.split("_")) for row in HANDLERS}
    assert served - asked == set()


def test_many_names_are_those_that_exist_and_then_some_that_do_not() -> None:
    world = _world()
    many = world.many(world.groups)
    assert len(many) == len(set(many)) == QUICK.items
    assert many[: QUICK.groups] == world.groups


def test_an_answer_is_read_to_its_end_and_no_further() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\0\0\0\x05hello\0\0\0\0")
        assert read_frame(ours) == 5
        assert read_frame(ours) == 0


def test_an_answer_that_breaks_off_is_no_answer() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\0\0\0\x05hel")
        theirs.close()
        with pytest.raises(ConnectionError):
            read_frame(ours)
