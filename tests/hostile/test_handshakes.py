"""A storm of TLS handshakes, as many as one core can do: other clients hardly notice.

Attackers send the first messages of many clients at once, have the server do its costly part, and
leave; or complete a handshake and leave then. Waits are counted as far as the server itself ran
meanwhile: the attackers take more of a small machine than it does.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.security.tls.certificates import Authority
from tests.gateway.server import RunningServer
from tests.hostile.stalls import ran_seconds

P99_SECONDS_MAX = 0.050
"""Half of what is promised: handshakes that are not spread over turns take about 100 ms."""
ROUNDS = 300
HANDSHAKES = 3_000
TRIES = 3
BEGINNERS = 3
"""Attackers that leave after the server's part. They are cheap, so these are enough for a core."""
AT_ONCE = 160
"""Their connections; all together fewer than the server lets in at a time."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    file, key = authority.issue("server")
    settings = (
        "kafka.listeners=TLS://127.0.0.1:0",
        "kafka.listener_security=TLS:SSL",
        f"tls.certificate_file={file}",
        f"tls.key_file={key}",
        "security.super_users=User:ANONYMOUS",
    )
    with RunningServer(tmp_path_factory.mktemp("server"), settings=settings) as running:
        yield running
        running.stop_cleanly()


class Storm:
    """Attackers, each a thread, until it is over."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self.count = 0
        self._address = address
        self._context = context
        self._hello = _hello(context)
        self._is_over = threading.Event()
        attacks = (*(self._begin for _ in range(BEGINNERS)), self._complete)
        self._threads = [threading.Thread(target=self._run, args=(each,)) for each in attacks]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join()

    def _run(self, attack: Callable[[], int]) -> None:
        while not self._is_over.is_set():
            # A connection may be closed to make room for newer ones.
            with suppress(OSError):
                self.count += attack()

    def _begin(self) -> int:
        with ExitStack() as connections:
            made = [connections.enter_context(self._connected()) for _ in range(AT_ONCE)]
            for each in made:
                each.sendall(self._hello)
            return sum(1 for each in made if each.recv(1 << 14))

    def _complete(self) -> int:
        with self._connected() as connection:
            self._context.wrap_socket(connection, server_hostname="localhost").close()
        return 1

    def _connected(self) -> socket.socket:
        return socket.create_connection(self._address, timeout=60)


@pytest.mark.row("SEC-12")
def test_other_clients_hardly_wait_in_a_storm(server: RunningServer, authority: Authority) -> None:
    context = authority.client()
    best = float("inf")
    for _ in range(TRIES):
        with RawClient(server) as plain, RawClient(server, "kafka.TLS") as secured:
            secured.socket = context.wrap_socket(secured.socket, server_hostname="localhost")
            storm = Storm(server.address("kafka.TLS"), context)
            waits: list[float] = []
            try:
                while len(waits) < 2 * ROUNDS or storm.count < HANDSHAKES:
                    waits += [_wait(server.pid, client) for client in (plain, secured)]
            finally:
                storm.stop()
        best = min(best, sorted(waits)[len(waits) * 99 // 100])
        if best < P99_SECONDS_MAX:
            break
    assert best < P99_SECONDS_MAX


def _wait(pid: int, client: RawClient) -> float:
    began, ran = time.monotonic(), ran_seconds(pid)
    assert client.api_versions().api_keys
    return min(time.monotonic() - began, ran_seconds(pid) - ran)


def _hello(context: ssl.SSLContext) -> bytes:
    """The first message of a client."""
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
