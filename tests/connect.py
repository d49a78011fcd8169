"""A Spark Connect server in its own process, and jobs run on it as a user runs them.

Its Python has Spark's packages and none of rockgate's: a job brings what it needs. One server
serves a whole module; a start takes eight seconds.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.gateway.server import environment
from tests.spark import SETTINGS
from tests.waiting import wait_until

from rockgate.pipeline.spark import connector

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS_MAX = 120
JOB_SECONDS_MAX = 240
_STARTED = re.compile(r"Spark Connect server started at: (127\.0\.0\.1:\d+)")


class ConnectServer:
    """One server; `address` is the argument of `--master`."""

    def __init__(self, directory: Path, *, has_connector: bool = True) -> None:
        self._log_path = directory / "connect.log"
        settings = {
            **SETTINGS,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            **(connector.configuration("4.0.0") if has_connector else {}),
        }
        submit = Path(sys.executable).with_name("spark-submit")
        flags = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
        self._command = [
            *(str(submit), "--master", "local[2]", *flags),
            *("--class", SERVER_CLASS, "spark-internal"),
        ]
        self._environ = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "SPARK_LOCAL_IP": "127.0.0.1",
            # As a plain folder of modules, the environment lacks packages installed as editable.
            "PYSPARK_PYTHON": str(Path(sys.executable).resolve()),
            "PYTHONPATH": sysconfig.get_path("purelib"),
        }
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    @property
    def log(self) -> str:
        """Its whole output."""
        return self._log_path.read_text(errors="replace")

    def __enter__(self) -> Self:
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(self._has_started, "the Connect server has started", START_SECONDS_MAX)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill it: no test examines it later."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _has_started(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log
        started = _STARTED.search(self.log)
        if started:
            self.address = f"sc://{started[1]}"
        return bool(started)


def command(*words: str) -> list[str]:
    """`rockgate pipeline` with this interpreter."""
    return [sys.executable, "-m", "rockgate.pipeline", *words]


def run_job(
    folder: Path, *words: str, status: int = 0, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a job to its end, and check its exit status."""
    done = subprocess.run(
        command(*words),
        cwd=folder,
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS_MAX,
    )
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


class RunningJob:
    """A job that a test stops; its output goes to a file."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._path = folder / "job.log"
        with self._path.open("wb") as log:
            self._process = subprocess.Popen(
                command(*words), cwd=folder, env=environment(), stdout=log, stderr=log
            )

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until its output contains a text this many times."""

        def is_said() -> bool:
            assert self._process.poll() is None, self.told
            return self.told.count(text) >= count

        wait_until(is_said, f"the job says {text!r} {count} times", JOB_SECONDS_MAX)

    @property
    def told(self) -> str:
        """Its output so far."""
        return self._path.read_text()

    def stop(self, number: signal.Signals) -> int:
        """Send it a signal; return its exit status."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return its exit status; it is killed if that takes too long."""
        try:
            return self._process.wait(JOB_SECONDS_MAX)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
