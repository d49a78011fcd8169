"""A server as `rockgate secure init` sets it up, on free ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.gateway.server import SEGMENT_BYTES, RunningServer

from rockgate.cli.commands.secure import folder


class Secured:
    """The folder, and the server of its settings when it runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folder = directory / "secure"
        self.data_dir = directory / "data"
        self.terminal = Terminal("127.0.0.1:1")
        self.terminal.variables["ROCKGATE_STORE_SEGMENT_BYTES"] = str(SEGMENT_BYTES)

    @property
    def client_config(self) -> Path:
        return self.folder / folder.CLIENT

    def init(self, *arguments: str, status: int = 0) -> str:
        return self.terminal.run("secure", "init", *self._places, *arguments, status=status)

    @property
    def _places(self) -> tuple[str, ...]:
        return "--dir", str(self.folder), "--data-dir", str(self.data_dir)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def password(self) -> str:
        (line,) = (
            line
            for line in self.read(folder.LIBRDKAFKA).decode().splitlines()
            if "password" in line
        )
        return line.partition("=")[2]

    @contextmanager
    def running(self, *settings: str) -> Iterator[RunningServer]:
        """Serve with the settings of the folder."""
        server = RunningServer(
            self.directory,
            rocketmq=True,
            settings=settings,
            flags=["--config", str(self.folder / folder.SETTINGS)],
        )
        with server:
            yield server
            server.stop_cleanly()

    def administrator(self, server: RunningServer) -> Terminal:
        """A user of the command line with the client file of the folder."""
        host, port = server.address("remoting")
        found = Terminal(server.bootstrap, f"{host}:{port}")
        found.variables["ROCKGATE_CLIENT_CONFIG"] = str(self.client_config)
        return found
