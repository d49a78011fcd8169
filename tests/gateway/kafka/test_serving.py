"""Kafka's listener of a real server process: real sockets, real clients, hostile bytes."""

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.conn import create_conn
from confluent_kafka.admin import AdminClient
from tests.budget import budget
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.waiting import wait_until

from rockgate.gateway.compose.kafka.table import opened
from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersionsResponse
from rockgate.protocol.kafka.schema import decode

ADVERTISED = {
    int(row.key): (row.advertised.min, row.advertised.max) for row in opened(ClientMetricsConfig())
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("serving")
    with RunningServer(directory, log_level="debug") as running:
        yield running
        running.stop_cleanly()


def ranges(response: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


# Clients that mean well


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions_is_answered(server: RunningServer, version: int) -> None:
    with RawClient(server) as client:
        assert ranges(client.api_versions(version)) == ADVERTISED


def test_a_version_from_the_future_is_told_what_to_ask_for(server: RunningServer) -> None:
    with RawClient(server) as client:
        client.socket.sendall(bytes.fromhex("0000000e 0012 007b 00000007 0002 6d65 00 00"))
        (size, correlation_id) = struct.unpack(">ii", client.socket.recv(8, socket.MSG_WAITALL))
        body = client.socket.recv(size - 4, socket.MSG_WAITALL)
        assert correlation_id == 7
        response = decode(ApiVersionsResponse, 0, body)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert ranges(response) == {18: (0, 4)}
        assert ranges(client.api_versions(4)) == ADVERTISED


def test_requests_sent_together_are_answered_in_order(server: RunningServer) -> None:
    with RawClient(server) as client:
        for _ in range(500):
            client.connection.send(ApiKey.API_VERSIONS, 0, [b""])
        client.socket.sendall(b"".join(client.connection.data_to_send()))
        answered = 0
        while answered < 500:
            # Out of order would be an error of ClientConnection.
            answered += len(client.connection.receive_data(client.socket.recv(1 << 16)))


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_kafka_python_reads_the_answer(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    # Its import reads schemas in a way that warns, which collecting this module must not do.
    from kafka.errors import KafkaError
    from kafka.net.compat import KafkaNetClient

    client = KafkaNetClient(bootstrap_servers=server.bootstrap, client_id="kafka-python-test")
    with caplog.at_level(logging.INFO, "kafka"), contextlib.suppress(KafkaError):
        client.check_version(timeout_ms=300)
    client.close()
    assert "Broker version identified as" in caplog.text
    assert "api=API_VERSIONS version=4 correlation_id=1 client_id=kafka-python-test" in server.log


async def test_aiokafka_reads_the_answer(server: RunningServer) -> None:
    host, port = server.address("kafka")
    connection = await create_conn(host, port, client_id="aiokafka-test")
    await connection._do_version_lookup()
    assert connection._versions == ADVERTISED
    await asyncio.shield(connection.close())


def test_confluent_kafka_reads_the_answer(server: RunningServer) -> None:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.Logger("librdkafka")
    logger.addHandler(Keep())
    client = AdminClient(
        {"bootstrap.servers": server.bootstrap, "debug": "broker,feature"}, logger=logger
    )

    def is_up() -> bool:
        client.poll(0.01)
        return any("APIVERSION_QUERY -> UP" in line for line in lines)

    wait_until(is_up, "librdkafka has taken the answer to ApiVersions")


# Clients that do not


def hostile_streams() -> dict[str, bytes]:
    client = ClientConnection(client_id="x")
    client.send(ApiKey.API_VERSIONS, 3, [b"\x7f"])
    lying_body = b"".join(client.data_to_send())
    return {
        "a TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(512),
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "a negative length": b"\xff\xff\xff\xff",
        "the most negative length": b"\x80\x00\x00\x00",
        "the largest length": b"\x7f\xff\xff\xff",
        "an empty frame": b"\x00\x00\x00\x00",
        "a frame shorter than a header": b"\x00\x00\x00\x03abc",
        "an API that does not exist": bytes.fromhex("0000000a 7fff 0000 00000001 ffff"),
        "an API without a handler": bytes.fromhex("0000000a 0007 0000 00000001 ffff"),
        "a version below zero": bytes.fromhex("0000000a 0003 ffff 00000001 ffff"),
        "a client id longer than the frame": bytes.fromhex("0000000a 0012 0000 00000001 7fff"),
        "a client id of negative length": bytes.fromhex("0000000a 0012 0000 00000001 fff0"),
        "a client id that is not text": bytes.fromhex("0000000c 0012 0000 00000001 0002 ffff"),
        "a body that lies about its lengths": lying_body,
    }


@pytest.mark.parametrize("name", hostile_streams())
def test_what_is_not_kafka_is_closed_with_one_line_and_others_live(
    server: RunningServer, name: str
) -> None:
    with RawClient(server) as good, RawClient(server) as bad:
        good.api_versions()
        mark = len(server.log)
        bad.socket.sendall(hostile_streams()[name])
        assert bad.closed_by_server()
        wait_until(lambda: " closed on error " in server.log[mark:], "the end is logged")
        assert ranges(good.api_versions()) == ADVERTISED
        (line,) = (line for line in server.log[mark:].splitlines() if " closed on error " in line)
        assert " info kafka.server.session closed on error " in line and " connection=" in line


def test_random_bytes_never_hurt_the_server(server: RunningServer) -> None:
    random = seeded()
    for _ in range(budget("fuzz_rounds")):
        with RawClient(server) as bad:
            size = random.choice([1, 4, 5, 20, 500, 70_000])
            data = random.randbytes(size)
            if random.random() < 0.5:
                # A length that holds, so that what is behind it is read as a request.
                data = struct.pack(">i", len(data)) + data
            with contextlib.suppress(ConnectionError):
                bad.socket.sendall(data)
    with RawClient(server) as good:
        assert ranges(good.api_versions()) == ADVERTISED


def test_a_damaged_request_is_answered_or_closed(server: RunningServer) -> None:
    random = seeded()
    client = ClientConnection(client_id="fuzz")
    for _ in range(budget("fuzz_rounds")):
        client.send(ApiKey.API_VERSIONS, random.randrange(5), [random.randbytes(8)])
        data = bytearray(b"".join(client.data_to_send()))
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(4, len(data))] = random.randrange(256)
        with RawClient(server) as bad:
            bad.socket.sendall(data)
            bad.socket.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while bad.socket.recv(1 << 16):
                    pass
    with RawClient(server) as good:
        assert ranges(good.api_versions()) == ADVERTISED


def test_a_promised_frame_takes_no_memory_before_it_comes(server: RunningServer) -> None:
    before = server.resident_bytes
    clients = [RawClient(server) for _ in range(50)]
    for client in clients:
        client.socket.sendall(struct.pack(">i", 100 << 20) + bytes(1000))
    with RawClient(server) as good:
        good.api_versions()
    assert server.resident_bytes - before < 20 << 20
    for client in clients:
        client.socket.close()


# Many connections


def test_thousands_of_connections_come_and_go_and_leave_nothing(tmp_path: Path) -> None:
    count = budget("connections")
    with RunningServer(tmp_path) as server:
        with RawClient(server) as first:
            first.api_versions()
        quiet = server.descriptor_count
        clients: list[RawClient] = []
        try:
            clients.extend(RawClient(server) for _ in range(count))
            for client in clients[:: max(1, count // 50)]:
                assert ranges(client.api_versions()) == ADVERTISED
            wait_until(lambda: server.descriptor_count >= quiet + count - 1, "all are accepted")
        finally:
            for client in clients:
                client.socket.close()
        wait_until(lambda: server.descriptor_count <= quiet, "all are closed")
        assert server.stop() == 0
        assert "closing connections that did not drain" not in server.log


def test_connections_over_the_limit_are_closed_and_told_of_once(tmp_path: Path) -> None:
    with RunningServer(tmp_path, settings=["max.connections=5"]) as server:
        kept = [RawClient(server) for _ in range(5)]
        for client in kept:
            client.api_versions()
        for _ in range(10):
            with RawClient(server) as refused:
                assert refused.closed_by_server()
        assert server.log.count("rejecting connections max=5") == 1
        kept[0].socket.close()

        def is_taken() -> bool:
            with RawClient(server) as client, contextlib.suppress(AssertionError, OSError):
                return bool(client.api_versions().api_keys)
            return False

        wait_until(is_taken, "a connection is taken again")
        for client in kept:
            client.socket.close()


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    with RunningServer(tmp_path, settings=["connections.max.idle.ms=50"]) as server:
        with RawClient(server) as client:
            client.api_versions()
            assert client.closed_by_server()
        assert " info kafka.server.session" not in server.log and "warning" not in server.log


def test_a_request_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    with RunningServer(tmp_path, settings=["kafka.frame_ms_max=50"]) as server:
        with RawClient(server) as client:
            client.socket.sendall(b"\x00\x00\x00\x20abc")
            assert client.closed_by_server()
        assert "request did not arrive in time" in server.log


def test_open_connections_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server, RawClient(server) as idle, RawClient(server) as half:
        idle.api_versions()
        half.socket.sendall(b"\x00\x00")
        assert server.stop() == 0
        assert idle.closed_by_server()
