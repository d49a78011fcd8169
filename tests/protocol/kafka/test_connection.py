import itertools
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.frames import LENGTH
from rockgate.protocol.kafka.api import ApiKey
from rockgate.protocol.kafka.connection import (
    Buffer,
    ClientConnection,
    Exchange,
    RequestHeader,
    ServerConnection,
    encode_request_header,
)
from rockgate.protocol.kafka.errors import MalformedFrame, ProtocolError, UnsupportedVersion


@dataclass(frozen=True)
class Request:
    """A request as the tests think of it: an API, one of its versions, and any body."""

    api_key: ApiKey
    version: int
    body: bytes

    def frame(self, correlation_id: int, client_id: str | None = "test") -> bytes:
        header = RequestHeader(
            api_key=self.api_key,
            api_version=self.version,
            correlation_id=correlation_id,
            client_id=client_id,
        )
        whole = encode_request_header(header) + self.body
        return LENGTH.pack(len(whole)) + whole


REQUESTS = st.builds(
    Request,
    st.just(ApiKey.METADATA),
    st.integers(0, 13),
    st.binary(max_size=50),
) | st.builds(Request, st.just(ApiKey.API_VERSIONS), st.integers(0, 4), st.binary(max_size=50))

PING = Request(ApiKey.METADATA, 5, b"ping")


def stream_of(requests: list[Request]) -> bytes:
    return b"".join(request.frame(number) for number, request in enumerate(requests))


def received(connection: ServerConnection, stream: bytes, cuts: list[int]) -> list[Exchange]:
    places = [0, *sorted(cuts), len(stream)]
    return [
        exchange
        for start, end in itertools.pairwise(places)
        for exchange in connection.receive_data(stream[start:end])
    ]


def sent(connection: ServerConnection | ClientConnection) -> bytes:
    return b"".join(connection.data_to_send())


# The server: receiving


@given(st.data())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_split_of_the_bytes_gives_the_same_exchanges(data: st.DataObject) -> None:
    requests = data.draw(st.lists(REQUESTS, max_size=6))
    stream = stream_of(requests)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=20))
    exchanges = received(ServerConnection(), stream, cuts)
    assert [
        (each.header.api_key, each.header.api_version, each.header.correlation_id, bytes(each.body))
        for each in exchanges
    ] == [(r.api_key, r.version, number, r.body) for number, r in enumerate(requests)]
    assert {each.header.client_id for each in exchanges} <= {"test"}


def test_the_body_is_a_slice_of_the_bytes_received() -> None:
    data = PING.frame(1)
    (exchange,) = ServerConnection().receive_data(data)
    assert exchange.body.obj is data
    assert exchange.size == len(data) - 4


def test_requests_beyond_the_limit_wait_for_answers_to_leave() -> None:
    connection = ServerConnection(in_flight_max=2)
    first, second = connection.receive_data(stream_of([PING] * 5))
    assert connection.is_full
    assert connection.next_exchanges() == []
    connection.respond(second, [b"2"])
    connection.data_to_send()
    assert connection.next_exchanges() == [], "the second answer waits for the first"
    connection.respond(first, [b"1"])
    connection.data_to_send()
    assert not connection.is_full
    third, fourth = connection.next_exchanges()
    assert (third.header.correlation_id, fourth.header.correlation_id) == (2, 3)
    assert connection.in_flight_count == 2
    connection.respond(third, [])
    connection.data_to_send()
    (fifth,) = connection.receive_data(b"")
    assert fifth.header.correlation_id == 4


