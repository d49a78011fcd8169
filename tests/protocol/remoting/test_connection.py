import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.errors import MalformedFrame
from rockgate.protocol.remoting.command import BINARY, JSON, Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.protocol.remoting.errors import TooManyPending


def sent(connection: Connection) -> bytes:
    return b"".join(connection.data_to_send())


def asked(client: Connection, server: Connection, code: int, body: bytes = b"") -> Command:
    client.request(code, {"n": str(code)}, body)
    [received] = server.receive_data(sent(client))
    return received


@pytest.mark.row("M-05")
def test_answers_may_come_in_any_order() -> None:
    client, server = Connection(), Connection()
    first, second = asked(client, server, 11), asked(client, server, 310)
    server.respond(second, Command(0, remark="second"))
    server.respond(first, Command(19, remark="first"))
    answers = client.receive_data(sent(server))
    assert [(each.opaque, each.code, each.remark) for each in answers] == [
        (second.opaque, 0, "second"),
        (first.opaque, 19, "first"),
    ]
    assert client.pending == {}


def test_both_ends_ask_and_answer_at_the_same_time() -> None:
    client, server = Connection(), Connection()
    question = asked(client, server, 34)
    check = asked(server, client, 39, b"half")
    assert (question.opaque, check.opaque) == (0, 0)
    client.respond(check, Command(0, remark="checked"))
    server.respond(question, Command(0, remark="alive"))
    assert [each.remark for each in client.receive_data(sent(server))] == ["alive"]
    assert [each.remark for each in server.receive_data(sent(client))] == ["checked"]


@pytest.mark.parametrize("encoding", [JSON, BINARY])
def test_an_answer_has_the_encoding_of_its_request(encoding: int) -> None:
    client, server = Connection(encoding=encoding), Connection()
    request = asked(client, server, 30)
    server.respond(request, Command(0, {"offset": "1"}))
    data = sent(server)
    assert data[4] == encoding
    assert [each.fields for each in client.receive_data(data)] == [{"offset": "1"}]


def test_a_one_way_request_gets_no_answer_and_waits_for_none() -> None:
    client, server = Connection(), Connection()
    client.request(15, oneway=True)
    [request] = server.receive_data(sent(client))
    assert request.is_oneway and client.pending == {}
    server.respond(request, Command(0))
    assert server.data_to_send() == []


def test_an_answer_to_nothing_is_dropped() -> None:
    client, server = Connection(), Connection()
    request = asked(client, server, 11)
    client.give_up(request.opaque)
    server.respond(request, Command(0))
    assert client.receive_data(sent(server)) == []


def test_a_number_that_still_waits_is_not_given_again() -> None:
    client = Connection()
    client._next_opaque = 0x7FFFFFFF
    assert [client.request(11), client.request(11)] == [0x7FFFFFFF, 0]
    client._next_opaque = 0x7FFFFFFF
    assert client.request(11) == 1


def test_more_requests_than_may_wait_are_refused() -> None:
    client = Connection(pending_max=2)
    client.request(11)
    client.request(11)
    with pytest.raises(TooManyPending, match="2 requests are already in flight"):
        client.request(11)


def test_a_body_travels_as_it_is() -> None:
    client, server = Connection(), Connection()
    request = asked(client, server, 310, b"x" * 100)
    assert bytes(request.body) == b"x" * 100
    body = memoryview(b"log")
    server.respond(request, Command(0, body=body))
    assert server.data_to_send()[1] is body


@given(st.data())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_split_of_the_bytes_gives_the_same_commands(data: st.DataObject) -> None:
    bodies = data.draw(st.lists(st.binary(max_size=40), max_size=6))
    client = Connection(encoding=data.draw(st.sampled_from([JSON, BINARY])))
    for number, body in enumerate(bodies):
        client.request(number, {"number": str(number)}, body)
    stream = sent(client)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    server = Connection()
    found = [
        command
        for start, end in itertools.pairwise([0, *cuts, len(stream)])
        for command in server.receive_data(stream[start:end])
    ]
    assert [(each.code, bytes(each.body)) for each in found] == list(enumerate(bodies))


@pytest.mark.parametrize("junk", [b"\xff\xff\xff\xff", b"\0\0\0\1x", b"\0\0\0\6\0\0\0\2[]"])
def test_what_came_before_broken_bytes_is_returned_first(junk: bytes) -> None:
    client, server = Connection(), Connection()
    client.request(34)
    commands = server.receive_data(sent(client) + junk)
    assert [each.code for each in commands] == [34]
    assert server.is_broken
    for _ in range(2):
        with pytest.raises(MalformedFrame):
            server.receive_data(b"")


def test_a_frame_over_the_limit_is_refused_before_it_comes() -> None:
    with pytest.raises(MalformedFrame, match="exceeds the maximum of 100"):
        Connection(frame_bytes_max=100).receive_data(b"\0\0\0\x65")
