"""A standby as a process: it follows, is killed, and answers as a replica on both wires."""

from __future__ import annotations

import gc
import socket
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from tests.gateway.server import NotReady, RunningServer
from tests.waiting import wait_until

# kafka-python forgets the sockets of connections that were refused, and some are refused here.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(autouse=True)
def forgotten_sockets() -> Iterator[None]:
    """End them before another test runs, which would be blamed."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def free_address() -> str:
    """An address that is the same after a restart."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def send(server: RunningServer, *bodies: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=server.bootstrap, acks="all")
    for body in bodies:
        producer.send("orders", body, partition=0)
    producer.flush()
    producer.close()


def end_of(server: RunningServer) -> int:
    consumer = KafkaConsumer(bootstrap_servers=server.bootstrap)
    try:
        if "orders" not in consumer.topics():
            return 0
        partition = TopicPartition("orders", 0)
        found: dict[TopicPartition, int] = consumer.end_offsets([partition])
        return found[partition]
    finally:
        consumer.close()


def read(server: RunningServer, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=server.bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition("orders", 0)])
    found: list[bytes] = []

    def more() -> bool:
        for records in consumer.poll(500).values():
            found.extend(record.value for record in records)
        return len(found) >= count

    wait_until(more, f"{count} messages are read")
    consumer.close()
    return found


def metric(server: RunningServer, line: str) -> bool:
    host, port = server.address("http")
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/metrics") as page:
            return line in page.read().decode()
    except OSError:
        return False  # nothing listens while a standby copies


def test_a_standby_follows_through_the_death_of_either_side(tmp_path: Path) -> None:
    address = free_address()
    for name in ("primary", "standby"):
        (tmp_path / name).mkdir()
    primary = RunningServer(tmp_path / "primary", flags=["--replication", address], rocketmq=True)
    standby = RunningServer(tmp_path / "standby", flags=["--replica-of", address], rocketmq=True)
    with primary:
        send(primary, b"one")
        with standby:
            wait_until(lambda: end_of(standby) == 1, "the standby shows it")
            with pytest.raises(KafkaError):
                refused = KafkaProducer(bootstrap_servers=standby.bootstrap, retries=0)
                refused.send("orders", b"never").get(60)
            standby.kill()
            send(primary, b"two")
            standby.restart()
            wait_until(lambda: end_of(standby) == 2, "it caught up")
            primary.kill()
            assert read(standby, 2) == [b"one", b"two"], "it serves what is committed"
            primary.restart()
            send(primary, b"three")
            wait_until(lambda: end_of(standby) == 3, "it follows the next epoch")
            assert read(standby, 3) == [b"one", b"two", b"three"]
            assert metric(standby, 'rockgate_cluster_role{role="standby"} 1')
            assert metric(standby, "rockgate_cluster_following 1")
            assert metric(primary, 'rockgate_cluster_lag_bytes{node="2"} 0')
            standby.stop_cleanly()
        alone = RunningServer(tmp_path / "standby")
        with pytest.raises(NotReady, match="standby's"):
            alone.start()
        primary.stop_cleanly()


@pytest.mark.parametrize("flag", ["--replication", "--replica-of"])
def test_no_other_machine_is_spoken_to_without_a_secret(tmp_path: Path, flag: str) -> None:
    with pytest.raises(NotReady, match="secret_file"):
        RunningServer(tmp_path, flags=[flag, "192.0.2.1:10912"]).start()


def test_the_log_of_another_server_does_not_become_a_standbys(tmp_path: Path) -> None:
    with RunningServer(tmp_path) as server:
        server.stop_cleanly()
    with pytest.raises(NotReady, match="empty directory"):
        RunningServer(tmp_path, flags=["--replica-of", "127.0.0.1:1"]).start()


@pytest.mark.long  # it waits for retention twice over, and depends on what else the machine does
def test_a_standby_that_comes_late_copies_and_a_log_is_not_copied_twice(tmp_path: Path) -> None:
    address = free_address()
    settings = [
        "store.segment_bytes=1MiB",
        "store.retention_ms=1000",
        "store.retention_interval_ms=1000",
    ]
    for name in ("primary", "standby"):
        (tmp_path / name).mkdir()
    primary = RunningServer(
        tmp_path / "primary", flags=["--replication", address], settings=settings
    )
    standby = RunningServer(
        tmp_path / "standby", flags=["--replica-of", address], settings=settings
    )
    with primary:
        send(primary, *[bytes(100_000)] * 40)
        wait_until(
            lambda: not metric(primary, "rockgate_log_start_position 0\n"), "segments were removed"
        )
        with standby:
            wait_until(lambda: "log was copied" in standby.log, "it has a copy")
            wait_until(lambda: metric(standby, "rockgate_cluster_following 1"), "it follows")
            standby.kill()
            standby.restart()
            wait_until(lambda: metric(standby, "rockgate_cluster_following 1"), "it follows again")
            assert standby.log.count("log was copied") == 1
            send(primary, b"after")
            wait_until(lambda: end_of(standby) == 41, "it has what came later")
            standby.stop_cleanly()
        primary.stop_cleanly()
