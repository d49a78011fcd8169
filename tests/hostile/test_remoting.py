"""Bytes and requests on RocketMQ's ports that mean harm: an answer or a closed connection."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.budget import budget
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer
from tests.protocol.remoting.golden import FRAMES
from tests.seeds import seeded

REQUESTS = [each.frame for each in FRAMES if not each.is_answer]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ["remoting.frame_ms_max=500"]
    folder = tmp_path_factory.mktemp("hostile")
    with RunningServer(folder, settings=settings, rocketmq=True) as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log


@pytest.fixture(params=["remoting", "namesrv"])
def address(server: RunningServer, request: pytest.FixtureRequest) -> tuple[str, int]:
    return server.address(request.param)


def is_alive(server: RunningServer) -> None:
    """Others are served as before."""
    broker = Client(server.address("remoting"))
    assert broker.publish("alive").code == 0
    broker.socket.close()
    namesrv = Client(server.address("namesrv"))
    assert namesrv.ask(105, {"topic": "alive"}).code == 0
    namesrv.socket.close()


def spit(address: tuple[str, int], data: bytes) -> None:
    """Send bytes, read whatever comes for a moment, and go."""
    with socket.create_connection(address, timeout=5) as sock:
        sock.settimeout(0.02)
        try:
            sock.sendall(data)
            while sock.recv(65_536):
                pass
        except (TimeoutError, ConnectionError):
            return


def mangled(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(4, len(data))
        data[at] = chance.randrange(256)
    if chance.random() < 0.3:
        del data[chance.randrange(4, len(data)) :]
    return struct.pack(">i", len(data) - 4) + data[4:]


def test_mangled_requests_harm_nobody(server: RunningServer, address: tuple[str, int]) -> None:
    chance = seeded()
    for _ in range(budget("hostile_rounds_each")):
        spit(address, b"".join(mangled(chance.choice(REQUESTS), chance) for _ in range(10)))
    is_alive(server)


def test_recorded_requests_out_of_their_place_harm_nobody(
    server: RunningServer, address: tuple[str, int]
) -> None:
    chance = seeded()
    for _ in range(budget("hostile_rounds_each")):
        spit(address, b"".join(chance.choice(REQUESTS) for _ in range(20)))
    is_alive(server)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\0\0\0\4\0\xff\xff\xff",
        b"\0\0\0\6\0\0\0\2{}",
        b"\0\0\0\4\2\0\0\0",
    ],
)
def test_what_is_no_frame_closes_the_connection(
    server: RunningServer, address: tuple[str, int], data: bytes
) -> None:
    with socket.create_connection(address, timeout=10) as sock:
        sock.sendall(data)
        assert sock.recv(100) == b""
    is_alive(server)


def test_a_frame_that_does_not_arrive_in_time_closes_the_connection(
    server: RunningServer,
) -> None:
    with socket.create_connection(server.address("remoting"), timeout=30) as sock:
        sock.sendall(REQUESTS[0][:-5])
        assert sock.recv(100) == b""
    is_alive(server)


def test_requests_before_a_broken_one_are_answered(server: RunningServer) -> None:
    client = Client(server.address("remoting"))
    client.connection.request(28)
    good = b"".join(client.connection.data_to_send())
    client.socket.sendall(good + b"\0\0\0\1x")
    assert client.answer(0).code == 0
    with pytest.raises(ConnectionError):
        client.answer(1)
    client.socket.close()


def test_a_thousand_waiting_pulls_of_one_client_end_with_it(server: RunningServer) -> None:
    client = Client(server.address("remoting"))
    client.publish("crowded")
    for _ in range(1000):
        client.begin_pull("crowded", 1, sysFlag=6, suspendTimeoutMillis=60_000)
    assert client.ask(28).code == 0
    client.socket.close()
    is_alive(server)