@pytest.mark.parametrize(
    "broken",
    [
        LENGTH.pack(-1),
        LENGTH.pack(1001),
        LENGTH.pack(0),
        LENGTH.pack(7) + bytes(7),
        LENGTH.pack(8) + b"\x00\x03\x00\x05\x00\x00\x00\x01",
        LENGTH.pack(12) + b"\x00\x03\x00\x05\x00\x00\x00\x01\x00\x09ab",
        LENGTH.pack(10) + b"\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff",
        LENGTH.pack(10) + b"\x00\x03\x00\x63\x00\x00\x00\x01\xff\xff",
    ],
    ids=["negative", "oversized", "empty", "short", "no client id", "cut", "api", "version"],
)
@pytest.mark.parametrize("split_bytes", [False, True])
def test_what_came_before_a_broken_frame_is_returned_and_then_the_error_is_raised(
    broken: bytes, split_bytes: bool
) -> None:
    stream = stream_of([PING, PING]) + broken + PING.frame(3)
    connection = ServerConnection(frame_bytes_max=1000)
    exchanges: list[Exchange] = []
    with pytest.raises(ProtocolError) as caught:
        if split_bytes:
            for at in range(len(stream)):
                exchanges += connection.receive_data(stream[at : at + 1])
        else:
            exchanges += connection.receive_data(stream)
            connection.next_exchanges()
    assert [exchange.header.correlation_id for exchange in exchanges] == [0, 1]
    assert isinstance(caught.value, MalformedFrame | UnsupportedVersion)
    with pytest.raises(ProtocolError):
        connection.receive_data(PING.frame(4))


def test_an_error_waits_until_every_request_before_it_was_returned() -> None:
    connection = ServerConnection(in_flight_max=1)
    (first,) = connection.receive_data(stream_of([PING, PING]) + LENGTH.pack(-1))
    assert connection.next_exchanges() == []
    connection.respond(first, [b"1"])
    connection.data_to_send()
    (second,) = connection.next_exchanges()
    connection.respond(second, [b"2"])
    connection.data_to_send()
    with pytest.raises(MalformedFrame, match="Negative frame length -1, at byte"):
        connection.next_exchanges()


@given(st.lists(st.binary(max_size=60), max_size=5))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_no_bytes_raise_anything_but_a_protocol_error(chunks: list[bytes]) -> None:
    connection = ServerConnection(frame_bytes_max=200)
    for chunk in chunks:
        try:
            connection.receive_data(LENGTH.pack(len(chunk)) + chunk)
            connection.receive_data(chunk)
        except ProtocolError:
            return


# The server: sending


@given(st.lists(st.lists(st.binary(max_size=20), max_size=3), max_size=8), st.randoms())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_answers_leave_in_request_order_whatever_the_order_they_are_given_in(
    answers: list[list[bytes]], chance: random.Random
) -> None:
    connection = ServerConnection()
    exchanges = connection.receive_data(stream_of([PING] * len(answers)))
    expected = b"".join(
        LENGTH.pack(4 + len(b"".join(answer))) + LENGTH.pack(number) + b"".join(answer)
        for number, answer in enumerate(answers)
        if answer
    )
    order = list(range(len(answers)))
    chance.shuffle(order)
    out = b""
    for number in order:
        connection.respond(exchanges[number], [*answers[number]])
        out += sent(connection)
    assert out == expected
    assert connection.in_flight_count == 0


def test_an_answer_is_held_until_the_earlier_ones_are_known() -> None:
    connection = ServerConnection()
    first, second = connection.receive_data(stream_of([PING, PING]))
    connection.respond(second, [b"late"])
    assert connection.data_to_send() == []
    connection.respond(first, [b"early"])
    assert sent(connection) == b"\0\0\0\x09\0\0\0\0early" + b"\0\0\0\x08\0\0\0\x01late"
    assert connection.data_to_send() == []


def test_an_empty_answer_leaves_nothing_and_lets_the_next_pass() -> None:
    connection = ServerConnection()
    first, second = connection.receive_data(stream_of([PING, PING]))
    connection.respond(second, [b"2"])
    connection.respond(first, [])
    assert sent(connection) == b"\0\0\0\x05\0\0\0\x012"


def test_the_buffers_of_an_answer_are_sent_as_they_are() -> None:
    connection = ServerConnection()
    (exchange,) = connection.receive_data(PING.frame(7))
    payload = memoryview(bytearray(100))
    connection.respond(exchange, [b"head", payload, b"tail"])
    buffers = connection.data_to_send()
    assert buffers[2] is payload
    assert bytes(buffers[0]) == LENGTH.pack(4 + 108) + LENGTH.pack(7)


