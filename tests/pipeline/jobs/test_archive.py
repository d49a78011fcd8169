"""Topics to Parquet: every record once, whatever happens in between."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.gateway.server import RunningServer
from tests.spark import MARKS, Record, new_topic, numbered, send, shared_session

from rockgate.pipeline.errors import NotReachable, UnknownTopic, WrongCheckpoint
from rockgate.pipeline.files import archive, compaction
from rockgate.pipeline.files.archive import Part
from rockgate.pipeline.files.compaction import Merging
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.jobs.archive import Options, run
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics

pytestmark = MARKS

DAY_MS = 86_400_000
NOON_MS = 20_000 * DAY_MS + DAY_MS // 2  # 2024-10-04


def options(cluster: Cluster, topic: str, into: Path, **more: Any) -> Options:
    return Options(cluster=cluster, topics=Topics(names=(topic,)), into=str(into), **more)


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row.value)) for row in frame.select("value").collect())


def test_nothing_of_a_record_is_lost(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap, 2)
    records = [
        Record(value=b"v", key=b"k", timestamp=NOON_MS, headers=(("h", b"1"), ("h", b"2"))),
        Record(value=None, key=b"gone", timestamp=NOON_MS + DAY_MS, partition=1),
        Record(value=b"", key=None, timestamp=NOON_MS + DAY_MS + 1, partition=1),
    ]
    send(cluster.bootstrap, topic, records)
    run(spark, options(cluster, topic, tmp_path), reporter)
    rows = archive.read(spark, str(tmp_path)).orderBy("partition", "offset").collect()
    offsets = [0, 0, 1]
    for row, record, offset in zip(rows, records, offsets, strict=True):
        assert (row.topic, row.partition, row.offset) == (topic, record.partition, offset)
        assert (row.key, row.value) == (record.key, record.value)
        assert tuple((h.key, bytes(h.value)) for h in row.headers or ()) == record.headers
        assert row.timestamp.timestamp() * 1000 == record.timestamp
        assert row.timestampType == 0
    folders = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("topic=*/date=*"))
    assert folders == [f"topic={topic}/date=2024-10-04", f"topic={topic}/date=2024-10-05"]


def test_a_rerun_archives_what_came_since_and_nothing_twice(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, told: io.StringIO, tmp_path: Path
) -> None:
    topic, sent = new_topic(cluster.bootstrap, 2), 0
    chosen = options(cluster, topic, tmp_path, reading=Reading(offsets_per_batch=40))
    for more in (100, 0, 30):
        send(cluster.bootstrap, topic, numbered(more, 2, start=sent))
        sent += more
        run(spark, chosen, reporter)
        assert numbers(archive.read(spark, str(tmp_path))) == list(range(sent))
    assert reporter.records == 130
    assert "130 total" in told.getvalue()
    # As any reader of Parquet sees it, the job's own folders left out.
    assert numbers(spark.read.parquet(str(tmp_path))) == list(range(sent))


def test_small_files_are_merged_and_a_reader_sees_every_record_once(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, told: io.StringIO, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap)
    send(cluster.bootstrap, topic, (Record(value=b"%d" % n, timestamp=NOON_MS) for n in range(50)))
    chosen = options(
        cluster,
        topic,
        tmp_path,
        reading=Reading(offsets_per_batch=10),
        merging=Merging(files_min=4),
    )
    run(spark, chosen, reporter)
    files = Files(spark, str(tmp_path))
    assert [(part.first, part.last) for part in archive.live(files)] == [(0, 39), (40, 49)]
    assert len(list(tmp_path.glob("topic=*/date=*/*.parquet"))) == 2
    assert numbers(archive.read(spark, str(tmp_path))) == list(range(50))
    assert "merged 4 files" in told.getvalue()


@pytest.fixture(scope="module")
def three_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of thirty records in three files of one place."""
    root, spark = tmp_path_factory.mktemp("three"), shared_session()
    rows = [(b"", b"%d" % n, None, 0, n, 0, "t", "2024-10-04") for n in range(30)]
    schema = archive.SCHEMA.replace("timestamp timestamp, ", "")
    table = spark.createDataFrame(rows, schema).selectExpr("*", "timestamp_millis(0) timestamp")
    for start in (0, 10, 20):
        part = table.where(f"offset between {start} and {start + 9}")
        archive.publish(Files(spark, str(root)), spark, part, "b")
    return root


