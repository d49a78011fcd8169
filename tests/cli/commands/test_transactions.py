"""Transactions of both kinds, through a real server: half messages, Kafka's, and hanging ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaException, Producer
from tests.cli.terminal import Terminal
from tests.cli.two_listeners import BothWires, both_wires
from tests.gateway.remoting.client import messages
from tests.gateway.server import SEGMENT_BYTES

from rockgate.gateway.compose.folds import ServerFolds
from rockgate.gateway.transcode.keys import record_keys
from rockgate.protocol.kafka.records.batch import read_header, stamp
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store

PREPARED = 4
NOW = ("--open-longer-than", "0s")
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWires]:
    with both_wires(tmp_path_factory.mktemp("transactions")) as running:
        yield running


@pytest.fixture
def terminal(wires: BothWires) -> Terminal:
    return wires.terminal


# Half messages


def prepare(wires: BothWires, topic: str, group: str) -> str:
    """Send half a message; its id."""
    given = {"UNIQ_KEY": f"{topic}-key", "TRAN_MSG": "true", "PGROUP": group, "KEYS": "k7"}
    answer = wires.client.publish(topic, b"half", properties=given, sys_flag=PREPARED)
    assert answer.code == 0, answer.remark
    return f"half:{answer.fields['queueOffset']}"


def bodies(wires: BothWires, topic: str) -> list[bytes]:
    return [message.body for message in messages(wires.client.pull(topic))]


def test_undecided_half_messages_are_listed_by_group_and_age(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    id_ = prepare(wires, name, f"g-{name}")
    [row] = terminal.json("transactions", "list", "--kind", "half", "--group", f"g-{name}")[
        "half_messages"
    ]
    assert (row["id"], row["topic"], row["checks"], row["producers"]) == (id_, name, 0, 0)
    assert (row["message_id"], row["keys"]) == (f"{name}-key", "k7")
    assert row["next_check_ms"] > row["prepared_ms"] > 0
    old = terminal.json("transactions", "list", "--kind", "half", "--open-longer-than", "1h")
    assert old["half_messages"] == []
    assert old["undecided"] >= 1
    table = terminal.run("transactions", "list", "--kind", "half", "--group", f"g-{name}")
    assert table.splitlines()[0].startswith("Half messages (")
    assert table.splitlines()[2].split()[:3] == [id_, f"g-{name}", name]


def test_pages_of_half_messages_come_oldest_first(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    ids = [prepare(wires, name, f"g-{name}") for _ in range(205)]
    listed = ("transactions", "list", "--kind", "half", "--group", f"g-{name}", "--limit")
    assert [row["id"] for row in terminal.json(*listed, "300")["half_messages"]] == ids
    assert [row["id"] for row in terminal.json(*listed, "203")["half_messages"]] == ids[:203]


def test_a_half_message_is_committed_once_and_the_first_decision_wins(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    id_ = prepare(wires, name, "producers")
    [shown] = terminal.json("transactions", "show", id_)["half_messages"]
    assert (shown["topic"], shown["group"], shown["body"]) == (name, "producers", "half")
    assert terminal.json("transactions", "show", f"{name}-key")["half_messages"] == [shown]
    assert bodies(wires, name) == []
    said = terminal.run("transactions", "resolve", id_, "--commit", "--yes")
    assert said == f"Committed {id_} (group producers, topic {name}).\n"
    assert bodies(wires, name) == [b"half"]
    for decision in ("--rollback", "--commit"):
        told = terminal.json("transactions", "resolve", id_, decision, status=1)
        assert "already decided, or never existed" in told["errors"][0]["message"]
    assert bodies(wires, name) == [b"half"]


def test_a_half_message_that_is_rolled_back_is_never_delivered(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    id_ = prepare(wires, name, "producers")
    told = terminal.json("transactions", "resolve", f"{name}-key", "--rollback")
    assert told["transactions"] == [{"id": id_, "outcome": "rolled back"}]
    assert bodies(wires, name) == []
    assert terminal.json("transactions", "show", id_, status=1)["half_messages"] == []


# Kafka's


@contextmanager
def open_transaction(wires: BothWires, topic: str, id_: str) -> Iterator[Producer]:
    """A transaction that has written a record, and is not decided."""
    settings = {"bootstrap.servers": wires.server.bootstrap, "transactional.id": id_}
    producer = Producer({**settings, "log_level": 0})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    yield producer


def test_an_open_transaction_of_kafka_s_is_listed_shown_and_rolled_back(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    with open_transaction(wires, name, f"t-{name}") as producer:
        listed = ("transactions", "list", "--kind", "kafka")
        [row] = [
            each
            for each in terminal.json(*listed)["kafka_transactions"]
            if each["id"] == f"t-{name}"
        ]
        assert (row["state"], row["partitions"]) == ("Ongoing", [{"topic": name, "partition": 0}])
        assert terminal.json("transactions", "show", f"t-{name}")["kafka_transactions"] == [row]
        assert terminal.json(*listed, "--open-longer-than", "1h")["kafka_transactions"] == []
        assert f"t-{name}" in terminal.run(*listed)
        # The coordinator knows it, so it does not hang.
        hanging = ("transactions", "find-hanging", "--topic", name, *NOW)
        assert terminal.json(*hanging)["hanging"] == []
        said = terminal.run("transactions", "resolve", f"t-{name}", "--commit", status=1)
        assert "can only be committed by its producer" in said
        terminal.run("transactions", "resolve", f"t-{name}", "--rollback", "--yes")
        assert committed(terminal, name) == []
        with pytest.raises(KafkaException):
            producer.commit_transaction(SECONDS_MAX)
    said = terminal.run("transactions", "resolve", f"t-{name}", "--rollback", status=1)
    assert "no open transaction" in said
    everything = terminal.json(*listed, "--all")["kafka_transactions"]
    assert f"t-{name}" in [each["id"] for each in everything]


def test_a_transaction_that_has_ended_is_open_since_no_time(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    with open_transaction(wires, name, f"t-{name}") as producer:
        producer.commit_transaction(SECONDS_MAX)
    every = terminal.json("transactions", "list", "--kind", "kafka", "--all")["kafka_transactions"]
    [row] = [each for each in every if each["id"] == f"t-{name}"]
    assert (row["state"], row["start_ms"]) == ("CompleteCommit", -1)


def committed(terminal: Terminal, topic: str) -> list[str]:
    """What a reader of committed records gets up to the last stable offset."""
    found = terminal.json("topics", "offsets", topic, "--read-committed")
    assert found["errors"] == []
    return (
        terminal.pipe("consume", topic, "--exit-at-end", "--read-committed").decode().splitlines()
    )


def hang(wires: BothWires, topic: str, producer_id: int) -> None:
    """Put a transactional batch into a partition that no coordinator ever heard of.

    The server itself refuses such a batch, so it is written while the server is down: what a
    broker without that check, or a lost coordinator's log, would leave behind.
    """
    assert wires.server.stop() == 0
    made: list[ServerFolds] = []

    def folds(journal: Journal, topics: Topics) -> list[Fold]:
        made.append(ServerFolds.make(journal, topics))
        return made[0].all()

    store = Store(
        DiskDirectory(wires.server.data_dir),
        StoreConfig(segment_bytes=SEGMENT_BYTES),
        SystemClock(),
        folds=folds,
        record_keys=record_keys,
    ).begin_epoch()
    now_ms = store.clock.now_ms()
    batch = build_batch(
        [Record(0, now_ms, b"key", b"hanging")],
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=0,
        is_transactional=True,
    )
    queue = store.queue(store.topics.get(topic), 0)
    key, epoch = (queue.topic_id, queue.queue_id), store.epochs.current
    done = store.appender.batch(
        queue, batch, count=1, record_ms=now_ms, stamp=lambda view, at: stamp(view, at, epoch)
    )
    made[0].kafka.stable_offsets.wrote(*key, producer_id, done.offset)
    made[0].kafka.producers.record(
        *key,
        read_header(batch),
        offset=done.offset,
        position=done.position,
        store_ms=done.store_ms,
    )
    store.close()
    wires.server.restart()


def test_a_hanging_transaction_is_found_by_its_producer_and_aborted(
    wires: BothWires, terminal: Terminal, name: str
) -> None:
    terminal.run("topics", "create", name)
    terminal.pipe("produce", name, "before")
    hang(wires, name, 987_654)
    terminal.pipe("produce", name, "behind")
    assert committed(terminal, name) == ["before"]
    find = ("transactions", "find-hanging", *NOW)
    [row] = terminal.json(*find)["hanging"]
    assert (row["topic"], row["partition"], row["producer_id"]) == (name, 0, 987_654)
    assert (row["start_offset"], row["transactional_id"]) == (1, None)
    assert row["reason"] == "no coordinator knows its producer"
    assert terminal.json("transactions", "find-hanging")["hanging"] == []  # silent for 15 minutes
    assert terminal.rows(*find)[0][:5] == [name, "0", "987654", "3", "1"]
    abort = ("transactions", "abort", f"{name}:0", "--start-offset", "1")
    said = terminal.run(*abort, "--yes")
    assert said == f"Aborted the transaction of producer 987654 at {name}:0 offset 1.\n"
    assert committed(terminal, name) == ["before", "behind"]
    assert terminal.json(*find)["hanging"] == []
    said = terminal.run(*abort, status=1)
    assert "no such open transaction. None is open." in said


# What makes no sense


def test_a_server_without_rocketmq_s_remoting_still_lists_kafka_s(
    wires: BothWires, terminal: Terminal
) -> None:
    alone = Terminal(wires.server.bootstrap)
    del alone.variables["ROCKGATE_BROKER"]
    told = alone.json("transactions", "list", "--kind", "kafka")
    assert told["errors"] == []
    said = terminal.run("transactions", "list", "--broker", "127.0.0.1:1", status=3)
    assert "--broker or ROCKGATE_BROKER" in said


def test_what_makes_no_sense_is_status_2_and_what_is_not_there_status_1(
    terminal: Terminal,
) -> None:
    for arguments, problem in (
        (("list", "--kind", "both"), "Invalid --kind: expected half, kafka or all"),
        (("resolve", "half:1"), "Give either --commit or --rollback."),
        (("resolve", "half:1", "--commit", "--rollback"), "Give either --commit or --rollback."),
        (("abort", "orders"), "Invalid TOPIC:PARTITION: expected one partition"),
        (("abort", "orders:0"), "Give either --start-offset or --producer-id."),
        (("list", "--open-longer-than", "long"), "Invalid --open-longer-than: expected a duration"),
    ):
        said = terminal.run("transactions", *arguments, status=2)
        assert said.startswith(f"rockgate: {problem}")
    said = terminal.run("transactions", "show", "half:99999", "nobody", status=1)
    assert said.count("not found. List open transactions with `rockgate transactions list`") == 2
