"""The jobs at a Spark Connect server in a second process: the same commands, the same results."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from tests.connect import ConnectServer, RunningJob, run_job
from tests.gateway.server import RunningServer
from tests.house.checkout import ROOT
from tests.pipeline.jobs.test_deadletters import bury
from tests.spark import MARKS, Record, create_topic, new_topic, numbered, read_topic, send
from tests.waiting import wait_until

from rockgate.pipeline.files import archive
from rockgate.pipeline.jobs import archive as job
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.kafka import Cluster, Topics

pytestmark = MARKS
BASE_MS = 1_700_000_000_000
EXAMPLE = ROOT / "pipeline" / "examples" / "orders.py"


@pytest.fixture(scope="module")
def connect(java: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as running:
        yield running


@pytest.fixture
def there(connect: ConnectServer, server: RunningServer) -> list[str]:
    """The flags that send a job to the Connect server, for topics of rockgate."""
    return ["--master", connect.address, "--bootstrap", server.bootstrap]


def values(bootstrap: str, topic: str, count: int) -> list[tuple[int, bytes]]:
    return [(m.partition(), m.value()) for m in read_topic(bootstrap, topic, count, 2)]


def in_order(first: int, end: int) -> list[tuple[int, bytes]]:
    return [(p, b"%d" % n) for p in range(2) for n in range(first, end) if n % 2 == p]


def test_what_is_archived_and_replayed_there_is_what_was_sent(
    server: RunningServer, there: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap, 2)
    send(server.bootstrap, topic, numbered(80, 2))
    run_job(tmp_path, "archive", *there, "--topic", topic, "--into", "kept")
    assert archive.read(spark, str(tmp_path / "kept")).count() == 80
    chosen = ["--since", "2020-01-01", "--where", "offset < 30", "--timestamp-header", "was"]
    run_job(tmp_path, "replay", "kept", *there, "--to", "again.{topic}", *chosen)
    assert values(server.bootstrap, f"again.{topic}", 60) == in_order(0, 60)


@pytest.mark.long
def test_small_files_are_merged_there_and_an_archive_continues_from_either_side(
    server: RunningServer,
    there: list[str],
    cluster: Cluster,
    spark: SparkSession,
    reporter: Reporter,
    tmp_path: Path,
) -> None:
    """The files are the same, so a run there and a run with a driver here take turns."""
    topic, into = new_topic(server.bootstrap, 2), tmp_path / "kept"
    words = ["archive", *there, "--topic", topic, "--into", "kept", "--merge-files", "3"]
    here = job.Options(cluster=cluster, topics=Topics(names=(topic,)), into=str(into))
    told = ""
    for start in (0, 40, 80):
        send(server.bootstrap, topic, numbered(40, 2, start=start))
        if start == 40:
            job.run(spark, here, reporter)
        else:
            told = run_job(tmp_path, *words).stderr
            assert "40 records in" in told
    assert told.count("merged 3 files") == 2
    assert len(list(into.glob("topic=*/date=*/*.parquet"))) == 2
    rows = spark.read.parquet(str(into)).select("value").collect()
    assert sorted(int(bytes(row.value)) for row in rows) == list(range(120))


def test_a_job_that_is_stopped_there_continues_where_it_was(
    server: RunningServer, connect: ConnectServer, tmp_path: Path
) -> None:
    """Ctrl-C between two steps of a mirror; partitions, keys and headers are preserved."""
    topic = new_topic(server.bootstrap, 2)
    send(server.bootstrap, topic, numbered(200, 2))
    words = ["mirror", "--from", server.bootstrap, "--to", server.bootstrap, "--topic", topic]
    words += ["--rename", "there.{topic}", "--checkpoint", "mirrored", "--step", "50"]
    words += ["--master", connect.address]
    running = RunningJob(tmp_path, *words, "--follow", "--every", "0 seconds")
    running.wait_for("records in")
    assert running.stop(signal.SIGINT) == 0, running.told
    assert "stopping after this step" in running.told
    assert "Traceback" not in running.told
    send(server.bootstrap, topic, numbered(50, 2, start=200))
    run_job(tmp_path, *words)
    assert values(server.bootstrap, f"there.{topic}", 250) == in_order(0, 250)
    found = read_topic(server.bootstrap, f"there.{topic}", 250, 2)
    assert [m.key() for m in found] == [b"k%s" % m.value() for m in found]
    assert [dict(m.headers())["mirror.offset"] for m in found] == [
        b"%d" % m.offset() for m in found
    ]


@pytest.mark.long
def test_the_worked_example_runs_there(
    server: RunningServer, there: list[str], connect: ConnectServer, tmp_path: Path
) -> None:
    orders, payments, paid = (new_topic(server.bootstrap) for _ in range(3))
    order = json.dumps({"order": 7, "customer": "ada", "cents": 250}).encode()
    payment = json.dumps({"order": 7, "cents": 250, "method": "card"}).encode()
    send(server.bootstrap, orders, [Record(value=order, timestamp=BASE_MS)])
    send(server.bootstrap, payments, [Record(value=payment, timestamp=BASE_MS + 1200)])
    (tmp_path / "orders.py").write_text(EXAMPLE.read_text())
    words = ["run", "orders:paid", "--in", orders, "--in", payments, "--out", paid]
    # The address as Spark's own variable has it.
    run_job(
        tmp_path,
        *(*words, "--checkpoint", "c", "--bootstrap", server.bootstrap),
        variables={"SPARK_REMOTE": connect.address},
    )
    [found] = read_topic(server.bootstrap, paid, 1)
    assert found.key() == b"7"
    assert json.loads(found.value()) == {
        **json.loads(order),
        "method": "card",
        "waited_ms": 1200,
    }


@pytest.mark.long
def test_figures_and_a_report_come_from_there(
    server: RunningServer, there: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap, 2)
    records = [Record(value=b"v" * 10, timestamp=BASE_MS + 30_000 * n) for n in range(4)]
    send(server.bootstrap, topic, records)
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": f"of-{topic}"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    words = ["--topic", topic, "--into", "figures", "--report", "page.html"]
    run_job(tmp_path, "stats", *there, *words, variables={"TZ": "Asia/Tokyo"})
    windows = spark.read.parquet(str(tmp_path / "figures" / "windows")).orderBy("start").collect()
    assert [(row.records, row.bytes) for row in windows] == [(2, 20), (2, 20)]
    lag = spark.read.parquet(str(tmp_path / "figures" / "lag")).collect()
    assert [(row.group, row.committed, row.end, row.lag) for row in lag] == [
        (f"of-{topic}", 3, 4, 1)
    ]
    page = (tmp_path / "page.html").read_text()
    assert "2023-11-14 22:13:00 to 2023-11-14 22:15:00 UTC" in page
    assert page.count("<img") == 3


@pytest.mark.long
def test_dead_letters_are_shown_and_sent_back_from_there(
    connect: ConnectServer, tmp_path: Path
) -> None:
    (tmp_path / "letters").mkdir()
    with RunningServer(tmp_path / "letters", rocketmq=True) as server:
        create_topic(server.bootstrap, "home", 2)
        bury(server, "home", "afar", 4)
        asked = ["dead-letters", "--master", connect.address, "--bootstrap", server.bootstrap]
        shown = json.loads(run_job(tmp_path, *asked, "--json").stdout)
        assert (shown["group"], shown["topic"], shown["letters"]) == ("afar", "home", 4)
        resend = [*asked, "--group", "afar", "--resend", "--checkpoint", "sent"]
        resend += ["--where", "string(key) > 'k0'"]
        assert "resent 3" in run_job(tmp_path, *resend).stderr
        assert "resent 0" in run_job(tmp_path, *resend).stderr
        found = read_topic(server.bootstrap, "home", 8 + 3, 2)[8:]
        assert [(m.partition(), m.key(), m.value()) for m in found] == [
            (1, b"k1", b"v1"),
            (1, b"k2", None),
            (1, b"k3", b"v3"),
        ]


@pytest.mark.long
def test_windows_are_given_while_it_follows_there(
    server: RunningServer, there: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap)
    send(
        server.bootstrap,
        topic,
        [Record(value=b"v", timestamp=BASE_MS + 60_000 * n) for n in (0, 9)],
    )
    words = ["stats", *there, "--pattern", topic, "--into", "figures", "--follow"]
    running = RunningJob(tmp_path, *words, "--every", "0 seconds", "--checkpoint", "c")
    running.wait_for("records in")
    send(server.bootstrap, topic, [Record(value=b"v", timestamp=BASE_MS + 900_000)])
    running.wait_for("records in", 2)
    assert running.stop(signal.SIGTERM) == 0, running.told
    rows = spark.read.parquet(str(tmp_path / "figures" / "windows")).collect()
    assert [row.records for row in rows][:1] == [1]


@pytest.mark.long
def test_delayed_replay_and_a_function_with_python_of_its_own_run_there(
    server: RunningServer, there: list[str], tmp_path: Path
) -> None:
    topic, shouted = new_topic(server.bootstrap), new_topic(server.bootstrap)
    send(server.bootstrap, topic, numbered(3))
    run_job(tmp_path, "archive", *there, "--topic", topic, "--into", "kept")
    later = ["replay", "kept", *there, "--to", f"later-{topic}", "--delay", "1s"]
    run_job(tmp_path, *later)
    # A rerun knows that all of it is done.
    assert "replayed; 0 records" in run_job(tmp_path, *later).stderr
    (tmp_path / "shouting.py").write_text(
        "from pyspark.sql import functions as F\n"
        "def loud(value):\n    return bytes(value) + b'!'\n"
        "def shout(records):\n"
        "    return records.select('key', F.udf(loud, 'binary')('value').alias('value'))\n"
    )
    words = ["--in", topic, "--out", shouted, "--checkpoint", "c"]
    run_job(tmp_path, "run", "shouting:shout", *there, *words)
    assert [m.value() for m in read_topic(server.bootstrap, shouted, 3)] == [b"0!", b"1!", b"2!"]

    def has_come() -> bool:
        try:
            return len(read_topic(server.bootstrap, f"later-{topic}", 3)) == 3
        except AssertionError:
            return False

    wait_until(has_come, "the delayed records have come")


@pytest.mark.long
def test_a_mirror_whose_client_is_killed_writes_nothing_twice(
    server: RunningServer, connect: ConnectServer, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap, 2)
    send(server.bootstrap, topic, numbered(20_000, 2))
    words = ["mirror", "--from", server.bootstrap, "--to", server.bootstrap, "--topic", topic]
    words += ["--rename", "once.{topic}", "--checkpoint", "mirrored", "--step", "4000"]
    words += ["--master", connect.address]
    running = RunningJob(tmp_path, *words)
    running.wait_for("records in", 2)
    running.stop(signal.SIGKILL)
    run_job(tmp_path, *words)
    assert values(server.bootstrap, f"once.{topic}", 20_000) == in_order(0, 20_000)


@pytest.mark.long
def test_a_connect_server_that_goes_is_reported_and_the_next_one_continues(
    server: RunningServer, there: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap)
    send(server.bootstrap, topic, numbered(10))
    words = ["archive", "--topic", topic, "--into", "kept", "--bootstrap", server.bootstrap]
    with ConnectServer(tmp_path) as going:
        running = RunningJob(tmp_path, *words, "--follow", "--master", going.address)
        running.wait_for("records in")
        going.kill()
        assert running.wait() == 1
    assert "does not answer any more" in running.told
    assert "Traceback" not in running.told
    send(server.bootstrap, topic, numbered(10, start=10))
    run_job(tmp_path, *words, *there)
    rows = archive.read(spark, str(tmp_path / "kept")).select("value").collect()
    assert sorted(int(bytes(row.value)) for row in rows) == list(range(20))


@pytest.mark.long
def test_a_server_without_the_connector_and_a_setting_of_its_start_are_reported(
    server: RunningServer, there: list[str], java: object, tmp_path: Path
) -> None:
    words = ["archive", "--topic", "t", "--into", "kept"]
    static = ["--conf", "spark.sql.warehouse.dir=elsewhere"]
    told = run_job(tmp_path, *words, *there, *static, status=2).stderr
    assert "Give such settings to the Connect server when it starts." in told
    with ConnectServer(tmp_path, has_connector=False) as bare:
        told = run_job(tmp_path, *words, "--master", bare.address, status=2).stderr
    assert "Start it with: --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0" in told


@pytest.mark.long
def test_an_unknown_topic_and_a_server_that_is_none_are_told_from_there(
    server: RunningServer, there: list[str], connect: ConnectServer, tmp_path: Path
) -> None:
    words = ["archive", "--into", "kept", "--topic", "is-not-there"]
    told = run_job(tmp_path, *words, *there, status=1).stderr
    assert f"Topic is-not-there does not exist at {server.bootstrap}" in told
    host, port = server.address("http")
    wrong = ["--bootstrap", f"{host}:{port}", "--kafka-option", "default.api.timeout.ms=1500"]
    told = run_job(tmp_path, *words, "--master", connect.address, *wrong, status=1).stderr
    assert f"No Kafka server responds at {host}:{port}" in told
