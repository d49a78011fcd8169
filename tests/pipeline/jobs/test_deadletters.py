"""Dead letters: what the table says, and back to where they came from, once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.sql import SparkSession
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.spark import MARKS, create_topic, read_topic, send
from tests.spark import Record as Sent
from tests.waiting import wait_until
from typer.testing import CliRunner

from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.cli import app
from rockgate.pipeline.errors import BadOption, UnknownTopic, WrongCheckpoint
from rockgate.pipeline.files import checkpoint
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.jobs import deadletters as job
from rockgate.pipeline.jobs.deadletters import Options, letters, records, run, summary
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.kafka import Cluster
from rockgate.protocol.remoting.properties import RETRY_MARKS

pytestmark = MARKS
BASE_MS = 1_700_000_000_000
Headers = Sequence[tuple[str, bytes | None]]


def dead(number: int, topic: str | None = "orders", **more: str) -> Headers:
    """The headers of a dead letter."""
    told = {
        "color": "blue",
        "__RETRY_QUEUE": "1",
        "__RETRY_OFFSET": str(number),
        "__RETRY_SINCE": str(BASE_MS + number),
        "RECONSUME_TIME": str(number),
        "MAX_RECONSUME_TIMES": "16",
        "ORIGIN_MESSAGE_ID": f"ID{number}",
        "__DLQ_SINCE": str(BASE_MS + 60_000 + number),
        "__DLQ_REASON": "tries",
        "WAIT": "false",
        **({} if topic is None else {"RETRY_TOPIC": topic}),
        **more,
    }
    return tuple((name, value.encode()) for name, value in told.items())


def time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def row(number: int, headers: Headers | None, topic: str = "rmq.dlq.mail") -> tuple[Any, ...]:
    pairs = None if headers is None else [(name, value) for name, value in headers]
    return (topic, 0, number, time(BASE_MS), b"k%d" % number, b"v%d" % number, pairs)


def source(spark: SparkSession, *rows: tuple[Any, ...]) -> Any:
    schema = (
        "topic string, partition int, offset bigint, timestamp timestamp, key binary, "
        "value binary, headers array<struct<key: string, value: binary>>"
    )
    return spark.createDataFrame(rows, schema)


def test_the_marks_are_those_that_the_server_adds() -> None:
    assert set(job.MARKS) == RETRY_MARKS


def test_a_letter_says_what_it_was(spark: SparkSession) -> None:
    found = letters(source(spark, row(3, dead(3, "shop|orders")), row(4, None))).collect()
    said = found[0].asDict()
    assert [(each["key"], bytes(each["value"])) for each in said.pop("headers")] == [
        ("color", b"blue")
    ]
    times = {name: said.pop(name) for name in ("failed_since", "dead_since", "timestamp")}
    assert [value.astimezone(UTC) for value in times.values()] == [
        time(BASE_MS + 3),
        time(BASE_MS + 60_003),
        time(BASE_MS),
    ]
    assert said == {
        "group": "mail",
        "topic": "shop.orders",
        "queue": 1,
        "offset": 3,
        "tries": 3,
        "tries_max": 16,
        "reason": "tries",
        "message_id": "ID3",
        "key": b"k3",
        "value": b"v3",
        "dead_topic": "rmq.dlq.mail",
        "dead_partition": 0,
        "dead_offset": 3,
    }
    assert (found[1]["topic"], found[1]["reason"], found[1]["tries"]) == (None, "unknown", None)


def test_the_table_counts_by_group_topic_and_reason(spark: SparkSession) -> None:
    rows = [row(number, dead(number)) for number in range(3)]
    rows.append(row(3, dead(3, __DLQ_REASON="asked")))
    rows.append(row(4, dead(4), "rmq.dlq.shop.audit"))
    found = summary(letters(source(spark, *rows))).collect()
    assert [(each["group"], each["reason"], each["letters"], each["tries"]) for each in found] == [
        ("mail", "asked", 1, 3),
        ("mail", "tries", 3, 2),
        ("shop.audit", "tries", 1, 4),
    ]
    assert found[1]["failed_since"].astimezone(UTC) == time(BASE_MS)
    assert found[1]["last_dead"].astimezone(UTC) == time(BASE_MS + 60_002)


def test_records_go_to_their_partition_if_it_is_there_and_keep_only_their_own_headers(
    spark: SparkSession,
) -> None:
    rows = source(
        spark,
        row(0, dead(0, __RESENT_FROM="mail/0/9")),
        row(1, dead(1, "small")),
        row(2, dead(2, None)),
    )
    going = records(letters(rows), {"orders": 2, "small": 1}, delay_ms=5000).collect()
    assert [(each["topic"], each["partition"]) for each in going] == [
        ("orders", 1),
        ("small", None),
    ]
    assert [(each["key"], bytes(each["value"])) for each in going[0]["headers"]] == [
        ("color", b"blue"),
        ("__RESENT_FROM", b"mail/0/0"),
        ("TIMER_DELAY_MS", b"5000"),
    ]
    [plain, *_] = records(letters(rows), {"orders": 2}, has_marks=False).collect()
    assert [each["key"] for each in plain["headers"]] == ["color"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One with RocketMQ's listeners open: dead letters come from there."""
    with RunningServer(tmp_path_factory.mktemp("letters"), rocketmq=True) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(scope="module")
def buried(server: RunningServer) -> str:
    """Six dead letters of `mail`, whose topic is made as the server makes it: by a consumer."""
    create_topic(server.bootstrap, "letters-origin", 2)
    bury(server, "letters-origin", "mail", 6)
    return "letters-origin"


