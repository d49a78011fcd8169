"""What every server beside us is: a directory of its own, a start, and an end in order."""

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
    """A server and its directory. A stop keeps the directory, so that it can start again."""

    def __init__(self, name: str, directory: Path | None) -> None:
        """The caller's directory is kept; without one, it is made for a single run."""
        self._is_ours = directory is None
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix=f"peer-{name}-"))
        self.directory = directory.resolve()

    @abstractmethod
    def start(self, seconds_max: float = START_SECONDS_MAX) -> Self:
        """Start it and wait until it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it in order."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove a directory made here; one whose run failed stays, for its logs."""
        self.stop()
        if self._is_ours and kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)


class KafkaBroker(Peer):
    """A peer that is one process with a listener for Kafka's clients."""

    def __init__(self, name: str, directory: Path | None, *, port: int) -> None:
        super().__init__(name, directory)
        self.daemon = Daemon(name, self.directory)
        self._name = name
        self._port = port

    def stop(self) -> None:
        """End it in order."""
        self.daemon.stop()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of its listener for Kafka's clients."""
        return HOST, self._port

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for a Kafka client."""
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """Its pid, while it lives."""
        pid = self.daemon.pid
        if pid is None:
            raise NotReady(f"{self._name} does not run:\n{self.daemon.log_tail()}")
        return pid

    @property
    def ready_seconds(self) -> float:
        """From the start of the process to its first answer."""
        return self.daemon.ready_seconds
