"""A console process on a free port, and pages of it in a browser."""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from tests.cli.terminal import Terminal
from tests.gateway.server import command, environment

START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 60.0
_LINE = re.compile(r"rockgate console on (https?://\S+)")


class Shell:
    """Runs commands in processes of their own: a browser's driver has this one's event loop."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def run(self, *arguments: str) -> str:
        """The output of a command, which must succeed."""
        done = subprocess.run(
            command(*arguments),
            env=environment(self._terminal.variables),
            capture_output=True,
            text=True,
            timeout=START_SECONDS_MAX,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """The output of a command with --json."""
        return json.loads(self.run(*arguments, "--json"))

    def pipe(self, *arguments: str, data: bytes) -> None:
        """Run a command that reads standard input."""
        self._terminal.pipe(*arguments, data=data)


class Served(Protocol):
    """A server that a console can be started for."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of Kafka's listener."""

    def address(self, listener: str) -> tuple[str, int]:
        """Host and port of another listener."""


class RunningConsole:
    """One console for one server; it is stopped when the block ends, and must not have failed."""

    def __init__(
        self,
        folder: Path,
        server: Served,
        *flags: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._log = folder / "console.log"
        listeners = {"--broker": "remoting", "--metrics": "http"}
        places = [
            part
            for flag, listener in listeners.items()
            for part in (flag, "{}:{}".format(*server.address(listener)))
        ]
        self._command = [
            *(sys.executable, "-m", "rockgate.console", "--listen", "127.0.0.1:0"),
            *("-b", server.bootstrap, *places, *flags),
        ]
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        # The framework behaves otherwise in a process that believes to be a test.
        inherited = environment(self._variables)
        inherited.pop("PYTEST_CURRENT_TEST", None)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=inherited, stdout=subprocess.PIPE, stderr=log
            )
        match = _LINE.match(self._line())
        assert match is not None, self.log
        self.url = match[1]
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def log(self) -> str:
        """What it said on standard error."""
        return self._log.read_text("utf-8", "replace")

    def _line(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        until = time.monotonic() + START_SECONDS_MAX
        ready, _, _ = select.select([self._process.stdout], [], [], until - time.monotonic())
        assert ready, f"the console said nothing in {START_SECONDS_MAX:g} s: {self.log}"
        return self._process.stdout.readline().decode()
