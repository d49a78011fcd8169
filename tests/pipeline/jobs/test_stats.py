"""Figures about topics and groups: counted right, and put where they were asked for."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from tests.spark import MARKS, Record, new_topic, read_topic, send
from tests.waiting import wait_until

from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.jobs.stats import Options, lag_rows, latency, run, windows
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.kafka import Cluster, Topics
from rockgate.pipeline.stream import Pace, Stopping

pytestmark = MARKS

BASE_MS = 1_700_000_040_000  # The beginning of a minute.


def test_windows_count_records_bytes_and_time(spark: SparkSession) -> None:
    """A minute of `a` with 3 records, the next with 1; `b` has one of 60 bytes."""
    rows = [
        ("a", BASE_MS + 1, b"k", b"12345", [("h", b"12")], 10),
        ("a", BASE_MS + 59_999, None, b"1234567", None, 20),
        ("a", BASE_MS + 30_000, None, None, None, 30),
        ("a", BASE_MS + 60_000, None, b"", None, 5),
        ("b", BASE_MS, b"k" * 10, b"v" * 50, [], 7),
    ]
    schema = (
        "topic string, ms bigint, key binary, value binary, "
        "headers array<struct<key: string, value: binary>>, took int"
    )
    table = spark.createDataFrame(rows, schema).selectExpr("*", "timestamp_millis(ms) timestamp")
    found = windows(table, "1 minute", table.took).orderBy("topic", "start").collect()
    assert [
        (
            row.topic,
            (row.start.timestamp() * 1000 - BASE_MS, row.end.timestamp() * 1000 - BASE_MS),
            (row.records, row.bytes, row.bytes_max),
            (row.latency_p50_ms, row.latency_p99_ms, row.latency_max_ms),
        )
        for row in found
    ] == [
        ("a", (0, 60_000), (3, 16, 9), (20, 30, 30)),
        ("a", (60_000, 120_000), (1, 0, 0), (5, 5, 5)),
        ("b", (0, 60_000), (1, 60, 60), (7, 7, 7)),
    ]
    assert found[0].records_per_second == pytest.approx(3 / 60)
    assert found[0].bytes_per_second == pytest.approx(16 / 60)


def test_time_is_counted_from_a_header(spark: SparkSession) -> None:
    table = spark.sql(
        f"select timestamp_millis({BASE_MS}) timestamp, "
        f"array(struct('sent' as key, cast('{BASE_MS - 250}' as binary) as value)) headers "
        f"union all select timestamp_millis({BASE_MS}), array(struct('sent', cast('?' as binary)))"
    )
    taken = latency("sent", is_following=False)
    assert taken is not None
    assert [row[0] for row in table.select(taken).collect()] == [250, None]
    assert latency("", is_following=False) is None


def test_lag_is_what_lies_behind_the_committed_offset() -> None:
    time = datetime(2026, 11, 16, tzinfo=UTC)
    committed = {"g": {("t", 0): 4, ("t", 1): 12, ("other", 0): 3}, "idle": {}}
    ends = {("t", 0): 10, ("t", 1): 11, ("t", 2): 5}
    assert lag_rows(time, committed, ends) == [
        (time, "g", "t", 0, 4, 10, 6),
        # Records may have been deleted behind a commit: less than nothing is not behind.
        (time, "g", "t", 1, 12, 11, 0),
    ]


def test_figures_go_to_files_to_a_topic_and_to_a_page(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    topic, out = new_topic(cluster.bootstrap, 2), new_topic(cluster.bootstrap)
    send(
        cluster.bootstrap,
        topic,
        (Record(value=b"x" * 10, partition=n % 2, timestamp=BASE_MS + n * 1000) for n in range(90)),
    )
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "behind"})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 40)], asynchronous=False)
    finally:
        consumer.close()
    page = tmp_path / "report.html"
    chosen = Options(
        cluster=cluster,
        topics=Topics(names=(topic,)),
        groups=("behind",),
        into=str(tmp_path / "out"),
        to_topic=out,
        report=str(page),
    )
    run(spark, chosen, reporter)
    kept = spark.read.parquet(str(tmp_path / "out" / "windows")).orderBy("start").collect()
    assert [(row.topic, row.records, row.bytes) for row in kept] == [
        (topic, 60, 600),
        (topic, 30, 300),
    ]
    [behind] = spark.read.parquet(str(tmp_path / "out" / "lag")).collect()
    assert (behind.group, behind.partition, behind.committed, behind.lag) == ("behind", 0, 40, 5)
    values = [json.loads(m.value()) for m in read_topic(cluster.bootstrap, out, 3)]
    assert [(each["kind"], each.get("records"), each.get("lag")) for each in values] == [
        ("window", 60, None),
        ("window", 30, None),
        ("lag", None, 5),
    ]
    text = page.read_text(encoding="utf-8")
    assert f"<td>{topic}</td><td>90</td>" in text
    assert "<td>behind</td>" in text


@pytest.mark.long
def test_following_gives_each_window_once_when_it_is_over(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap)
    chosen = Options(
        cluster=cluster,
        topics=Topics(names=(topic,)),
        late="0 seconds",
        into=str(tmp_path / "out"),
        pace=Pace(is_following=True, every="100 milliseconds"),
        checkpoint=str(tmp_path / "checkpoint"),
    )
    minutes = [Record(value=b"x", timestamp=BASE_MS + n * 20_000) for n in range(10)]
    send(cluster.bootstrap, topic, minutes)
    stopping = Stopping()

    def kept() -> list[tuple[int, int]]:
        try:
            rows = spark.read.parquet(str(tmp_path / "out" / "windows")).collect()
        except Exception:  # noqa: BLE001 - there is no file yet, or not all of one.
            return []
        return sorted((int(row.start.timestamp() * 1000) - BASE_MS, row.records) for row in rows)

    thread = threading.Thread(target=run, args=(spark, chosen, reporter, stopping))
    thread.start()
    try:
        wait_until(lambda: len(kept()) >= 3 or not thread.is_alive(), "three windows are over", 60)
    finally:
        stopping.request()
        thread.join()
    assert kept() == [(0, 3), (60_000, 3), (120_000, 3)]


def test_figures_need_a_place_to_go_to(
    spark: SparkSession, cluster: Cluster, reporter: Reporter
) -> None:
    with pytest.raises(BadOption, match="Give an output: "):
        run(spark, Options(cluster=cluster, topics=Topics(names=("t",))), reporter)
