"""A real RocketMQ cluster of two masters, and gateways to it, each a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.peers.rocketmq import NAME, RocketMQMaster, RocketMQPeer
from tests.bench.peers.brought import brought

STOP_SECONDS_MAX = 20


@dataclass(frozen=True)
class TwoMasters:
    """A name server, and the masters `broker-a` and `broker-b`."""

    peer: RocketMQPeer
    second: RocketMQMaster

    @property
    def name_server(self) -> str:
        return "{}:{}".format(*self.peer.namesrv)


@contextmanager
def two_masters(line: str = NAME, **settings: str) -> Iterator[TwoMasters]:
    """Start a cluster, and stop it."""
    with (
        brought(line),
        RocketMQPeer(broker_heap="512m", line=line, settings=settings) as peer,
        RocketMQMaster(peer, "broker-b", line=line, settings=settings) as second,
    ):
        yield TwoMasters(peer, second)


@contextmanager
def slave_of_a(masters: TwoMasters) -> Iterator[RocketMQMaster]:
    """Start a slave of `broker-a` that lets itself be read."""
    settings = {
        "brokerName": "broker-a",
        "brokerId": "1",
        "brokerRole": "SLAVE",
        "slaveReadEnable": "true",
    }
    with RocketMQMaster(masters.peer, "broker-a-slave", settings=settings, heap="384m") as slave:
        yield slave


@contextmanager
def gateway(name_server: str) -> Iterator[str]:
    """Start a gateway; its address for Kafka clients."""
    command = ["-m", "rockgate.cli", "gateway", "--kafka", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, *command, "--name-servers", name_server, "--log-level", "warning"],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        try:
            assert line.startswith("ready kafka="), line
            yield line.removeprefix("ready kafka=")
            assert process.poll() is None, "the gateway has ended"
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(STOP_SECONDS_MAX)
        assert status == 0
