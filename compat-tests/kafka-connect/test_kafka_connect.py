"""Kafka Connect 4.3, unmodified: distributed workers with the connectors for files."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from behaviours.bringing import JAVA_FLAGS, CannotRun, java_classes, leave_out
from behaviours.features import CONNECT
from behaviours.steps import new_topic
from bench.peers.daemon import Daemon
from bench.peers.jars import pinned_version
from bench.peers.kafka import LOG4J, properties
from bench.peers.ports import HOST, free_ports
from bench.peers.tools import find_java
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"kafka-connect {pinned_version(HERE / 'v4' / 'pom.xml')}"
START_SECONDS_MAX = 240.0
OFFSET_PARTITIONS, STATUS_PARTITIONS = 7, 3

pytestmark = [pytest.mark.java, pytest.mark.long]


def feature(text: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(text, CONNECT)


class Worker:
    """One worker process, and its REST interface."""

    def __init__(self, name: str, directory: Path, pairs: Mapping[str, str]) -> None:
        self._daemon = Daemon(name, directory / name)
        self._port = free_ports(1)[0]
        self.id = f"{HOST}:{self._port}"
        self._pairs = {**pairs, "listeners": f"http://{self.id}"}

    def start(self) -> None:
        folder = self._daemon.directory
        folder.mkdir(parents=True, exist_ok=True)
        settings, log4j = folder / "worker.properties", folder / "log4j2.properties"
        settings.write_text(properties(self._pairs))
        log4j.write_text(LOG4J.format(level="INFO"))
        try:
            jars = java_classes(HERE, "v4")
        except CannotRun as reason:
            leave_out(reason)
            raise
        self._daemon.start(
            [
                *(str(find_java()), *JAVA_FLAGS, f"-Dlog4j2.configurationFile={log4j}"),
                *("-cp", f"{jars}/*", "org.apache.kafka.connect.cli.ConnectDistributed"),
                str(settings),
            ],
            # Not only the port: requests are refused until it has joined and read its topics.
            is_ready=lambda: self.asked("GET", "/connectors") is not None,
            seconds_max=START_SECONDS_MAX,
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What it answers; it must not be an error."""
        request = urllib.request.Request(
            f"http://{self.id}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        """What it answers, or nothing while it cannot."""
        try:
            return self.ask(method, path, body)
        except (OSError, urllib.error.HTTPError):
            return None

    def stop(self) -> None:
        self._daemon.stop()

    def kill(self) -> None:
        self._daemon.kill()

    def log(self) -> str:
        return self._daemon.log_tail()


class Connect:
    """A cluster of workers: topics, group and directory of its own."""

    def __init__(self, bootstrap: str, directory: Path, exactly_once: bool) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.name = new_topic("connect")
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.workers: list[Worker] = []
        self.pairs = {
            "bootstrap.servers": bootstrap,
            "group.id": self.name,
            "config.storage.topic": f"{self.name}-configs",
            "offset.storage.topic": f"{self.name}-offsets",
            "status.storage.topic": f"{self.name}-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": str(OFFSET_PARTITIONS),
            "status.storage.partitions": str(STATUS_PARTITIONS),
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms": "1000",
            # Of a worker that left, the tasks would stay unassigned for five minutes.
            "scheduled.rebalance.max.delay.ms": "2000",
            "exactly.once.source.support": "enabled" if exactly_once else "disabled",
        }

    def worker(self) -> Worker:
        """One more worker, started."""
        number = len(self.workers) + 1
        self.workers.append(Worker(f"worker-{number}", self.directory, self.pairs))
        self.workers[-1].start()
        return self.workers[-1]

    def topic(self) -> str:
        """A topic whose lines are in order: it has one partition."""
        name = f"{self.name}-lines"
        self.admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        return name

    def end(self) -> None:
        for each in self.workers:
            each.stop()

    def source(self, worker: Worker, name: str, file: Path, topic: str, **more: str) -> None:
        """A connector that writes the lines of a file to a topic."""
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(file),
            "topic": topic,
            **more,
        }
        worker.ask("PUT", f"/connectors/{name}/config", config)

    def sink(self, worker: Worker, name: str, file: Path, topic: str) -> None:
        """A connector that writes a topic to a file."""
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "file": str(file),
            "topics": topic,
        }
        worker.ask("PUT", f"/connectors/{name}/config", config)

    def is_running(self, worker: Worker, *names: str) -> bool:
        """Whether connectors and their tasks run."""
        found = [worker.asked("GET", f"/connectors/{name}/status") for name in names]
        return all(
            each is not None
            and each["connector"]["state"] == "RUNNING"
            and [task["state"] for task in each["tasks"]] == ["RUNNING"]
            for each in found
        )

    def places(self, worker: Worker, *names: str) -> set[str]:
        """The workers that run the tasks of connectors."""
        found = [worker.asked("GET", f"/connectors/{name}/status") for name in names]
        return {task["worker_id"] for each in found if each for task in each["tasks"]}


@pytest.fixture(scope="module")
def exactly_once() -> bool:
    return False


@pytest.fixture
def connect(server: RunningServer, tmp_path: Path, exactly_once: bool) -> Iterator[Connect]:
    found = Connect(server.bootstrap, tmp_path, exactly_once)
    yield found
    found.end()


def lines(first: int, count: int) -> str:
    return "".join(f"line {at:06}\n" for at in range(first, first + count))


def append(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


@feature("internal topics: compacted, with the partitions that were asked for")
def test_internal_topics(connect: Connect) -> None:
    connect.worker()
    kinds = {"configs": 1, "offsets": OFFSET_PARTITIONS, "status": STATUS_PARTITIONS}
    there = connect.admin.list_topics(timeout=30).topics
    for kind, count in kinds.items():
        assert len(there[f"{connect.name}-{kind}"].partitions) == count
    resources = [ConfigResource(ResourceType.TOPIC, f"{connect.name}-{kind}") for kind in kinds]
    policies = [
        future.result(30)["cleanup.policy"].value
        for future in connect.admin.describe_configs(resources).values()
    ]
    assert policies == ["compact"] * 3


@feature("a file source and a file sink: every line once, in order; on after a restart")
def test_lines_pass_through_a_topic(connect: Connect, tmp_path: Path) -> None:
    worker = connect.worker()
    written, read, topic = tmp_path / "written", tmp_path / "read", connect.topic()
    written.write_text(lines(0, 1_000))
    connect.source(worker, "in", written, topic)
    connect.sink(worker, "out", read, topic)
    wait_until(lambda: connect.is_running(worker, "in", "out"), "both connectors run")
    wait_until(lambda: read.exists() and read.read_text() == lines(0, 1_000), "the lines are read")
    worker.stop()
    append(written, lines(1_000, 500))
    worker.start()
    wait_until(lambda: connect.is_running(worker, "in", "out"), "both connectors run again")
    assert sorted(worker.ask("GET", "/connectors")) == ["in", "out"]
    wait_until(lambda: len(read.read_text()) >= len(lines(0, 1_500)), "the other lines are read")
    assert read.read_text() == lines(0, 1_500)


@feature("offsets of connectors: listed, altered while stopped, and obeyed")
def test_offsets_of_connectors(connect: Connect, tmp_path: Path) -> None:
    worker = connect.worker()
    written, read, topic = tmp_path / "written", tmp_path / "read", connect.topic()
    written.write_text(lines(0, 100))
    connect.source(worker, "in", written, topic)
    connect.sink(worker, "out", read, topic)
    wait_until(lambda: read.exists() and read.read_text() == lines(0, 100), "the lines are read")
    end = {"partition": {"filename": str(written)}, "offset": {"position": len(lines(0, 100))}}
    wait_until(
        lambda: worker.ask("GET", "/connectors/in/offsets") == {"offsets": [end]}, "the offset"
    )
    for name in ("in", "out"):
        worker.ask("PUT", f"/connectors/{name}/stop")
    wait_until(
        lambda: all(
            worker.ask("GET", f"/connectors/{name}/status")["connector"]["state"] == "STOPPED"
            for name in ("in", "out")
        ),
        "both are stopped",
    )
    # The group of a sink is emptied by its members, which may take a moment longer.
    wait_until(
        lambda: worker.asked("DELETE", "/connectors/out/offsets") is not None, "no offsets of out"
    )
    worker.ask("PATCH", "/connectors/in/offsets", {"offsets": [{**end, "offset": {"position": 0}}]})
    for name in ("in", "out"):
        worker.ask("PUT", f"/connectors/{name}/resume")
    twice = lines(0, 100) + lines(0, 100) + lines(0, 100)
    wait_until(
        lambda: len(read.read_text()) >= len(twice), "all is read again, and what came again"
    )
    assert read.read_text() == twice


@feature("two workers share the tasks; one is killed, and the other goes on with its tasks")
def test_a_worker_takes_over(connect: Connect, tmp_path: Path) -> None:
    first, second = connect.worker(), connect.worker()
    names = [f"in-{at}" for at in range(4)]
    files = {name: tmp_path / name for name in names}
    topic = connect.topic()
    for name, file in files.items():
        file.write_text(f"{name} before\n")
        connect.source(first, name, file, topic)
    wait_until(lambda: connect.is_running(first, *names), "all connectors run")
    wait_until(lambda: connect.places(first, *names) == {first.id, second.id}, "both have tasks")
    read = Read(connect.bootstrap, topic, "read_uncommitted")
    wait_until(lambda: len(read.all()) == 4, "a line of each")
    second.kill()
    wait_until(
        lambda: connect.is_running(first, *names) and connect.places(first, *names) == {first.id},
        "the first has all tasks",
    )
    for name, file in files.items():
        append(file, f"{name} after\n")
    wait_until(lambda: {f"{name} after" for name in names} <= set(read.all()), "the other lines")
    read.close()


class Read:
    """The values of a topic so far."""

    def __init__(self, bootstrap: str, topic: str, isolation: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": new_topic("check"),
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "allow.auto.create.topics": False,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )
        self._consumer.subscribe([topic])
        self._values: list[str] = []

    def all(self) -> list[str]:
        while (message := self._consumer.poll(0.5)) is not None:
            if message.error() is None:
                self._values.append(message.value().decode())
        return self._values

    def close(self) -> None:
        self._consumer.close()


@feature("an exactly-once source: killed in the middle, every line is there once")
@pytest.mark.parametrize("exactly_once", [True], scope="module")
def test_an_exactly_once_source(connect: Connect, tmp_path: Path, exactly_once: bool) -> None:
    assert exactly_once
    worker = connect.worker()
    written, topic = tmp_path / "written", connect.topic()
    count = 30_000
    written.write_text(lines(0, count))
    more = {"exactly.once.support": "required", "transaction.boundary": "poll", "batch.size": "50"}
    connect.source(worker, "in", written, topic, **more)
    read = Read(connect.bootstrap, topic, "read_committed")
    wait_until(lambda: len(read.all()) > 0, "the first lines")
    worker.kill()
    worker.start()
    wait_until(lambda: len(read.all()) >= count, "all lines")
    assert read.all() == lines(0, count).splitlines()
    read.close()
