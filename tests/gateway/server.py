"""A real server process for tests, on free ports and with its own data directory.

    with RunningServer(tmp_path) as server:
        socket.create_connection(server.address("kafka"))

It waits for the ready line and never for a time. Standard error goes to a file beside the data
directory; a failed start raises with its contents.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("protocol", "store", "gateway", "sdk", "pipeline", "cli", "console")
LISTENERS = ("kafka", "remoting", "namesrv", "http")
START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 90.0
SEGMENT_BYTES = 16 << 20


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment with the rooms importable and without settings of the server."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ROCKGATE_")}
    kept["PYTHONPATH"] = os.pathsep.join(str(ROOT / room) for room in ROOMS)
    return {**kept, **(extra or {})}


def command(*arguments: str) -> list[str]:
    """The command line that runs `rockgate` with this interpreter; its warnings are errors."""
    return [sys.executable, "-W", "error", "-m", "rockgate.cli", *arguments]


def heed_interrupts() -> None:
    """Handle SIGINT as in a terminal: a shell's background processes, and tests, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class NotReady(AssertionError):
    """The server ended, or printed nothing, before its ready line."""


class RunningServer:
    """One server and its data directory. `restart` reuses the directory and the ports."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Sequence[str] = (),
        flags: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        log_level: str = "info",
        rocketmq: bool = False,
    ) -> None:
        """`rocketmq` opens both RocketMQ listeners, which create that side's system topics."""
        self.directory = directory
        self.data_dir = directory / "data"
        self.ready_line = ""
        self.ready_seconds = 0.0
        # Segments of the default size would fill the disk with a few hundred test directories.
        settings = [f"store.segment_bytes={SEGMENT_BYTES}", *settings]
        self._settings = [part for pair in settings for part in ("--set", pair)]
        self._flags = [*flags, "--log-level", log_level]
        self._variables = variables
        closed = () if rocketmq else ("remoting", "namesrv")
        self._bound = {
            listener: "off" if listener in closed else "127.0.0.1:0" for listener in LISTENERS
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._held: list[socket.socket] = []
        self._log_path = directory / "server.log"

    # Lifecycle

    def start(self) -> Self:
        """Start it and wait for its ready line."""
        listeners = [
            part
            for listener, address in self._bound.items()
            for part in (f"--{listener}", address)
            if f"--{listener}" not in self._flags
        ]
        started = time.monotonic()
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command(
                    "serve",
                    *("--data-dir", str(self.data_dir)),
                    *listeners,
                    *self._flags,
                    *self._settings,
                ),
                cwd=self.directory,
                env=environment(self._variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.ready_line = self._wait_for_line(started + START_SECONDS_MAX)
        self.ready_seconds = time.monotonic() - started
        self._let_go()
        for pair in self.ready_line.split()[1:]:
            listener, _, address = pair.partition("=")
            if address != "off":
                self._bound[listener] = address
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it with a signal and return its exit status."""
        self.signal(number)
        status = self.wait()
        self._hold()
        return status

    def stop_cleanly(self) -> None:
        """Stop it as an operator does: it must end cleanly, without a traceback in its log."""
        assert self.stop() == 0
        assert "Traceback" not in self.log

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.signal(signal.SIGKILL)
        self.wait()
        self._hold()

    def restart(self) -> Self:
        """Start it again on the same directory and ports, after `stop` or `kill`."""
        assert self._process is None, "it still runs"
        return self.start()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Return its exit status; it is killed if that takes too long."""
        process = self.process
        try:
            status = process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not stop:\n{self.log}") from None
        finally:
            self._close()
        return status

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()
        self._let_go()

    # Inspection

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process, while it is running."""
        assert self._process is not None, "it does not run"
        return self._process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for a Kafka client."""
        return self._bound["kafka"]

    def address(self, listener: str) -> tuple[str, int]:
        """Host and port of a listener."""
        host, _, port = self._bound[listener].rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def log(self) -> str:
        """Its whole log, over all its starts."""
        return self._log_path.read_text("utf-8", "replace") if self._log_path.exists() else ""

    @property
    def descriptor_count(self) -> int:
        """The number of its open file descriptors."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def resident_bytes(self) -> int:
        """Its anonymous memory."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
        return int(line.split()[1]) * 1024

    # Private

    def _hold(self) -> None:
        """Reserve its ports until it is running again."""
        for address in self._bound.values():
            host, _, port = address.rpartition(":")
            if host == "127.0.0.1" and port != "0":
                held = socket.socket()
                self._held.append(held)
                # The server can bind as well, because it listens and this socket does not.
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind((host, int(port)))

    def _let_go(self) -> None:
        while self._held:
            self._held.pop().close()

    def _wait_for_line(self, deadline: float) -> str:
        process = self.process
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            ready, _, _ = select.select([process.stdout], [], [], max(left, 0))
            byte = os.read(process.stdout.fileno(), 1) if ready else b""
            if not byte:
                self.signal(signal.SIGKILL)
                status = self.wait()
                raise NotReady(f"no ready line (status {status}):\n{self.log}")
            line += byte
        return line.decode("ascii").strip()

    def _close(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
