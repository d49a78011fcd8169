"""One server process: started in its own session, waited for, and stopped by its pid.

What was started is written to a pid file, so that another process can stop it later. The pid stands
there with the tick at which the process began: a pid that the system has given to somebody else
since then is never signalled. Everything the process prints is appended to its log, which stays.
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
LOG_LINES_TOLD = 20


class Daemon:
    """A named process of a directory, whether this Python process started it or another one."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.log_path = directory / f"{name}.log"
        self.ready_seconds = 0.0
        """From the start of the process to its first answer, the last time it was started here."""
        self._pid_path = directory / f"{name}.pid"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its pid, while it lives."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        try:
            kept = json.loads(self._pid_path.read_text())
        except (FileNotFoundError, ValueError):
            return None
        pid: int = kept["pid"]
        return pid if start_tick(pid) == kept["start_tick"] else None

    def start(
        self,
        command: Sequence[str],
        *,
        is_ready: Callable[[], bool],
        environ: Mapping[str, str] | None = None,
        seconds_max: float = START_SECONDS_MAX,
    ) -> None:
        """Start it and wait for its first answer; it is gone again when there is none in time."""
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
        """Ask it to end and wait; it is killed when that takes too long."""
        if not self._end(signal.SIGTERM, seconds_max):
            self.kill()

    def kill(self) -> None:
        """End it as kill -9 does."""
        if not self._end(signal.SIGKILL, STOP_SECONDS_MAX):
            raise NotRunning(f"{self.name} with pid {self.pid} cannot be killed")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stand still meanwhile: what it would do in the background is no load for another."""
        pid = self.pid
        if pid is None:
            raise NotRunning(f"{self.name} does not run:\n{self.log_tail()}")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def log_tail(self) -> str:
        """The last lines that it printed."""
        if not self.log_path.exists():
            return ""
        lines = self.log_path.read_text("utf-8", "replace").splitlines()
        return "\n".join(lines[-LOG_LINES_TOLD:])

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
            # It has ended, but its parent may not have been told yet.
            self._child.wait(seconds_max)
        self._pid_path.unlink(missing_ok=True)
        return True


def start_tick(pid: int) -> int | None:
    """When a process began, in ticks since boot; None if it is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets, and may hold anything.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])