@pytest.mark.parametrize("moment", ["before the rename", "after the rename", "half deleted"])
def test_a_merge_that_is_interrupted_shows_every_record_once(
    spark: SparkSession,
    three_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    shutil.copytree(three_files, tmp_path, dirs_exist_ok=True)
    files, rename, delete = Files(spark, str(tmp_path)), Files.rename, Files.delete
    deletions = iter({"after the rename": [], "half deleted": [1]}.get(moment, [1, 2, 3]))

    def failing_rename(self: Files, source: str, target: str) -> None:
        if moment == "before the rename":
            raise KeyboardInterrupt
        rename(self, source, target)

    def failing_delete(self: Files, path: str) -> None:
        if path.startswith("topic=") and next(deletions, None) is None:
            raise KeyboardInterrupt
        delete(self, path)

    with monkeypatch.context() as broken:
        broken.setattr(Files, "rename", failing_rename)
        broken.setattr(Files, "delete", failing_delete)
        with pytest.raises(KeyboardInterrupt):
            compaction.merge(spark, files, archive.live(files))
    assert numbers(archive.read(spark, str(tmp_path))) == list(range(30))
    left = {"before the rename": 0, "after the rename": 3, "half deleted": 2}[moment]
    assert compaction.sweep(files) == left
    assert numbers(spark.read.parquet(str(tmp_path))) == list(range(30))


def test_a_batch_that_is_done_again_changes_nothing(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap, 2)
    send(cluster.bootstrap, topic, numbered(40, 2))
    run(spark, options(cluster, topic, tmp_path), reporter)
    # As after kill -9 between the last rename and the note that the batch is done.
    for kept in (tmp_path / "_checkpoint" / "commits").glob("*0*"):
        kept.unlink()
    before = {path.name for path in tmp_path.glob("topic=*/date=*/*.parquet")}
    run(spark, options(cluster, topic, tmp_path), reporter)
    assert {path.name for path in tmp_path.glob("topic=*/date=*/*.parquet")} == before
    assert numbers(spark.read.parquet(str(tmp_path))) == list(range(40))


def test_an_unknown_topic_and_a_wrong_server_are_reported(
    spark: SparkSession, cluster: Cluster, server: RunningServer, reporter: Reporter, tmp_path: Path
) -> None:
    with pytest.raises(UnknownTopic, match="Topic is-not-there does not exist at 127"):
        run(spark, options(cluster, "is-not-there", tmp_path), reporter)
    host, port = server.address("http")
    quick = {"default.api.timeout.ms": "1500", "request.timeout.ms": "1000"}
    wrong = Cluster(bootstrap=f"{host}:{port}", options=quick)
    with pytest.raises(NotReachable, match=f"No Kafka server responds at {host}:{port}"):
        run(spark, options(wrong, "t", tmp_path), reporter)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_other_topics_is_refused(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    one, two = new_topic(cluster.bootstrap), new_topic(cluster.bootstrap)
    send(cluster.bootstrap, one, numbered(3))
    run(spark, options(cluster, one, tmp_path), reporter)
    with pytest.raises(
        WrongCheckpoint, match=f"created with topics={one}, but this run has topics={two}"
    ):
        run(spark, options(cluster, two, tmp_path), reporter)
    assert numbers(archive.read(spark, str(tmp_path))) == [0, 1, 2]


def test_rows_are_a_function_of_records_alone(spark: SparkSession) -> None:
    record = spark.createDataFrame(
        [(b"k", b"v", "7", 3, 12, 0, [("h", b"x")])],
        "key binary, value binary, topic string, partition int, offset bigint, timestampType int, "
        "headers array<struct<key: string, value: binary>>",
    ).selectExpr("*", "timestamp'2024-10-04 23:59:59.999Z' timestamp")
    [row] = archive.rows(record).collect()
    assert (row.topic, row.date, row.partition, row.offset) == ("7", "2024-10-04", 3, 12)
    assert [(h.key, bytes(h.value)) for h in row.headers] == [("h", b"x")]


def test_a_topic_called_like_a_number_stays_text(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    row = spark.sql(
        "select cast('k' as binary) key, cast('v' as binary) value, "
        "cast(null as array<struct<key: string, value: binary>>) headers, 0 partition, "
        "bigint(5) offset, timestamp_millis(0) timestamp, 0 timestampType, '007' topic, "
        "'1970-01-01' date"
    )
    [part] = archive.publish(files, spark, row, "b")
    assert part == Part(
        topic="007", date="1970-01-01", partition=0, first=5, last=5, size=part.size
    )
    [back] = archive.read(spark, str(tmp_path)).collect()
    assert (back.topic, back.offset) == ("007", 5)
