"""Apache RocketMQ's proxy for a peer broker: the endpoint of gRPC clients.

It runs in cluster mode, a process of its own, and reaches the broker through the name server as any
client does. It has no setting for the address that it binds: unlike the other peers it listens on
every interface while it runs.
"""

import json
import os
import socket
from types import TracebackType
from typing import Self

from bench.peers import jars
from bench.peers.daemon import START_SECONDS_MAX, Daemon
from bench.peers.ports import HOST, free_ports
from bench.peers.rocketmq import FLAGS, LOGBACK, RocketMQPeer
from bench.peers.tools import find_java

NAME = "rocketmq-proxy"
PROXY_CLASS = "org.apache.rocketmq.proxy.ProxyStartup"
HEAP = "512m"
CONNECT_S = 1.0


class RocketMQProxy:
    """The proxy of one peer, which has to run; its files are in the peer's directory."""

    def __init__(self, peer: RocketMQPeer) -> None:
        self._peer = peer
        self._daemon = Daemon("proxy", peer.directory)
        self._port = 0

    @property
    def address(self) -> str:
        """HOST:PORT for a client that speaks gRPC."""
        return f"{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._port, remoting_port = free_ports(2)
        directory = self._peer.directory / "proxy"
        (directory / "conf").mkdir(parents=True, exist_ok=True)
        settings = {
            "proxyMode": "CLUSTER",
            "rocketMQClusterName": "DefaultCluster",
            "proxyClusterName": "DefaultCluster",
            "namesrvAddr": "{}:{}".format(*self._peer.namesrv),
            "localServeAddr": HOST,
            "grpcServerPort": self._port,
            "remotingListenPort": remoting_port,
            # Its address is what the client was given, not what the machine is called.
            "useEndpointPortFromRequest": True,
        }
        (directory / "conf" / "rmq-proxy.json").write_text(json.dumps(settings))
        (directory / "rmq.proxy.logback.xml").write_text(LOGBACK)
        command = [
            *(str(find_java()), *FLAGS, f"-Xms{HEAP}", f"-Xmx{HEAP}", f"-Duser.home={directory}"),
            *("-cp", f"{directory}:{jars.fetch(NAME) / '*'}", PROXY_CLASS),
            *("-pc", str(directory / "conf" / "rmq-proxy.json")),
        ]
        self._daemon.start(
            command,
            is_ready=self._listens,
            environ={**os.environ, "RMQ_PROXY_HOME": str(directory)},
            seconds_max=START_SECONDS_MAX,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._daemon.stop()

    def _listens(self) -> bool:
        try:
            socket.create_connection((HOST, self._port), CONNECT_S).close()
        except OSError:
            return False
        return True
