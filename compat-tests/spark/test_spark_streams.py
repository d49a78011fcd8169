"""Spark's streaming source on the server: triggers, limits, checkpoints, and topics that change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.spark import MARKS, create_topic, grow_topic, new_topic, numbered, send
from tests.waiting import wait_until

pytestmark = MARKS
CLIENT = f"spark {version('pyspark')}"

SECONDS_MAX = 60.0
QUICK = {"processingTime": "100 milliseconds"}
ONCE = {"availableNow": True}


def stream(spark: SparkSession, server: RunningServer, **options: Any) -> DataFrame:
    """A stream of the Kafka source from the beginning, unless the options say otherwise."""
    reader = spark.readStream.format("kafka").options(
        **{"kafka.bootstrap.servers": server.bootstrap, "startingOffsets": "earliest", **options}
    )
    return reader.load()


class Collected:
    """Everything that a query has delivered, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, int, int, bytes]]] = []

    def __call__(self, frame: DataFrame, _: int) -> None:
        rows = frame.select("topic", "partition", "offset", "value").collect()
        self.batches.append([(r.topic, r.partition, r.offset, bytes(r.value)) for r in rows])

    @property
    def values(self) -> list[bytes]:
        return [row[3] for batch in self.batches for row in batch]

    @property
    def numbers(self) -> list[int]:
        return sorted(int(value) for value in self.values)


@contextmanager
def running(frame: DataFrame, into: Any, trigger: dict[str, Any]) -> Iterator[StreamingQuery]:
    """A query that is stopped at the end; its own failure is raised."""
    query = frame.writeStream.foreachBatch(into).trigger(**trigger).start()
    try:
        yield query
    finally:
        query.stop()


def to_files(frame: DataFrame, folder: Path, trigger: dict[str, Any]) -> StreamingQuery:
    """A query into Parquet with its checkpoint beside: the sink that is exactly once."""
    writer = frame.select("partition", "offset", "value").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.option("path", str(folder / "out")).trigger(**trigger).start()


def in_files(spark: SparkSession, folder: Path) -> list[int]:
    """The numbers in the files, sorted; a number that is there twice is there twice."""
    rows = spark.read.parquet(str(folder / "out")).select("value").collect()
    return sorted(int(bytes(row.value)) for row in rows)


def test_a_checkpoint_resumes_with_nothing_lost_and_nothing_twice(
    spark: SparkSession, server: RunningServer, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap, 3)
    sent = 0
    for more in (100, 57, 0, 200):
        send(server.bootstrap, topic, numbered(more, 3, start=sent))
        sent += more
        query = to_files(stream(spark, server, subscribe=topic), tmp_path, ONCE)
        assert query.awaitTermination(SECONDS_MAX)
        assert in_files(spark, tmp_path) == list(range(sent))


def test_a_stream_stopped_at_any_moment_continues_where_it_was(
    spark: SparkSession, server: RunningServer, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap, 2)
    random = seeded()
    send(server.bootstrap, topic, numbered(3000, 2))
    frame = stream(spark, server, subscribe=topic, maxOffsetsPerTrigger=500)
    for _ in range(2):
        query = to_files(frame, tmp_path, QUICK)
        enough = random.randrange(1, 3)
        wait_until(
            lambda q=query, e=enough: len(q.recentProgress) >= e, "a batch is through", SECONDS_MAX
        )
        query.stop()
    query = to_files(frame, tmp_path, ONCE)
    assert query.awaitTermination(SECONDS_MAX)
    assert in_files(spark, tmp_path) == list(range(3000))


def test_a_trigger_by_time_delivers_what_comes_and_keeps_the_order_of_a_partition(
    spark: SparkSession, server: RunningServer
) -> None:
    topic, into = new_topic(server.bootstrap, 2), Collected()
    with running(stream(spark, server, subscribe=topic), into, QUICK):
        for start in (0, 40, 80):
            send(server.bootstrap, topic, numbered(40, 2, start=start))
            wait_until(lambda s=start: len(into.values) >= s + 40, "it is delivered", SECONDS_MAX)
    assert into.numbers == list(range(120))
    for partition in range(2):
        rows = [row for batch in into.batches for row in sorted(batch) if row[1] == partition]
        assert [(row[2], int(row[3])) for row in rows] == [
            (n, n * 2 + partition) for n in range(60)
        ]


def test_latest_starts_at_the_end(spark: SparkSession, server: RunningServer) -> None:
    topic, into = new_topic(server.bootstrap), Collected()
    send(server.bootstrap, topic, numbered(10))
    with running(
        stream(spark, server, subscribe=topic, startingOffsets="latest"), into, QUICK
    ) as q:
        # The start is fixed in the first progress; what comes later must be delivered.
        wait_until(lambda: q.lastProgress, "the query has looked once", SECONDS_MAX)
        send(server.bootstrap, topic, numbered(5, start=10))
        wait_until(lambda: len(into.values) >= 5, "the new ones are delivered", SECONDS_MAX)
    assert into.numbers == [10, 11, 12, 13, 14]


