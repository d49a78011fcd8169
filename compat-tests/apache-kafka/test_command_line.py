"""Our command line against Apache Kafka: two brokers, so that leaders and coordinators differ."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from bench.peers import KafkaPeer
from bench.peers.jars import version
from bench.peers.ports import HOST, free_ports
from confluent_kafka import Consumer, Producer
from tests.cli.terminal import Terminal
from tests.waiting import wait_until

CLIENT = f"apache-kafka {version('kafka')}"
pytestmark = [pytest.mark.java, pytest.mark.long]

_numbers = count()


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaPeer]:
    """A broker that is the controller, too, and a second one that joins it."""
    with KafkaPeer(heap="512m") as first:
        text = (first.directory / "server.properties").read_text()
        voters = next(x for x in text.splitlines() if x.startswith("controller.quorum.voters="))
        (port,) = free_ports(1)
        second = {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": voters.partition("=")[2],
            "listeners": f"PLAINTEXT://{HOST}:{port}",
        }
        with KafkaPeer(port=port, settings=second, heap="512m"):
            terminal = Terminal(first.bootstrap)
            wait_until(
                lambda: len(terminal.json("cluster", "describe")["brokers"]) == 2,
                "both brokers are there",
                timeout_s=60,
            )
            yield first


@pytest.fixture
def terminal(kafka: KafkaPeer) -> Terminal:
    return Terminal(kafka.bootstrap)


@pytest.fixture
def topic(terminal: Terminal) -> str:
    """Six partitions, led by both brokers."""
    name = f"cli-{next(_numbers)}"
    terminal.run("topics", "create", name, "-p", "6", "-r", "1", "-c", "retention.ms=-1")
    return name


def test_leaders_on_both_brokers_are_written_and_read(terminal: Terminal, topic: str) -> None:
    lines = b"".join(b"key-%d:%d\n" % (n % 50, n) for n in range(5000))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        terminal.pipe("produce", topic, "-K", ":", "-z", codec, data=lines)
    (described,) = terminal.json("topics", "describe", topic)["topics"]
    assert {part["leader"] for part in described["partitions"]} == {1, 2}
    assert all(part["size_bytes"] > 0 for part in described["partitions"])
    assert described["configs"] == {"retention.ms": "-1"}
    out = terminal.pipe("consume", topic, "--exit-at-end", "--keys").splitlines()
    expected = [line.replace(b":", b"\t") for line in lines.splitlines()] * 5
    assert sorted(out) == sorted(expected)


def test_a_key_goes_where_librdkafkas_java_partitioner_puts_it(
    terminal: Terminal, topic: str, kafka: KafkaPeer
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2"})
    for number in range(200):
        producer.produce(topic, key=f"k{number}", value="theirs")
    producer.flush()
    lines = b"".join(b"k%d:ours\n" % number for number in range(200))
    terminal.pipe("produce", topic, "-K", ":", data=lines)
    places: dict[bytes, set[bytes]] = {}
    for line in terminal.pipe("consume", topic, "-e", "-f", r"%k %p\n").splitlines():
        key, place = line.split()
        places.setdefault(key, set()).add(place)
    assert len(places) == 200
    assert {len(found) for found in places.values()} == {1}


def test_a_copy_by_json_lines_loses_no_byte(terminal: Terminal, topic: str) -> None:
    lines = [
        {"key_base64": "/w==", "value": "é\n", "headers": [], "timestamp_ms": 5},
        {"key": "", "value_base64": "gICA", "headers": [{"key": "h", "value_base64": "/w=="}]},
        {"key": None, "value": None, "headers": [{"key": "", "value": None}]},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    terminal.pipe("produce", topic, "--jsonl", data=data)
    first = terminal.pipe("consume", topic, "-e", "--json")
    terminal.run("topics", "create", f"{topic}-copy", "-p", "6", "-r", "1")
    terminal.pipe("produce", f"{topic}-copy", "--jsonl", "--keep-partitions", data=first)
    second = terminal.pipe("consume", f"{topic}-copy", "-e", "--json")
    assert sorted(second.replace(b"-copy", b"").splitlines()) == sorted(first.splitlines())


@pytest.mark.parametrize("number", range(3))
def test_a_group_wherever_its_coordinator_is(terminal: Terminal, topic: str, number: int) -> None:
    group = f"g{number}-{topic}"
    terminal.pipe("produce", topic, data=b"x\n" * 30)
    first = terminal.pipe("consume", topic, "-g", group, "--from-beginning", "-n", "10")
    assert first == b"x\n" * 10
    assert terminal.json("groups", "lag", group)["groups"][0]["lag"] == 20
    second = terminal.pipe("consume", topic, "-g", group, "--from-beginning", "--exit-at-end")
    assert second == b"x\n" * 20
    (found,) = terminal.json("groups", "describe", group)["groups"]
    assert (found["state"], found["lag"]) == ("Empty", 0)
    moved = terminal.json(
        *("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute")
    )
    assert sum(row["new_lag"] for row in moved["offsets"]) == 30
    terminal.run("groups", "delete-offsets", group, "--topic", f"{topic}:0")
    assert terminal.run("groups", "delete", group) == f"deleted {group}\n"
    assert "GROUP_ID_NOT_FOUND" in terminal.run("groups", "describe", group, status=1)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_shared_with_librdkafka(
    terminal: Terminal, topic: str, kafka: KafkaPeer, assignor: str
) -> None:
    group = f"g-{topic}"
    other = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "partition.assignment.strategy": assignor,
            "heartbeat.interval.ms": 500,
        }
    )
    other.subscribe([topic])
    try:
        wait_until(lambda: _shares(other) == 6, "it has all", timeout_s=60)
        with terminal.start("consume", topic, "--group", group) as process:
            wait_until(lambda: _shares(other) == 3, "both have half", timeout_s=60)
            wait_until(
                lambda: _sizes(terminal, group, other) == [3, 3], "we have half", timeout_s=60
            )
            arguments = ("groups", "reset-offsets", group, "--topic", topic, "--to-latest")
            assert "NON_EMPTY_GROUP" in terminal.run(*arguments, status=1)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
            process.communicate()
        wait_until(lambda: _shares(other) == 6, "it has all again", timeout_s=60)
    finally:
        other.close()


def _shares(consumer: Any) -> int:
    consumer.poll(0.1)
    return len(consumer.assignment())


def _sizes(terminal: Terminal, group: str, consumer: Any) -> list[int]:
    consumer.poll(0.1)
    (found,) = terminal.json("groups", "members", group)["groups"]
    return sorted(len(member["assignment"]) for member in found["members"])


def test_a_group_of_the_newer_protocol_is_described(
    terminal: Terminal, topic: str, kafka: KafkaPeer
) -> None:
    group = f"g-{topic}"
    other = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": group, "group.protocol": "consumer"}
    )
    other.subscribe([topic])
    try:
        wait_until(lambda: _shares(other) == 6, "it has all", timeout_s=60)
        (found,) = terminal.json("groups", "describe", group)["groups"]
        assert (found["kind"], found["state"]) == ("consumer", "Stable")
        assert [len(member["assignment"]) for member in found["members"]] == [6]
        # Kafka lets members of the classic protocol into such a group.
        assert terminal.pipe("consume", topic, "--group", group, "--exit-at-end") == b""
    finally:
        other.close()


def test_what_a_transaction_took_back_is_left_out_on_demand(
    terminal: Terminal, topic: str, kafka: KafkaPeer
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for value, ends in (
        ("kept", producer.commit_transaction),
        ("gone", producer.abort_transaction),
    ):
        producer.begin_transaction()
        for partition in range(6):
            producer.produce(topic, value=value, partition=partition)
        producer.flush()
        ends(30)
    seen = terminal.pipe("consume", topic, "-e").split()
    assert sorted(seen) == [b"gone"] * 6 + [b"kept"] * 6
    assert terminal.pipe("consume", topic, "-e", "--read-committed").split() == [b"kept"] * 6


def test_open_transactions_are_listed_and_ended_at_their_coordinator_and_at_a_leader(
    terminal: Terminal, topic: str, kafka: KafkaPeer
) -> None:
    ids = [f"{topic}-{number}" for number in range(3)]
    producers = []
    for id_ in ids:
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": id_})
        producer.init_transactions(30)
        producer.begin_transaction()
        for partition in range(6):
            producer.produce(topic, value=id_, partition=partition)
        assert producer.flush(60) == 0
        producers.append(producer)
    listed = ("transactions", "list", "--kind", "kafka")
    found = {each["id"]: each for each in terminal.json(*listed)["kafka_transactions"]}
    assert set(ids) <= set(found)
    assert {each["state"] for each in found.values()} == {"Ongoing"}
    places = [{"topic": topic, "partition": partition} for partition in range(6)]
    key = "partition"
    assert sorted(found[ids[0]]["partitions"], key=lambda each: each[key]) == places
    # Their coordinators know them, so none hangs.
    now = ("--topic", topic, "--open-longer-than", "0s")
    assert terminal.json("transactions", "find-hanging", *now)["hanging"] == []
    terminal.run("transactions", "resolve", ids[0], "--rollback", "--yes")
    producers[1].commit_transaction(30)
    assert ids[0] not in terminal.run(*listed)
    for partition in range(6):
        producer_id = str(found[ids[2]]["producer_id"])
        place = f"{topic}:{partition}"
        terminal.run("transactions", "abort", place, "--producer-id", producer_id, "--yes")
    seen = terminal.pipe("consume", topic, "-e", "--read-committed").split()
    assert seen == [ids[1].encode()] * 6
    # The leaders have ended it, and its coordinator has not: it will write its markers again.
    assert ids[2] in terminal.run(*listed)
    producers[2].abort_transaction(30)
    assert ids[2] not in [each["id"] for each in terminal.json(*listed)["kafka_transactions"]]


def test_administering(terminal: Terminal, topic: str) -> None:
    terminal.run("topics", "alter", topic, "-p", "7", "-c", "cleanup.policy=compact")
    terminal.run("configs", "set", "topic", topic, "--append", "cleanup.policy=delete")
    terminal.run("configs", "unset", "topic", topic, "retention.ms")
    rows = terminal.rows("configs", "describe", "topic", topic)
    assert ["cleanup.policy", "compact,delete", "topic", "list"] in rows
    assert "INVALID_CONFIG" in terminal.run("configs", "set", "topic", topic, "a.b=1", status=1)
    terminal.run("configs", "set", "group", "g", "consumer.session.timeout.ms=46000")
    assert terminal.rows("configs", "describe", "group", "g")[0][:2] == [
        "consumer.session.timeout.ms",
        "46000",
    ]
    for node in ("1", "2"):
        assert len(terminal.rows("configs", "describe", "broker", node, "--all")) > 100
    terminal.run("quotas", "alter", "--user", "u", "--set", "request_percentage=200")
    assert terminal.rows("quotas", "describe", "--user", "u")[0][-1] == "200"
    terminal.run("quotas", "alter", "--user", "u", "--unset", "request_percentage")
    assert {row["broker"] for row in terminal.json("cluster", "log-dirs")["log_dirs"]} == {1, 2}
    terminal.pipe("produce", topic, "-k", "x", data=b"1\n2\n3\n")
    assert sum(r["records"] for r in terminal.json("topics", "offsets", topic)["offsets"]) == 3
    terminal.run("topics", "delete-records", topic, "--all")
    assert sum(r["records"] for r in terminal.json("topics", "offsets", topic)["offsets"]) == 0
    assert "TOPIC_ALREADY_EXISTS" in terminal.run("topics", "create", topic, status=1)
    assert terminal.run("topics", "delete", topic) == f"deleted {topic}\n"
