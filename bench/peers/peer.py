"""The base of all servers in benchmarks: a directory, a start, and a clean stop."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.peers.daemon import START_SECONDS_MAX, Daemon
from bench.peers.errors import NotReady
from bench.peers.ports import HOST


class Peer(ABC):
    """A server and its directory, which is retained by a stop."""

    def __init__(self, name: str, directory: Path | None) -> None:
        """A given directory is retained; without one, a temporary one is created."""
        self._is_ours = directory is None
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix=f"peer-{name}-"))
        self.directory = directory.resolve()

    @abstractmethod
    def start(self, seconds_max: float = START_SECONDS_MAX) -> Self:
        """Start it and wait until it responds."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it cleanly."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove a temporary directory; after a failure it is retained for its logs."""
        self.stop()
        if self._is_ours and kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)


class KafkaBroker(Peer):
    """A peer with one process and a listener for Kafka clients."""

    def __init__(self, name: str, directory: Path | None, *, port: int) -> None:
        super().__init__(name, directory)
        self.daemon = Daemon(name, self.directory)
        self._name = name
        self._port = port

    def stop(self) -> None:
        """Stop it cleanly."""
        self.daemon.stop()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of its Kafka listener."""
        return HOST, self._port

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for a Kafka client."""
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """Its pid, while it is running."""
        pid = self.daemon.pid
        if pid is None:
            raise NotReady(f"{self._name} does not run:\n{self.daemon.log_tail()}")
        return pid

    @property
    def ready_seconds(self) -> float:
        """From the start of the process to its first response."""
        return self.daemon.ready_seconds