def test_a_batch_has_at_most_so_many_offsets(spark: SparkSession, server: RunningServer) -> None:
    topic, into = new_topic(server.bootstrap, 2), Collected()
    send(server.bootstrap, topic, numbered(100, 2))
    with running(stream(spark, server, subscribe=topic, maxOffsetsPerTrigger=30), into, ONCE) as q:
        assert q.awaitTermination(SECONDS_MAX)
    assert [len(batch) <= 30 for batch in into.batches] == [True] * len(into.batches)
    assert len(into.batches) >= 4
    assert into.numbers == list(range(100))


def test_a_batch_waits_for_so_many_offsets(spark: SparkSession, server: RunningServer) -> None:
    topic, into = new_topic(server.bootstrap), Collected()
    send(server.bootstrap, topic, numbered(10))
    frame = stream(spark, server, subscribe=topic, minOffsetsPerTrigger=50, maxTriggerDelay="10m")
    with running(frame, into, QUICK):
        # The first batch never waits; from then on fifty are needed.
        wait_until(lambda: len(into.values) == 10, "the first are delivered", SECONDS_MAX)
        send(server.bootstrap, topic, numbered(49, start=10))
        # Another query reads all of it meanwhile; in that time this one looks several times.
        with running(stream(spark, server, subscribe=topic), beside := Collected(), ONCE) as other:
            assert other.awaitTermination(SECONDS_MAX)
        assert beside.numbers == list(range(59))
        assert len(into.values) == 10
        send(server.bootstrap, topic, numbered(1, start=59))
        wait_until(lambda: len(into.values) == 60, "fifty are delivered", SECONDS_MAX)
    assert [len(batch) for batch in into.batches if batch] == [10, 50]
    assert into.numbers == list(range(60))


def test_min_partitions_splits_a_batch_of_a_stream(
    spark: SparkSession, server: RunningServer
) -> None:
    topic, counts, into = new_topic(server.bootstrap), [], Collected()
    send(server.bootstrap, topic, numbered(100))

    def both(frame: DataFrame, number: int) -> None:
        counts.append(frame.rdd.getNumPartitions())
        into(frame, number)

    with running(stream(spark, server, subscribe=topic, minPartitions=4), both, ONCE) as query:
        assert query.awaitTermination(SECONDS_MAX)
    assert counts == [4]
    assert into.numbers == list(range(100))


def test_new_partitions_and_new_topics_are_read_from_their_beginning(
    spark: SparkSession, server: RunningServer
) -> None:
    first, into = new_topic(server.bootstrap), Collected()
    send(server.bootstrap, first, numbered(10))
    frame = stream(
        spark, server, subscribePattern=f"{first}(-.*)?", **{"kafka.metadata.max.age.ms": "200"}
    )
    with running(frame, into, QUICK):
        wait_until(lambda: len(into.values) == 10, "the first are delivered", SECONDS_MAX)
        grow_topic(server.bootstrap, first, 3)
        send(server.bootstrap, first, numbered(30, 3, start=10))
        wait_until(lambda: len(into.values) == 40, "new partitions are read", SECONDS_MAX)
        create_topic(server.bootstrap, f"{first}-b", 2)
        send(server.bootstrap, f"{first}-b", numbered(20, 2, start=40))
        wait_until(lambda: len(into.values) == 60, "the new topic is read", SECONDS_MAX)
    assert into.numbers == list(range(60))
    places = {row[:2] for batch in into.batches for row in batch}
    assert places == {(first, 0), (first, 1), (first, 2), (f"{first}-b", 0), (f"{first}-b", 1)}


def test_a_stream_of_read_committed_continues_over_aborted_transactions(
    spark: SparkSession, server: RunningServer
) -> None:
    topic, into = new_topic(server.bootstrap, 2), Collected()
    settings = {"bootstrap.servers": server.bootstrap, "transactional.id": topic}
    producer = Producer({**settings, "linger.ms": 1})
    producer.init_transactions(30)

    def transaction(start: int, *, is_committed: bool) -> None:
        producer.begin_transaction()
        for number in range(start, start + 10):
            producer.produce(topic, b"%d" % number, partition=number % 2)
        if is_committed:
            producer.commit_transaction(30)
        else:
            assert producer.flush(60) == 0
            producer.abort_transaction(30)

    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    with running(stream(spark, server, **options), into, QUICK):
        for start in (0, 20, 40):
            transaction(start, is_committed=True)
            transaction(start + 10, is_committed=False)
            count = start // 2 + 10
            wait_until(lambda c=count: len(into.values) >= c, "it is delivered", SECONDS_MAX)
    assert into.numbers == [*range(10), *range(20, 30), *range(40, 50)]


