"""Apache Kafka's console tools, unmodified, against the server: as an operator types them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from behaviours.bringing import CannotRun, leave_out
from behaviours.driver import SECONDS_MAX
from behaviours.features import TOOLS
from behaviours.running import Running
from behaviours.steps import new_topic
from bench.peers import PeerError
from bench.peers.jars import version
from bench.peers.kafka import tool_command
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

CLIENT = f"kafka-tools {version('kafka')}"
# The names of Kafka's scripts, and the classes that they start.
CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

pytestmark = [pytest.mark.java, pytest.mark.long]


def feature(text: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(text, TOOLS)


class Tools:
    """The tools against one server."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _command(self, script: str, *arguments: str) -> list[str]:
        try:
            return tool_command([CLASSES[script], *arguments])
        except PeerError as error:
            leave_out(CannotRun(str(error)))
            raise

    def run(self, script: str, *arguments: str, typed: str = "", status: int = 0) -> str:
        """What a tool prints; one that is to fail, on either stream."""
        server = ("--bootstrap-server", self.bootstrap)
        return self.run_bare(script, *server, *arguments, typed=typed, status=status)

    def run_bare(self, script: str, *arguments: str, typed: str = "", status: int = 0) -> str:
        """The same for a tool that has another option for the server's address."""
        done = subprocess.run(
            self._command(script, *arguments),
            input=typed,
            capture_output=True,
            text=True,
            timeout=4 * SECONDS_MAX,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr if status else done.stdout

    def started(self, script: str, *arguments: str) -> Running:
        """A tool that runs beside the test."""
        return Running(self._command(script, "--bootstrap-server", self.bootstrap, *arguments))

    def topics(self, *arguments: str, status: int = 0) -> str:
        return self.run("kafka-topics", *arguments, status=status)

    def groups(self, *arguments: str) -> str:
        return self.run("kafka-consumer-groups", *arguments)

    def produce(self, topic: str, lines: Sequence[str], *arguments: str) -> None:
        typed = "".join(f"{line}\n" for line in lines)
        self.run("kafka-console-producer", "--topic", topic, *arguments, typed=typed)

    def consume(self, topic: str, count: int, *arguments: str) -> list[str]:
        limits = ("--max-messages", str(count), "--timeout-ms", "20000")
        said = self.run("kafka-console-consumer", "--topic", topic, *limits, *arguments)
        return [line for line in said.splitlines() if not line.startswith("Processed a total")]


@pytest.fixture
def tools(server: RunningServer) -> Tools:
    return Tools(server.bootstrap)


@feature("kafka-topics: create, list, describe, alter, delete; what exists is refused")
def test_topics(tools: Tools) -> None:
    topic = new_topic("tools")
    made = tools.topics("--create", "--topic", topic, "--partitions", "3")
    assert f"Created topic {topic}." in made
    refused = tools.topics("--create", "--topic", topic, "--partitions", "3", status=1)
    assert "TopicExistsException" in refused
    tools.topics("--create", "--topic", topic, "--partitions", "3", "--if-not-exists")
    tools.topics("--alter", "--topic", topic, "--partitions", "5")
    described = tools.topics("--describe", "--topic", topic)
    assert "PartitionCount: 5" in described and "ReplicationFactor: 1" in described
    assert len(re.findall(r"Leader: (\d+)\s+Replicas: \1\s+Isr: \1", described)) == 5
    assert tools.topics("--describe", "--under-replicated-partitions").strip() == ""
    assert tools.topics("--describe", "--unavailable-partitions").strip() == ""
    assert topic in tools.topics("--list").split()
    tools.topics("--delete", "--topic", topic)
    assert topic not in tools.topics("--list").split()
    missing = tools.topics("--describe", "--topic", topic, status=1)
    assert "does not exist as expected" in missing


@feature("kafka-configs: describe, alter and delete configs of a topic; describe the broker's")
def test_configs(tools: Tools) -> None:
    topic = new_topic("tools")
    tools.topics("--create", "--topic", topic, "--config", "retention.ms=1000000")
    of_topic = ("--entity-type", "topics", "--entity-name", topic)

    def described(*arguments: str) -> str:
        return tools.run("kafka-configs", "--describe", *arguments)

    assert "retention.ms=1000000" in described(*of_topic)
    changes = "max.message.bytes=2000,cleanup.policy=[compact,delete]"
    tools.run("kafka-configs", "--alter", *of_topic, "--add-config", changes)
    tools.run("kafka-configs", "--alter", *of_topic, "--delete-config", "retention.ms")
    found = described(*of_topic)
    assert "max.message.bytes=2000" in found and "cleanup.policy=compact,delete" in found
    assert "retention.ms" not in found
    assert "retention.ms=604800000" in described(*of_topic, "--all")
    refused = tools.run(
        *("kafka-configs", "--alter", *of_topic, "--add-config", "retention.ms=soon"), status=1
    )
    assert "InvalidConfigurationException" in refused
    assert "log.retention.ms" in described("--entity-type", "brokers", "--all")


@feature("kafka-configs: describe, alter and delete configs of a topic; describe the broker's")
def test_configs_of_brokers(tools: Tools) -> None:
    one, every = ("--entity-type", "brokers", "--entity-name", "1"), ("--entity-type", "brokers")
    every = (*every, "--entity-default")

    def alter(*arguments: str, status: int = 0) -> str:
        return tools.run("kafka-configs", "--alter", *arguments, status=status)

    def described(*arguments: str) -> str:
        return tools.run("kafka-configs", "--describe", *arguments)

    alter(*every, "--add-config", "message.max.bytes=2000000,log.retention.ms=600000")
    alter(*one, "--add-config", "message.max.bytes=3000000")
    found = described(*one)
    assert re.search(
        r"message.max.bytes=3000000 sensitive=false synonyms=\{"
        r"DYNAMIC_BROKER_CONFIG:message.max.bytes=3000000, "
        r"DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=2000000, "
        r"DEFAULT_CONFIG:message.max.bytes=1048588\}",
        found,
    )
    found = described(*every)
    assert "message.max.bytes=2000000" in found and "log.retention.ms=600000" in found
    refused = alter(*one, "--add-config", "num.partitions=3", status=1)
    assert "Cannot update these configs dynamically: [num.partitions]" in refused
    alter(*one, "--delete-config", "message.max.bytes")
    alter(*every, "--delete-config", "message.max.bytes,log.retention.ms")
    assert "message.max.bytes" not in described(*one)


@feature("kafka-broker-api-versions and kafka-cluster")
def test_features(tools: Tools) -> None:
    level = r"FinalizedVersionLevel: {}\s"
    found = tools.run("kafka-features", "describe")
    share = next(line for line in found.splitlines() if "share.version" in line)
    assert re.search(level.format(1), share) and "SupportedMaxVersion: 1" in share
    tools.run("kafka-features", "downgrade", "--feature", "share.version=0")
    found = tools.run("kafka-features", "describe")
    share = next(line for line in found.splitlines() if "share.version" in line)
    assert re.search(level.format(0), share)
    tools.run("kafka-features", "upgrade", "--feature", "share.version=1")
    refused = tools.run("kafka-features", "downgrade", "--metadata", "4.0", status=1)
    assert "Refusing to perform the requested downgrade" in refused


@feature("kafka-console-producer and -consumer: keys, headers, compression, from the beginning")
def test_the_console_s_producer_and_consumer(tools: Tools) -> None:
    topic = new_topic("tools")
    shape = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    lines = [f"h:{n}\tk{n}\tvalue {n}" for n in range(20)]
    tools.produce(topic, lines, *shape, "--compression-codec", "zstd")
    show = [
        part
        for name in ("key", "headers", "partition", "offset")
        for part in ("--formatter-property", f"print.{name}=true")
    ]
    found = tools.consume(topic, 20, "--from-beginning", *show)
    assert {re.sub(r"^Partition:\d\tOffset:\d+\t", "", line) for line in found} == set(lines)


@feature("kafka-consumer-groups: list, describe, reset offsets, delete offsets, delete a group")
def test_consumer_groups(tools: Tools) -> None:
    topic = new_topic("tools")
    group = f"group-of-{topic}"
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    tools.produce(topic, [str(n) for n in range(10)])
    assert len(tools.consume(topic, 10, "--group", group, "--from-beginning")) == 10
    tools.produce(topic, ["10", "11"])
    assert group in tools.groups("--list").split()
    described = tools.groups("--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+10\s+12\s+2", described)
    assert re.search(
        rf"{group}\s.*Empty\s+0", tools.groups("--describe", "--state", "--group", group)
    )
    assert group in tools.groups("--list", "--state", "Empty")
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    assert re.search(rf"{topic}\s+0\s+3", tools.groups(*reset, "--to-offset", "3", "--dry-run"))
    tools.groups(*reset, "--shift-by", "-4", "--execute")
    assert tools.consume(topic, 6, "--group", group) == [str(n) for n in range(6, 12)]
    tools.groups(*reset, "--to-datetime", "2001-01-01T00:00:00.000", "--execute")
    assert re.search(rf"{topic}\s+0\s+0\s+12", tools.groups("--describe", "--group", group))
    tools.groups("--delete-offsets", "--group", group, "--topic", topic)
    assert topic not in tools.groups("--describe", "--group", group)
    tools.groups(*reset, "--to-latest", "--execute")
    assert "was successful" in tools.groups("--delete", "--group", group)
    assert group not in tools.groups("--list").split()


@feature("kafka-groups: list with kinds")
def test_groups_of_all_kinds(tools: Tools) -> None:
    topic = new_topic("tools")
    group = f"group-of-{topic}"
    tools.produce(topic, ["x"])
    tools.consume(topic, 1, "--group", group, "--from-beginning")
    assert re.search(rf"{group}\s+Classic\s+consumer", tools.run("kafka-groups", "--list"))


@feature("kafka-get-offsets and kafka-delete-records")
def test_offsets_and_the_deletion_of_records(tools: Tools, tmp_path: Path) -> None:
    topic = new_topic("tools")
    tools.topics("--create", "--topic", topic, "--partitions", "1")
    tools.produce(topic, [str(n) for n in range(10)])
    wanted = tmp_path / "wanted.json"
    place = {"topic": topic, "partition": 0, "offset": 4}
    wanted.write_text(json.dumps({"version": 1, "partitions": [place]}))
    said = tools.run("kafka-delete-records", "--offset-json-file", str(wanted))
    assert "low_watermark: 4" in said
    for time, offset in (("earliest", 4), ("latest", 10), ("-1", 10)):
        found = tools.run("kafka-get-offsets", "--topic", topic, "--time", time)
        assert f"{topic}:0:{offset}" in found.split(), time
    # The first of those that were typed in the same, last millisecond.
    found = tools.run("kafka-get-offsets", "--topic", topic, "--time", "max-timestamp")
    assert re.fullmatch(rf"{topic}:0:[4-9]", found.strip())
    assert tools.consume(topic, 6, "--from-beginning") == [str(n) for n in range(4, 10)]


@feature("kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency")
def test_the_performance_tools(tools: Tools) -> None:
    topic = new_topic("tools")
    load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    said = tools.run("kafka-producer-perf-test", "--topic", topic, *load)
    assert said.splitlines()[-1].startswith("20000 records sent")
    said = tools.run(
        *("kafka-consumer-perf-test", "--topic", topic, "--num-records", "20000"),
        *("--timeout", "20000"),
    )
    assert int(said.splitlines()[-1].split(",")[4]) >= 20000
    said = tools.run_bare(
        "kafka-e2e-latency", tools.bootstrap, new_topic("tools"), "50", "all", "100"
    )
    assert "Percentiles" in said


@feature("kafka-verifiable-producer and -consumer: what was acknowledged is read, through kill -9")
def test_the_verifiable_tools_lose_nothing_by_kill_9(tmp_path: Path) -> None:
    topic = new_topic("tools")
    with RunningServer(tmp_path, settings=["group.initial.rebalance.delay.ms=100"]) as server:
        tools = Tools(server.bootstrap)
        load = ("--topic", topic, "--max-messages", "3000", "--throughput", "1000")
        with tools.started("kafka-verifiable-producer", *load) as producer:
            wait_until(lambda: len(values(producer, "producer_send_success")) > 500, "it sends", 60)
            server.kill()
            server.restart()
            producer.wait()
        # The tool switches retries off, so that what was under way at the kill has failed.
        acknowledged = values(producer, "producer_send_success")
        assert len(acknowledged) > 1500
        group = ("--topic", topic, "--group-id", "verifying", "--verbose")
        with tools.started("kafka-verifiable-consumer", *group) as consumer:
            wait_until(
                lambda: set(acknowledged) <= set(values(consumer, "record_data")),
                "all that was acknowledged is read",
                60,
            )
        assert "Traceback" not in server.log


def values(running: Running, event: str) -> list[int]:
    """The values of one kind of event that a verifiable tool has told."""
    events = [json.loads(line) for line in list(running.lines) if line.startswith("{")]
    return [int(each["value"]) for each in events if each["name"] == event]


@feature("kafka-broker-api-versions and kafka-cluster")
def test_the_cluster_and_its_versions(tools: Tools) -> None:
    said = tools.run("kafka-broker-api-versions")
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", said)
    assert "UNSUPPORTED" not in said.split("Metadata(3)")[0]
    said = tools.run_bare("kafka-cluster", "cluster-id", "--bootstrap-server", tools.bootstrap)
    assert re.search(r"Cluster ID: \S+", said)


@feature("a topic made for delays by kafka-configs, its records from the console's producer")
def test_delayed_records_come_to_the_console_when_they_are_due(tools: Tools) -> None:
    topic = new_topic("tools-delayed")
    made = ("--create", "--topic", topic, "--partitions", "1")
    refused = tools.topics(*made, "--config", "message.type=DELAY", status=1)
    assert "Unknown topic config name: message.type" in refused, "the tool itself says so"
    tools.topics(*made)
    which = ("--entity-type", "topics", "--entity-name", topic)
    tools.run("kafka-configs", "--alter", *which, "--add-config", "message.type=DELAY")
    lines = ["TIMER_DELAY_MS:1500\tlater", "other:x\tnow", "TIMER_DELAY_SEC:86400\tnot today"]
    tools.produce(topic, lines, "--property", "parse.headers=true")
    assert tools.consume(topic, 2, "--from-beginning") == ["now", "later"]
