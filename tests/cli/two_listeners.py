"""A server with both protocols, a user of the command line, and a RocketMQ client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer


class BothWires:
    """One server, and both ways to reach it."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        host, port = server.address("remoting")
        self.terminal = Terminal(server.bootstrap, f"{host}:{port}")
        self.client = Client((host, port))


@contextmanager
def both_wires(folder: Path, *settings: str) -> Iterator[BothWires]:
    with RunningServer(folder, settings=settings, rocketmq=True) as server:
        wires = BothWires(server)
        yield wires
        wires.client.socket.close()
        server.stop_cleanly()