HEADERS = (("color", b"blue"), ("raw", b"\x00\xff"), ("none", None))


def bury(server: RunningServer, topic: str, group: str, count: int) -> None:
    """Produce a batch of eight, and let a group give up the first of them at once."""
    client = Client(server.address("remoting"))
    sent = [
        Sent(key=b"k%d" % n, value=None if n == 2 else b"v%d" % n, partition=1, headers=HEADERS)
        for n in range(8)
    ]
    send(server.bootstrap, topic, sent, **{"compression.type": "zstd", "linger.ms": 200})
    found = messages(client.pull(topic, queue=1))
    assert len(found) == 8
    for message in found[:count]:
        fields = {"offset": message.position, "group": group, "delayLevel": -1}
        assert client.ask(36, fields).code == 0
    client.socket.close()


def options(cluster: Cluster, tmp_path: Path, **more: Any) -> Options:
    place = str(tmp_path / "checkpoint")
    return Options(cluster=cluster, groups=("mail",), checkpoint=place, is_resending=True, **more)


def test_the_command_prints_a_table_and_writes_parquet(
    spark: SparkSession, cluster: Cluster, buried: str, tmp_path: Path
) -> None:
    into = str(tmp_path / "dead")
    words = ["dead-letters", "--bootstrap", cluster.bootstrap, "--group", "mail", "--into", into]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    titles, line = done.stdout.splitlines()
    assert titles.split()[:5] == ["GROUP", "TOPIC", "REASON", "LETTERS", "TRIES"]
    assert line.split()[:5] == ["mail", buried, "asked", "6", "1"]
    assert spark.read.parquet(f"{into}/letters").count() == 6
    assert spark.read.parquet(f"{into}/summary").count() == 1
    done = CliRunner().invoke(app, [*words, "--json", "--where", "string(key) in ('k1', 'k2')"])
    assert json.loads(done.stdout)["letters"] == 2
    none = CliRunner().invoke(
        app, ["dead-letters", "--bootstrap", cluster.bootstrap, "--group", "nobody"]
    )
    assert (none.exit_code, none.stdout) == (0, "")
    assert "no dead letters" in none.stderr


def test_letters_go_back_once_with_key_headers_and_null(
    spark: SparkSession,
    cluster: Cluster,
    reporter: Reporter,
    told: io.StringIO,
    buried: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = len(read_topic(cluster.bootstrap, buried, 8, 2))
    chosen = options(cluster, tmp_path, where="string(key) < 'k4'", step_records=3)
    write = kafka.write

    def killed(*arguments: Any) -> None:
        write(*arguments)
        raise RuntimeError("killed after the write, before the checkpoint")

    monkeypatch.setattr(kafka, "write", killed)
    with pytest.raises(RuntimeError, match="killed"):
        run(spark, chosen, reporter)
    monkeypatch.setattr(kafka, "write", write)
    assert checkpoint.unfinished_batch(Files(spark, chosen.checkpoint)) == 0
    run(spark, chosen, reporter)
    run(spark, chosen, reporter)
    assert "resent 4" in told.getvalue()
    assert "resent 0" in told.getvalue()
    found = read_topic(cluster.bootstrap, buried, before + 4, 2)[8:]
    assert [(m.partition(), m.key(), m.value()) for m in found] == [
        (1, b"k0", b"v0"),
        (1, b"k1", b"v1"),
        (1, b"k2", None),
        (1, b"k3", b"v3"),
    ]
    assert found[2].headers() == [
        ("color", b"blue"),
        ("raw", b"\x00\xff"),
        ("none", None),
        ("__RESENT_FROM", b"mail/0/2"),
    ]
    with pytest.raises(WrongCheckpoint, match="where"):
        run(spark, options(cluster, tmp_path), reporter)


def test_letters_can_wait_before_they_come(
    spark: SparkSession, server: RunningServer, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    create_topic(server.bootstrap, "letters-later", 2, {"message.type": "MIXED"})
    bury(server, "letters-later", "patient", 3)
    chosen = replace(options(cluster, tmp_path, delay_ms=2_000), groups=("patient",))
    began = datetime.now(UTC)
    run(spark, chosen, reporter)
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "waiting"})
    consumer.assign([TopicPartition("letters-later", 1, 8)])
    found: list[Message] = []

    def has_all() -> bool:
        found.extend(consumer.consume(3, 0.1))
        return len(found) == 3

    wait_until(has_all, "the letters")
    consumer.close()
    assert (datetime.now(UTC) - began).total_seconds() >= 2
    assert [(m.key(), m.value()) for m in found] == [(b"k0", b"v0"), (b"k1", b"v1"), (b"k2", None)]
    assert [each for each in found[2].headers() if not each[0].startswith("__")] == list(HEADERS)


def test_what_makes_no_sense_is_said_before_anything_is_sent(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, buried: str, tmp_path: Path
) -> None:
    with pytest.raises(BadOption, match="--where"):
        run(spark, options(cluster, tmp_path, where="nothing = 1"), reporter)
    with pytest.raises(BadOption, match="--checkpoint"):
        run(spark, Options(cluster=cluster, is_resending=True), reporter)
    with pytest.raises(BadOption, match=r"message\.type=NORMAL, which does not delay records"):
        run(spark, options(cluster, tmp_path, delay_ms=1000), reporter)
    with Admin(spark, cluster) as admin:
        progress = Files(spark, str(tmp_path / "gone"))
        step = job.Step(spark, options(cluster, tmp_path), admin, progress, reporter)
        with pytest.raises(UnknownTopic, match="Original topic gone no longer exists"):
            step(source(spark, row(0, dead(0, "gone"))), 0)