def delete_records(server: RunningServer, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    assert deleted.result(60).low_watermark == before


def test_records_deleted_before_they_were_read_fail_the_query_or_are_passed_over(
    spark: SparkSession, server: RunningServer, tmp_path: Path
) -> None:
    topic = new_topic(server.bootstrap)
    send(server.bootstrap, topic, numbered(10))
    query = to_files(stream(spark, server, subscribe=topic), tmp_path, ONCE)
    assert query.awaitTermination(SECONDS_MAX)
    send(server.bootstrap, topic, numbered(30, start=10))
    delete_records(server, topic, 25)
    strict = to_files(stream(spark, server, subscribe=topic), tmp_path, ONCE)
    with pytest.raises(StreamingQueryException, match="data may have been lost"):
        strict.awaitTermination(SECONDS_MAX)
    lenient = stream(spark, server, subscribe=topic, failOnDataLoss="false")
    query = to_files(lenient, tmp_path, ONCE)
    assert query.awaitTermination(SECONDS_MAX)
    assert in_files(spark, tmp_path) == [*range(10), *range(25, 40)]


@pytest.mark.long
def test_retention_in_the_middle_of_a_stream_is_passed_over_on_request(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The server's own retention, not an order: segments of the topic become too old and go."""
    settings = ["store.retention_interval_ms=200", "store.segment_bytes=1048576"]
    (tmp_path / "server").mkdir()
    with RunningServer(tmp_path / "server", settings=settings) as server:
        topic = new_topic(server.bootstrap)
        send(server.bootstrap, topic, numbered(10))
        frame = stream(spark, server, subscribe=topic, failOnDataLoss="false")
        assert to_files(frame, tmp_path, ONCE).awaitTermination(SECONDS_MAX)
        send(server.bootstrap, topic, numbered(1000, start=10))
        set_retention(server, topic, "1")
        wait_until(lambda: earliest(server, topic) >= 1010, "retention has come", SECONDS_MAX)
        set_retention(server, topic, "-1")
        send(server.bootstrap, topic, numbered(10, start=1010))
        assert to_files(frame, tmp_path, ONCE).awaitTermination(SECONDS_MAX)
        assert in_files(spark, tmp_path) == [*range(10), *range(1010, 1020)]


def set_retention(server: RunningServer, topic: str, milliseconds: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    entry = ConfigEntry("retention.ms", milliseconds, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)


def earliest(server: RunningServer, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    [asked] = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()}).values()
    return int(asked.result(60).offset)


def test_a_server_killed_in_the_middle_of_a_stream_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "server").mkdir()
    with RunningServer(tmp_path / "server") as server:
        topic = new_topic(server.bootstrap, 2)
        send(server.bootstrap, topic, numbered(2000, 2))
        frame = stream(spark, server, subscribe=topic, maxOffsetsPerTrigger=300)
        query = to_files(frame, tmp_path, QUICK)
        wait_until(lambda: len(query.recentProgress) >= 2, "two batches are through", SECONDS_MAX)
        server.kill()
        server.restart()
        send(server.bootstrap, topic, numbered(500, 2, start=2000))
        wait_until(
            lambda: not query.isActive or len(in_files(spark, tmp_path)) >= 2500,
            "everything is delivered",
            SECONDS_MAX,
        )
        # The one query outlives the server: its clients dial again.
        assert query.exception() is None
        query.stop()
        assert in_files(spark, tmp_path) == list(range(2500))
        assert "Traceback" not in server.log


def test_a_group_id_of_the_user_is_taken(spark: SparkSession, server: RunningServer) -> None:
    topic, into = new_topic(server.bootstrap), Collected()
    send(server.bootstrap, topic, numbered(5))
    options = {"assign": json.dumps({topic: [0]}), "kafka.group.id": "spark-own-group"}
    with running(stream(spark, server, **options), into, ONCE) as query:
        assert query.awaitTermination(SECONDS_MAX)
    assert into.numbers == [0, 1, 2, 3, 4]


def test_records_that_spark_delays_come_to_another_stream_when_they_are_due(
    spark: SparkSession, server: RunningServer
) -> None:
    topic = new_topic(server.bootstrap, 1, message_type="DELAY")
    schema = "value binary, headers array<struct<key: string, value: binary>>"
    soon, never = [("TIMER_DELAY_MS", b"1500")], [("TIMER_DELAY_SEC", b"86400")]
    rows = [(b"0", soon), (b"1", None), (b"2", soon), (b"3", never)]
    kafka = {"kafka.bootstrap.servers": server.bootstrap, "includeHeaders": "true"}
    found = Collected()
    with running(stream(spark, server, subscribe=topic), found, QUICK):
        frame = spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.format("kafka").options(**kafka, topic=topic).save()
        wait_until(lambda: len(found.values) >= 3, "all that is due has come", SECONDS_MAX)
    assert found.values == [b"1", b"0", b"2"]
    # What is delayed for long lies at the end: a read up to there ends, with nothing of it.
    last = spark.createDataFrame([(b"1", None), (b"3", never)], schema).coalesce(1)
    last.write.format("kafka").options(**kafka, topic=topic).save()
    reader = spark.read.format("kafka").options(**kafka, subscribe=topic)
    assert [bytes(row.value) for row in reader.load().collect()] == [b"1", b"0", b"2", b"1"]
