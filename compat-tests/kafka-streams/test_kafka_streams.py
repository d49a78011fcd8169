"""Kafka Streams 4.3, unmodified: a word count with a store, on every protocol and guarantee."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, java_program, leave_out
from behaviours.features import STREAMS
from behaviours.running import Running
from behaviours.steps import new_topic
from bench.peers import PeerError
from bench.peers.jars import pinned_version
from bench.peers.kafka import tool_command
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
CLIENT = f"kafka-streams {pinned_version(HERE / 'v4' / 'pom.xml')}"
SECONDS_MAX = 120
PARTITIONS = 4
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")

pytestmark = [pytest.mark.java, pytest.mark.long]


def feature(text: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(text, STREAMS)


class Application:
    """A word count and its topics; `start` begins one more instance."""

    def __init__(self, bootstrap: str, directory: Path, **configs: str) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.configs = configs
        self.name = new_topic("words")
        self.input, self.output = f"{self.name}-in", f"{self.name}-out"
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [NewTopic(each, PARTITIONS, 1) for each in (self.input, self.output)]
        for made in self.admin.create_topics(topics).values():
            made.result(30)
        self.expected: Counter[str] = Counter()
        self.instances = ExitStack()
        self._count = 0
        self._last: dict[str, int] = {}
        self._consumer: Consumer | None = None

    def start(self) -> Running:
        """One more instance, with a directory of its own."""
        self._count += 1
        pairs = {
            "bootstrap.servers": self.bootstrap,
            "application.id": self.name,
            "application.server": f"host-{self._count}:{8_000 + self._count}",
            "state.dir": str(self.directory / str(self._count)),
            "commit.interval.ms": "200",
            "main.consumer.auto.offset.reset": "earliest",
            "producer.transaction.timeout.ms": "10000",
            **self.configs,
        }
        try:
            command = java_program(HERE, "v4", "WordCount")
        except CannotRun as reason:
            leave_out(reason)
            raise
        arguments = [f"{name}={value}" for name, value in pairs.items()]
        running = Running([*command, self.input, self.output, *arguments])
        return self.instances.enter_context(running)

    def write(self, count: int) -> None:
        """Write a number of lines of words."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        for at in range(count):
            words = [WORDS[(at * step) % len(WORDS)] for step in (1, 3, 5)]
            self.expected.update(words)
            producer.produce(self.input, " ".join(words), key=str(at))
        assert producer.flush(60) == 0

    def counts(self) -> dict[str, int]:
        """The last count of each word so far, as committed."""
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": f"{self.name}-check",
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                }
            )
            self._consumer.subscribe([self.output])
        while (message := self._consumer.poll(0.5)) is not None:
            assert message.error() is None, message.error()
            self._last[message.key().decode()] = int(message.value())
        return self._last

    def is_right(self) -> bool:
        """Whether every word has been counted, and none twice."""
        return self.counts() == self.expected

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self.instances.close()


def answers(running: Running, line: str) -> str:
    """What an instance says to a line of input."""
    before = len(running.lines)
    running.type(line)
    said = f"{line} "
    wait_until(
        lambda: any(each.startswith(said) for each in running.lines[before:]),
        f"the instance answers {line}; it said {running.lines} {running.told}",
    )
    return next(each for each in running.lines[before:] if each.startswith(said))[len(said) :]


def tasks(*instances: Running) -> list[str]:
    """The active tasks of instances, sorted."""
    return sorted(task for each in instances for task in answers(each, "tasks").split())


def is_running(instance: Running) -> bool:
    states = [line for line in instance.lines if line.startswith("state ")]
    return bool(states) and states[-1] == "state RUNNING"


def are_shared(first: Running, second: Running) -> bool:
    """Whether both have tasks, and all of them together."""
    return tasks(second) != [] and tasks(first) != [] and tasks(first, second) == ALL_TASKS


ALL_TASKS = sorted(f"{subtopology}_{at}" for subtopology in (0, 1) for at in range(PARTITIONS))
MODES = [
    pytest.param(protocol, guarantee, id=f"{protocol}-{guarantee}")
    for protocol in ("streams", "classic")
    for guarantee in ("at_least_once", "exactly_once_v2")
]


@pytest.fixture
def application(
    server: RunningServer, tmp_path: Path, protocol: str, guarantee: str
) -> Iterator[Application]:
    configs = {"group.protocol": protocol, "processing.guarantee": guarantee}
    if protocol == "classic":
        configs["session.timeout.ms"] = "8000"
    found = Application(server.bootstrap, tmp_path, **configs)
    yield found
    found.close()


