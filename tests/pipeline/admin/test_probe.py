"""Before Spark starts: is the server there, is it Kafka's, and has it the topics?"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.gateway.server import RunningServer
from tests.spark import new_topic

from rockgate.pipeline.admin import probe
from rockgate.pipeline.errors import BadOption, NotReachable, UnknownTopic
from rockgate.pipeline.spark.kafka import Cluster


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """A server that sends the same bytes to every client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_server_that_is_there_is_no_error(cluster: Cluster) -> None:
    probe.check_server(cluster)


def test_topics_that_are_there_are_no_error(cluster: Cluster) -> None:
    probe.check_topics(cluster, [new_topic(cluster.bootstrap, 3), new_topic(cluster.bootstrap)])


def test_every_missing_topic_is_named_and_none_is_created(cluster: Cluster) -> None:
    there = new_topic(cluster.bootstrap)
    for _ in range(2):
        with pytest.raises(
            UnknownTopic, match=r"^Topic nope-1, nope-2 does not exist at .*rockgate topics"
        ):
            probe.check_topics(cluster, ["nope-2", there, "nope-1"])


def test_no_one_at_the_address_is_reported_with_the_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(NotReachable, match=rf"Cannot connect to {address}: .*--from correct\?"):
        probe.check_server(Cluster(bootstrap=address), "--from")


def test_the_second_of_two_addresses_will_do(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    probe.check_server(Cluster(bootstrap=f"{address},{cluster.bootstrap}"))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "its response would be 1,213,486,160 bytes"),
        (b"SSH-", "its response would be"),
        (b"", "it closed the connection"),
        (b"\0\0\0\x08\0\0\0\x02\0\0\0\0", "unexpected response"),
        (b"\0\0\0\x08\0\0\0\x01\0\0\0\0", "cannot decode its response"),
        (b"\0\0\0\x0c\0\0\0\x01\0\0\0\0\x7f\xff\xff\xff", "cannot decode its response"),
    ],
)
def test_what_is_not_a_kafka_port_is_told_so(data: bytes, reason: str) -> None:
    with answering(data) as address, pytest.raises(NotReachable) as told:
        probe.check_server(Cluster(bootstrap=address))
    assert f"{address} is not a Kafka port: {reason}" in str(told.value)


def test_the_port_of_http_is_not_a_kafka_port(server: RunningServer) -> None:
    host, port = server.address("http")
    with pytest.raises(NotReachable, match="is not a Kafka port"):
        probe.check_server(Cluster(bootstrap=f"{host}:{port}"))


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":9092", "a:b", "h:0", "h:99999"])
def test_an_address_that_is_none_is_reported_before_anyone_is_asked(text: str) -> None:
    with pytest.raises(BadOption, match=r"expected HOST:PORT"):
        probe.check_server(Cluster(bootstrap=text))


def test_of_a_server_with_a_login_only_the_port_is_tried(cluster: Cluster) -> None:
    secured = Cluster(bootstrap=cluster.bootstrap, options={"security.protocol": "SASL_SSL"})
    probe.check_topics(secured, ["whatever"])
