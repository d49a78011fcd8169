"""rockgate run like a peer: a process with a directory, ready when it responds."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

from bench.peers.answers import answers_api_versions
from bench.peers.daemon import START_SECONDS_MAX
from bench.peers.errors import NotReady
from bench.peers.peer import KafkaBroker
from bench.peers.ports import HOST, free_ports

NAME = "rockgate"
ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("protocol", "store", "gateway", "sdk", "pipeline", "cli", ".")
# With it every start would compile all modules again, unlike an installed server.
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def _program(root: Path) -> str:
    """The module of the `rockgate` command; in older commits it was part of the gateway."""
    return "rockgate.cli" if (root / "cli").is_dir() else "rockgate.gateway"


class RockgateServer(KafkaBroker):
    """A rockgate server and its directory, which is retained by a stop."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        settings: Sequence[str] = (),
        profile: Path | None = None,
        rocketmq: bool = False,
        http: bool = False,
        root: Path = ROOT,
        under: Sequence[str] = (),
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`root` is the checkout of the server: this one, or another commit's.

        `under` is a command that runs the server, such as a profiler's; `environ` is added to its
        environment.
        """
        port, self._remoting_port, self._namesrv_port, self._http_port = free_ports(4)
        super().__init__(NAME, directory, port=port)
        self._has_rocketmq = rocketmq
        self._has_http = http
        self._settings = [part for pair in settings for part in ("--set", pair)]
        self._profile = profile
        self._root = root
        self._under = under
        self._environ = environ

    # Lifecycle

    def start(self, seconds_max: float = START_SECONDS_MAX) -> Self:
        """Start it and wait until it responds."""
        program = [_program(self._root)]
        if self._profile is not None:
            program = ["bench.measure.profiled", str(self._profile)]
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("ROCKGATE_") and key != NO_BYTECODE
        }
        self.daemon.start(
            [
                *(*self._under, sys.executable, "-m", *program, "serve"),
                *("--data-dir", str(self.directory / "data"), "--kafka", self.bootstrap),
                *("--http", f"{HOST}:{self._http_port}" if self._has_http else "off"),
                *self._rocketmq_listeners(),
                *self._settings,
            ],
            is_ready=lambda: answers_api_versions(self.address),
            environ={
                **inherited,
                **self._environ,
                "PYTHONPATH": os.pathsep.join(str(self._root / room) for room in ROOMS),
            },
            seconds_max=seconds_max,
        )
        return self

    # Inspection

    @property
    def namesrv(self) -> str:
        """HOST:PORT for a RocketMQ client."""
        return f"{HOST}:{self._namesrv_port}"

    @property
    def listeners(self) -> dict[str, tuple[str, int]]:
        """Host and port of each listener by name, open or not."""
        return {
            "kafka": self.address,
            "remoting": (HOST, self._remoting_port),
            "namesrv": (HOST, self._namesrv_port),
            "http": (HOST, self._http_port),
        }

    def _rocketmq_listeners(self) -> tuple[str, ...]:
        if not self._has_rocketmq:
            return "--remoting", "off", "--namesrv", "off"
        return "--remoting", f"{HOST}:{self._remoting_port}", "--namesrv", self.namesrv

    def fsync_count(self) -> int:
        """The number of fsyncs of its log in the last run, which it logs when it stops."""
        found = re.findall(r" fsyncs=(\d+)", self.daemon.log_path.read_text("utf-8", "replace"))
        if not found:
            raise NotReady(f"{NAME} did not say how often it fsynced:\n{self.daemon.log_tail()}")
        return int(found[-1])