@feature("a word count with a store: two instances share the tasks, and one takes over")
@pytest.mark.parametrize(("protocol", "guarantee"), MODES)
def test_a_word_count_is_right_when_an_instance_goes(
    application: Application, protocol: str, guarantee: str
) -> None:
    application.write(400)
    first = application.start()
    wait_until(lambda: is_running(first), "the first instance runs")
    second = application.start()
    wait_until(lambda: are_shared(first, second), "both share all tasks")
    assert set(tasks(first)).isdisjoint(tasks(second))
    wait_until(application.is_right, "all words are counted")
    application.write(400)
    if guarantee == "exactly_once_v2":
        second.kill()
    else:
        # Killed, it would process again what it had not committed.
        second.type("close")
        assert second.wait() == 0
    application.write(400)
    wait_until(application.is_right, "all words are counted")
    wait_until(lambda: tasks(first) == ALL_TASKS, "one has all tasks")
    assert not [line for line in first.lines if line.startswith("error")]


@feature("internal topics are created with the partitions and configs that they need")
@pytest.mark.parametrize(("protocol", "guarantee"), MODES[:1])
def test_internal_topics(application: Application, protocol: str, guarantee: str) -> None:
    first = application.start()
    wait_until(lambda: tasks(first) == ALL_TASKS, "one has all tasks")
    names = [f"{application.name}-counts-{kind}" for kind in ("changelog", "repartition")]
    there = application.admin.list_topics(timeout=30).topics
    assert [len(there[name].partitions) for name in names] == [PARTITIONS, PARTITIONS]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    policies = [
        future.result(30)["cleanup.policy"].value
        for future in application.admin.describe_configs(resources).values()
    ]
    assert policies == ["compact", "delete"]


@feature("end points: every instance knows where the state of each partition is")
@pytest.mark.parametrize(("protocol", "guarantee"), MODES[:1])
def test_end_points(application: Application, protocol: str, guarantee: str) -> None:
    first = application.start()
    second = application.start()
    wait_until(lambda: are_shared(first, second), "both share all tasks")

    def known(instance: Running) -> dict[str, int]:
        pairs = (pair.split("=") for pair in answers(instance, "hosts").split())
        return {host: int(count) for host, count in pairs}

    def is_known() -> bool:
        seen = known(first)
        return seen == known(second) and set(seen) == {"host-1:8001", "host-2:8002"}

    wait_until(is_known, "both know both end points")


@feature("kafka-streams-groups: list and describe, with state, members and offsets")
@pytest.mark.parametrize(("protocol", "guarantee"), MODES[:1])
def test_kafka_streams_groups(application: Application, protocol: str, guarantee: str) -> None:
    application.write(50)
    first = application.start()
    wait_until(lambda: tasks(first) == ALL_TASKS, "one has all tasks")
    wait_until(application.is_right, "all words are counted")
    name = application.name
    assert name in streams_groups(application, "--list").splitlines()
    listed = streams_groups(application, "--list", "--state").splitlines()
    assert any(line.split() == [name, "Stable"] for line in listed)
    described = streams_groups(application, "--describe", "--group", name)
    assert f"{name}-in" in described and f"{name}-counts-repartition" in described
    state = streams_groups(application, "--describe", "--group", name, "--state")
    assert "Stable" in state and " 1" in state
    members = streams_groups(application, "--describe", "--group", name, "--members")
    assert "ACTIVE:" in members and "0:[0,1,2,3]" in members.replace(" ", "")
    first.type("close")
    assert first.wait() == 0
    wait_until(lambda: is_empty(application), "the group is empty")
    streams_groups(application, "--delete", "--group", name, "--delete-all-internal-topics")
    assert name not in streams_groups(application, "--list").splitlines()


def is_empty(application: Application) -> bool:
    lines = streams_groups(application, "--list", "--state").splitlines()
    return any(line.split() == [application.name, "Empty"] for line in lines)


def streams_groups(application: Application, *arguments: str) -> str:
    """What kafka-streams-groups.sh prints."""
    tool = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    try:
        command = tool_command([tool, "--bootstrap-server", application.bootstrap, *arguments])
    except PeerError as error:
        leave_out(CannotRun(str(error)))
        raise
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS_MAX, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
