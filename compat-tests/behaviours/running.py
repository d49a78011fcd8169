"""A program that runs beside the test: its lines are collected as they come, or answer ours."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from behaviours.driver import SECONDS_MAX


class Running:
    """One process: `lines` is its standard output, `told` its standard error."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.lines: list[str] = []
        self.told: list[str] = []
        streams = (self._process.stdout, self.lines), (self._process.stderr, self.told)
        self._readers = [
            threading.Thread(target=self._collect, args=pair, daemon=True) for pair in streams
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, stream: Any, into: list[str]) -> None:
        for line in stream:
            into.append(line.rstrip("\n"))  # noqa: PERF401 - the test looks while they come

    def type(self, line: str) -> None:
        """Write a line to its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def wait(self) -> int:
        """Its exit status, once it has ended by itself."""
        return self._process.wait(2 * SECONDS_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._process.kill()
        self._process.wait()

    def leave(self) -> None:
        """End it with SIGINT, if it is still running: a member leaves its group."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


MARK = "@@ "
"""The prefix of the last line of a response."""


class Answering:
    """A process that responds to each line of input; the first response means that it is ready."""

    def __init__(
        self, command: Sequence[str], log: Path | None = None, folder: Path | None = None
    ) -> None:
        """`log` gets its standard error; without one, that is printed.

        `folder` is its working directory, for files that it writes by itself.
        """
        self._log = log
        with contextlib.nullcontext(subprocess.STDOUT) if log is None else log.open("w") as told:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                text=True,
            )
        self._answer()

    def ask(self, line: str) -> tuple[str, str]:
        """Return its output for a line, and the text of the last line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(SECONDS_MAX)

    def _answer(self) -> tuple[str, str]:
        assert self._process.stdout is not None
        printed = []
        for line in self._process.stdout:
            if line.startswith(MARK):
                return "".join(printed), line.removeprefix(MARK).strip()
            printed.append(line)
        text = "".join(printed) if self._log is None else self._log.read_text()
        raise AssertionError(f"the program ended:\n{text[-3000:]}")