@pytest.mark.parametrize(
    ("api_key", "version", "header"),
    [
        (ApiKey.METADATA, 8, ""),
        (ApiKey.METADATA, 9, "00"),
        (ApiKey.API_VERSIONS, 2, ""),
        (ApiKey.API_VERSIONS, 3, ""),
    ],
)
def test_flexible_answers_have_tags_in_their_header_but_for_api_versions(
    api_key: ApiKey, version: int, header: str
) -> None:
    connection = ServerConnection()
    (exchange,) = connection.receive_data(Request(api_key, version, b"").frame(5))
    connection.respond(exchange, [b"body"])
    assert sent(connection)[4:] == LENGTH.pack(5) + bytes.fromhex(header) + b"body"


def test_answering_twice_is_our_bug() -> None:
    connection = ServerConnection()
    (exchange,) = connection.receive_data(PING.frame(0))
    connection.respond(exchange, [])
    with pytest.raises(AssertionError, match="answered already"):
        connection.respond(exchange, [b"again"])


# The client


def served(requests: bytes, answers: list[list[Buffer]]) -> bytes:
    """What a server sends back for `requests`, given the bodies of its answers."""
    server = ServerConnection()
    exchanges = server.receive_data(requests)
    for exchange, answer in zip(exchanges, answers, strict=True):
        server.respond(exchange, answer)
    return sent(server)


@given(st.data())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_client_and_a_server_understand_each_other_however_the_bytes_are_split(
    data: st.DataObject,
) -> None:
    requests = data.draw(st.lists(REQUESTS, max_size=6))
    answers = [data.draw(st.binary(max_size=30)) for _ in requests]
    client = ClientConnection(client_id="ü")
    numbers = [client.send(r.api_key, r.version, [r.body]) for r in requests]
    assert client.in_flight_count == len(requests)
    stream = served(sent(client), [[answer] for answer in answers])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    places = [0, *cuts, len(stream)]
    responses = [
        response
        for start, end in itertools.pairwise(places)
        for response in client.receive_data(stream[start:end])
    ]
    assert [(r.correlation_id, r.api_key, r.api_version, bytes(r.body)) for r in responses] == [
        (number, r.api_key, r.version, answer)
        for number, r, answer in zip(numbers, requests, answers, strict=True)
    ]
    assert client.in_flight_count == 0


def test_a_request_without_an_answer_is_not_waited_for() -> None:
    client = ClientConnection()
    client.send(ApiKey.PRODUCE, 9, [b"first"], has_answer=False)
    number = client.send(ApiKey.METADATA, 9, [b"second"])
    stream = served(sent(client), [[], [b"answer"]])
    (response,) = client.receive_data(stream)
    assert (response.correlation_id, bytes(response.body)) == (number, b"answer")


def test_a_response_with_another_correlation_id_breaks_the_connection() -> None:
    client = ClientConnection()
    client.send(ApiKey.METADATA, 5, [])
    client.send(ApiKey.METADATA, 5, [])
    good, bad = LENGTH.pack(4) + LENGTH.pack(0), LENGTH.pack(4) + LENGTH.pack(9)
    assert len(client.receive_data(good + bad)) == 1, "the answer before the break is kept"
    with pytest.raises(MalformedFrame, match="Correlation id is 9, expected 1"):
        client.receive_data(b"")


def test_a_response_to_no_request_breaks_the_connection() -> None:
    with pytest.raises(MalformedFrame, match="without a request"):
        ClientConnection().receive_data(LENGTH.pack(4) + LENGTH.pack(0))


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\0"])
def test_a_response_cut_within_its_header_breaks_the_connection(frame: bytes) -> None:
    client = ClientConnection()
    client.send(ApiKey.METADATA, 9, [])
    with pytest.raises(MalformedFrame):
        client.receive_data(LENGTH.pack(len(frame)) + frame)


def test_correlation_ids_start_again_after_the_largest() -> None:
    client = ClientConnection(first_id=2**31 - 1)
    assert client.send(ApiKey.METADATA, 5, []) == 2**31 - 1
    assert client.send(ApiKey.METADATA, 5, []) == 0


def test_the_limit_of_frames_can_be_changed_between_requests() -> None:
    connection = ServerConnection(frame_bytes_max=100)
    connection.limit_frames(200)
    assert not connection.receive_data((150).to_bytes(4, "big"))
    connection = ServerConnection(frame_bytes_max=200)
    connection.limit_frames(100)
    with pytest.raises(ProtocolError, match="exceeds the maximum of 100"):
        connection.receive_data((150).to_bytes(4, "big"))
