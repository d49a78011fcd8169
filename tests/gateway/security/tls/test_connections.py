"""Listeners with TLS, as clients of a real server see them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from tests.budget import budget
from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import Client
from tests.gateway.security.tls.certificates import Authority
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.waiting import wait_until

from rockgate.protocol.remoting.codes import RequestCode

SETTINGS = (
    "kafka.listeners=TLS://127.0.0.1:0",
    "kafka.listener_security=TLS:SSL",
    "security.authentication_ms_max=2s",
    "http.tls=true",
    # Certificates are principals, so grants decide: those without one may do everything here.
    "security.super_users=User:ANONYMOUS",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def settings(authority: Authority, **more: str) -> list[str]:
    file, key = authority.issue("server")
    given = {
        "tls.certificate_file": str(file),
        "tls.key_file": str(key),
        "tls.client_ca_file": str(authority.file),
        "tls.client_auth": "requested",
        "tls.principal_rules": "RULE:^CN=(.*?),.*$/$1/L",
        **more,
    }
    return [*SETTINGS, *(f"{name}={value}" for name, value in given.items())]


@pytest.fixture(scope="module")
def server(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    more = {"remoting.tls": "permissive", "namesrv.tls": "enforcing"}
    with RunningServer(
        folder, settings=settings(authority, **more), rocketmq=True, log_level="debug"
    ) as running:
        yield running
        running.stop_cleanly()


def secured(address: tuple[str, int], context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(address, timeout=60)
    return context.wrap_socket(plain, server_hostname="localhost")


@contextmanager
def raw(server: RunningServer, context: ssl.SSLContext) -> Iterator[RawClient]:
    with RawClient(server, "kafka.TLS") as client:
        client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
        yield client


def serial_of(address: tuple[str, int], context: ssl.SSLContext) -> object:
    with secured(address, context) as connection:
        found = connection.getpeercert()
        assert found is not None
        return found["serialNumber"]


def test_kafka_s_wire_is_served_over_tls(server: RunningServer, authority: Authority) -> None:
    with raw(server, authority.client()) as client:
        assert client.api_versions().api_keys
        assert isinstance(client.socket, ssl.SSLSocket)
        assert client.socket.version() == "TLSv1.3"


def test_kafka_python_produces_and_consumes_over_tls(
    server: RunningServer, authority: Authority
) -> None:
    options = {
        "bootstrap_servers": "{}:{}".format(*server.address("kafka.TLS")),
        "security_protocol": "SSL",
        "ssl_cafile": str(authority.file),
    }
    bodies = [bytes([number]) * 100_000 for number in range(20)]
    producer = KafkaProducer(**options)
    try:
        for body in bodies:
            producer.send("over-tls", body, partition=0)
        producer.flush()
    finally:
        producer.close()
    consumer = KafkaConsumer(
        "over-tls", auto_offset_reset="earliest", consumer_timeout_ms=30_000, **options
    )
    try:
        assert [record.value for record, _ in zip(consumer, bodies, strict=False)] == bodies
    finally:
        consumer.close()


@pytest.mark.row("N-04")
def test_renewed_certificates_are_taken_up_and_open_connections_stay(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    trusting = authority.client()
    with RunningServer(tmp_path, settings=settings(authority)) as server:
        address = server.address("kafka.TLS")
        old = serial_of(address, trusting)
        with raw(server, trusting) as client:
            assert client.api_versions().api_keys
            authority.issue("server")
            wait_until(lambda: serial_of(address, trusting) != old, "the new certificate")
            assert client.api_versions().api_keys, "the connection is still open"
        (authority.folder / "server.key").write_text("broken")
        wait_until(lambda: "certificates not renewed" in server.log, "the line in the log")
        assert serial_of(address, trusting) != old
        server.stop_cleanly()


@pytest.mark.parametrize(
    ("listener", "code"),
    [("namesrv", RequestCode.GET_BROKER_CLUSTER_INFO), ("remoting", RequestCode.GET_BROKER_CONFIG)],
)
def test_rocketmq_s_wire_is_served_over_tls(
    server: RunningServer, authority: Authority, listener: str, code: int
) -> None:
    client = Client(server.address(listener))
    client.socket = authority.client().wrap_socket(client.socket, server_hostname="localhost")
    with client.socket:
        assert client.ask(code).code == 0


def test_a_permissive_listener_takes_plain_clients_too(server: RunningServer) -> None:
    client = Client(server.address("remoting"))
    with client.socket:
        assert client.ask(RequestCode.GET_BROKER_CONFIG).code == 0


def test_http_is_served_over_tls(server: RunningServer, authority: Authority) -> None:
    with secured(server.address("http"), authority.client()) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_plain_client_of_a_listener_with_tls_is_closed_with_a_line(
    server: RunningServer,
) -> None:
    with socket.create_connection(server.address("kafka.TLS"), timeout=60) as client:
        client.sendall(b"\0\0\0\x10\0\x12\0\3")
        assert _end(client) == b""
    wait_until(
        lambda: "looks like plaintext, but the listener has TLS" in server.log,
        "the line in the log",
    )


def test_a_client_with_tls_of_a_plain_listener_is_closed_with_a_line(
    server: RunningServer, authority: Authority
) -> None:
    with pytest.raises(OSError):
        secured(server.address("kafka"), authority.client())
    wait_until(
        lambda: "looks like TLS, but this listener is plaintext" in server.log,
        "the line in the log",
    )


def test_an_old_version_is_refused(server: RunningServer, authority: Authority) -> None:
    old = authority.client()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        secured(server.address("kafka.TLS"), old)


def test_a_certificate_of_another_authority_is_refused(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger").issue("alice")
    with (
        pytest.raises((OSError, AssertionError)),
        raw(server, authority.client(stranger)) as client,
    ):
        client.api_versions()


def test_a_certificate_without_a_principal_is_refused(authority: Authority, tmp_path: Path) -> None:
    alice = authority.issue("alice")
    more = {"tls.principal_rules": "RULE:^UID=(.*)$/$1/"}
    with RunningServer(tmp_path, settings=settings(authority, **more)) as server:
        with (
            pytest.raises((OSError, AssertionError)),
            raw(server, authority.client(alice)) as client,
        ):
            client.api_versions()
        wait_until(lambda: "certificate refused, no rule" in server.log, "the line in the log")
        with raw(server, authority.client()) as client:
            assert client.api_versions().api_keys, "without a certificate it is anonymous"
        server.stop_cleanly()


def test_clients_that_stop_in_a_handshake_are_closed_in_time(
    server: RunningServer, authority: Authority
) -> None:
    hello = _hello(authority.client())
    for sent in (b"", hello[:1], hello[: len(hello) // 2], hello):
        with socket.create_connection(server.address("kafka.TLS"), timeout=60) as client:
            client.sendall(sent)
            _end(client)
    wait_until(
        lambda: "TLS handshake did not complete in time" in server.log, "the line in the log"
    )


def test_damaged_handshakes_reach_no_handler_and_leave_no_session(
    server: RunningServer, authority: Authority
) -> None:
    random = seeded()
    hello = _hello(authority.client())
    before = server.descriptor_count
    connected = server.log.count("= connected")
    for _ in range(budget("fuzz_rounds") // 10):
        damaged = bytearray(hello)
        for _ in range(random.randint(1, 8)):
            damaged[random.randrange(2, len(damaged))] = random.randrange(256)
        with socket.create_connection(server.address("kafka.TLS"), timeout=60) as client:
            client.sendall(damaged[: random.randint(2, len(damaged))])
            client.shutdown(socket.SHUT_WR)
            _end(client)
    wait_until(lambda: server.descriptor_count <= before, "all connections to be closed")
    assert server.log.count("= connected") == connected
    with raw(server, authority.client()) as client:
        assert client.api_versions().api_keys


def _hello(context: ssl.SSLContext) -> bytes:
    """The first bytes of a client."""
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def _end(client: socket.socket) -> bytes:
    """What the server sends until it closes."""
    found = b""
    try:
        while data := client.recv(1 << 16):
            found += data
    except ConnectionResetError:
        pass
    return found
