"""A real server compacts, under load and after a kill, and clients of both wires read on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.gateway.server import RunningServer, command, environment
from tests.waiting import wait_until

SETTINGS = (
    "store.segment_bytes=1048576",
    "store.compaction_interval_ms=200",
    "store.retention_interval_ms=1000",
    "store.checkpoint_interval_ms=200",
    "store.upkeep_gap_ms=0",
    "store.snapshot_bytes=65536",
)
KEYS = 50


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path, settings=SETTINGS) as running:
        yield running


def create(server: RunningServer, name: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    new = NewTopic(name, 1, config={key.replace("_", "."): value for key, value in config.items()})
    for done in admin.create_topics([new]).values():
        done.result()


def write(server: RunningServer, name: str, count: int, size: int, **config: object) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5, **config})
    for number in range(count):
        value = f"{number}".ljust(size, ".")
        producer.produce(name, value, f"k{number % KEYS}", partition=0)
        producer.poll(0)
        if number % 500 == 499:
            producer.flush()
    producer.flush()


def read(server: RunningServer, name: str, offset: int = 0) -> list[tuple[int, str, str]]:
    """Everything from an offset on, as a client gets it."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "g",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(name, 0, offset)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            break
        found.append(
            (message.offset(), (message.key() or b"").decode(), message.value().decode()[:8])
        )
    consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_compacted_topic_shrinks_and_its_reader_gets_the_last_values(
    server: RunningServer, codec: str
) -> None:
    create(server, "table", cleanup_policy="compact", min_cleanable_dirty_ratio="0.1")
    create(server, "filler")
    count = 20_000
    write(server, "table", count, 300, **{"compression.type": codec, "enable.idempotence": True})
    # What is in the active segment stays as it is, so another topic fills it.
    write(server, "filler", 8_000, 300)
    log = server.data_dir / "commitlog"
    wait_until(lambda: len(read(server, "table")) == KEYS, "the topic is compacted", timeout_s=120)
    wanted = {f"k{number % KEYS}": number for number in range(count)}

    def compare() -> None:
        found = read(server, "table")
        assert [offset for offset, _, _ in found] == sorted(wanted.values())
        assert {key: int(value.rstrip(".")) for _, key, value in found} == wanted
        # A reader inside what went continues with what is left.
        assert read(server, "table", count // 2) == found

    compare()
    server.kill()
    server.start()
    compare()
    write(server, "table", count, 300, **{"compression.type": codec, "enable.idempotence": True})
    write(server, "filler", 8_000, 300)
    wanted = {key: number + count for key, number in wanted.items()}
    wait_until(lambda: len(read(server, "table")) == KEYS, "it is compacted again", timeout_s=120)
    found = read(server, "table")
    assert [offset for offset, _, _ in found] == sorted(wanted.values())
    wait_until(
        lambda: len([each for each in log.iterdir() if each.name.isdigit()]) < 16,
        "segments are freed",
        timeout_s=120,
    )
    server.stop_cleanly()
    check = subprocess.run(
        command("log", "check", "--data-dir", str(server.data_dir)),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout + check.stderr
