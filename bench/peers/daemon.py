"""One server process: started in its own session, awaited, and stopped by its pid.

A pid file lets another process stop it later. The pid is stored with the start tick of the process:
a pid that the system has reused since is never signalled. The output of the process is appended to
its log, which is retained.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers.errors import NotReady, NotRunning

POLL_SECONDS = 0.02
START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 60.0
LOG_LINES_MAX = 20


class Daemon:
    """A named process of a directory, started by this Python process or another one."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.log_path = directory / f"{name}.log"
        self.ready_seconds = 0.0
        """From the start of the process to its first response, in its last start from here."""
        self._pid_path = directory / f"{name}.pid"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its pid, while it is running."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        try:
            saved = json.loads(self._pid_path.read_text())
        except (FileNotFoundError, ValueError):
            return None
        pid: int = saved["pid"]
        return pid if start_tick(pid) == saved["start_tick"] else None

    def start(
        self,
        command: Sequence[str],
        *,
        is_ready: Callable[[], bool],
        environ: Mapping[str, str] | None = None,
        seconds_max: float = START_SECONDS_MAX,
    ) -> None:
        """Start it and wait for its first response; stop it again if there is none in time."""
        if self.pid is not None:
            raise NotRunning(f"{self.name} already runs with pid {self.pid}")
        self.directory.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with self.log_path.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                cwd=self.directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pid = self._child.pid
        self._pid_path.write_text(json.dumps({"pid": pid, "start_tick": start_tick(pid)}))
        try:
            self._wait_until_ready(is_ready, began + seconds_max)
        except BaseException:
            self.kill()
            raise
        self.ready_seconds = time.monotonic() - began

    def stop(self, seconds_max: float = STOP_SECONDS_MAX) -> None:
        """Terminate it and wait; it is killed if that takes too long."""
        if not self._end(signal.SIGTERM, seconds_max):
            self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if not self._end(signal.SIGKILL, STOP_SECONDS_MAX):
            raise NotRunning(f"{self.name} with pid {self.pid} cannot be killed")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Pause the process meanwhile, so that its background work does not affect others."""
        pid = self.pid
        if pid is None:
            raise NotRunning(f"{self.name} does not run:\n{self.log_tail()}")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def log_tail(self) -> str:
        """The last lines of its output."""
        if not self.log_path.exists():
            return ""
        lines = self.log_path.read_text("utf-8", "replace").splitlines()
        return "\n".join(lines[-LOG_LINES_MAX:])

    def _wait_until_ready(self, is_ready: Callable[[], bool], deadline: float) -> None:
        while True:
            status = None if self._child is None else self._child.poll()
            if status is not None:
                raise NotReady(f"{self.name} ended with status {status}:\n{self.log_tail()}")
            if is_ready():
                return
            if time.monotonic() > deadline:
                raise NotReady(f"{self.name} did not answer in time:\n{self.log_tail()}")
            time.sleep(POLL_SECONDS)

    def _end(self, number: signal.Signals, seconds_max: float) -> bool:
        pid = self.pid
        if pid is not None:
            os.kill(pid, number)
            deadline = time.monotonic() + seconds_max
            while self.pid is not None:
                if time.monotonic() > deadline:
                    return False
                time.sleep(POLL_SECONDS)
        if self._child is not None:
            # It has ended, but its parent may not have reaped it yet.
            self._child.wait(seconds_max)
        self._pid_path.unlink(missing_ok=True)
        return True


def start_tick(pid: int) -> int | None:
    """Return the start of a process in ticks since boot; None if it has ended or is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, and may contain anything.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])
