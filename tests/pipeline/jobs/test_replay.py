"""The archive back to topics: what is chosen, in its order, once, and not too fast."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.sql import SparkSession
from tests.spark import MARKS, new_topic, read_topic, shared_session
from tests.waiting import wait_until

from rockgate.pipeline.errors import BadOption, Stopped, UnknownTopic, WrongCheckpoint
from rockgate.pipeline.files import archive
from rockgate.pipeline.files.archive import Part
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.jobs import replay
from rockgate.pipeline.jobs.replay import Options, Selection, plan, records, run
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.kafka import Cluster
from rockgate.pipeline.stream import Stopping

pytestmark = MARKS

BASE_MS = 1_700_000_000_000
COUNT = 60


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty records of `shop` in three partitions, a second apart, in three steps."""
    root, spark = tmp_path_factory.mktemp("archived"), shared_session()
    table = spark.range(COUNT).selectExpr(
        "cast(concat('k', id) as binary) key",
        "cast(string(id) as binary) value",
        "array(struct('n' as key, cast(string(id) as binary) as value)) headers",
        "int(id % 3) partition",
        "id div 3 offset",
        f"timestamp_millis({BASE_MS} + id * 1000) timestamp",
        "0 timestampType",
        "'shop' topic",
    )
    rows = archive.rows(table)
    for start in (0, 7, 14):
        step = rows.where(f"offset between {start} and {start + 6}")
        archive.publish(Files(spark, str(root)), spark, step, "b")
    return root


def options(cluster: Cluster, archived: Path, to: str, tmp_path: Path, **more: Any) -> Options:
    place = {"archive": str(archived), "checkpoint": str(tmp_path / "checkpoint")}
    return Options(cluster=cluster, to=to, **{**place, **more})


def told_of(messages: list[Message]) -> list[tuple[int, bytes, bytes, Any]]:
    return [(m.partition(), m.key(), m.value(), m.headers()) for m in messages]


def expected(numbers: list[int]) -> list[tuple[int, bytes, bytes, Any]]:
    """In the order of partitions and, within one, of offsets."""
    return [
        (p, b"k%d" % n, b"%d" % n, [("n", b"%d" % n)])
        for p in range(3)
        for n in numbers
        if n % 3 == p
    ]


def test_keys_headers_partitions_and_their_order_are_kept(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, archived: Path, tmp_path: Path
) -> None:
    chosen = options(cluster, archived, "again.{topic}", tmp_path, step_records=25)
    run(spark, chosen, reporter)
    found = read_topic(cluster.bootstrap, "again.shop", COUNT, 3)
    assert told_of(found) == expected(list(range(COUNT)))
    # A rerun finds nothing left to do.
    run(spark, chosen, reporter)
    read_topic(cluster.bootstrap, "again.shop", COUNT, 3)


def test_a_time_range_and_a_condition_choose(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, archived: Path, tmp_path: Path
) -> None:
    selection = Selection(
        topics=("shop",),
        since=datetime.fromtimestamp(BASE_MS / 1000 + 10, UTC),
        until=datetime.fromtimestamp(BASE_MS / 1000 + 50, UTC),
        where="int(string(value)) % 2 = 0",
    )
    topic = new_topic(cluster.bootstrap, 3)
    chosen = options(
        cluster, archived, topic, tmp_path, selection=selection, timestamp_header="sent"
    )
    run(spark, chosen, reporter)
    numbers = list(range(10, 50, 2))
    found = read_topic(cluster.bootstrap, topic, len(numbers), 3)
    assert told_of(found) == [
        (at, key, value, [*headers, ("sent", b"%d" % (BASE_MS + int(value) * 1000))])
        for at, key, value, headers in expected(numbers)
    ]


def test_with_a_delay_records_appear_that_long_after_they_were_written(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, archived: Path, tmp_path: Path
) -> None:
    chosen = options(cluster, archived, "later.{topic}", tmp_path, delay_ms=2_000)
    began_ms = time.time() * 1000
    run(spark, chosen, reporter)
    each = COUNT // 3
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "looks"})

    def end(partition: int) -> int:
        place = TopicPartition("later.shop", partition)
        found: int = consumer.get_watermark_offsets(place, timeout=60, cached=False)[1]
        return found

    # Each takes an offset when it is written, and another one when it appears.
    wait_until(lambda: [end(p) for p in range(3)] == [2 * each] * 3, "all have appeared", 60)
    consumer.close()
    assert time.time() * 1000 >= began_ms + 2_000
    found = read_topic(cluster.bootstrap, "later.shop", COUNT, 3)
    assert told_of(found) == expected(list(range(COUNT)))
    assert min(message.offset() for message in found) >= each


