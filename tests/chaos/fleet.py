"""Gateways as processes on fixed ports, which are killed, stopped and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from bench.peers.ports import free_ports
from tests.waiting import wait_until

HOST = "127.0.0.1"
STOP_SECONDS_MAX = 30


class GatewayProcess:
    """One gateway; after a start it has the same address."""

    def __init__(self, name_server: str, log: Path, port: int) -> None:
        self.address = f"{HOST}:{port}"
        self._name_server = name_server
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self.start_count = 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        command = [sys.executable, "-m", "rockgate.cli", "gateway", "--kafka", self.address]
        command += ["--http", f"{HOST}:0"]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--name-servers", self._name_server, "--log-level", "info"],
                stdout=log,
                stderr=log,
                env=dict(os.environ),
                text=True,
            )
        self.start_count += 1

    def await_ready(self) -> None:
        def is_ready() -> bool:
            assert self.is_running, self._log.read_text()[-2000:]
            return self._log.read_text().count("ready kafka=") >= self.start_count

        wait_until(is_ready, f"gateway {self.address} is ready")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_SECONDS_MAX)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(STOP_SECONDS_MAX) == 0

    def end(self) -> None:
        if self.is_running:
            self.signal(signal.SIGCONT)
            self.kill()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def metrics(self, *names: str) -> str:
        """The lines of `/metrics` that begin with these names."""
        address = self.log.rpartition(" http=")[2].split()[0]
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                lines = answer.read().decode().splitlines()
        except OSError as failed:
            return str(failed)
        return "\n".join(each for each in lines if each.startswith(names))


def fleet(name_server: str, directory: Path, count: int) -> list[GatewayProcess]:
    """Gateways that are ready."""
    gateways = [
        GatewayProcess(name_server, directory / f"gateway-{at}.log", port)
        for at, port in enumerate(free_ports(count))
    ]
    for each in gateways:
        each.start()
    for each in gateways:
        each.await_ready()
    return gateways
