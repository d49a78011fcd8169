"""A server with both doors open, a user of the command line, and a client of RocketMQ's door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer


class TwoDoors:
    """One server, and both ways to it."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        host, port = server.address("remoting")
        self.terminal = Terminal(server.bootstrap, f"{host}:{port}")
        self.client = Client((host, port))


@contextmanager
def two_doors(folder: Path, *settings: str) -> Iterator[TwoDoors]:
    with RunningServer(folder, settings=settings, rocketmq=True) as server:
        doors = TwoDoors(server)
        yield doors
        doors.client.socket.close()
        assert server.stop() == 0
        assert "Traceback" not in server.log