def test_a_delay_is_refused_where_records_would_not_wait(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, archived: Path, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap, 3)
    with pytest.raises(BadOption) as refused:
        run(spark, options(cluster, archived, topic, tmp_path, delay_ms=1), reporter)
    assert f"Topic {topic} has message.type=NORMAL" in str(refused.value)
    assert f"rockgate topics alter {topic} --config message.type=MIXED" in str(refused.value)
    read_topic(cluster.bootstrap, topic, 0, 3)


def test_a_replay_that_is_stopped_continues_without_a_gap_or_a_repetition(
    spark: SparkSession,
    cluster: Cluster,
    reporter: Reporter,
    told: io.StringIO,
    archived: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, stopping, write = new_topic(cluster.bootstrap, 3), Stopping(), kafka.write

    def stop_in_the_second_step(*arguments: Any) -> None:
        write(*arguments)
        if "step 0" in told.getvalue():
            stopping.request()

    monkeypatch.setattr(kafka, "write", stop_in_the_second_step)
    chosen = options(cluster, archived, topic, tmp_path, step_records=15)
    with pytest.raises(
        Stopped, match=r"^stopped with 30 offsets left; run the same command to continue"
    ):
        run(spark, chosen, reporter, stopping)
    read_topic(cluster.bootstrap, topic, 30, 3)
    run(spark, chosen, reporter, Stopping())
    found = read_topic(cluster.bootstrap, topic, COUNT, 3)
    assert told_of(found) == expected(list(range(COUNT)))


def test_a_rate_makes_steps_and_pauses(
    spark: SparkSession,
    cluster: Cluster,
    reporter: Reporter,
    archived: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(Stopping, "wait", lambda self, seconds: pauses.append(seconds))
    # The clock stands still: what is sent is then always ahead of its time.
    monkeypatch.setattr(replay, "time", SimpleNamespace(monotonic=lambda: 0.0))
    topic = new_topic(cluster.bootstrap, 3)
    run(spark, options(cluster, archived, topic, tmp_path, rate=15), reporter)
    assert pauses == [2.0, 4.0]
    read_topic(cluster.bootstrap, topic, COUNT, 3)


def test_mistakes_are_reported_before_anything_is_written(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, archived: Path, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap, 3)
    with pytest.raises(UnknownTopic, match="No records of bar are archived"):
        selection = Selection(topics=("bar",))
        run(spark, options(cluster, archived, topic, tmp_path, selection=selection), reporter)
    with pytest.raises(BadOption, match=r"Invalid --where: .*colour"):
        selection = Selection(where="colour = 'red'")
        run(spark, options(cluster, archived, topic, tmp_path, selection=selection), reporter)
    with pytest.raises(Stopped):
        run(spark, options(cluster, archived, topic, tmp_path), reporter, _stopped())
    with pytest.raises(
        WrongCheckpoint, match="created with where=, but this run has where=partition"
    ):
        selection = Selection(where="partition = 1")
        run(spark, options(cluster, archived, topic, tmp_path, selection=selection), reporter)
    read_topic(cluster.bootstrap, topic, 0, 3)


def _stopped() -> Stopping:
    stopping = Stopping()
    stopping.request()
    return stopping


def part(partition: int, first: int, last: int, topic: str = "t") -> Part:
    return Part(topic=topic, date="2024-10-04", partition=partition, first=first, last=last)


def test_a_plan_takes_every_offset_once_in_order() -> None:
    parts = [part(0, 0, 99), part(0, 100, 149), part(1, 20, 29)]
    steps = list(plan(parts, {}, 50))
    assert len(steps) == 4
    for at, first, end in ((("t", 0), 0, 150), (("t", 1), 20, 30)):
        ranges = [step[at] for step in steps if at in step]
        assert ranges[0][0] == first
        assert ranges[-1][1] == end
        assert all(one[1] == two[0] for one, two in pairwise(ranges))


def test_a_plan_leaves_out_what_is_done() -> None:
    assert list(plan([part(0, 0, 99)], {("t", 0): 100}, 10)) == []
    assert list(plan([part(0, 0, 99)], {("t", 0): 95}, 10)) == [{("t", 0): (95, 100)}]


def test_records_of_one_partition_are_in_order_however_the_rows_came(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr(
        "'t' topic",
        "int(id % 2) partition",
        "cast(null as binary) key",
        "cast(string(id) as binary) value",
        "cast(null as array<struct<key: string, value: binary>>) headers",
        "id offset",
        "timestamp_millis(0) timestamp",
    )
    out = records(rows.orderBy("offset", ascending=False).repartition(7), "x-{topic}")
    found = [(r.partition, int(bytes(r.value)), r.topic) for r in out.collect()]
    for partition in range(2):
        own = [number for p, number, _ in found if p == partition]
        assert own == sorted(own)
        assert len(own) == 100
    assert {topic for _, _, topic in found} == {"x-t"}
