"""Probes against a listener that gives prepared answers."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.peers import answers
from bench.peers.answers import (
    BROKER_RUNTIME_INFO,
    CLUSTER_INFO,
    Address,
    answers_api_versions,
    answers_broker,
    answers_namesrv,
    ask_remoting,
)
from bench.peers.ports import free_ports


@contextmanager
def answering(*frames: bytes) -> Iterator[tuple[Address, list[bytes]]]:
    """A listener that gives each connection the next of `frames` and keeps what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for frame in frames:
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.recv(4096))
                    connection.sendall(frame)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[:2], asked
        thread.join()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def remoting(body: bytes = b"", **header: object) -> bytes:
    text = json.dumps({"code": 0, "opaque": 1, **header}).encode()
    return framed(struct.pack(">i", len(text)) + text + body)


def test_kafka_is_ready_when_it_answers_api_versions() -> None:
    with answering(framed(struct.pack(">ihi", 1, 0, 0))) as (address, asked):
        assert answers_api_versions(address)
    # Length, key 18, version 0, correlation id 1, null client id.
    assert asked == [bytes.fromhex("0000000a 0012 0000 00000001 ffff")]


@pytest.mark.parametrize(
    "answer",
    [
        framed(struct.pack(">ihi", 1, 35, 0)),
        framed(struct.pack(">ihi", 2, 0, 0)),
        framed(b"\x00\x00"),
        struct.pack(">i", -1),
        struct.pack(">i", answers.ANSWER_SIZE_MAX + 1),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00",
        b"",
    ],
)
def test_anything_else_is_not_ready(answer: bytes) -> None:
    with answering(answer) as (address, _):
        assert not answers_api_versions(address)


def test_a_port_where_no_one_listens_is_not_ready() -> None:
    (port,) = free_ports(1)
    assert not answers_api_versions(("127.0.0.1", port))
    assert not answers_namesrv(("127.0.0.1", port))


def test_a_remoting_request_is_a_json_header_behind_its_length() -> None:
    with answering(remoting(b"body")) as (address, asked):
        assert ask_remoting(address, CLUSTER_INFO) == b"body"
    [request] = asked
    length, header_length = struct.unpack_from(">ii", request)
    assert length == len(request) - 4
    assert header_length == length - 4
    assert json.loads(request[8:])["code"] == CLUSTER_INFO


@pytest.mark.parametrize(
    "answer",
    [
        remoting(code=1),
        remoting(opaque=7),
        framed(struct.pack(">i", 3) + b"{]}"),
        framed(struct.pack(">i", 2) + b"[]"),
        framed(struct.pack(">i", 100) + b"{}"),
        framed(struct.pack(">i", 1 << 24 | 2) + b"{}"),
        framed(b"\x00"),
    ],
)
def test_a_refusal_or_nonsense_is_no_answer(answer: bytes) -> None:
    with answering(answer) as (address, _):
        assert ask_remoting(address, BROKER_RUNTIME_INFO) is None


def test_a_broker_is_ready_when_its_name_server_sends_clients_to_it() -> None:
    with answering(remoting()) as (broker, _):
        known = b'{"brokerAddrs":{0:"%s:%d"}}' % (broker[0].encode(), broker[1])
        with answering(remoting(known)) as (namesrv, _):
            assert answers_broker(broker, namesrv)


def test_a_broker_that_its_name_server_does_not_know_is_not_ready() -> None:
    with answering(remoting()) as (broker, _), answering(remoting(b"{}")) as (namesrv, _):
        assert not answers_broker(broker, namesrv)
