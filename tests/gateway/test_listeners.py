"""Several listeners of a protocol, as clients of a real server see them."""

import json
import socket
import subprocess
from pathlib import Path

from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import Client
from tests.gateway.server import RunningServer, command, environment

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataResponse
from rockgate.protocol.remoting.codes import RequestCode


def told(server: RunningServer, listener: str) -> tuple[str, str]:
    """The addresses that Metadata and FindCoordinator give a client of a listener."""
    with RawClient(server, listener) as client:
        found = client.call(ApiKey.METADATA, 1, MetadataRequest(topics=None), MetadataResponse)
        (broker,) = found.brokers
        request = FindCoordinatorRequest(key="g")
        node = client.call(ApiKey.FIND_COORDINATOR, 1, request, FindCoordinatorResponse)
    return f"{broker.host}:{broker.port}", f"{node.host}:{node.port}"


def test_a_client_is_told_the_address_of_the_listener_it_came_to(tmp_path: Path) -> None:
    settings = [
        "kafka.listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "kafka.listener_security=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "kafka.advertised_listeners=OUTSIDE://kafka.example:443",
    ]
    with RunningServer(tmp_path, settings=settings) as server:
        fields = [part.partition("=")[0] for part in server.ready_line.split()]
        assert fields == [
            "ready", "kafka", "remoting", "namesrv", "http", "kafka.INSIDE", "kafka.OUTSIDE",
        ]  # fmt: skip
        inside = "{}:{}".format(*server.address("kafka.INSIDE"))
        for _ in range(2):
            assert told(server, "kafka") == (server.bootstrap, server.bootstrap)
            assert told(server, "kafka.INSIDE") == (inside, inside)
            assert told(server, "kafka.OUTSIDE") == ("kafka.example:443", "kafka.example:443")
        server.stop_cleanly()


def test_a_name_server_s_listener_names_the_broker_s_listener_of_the_same_name(
    tmp_path: Path,
) -> None:
    settings = [
        "remoting.listeners=OUTSIDE://127.0.0.1:0",
        "remoting.advertised_listeners=OUTSIDE://mq.example:10911",
        "namesrv.listeners=OUTSIDE://127.0.0.1:0,OTHER://127.0.0.1:0",
    ]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        own = "{}:{}".format(*server.address("remoting"))
        for listener, address in (
            ("namesrv", own),
            ("namesrv.OUTSIDE", "mq.example:10911"),
            ("namesrv.OTHER", own),
        ):
            client = Client(server.address(listener))
            with client.socket:
                answer = client.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
            (broker,) = json.loads(bytes(answer.body))["brokerAddrTable"].values()
            assert broker["brokerAddrs"] == {"0": address}
        socket.create_connection(server.address("remoting.OUTSIDE")).close()
        server.stop_cleanly()


def test_listeners_that_contradict_each_other_are_wrong_usage(tmp_path: Path) -> None:
    pairs = ["--set", "kafka.listeners=PLAINTEXT://127.0.0.1:0", "--kafka", "127.0.0.1:0"]
    ended = subprocess.run(
        command("serve", "--data-dir", str(tmp_path), *pairs),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2
    assert "rockgate: Invalid listeners: listeners has PLAINTEXT" in ended.stderr
