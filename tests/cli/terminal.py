"""Runs `rockgate` as a user does, against one server: in this process, or in a new one.

Commands that print tables and JSON run in this process, which is fast. `produce` and `consume`
write to file descriptors directly and are ended by signals, so they run in new processes.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.gateway.server import command, environment, heed_interrupts
from typer.testing import CliRunner

from rockgate.cli.commands import app

SECONDS_MAX = 60


class Terminal:
    """A user whose ROCKGATE_BOOTSTRAP_SERVER is `server`, and whose ROCKGATE_BROKER is `broker`."""

    def __init__(self, server: str, broker: str = "127.0.0.1:1") -> None:
        self.variables = {
            "ROCKGATE_BOOTSTRAP_SERVER": server,
            "ROCKGATE_BROKER": broker,
            "COLUMNS": "300",
        }
        self._runner = CliRunner(env=self.variables)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Return a command's output, and check its exit status."""
        result = self._runner.invoke(app, list(arguments))
        assert result.exit_code == status, (arguments, result.output, result.exception)
        return result.stdout if status == 0 else result.stderr

    def json(self, *arguments: str, status: int = 0) -> Any:
        """Return a command's output with --json."""
        result = self._runner.invoke(app, [*arguments, "--json"])
        assert result.exit_code == status, (arguments, result.output, result.exception)
        return json.loads(result.stdout)

    def rows(self, *arguments: str) -> list[list[str]]:
        """The lines of a table, as words, without the heading."""
        return [line.split() for line in self.run(*arguments).splitlines()][1:]

    @contextmanager
    def start(self, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in a new process, with pipes; it does not outlive the block."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(
            command(*arguments),
            env=environment(self.variables),
            preexec_fn=heed_interrupts,
            **{**pipes, **options},
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def pipe(self, *arguments: str, data: bytes = b"", status: int = 0) -> bytes:
        """Return a command's output, with `data` as its input."""
        with self.start(*arguments) as process:
            out, errors = process.communicate(data, timeout=SECONDS_MAX)
        assert process.returncode == status, (arguments, out[-500:], errors)
        return out if status == 0 else errors
