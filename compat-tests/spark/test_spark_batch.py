"""Spark's batch source on the server: which records it finds, and every column of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.gateway.server import RunningServer
from tests.spark import MARKS, Record, new_topic, numbered, send

pytestmark = MARKS
CLIENT = f"spark {version('pyspark')}"

BASE_MS = 1_700_000_000_000


def read(spark: SparkSession, server: RunningServer, **options: Any) -> DataFrame:
    """A batch of the Kafka source; `kafka_x_y` is its option kafka.x.y."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", server.bootstrap)
    for name, value in options.items():
        spelt = name.replace("_", ".") if name.startswith("kafka_") else name
        reader = reader.option(spelt, value)
    return reader.load()


def values(frame: DataFrame) -> list[tuple[int, int, bytes]]:
    """(partition, offset, value) of all rows, in order."""
    rows = frame.select("partition", "offset", "value").collect()
    return sorted((row.partition, row.offset, bytes(row.value)) for row in rows)


@pytest.fixture(scope="module")
def two(server: RunningServer) -> str:
    """A topic of two partitions with a hundred numbers in turn, a second apart."""
    topic = new_topic(server.bootstrap, 2)
    send(
        server.bootstrap,
        topic,
        (
            Record(
                key=b"k%d" % number,
                value=b"%d" % number,
                partition=number % 2,
                timestamp=BASE_MS + number * 1000,
            )
            for number in range(100)
        ),
    )
    return topic


def expected(*, first: dict[int, int], last: dict[int, int]) -> list[tuple[int, int, bytes]]:
    """The records from `first` up to `last` in the fixture's topic."""
    return [
        (partition, offset, b"%d" % (offset * 2 + partition))
        for partition in sorted(first)
        for offset in range(first[partition], last[partition])
    ]


WHOLE = expected(first={0: 0, 1: 0}, last={0: 50, 1: 50})


def test_every_column_comes_as_it_was_sent(spark: SparkSession, server: RunningServer) -> None:
    topic = new_topic(server.bootstrap, 2)
    records = [
        Record(value=b"v", key=b"k", timestamp=BASE_MS + 123),
        Record(
            value=None, key=b"gone", timestamp=BASE_MS + 124, headers=(("h", b"1"), ("h", None))
        ),
        Record(value=b"", key=None, timestamp=BASE_MS + 125, headers=(("\N{SNOWMAN}", b"\xff"),)),
    ]
    send(server.bootstrap, topic, records)
    frame = read(spark, server, subscribe=topic, includeHeaders="true")
    rows = sorted(frame.collect(), key=lambda row: row.offset)
    for offset, (row, record) in enumerate(zip(rows, records, strict=True)):
        assert (row.topic, row.partition, row.offset, row.timestampType) == (topic, 0, offset, 0)
        assert row.key == record.key
        assert row.value == record.value
        # Spark hands timestamps out in the zone of this process.
        assert record.timestamp is not None
        assert row.timestamp.astimezone(UTC) == datetime.fromtimestamp(record.timestamp / 1e3, UTC)
        assert tuple((h.key, h.value) for h in row.headers or ()) == record.headers


def test_earliest_to_latest_is_everything(
    spark: SparkSession, server: RunningServer, two: str
) -> None:
    frame = read(spark, server, subscribe=two, startingOffsets="earliest", endingOffsets="latest")
    assert values(frame) == WHOLE


def test_offsets_are_taken_per_partition(
    spark: SparkSession, server: RunningServer, two: str
) -> None:
    start = json.dumps({two: {"0": 10, "1": -2}})
    end = json.dumps({two: {"0": 20, "1": -1}})
    frame = read(spark, server, subscribe=two, startingOffsets=start, endingOffsets=end)
    assert values(frame) == expected(first={0: 10, 1: 0}, last={0: 20, 1: 50})


def test_a_time_for_all_partitions(spark: SparkSession, server: RunningServer, two: str) -> None:
    # Record 41 is the first at or after this time: offset 21 of partition 0, 20 of partition 1.
    frame = read(
        spark,
        server,
        subscribe=two,
        startingTimestamp=str(BASE_MS + 40_001),
        endingTimestamp=str(BASE_MS + 60_000),
    )
    assert values(frame) == expected(first={0: 21, 1: 20}, last={0: 30, 1: 30})


def test_a_time_per_partition(spark: SparkSession, server: RunningServer, two: str) -> None:
    start = json.dumps({two: {"0": BASE_MS + 90_000, "1": BASE_MS + 1_000}})
    end = json.dumps({two: {"0": BASE_MS + 96_000, "1": BASE_MS + 5_000}})
    frame = read(
        spark, server, subscribe=two, startingOffsetsByTimestamp=start, endingOffsetsByTimestamp=end
    )
    assert values(frame) == expected(first={0: 45, 1: 0}, last={0: 48, 1: 2})


def test_a_time_after_the_last_record_matches_nothing(
    spark: SparkSession, server: RunningServer, two: str
) -> None:
    late = str(BASE_MS + 10**9)
    with pytest.raises(PySparkException, match="timestamp"):
        read(spark, server, subscribe=two, startingTimestamp=late).collect()
    # As an end it means "up to the latest".
    assert values(read(spark, server, subscribe=two, endingTimestamp=late)) == WHOLE
    by_choice = read(
        spark,
        server,
        subscribe=two,
        startingTimestamp=late,
        startingOffsetsByTimestampStrategy="latest",
    )
    assert values(by_choice) == []


def test_topics_are_subscribed_by_name_by_pattern_or_by_partition(
    spark: SparkSession, server: RunningServer, two: str
) -> None:
    other = new_topic(server.bootstrap)
    send(server.bootstrap, other, numbered(3))
    lone = [(0, number, b"%d" % number) for number in range(3)]
    both = read(spark, server, subscribe=f"{two},{other}")
    assert values(both.where(both.topic == other)) == lone
    assert values(both.where(both.topic == two)) == WHOLE
    matched = read(spark, server, subscribePattern=f"({two}|{other})")
    assert {row.topic for row in matched.select("topic").distinct().collect()} == {two, other}
    assert values(matched) == values(both)
    assigned = read(spark, server, assign=json.dumps({two: [1]}))
    assert values(assigned) == expected(first={1: 0}, last={1: 50})


def test_min_partitions_splits_the_work_and_not_the_result(
    spark: SparkSession, server: RunningServer, two: str
) -> None:
    frame = read(spark, server, subscribe=two, minPartitions=5)
    assert frame.rdd.getNumPartitions() >= 5
    assert values(frame) == WHOLE


def test_an_empty_topic_is_an_empty_table(spark: SparkSession, server: RunningServer) -> None:
    assert values(read(spark, server, subscribe=new_topic(server.bootstrap, 3))) == []


def test_read_committed_leaves_out_what_was_aborted_and_what_is_open(
    spark: SparkSession, server: RunningServer
) -> None:
    """Three transactions and one that is still open: numbers 0-9 and 20-29 were committed.

    Between them are markers and aborted batches, which a reader must skip, and after them records
    that are not yet visible.
    """
    topic = new_topic(server.bootstrap)
    producer = Producer(
        {"bootstrap.servers": server.bootstrap, "transactional.id": topic, "linger.ms": 1}
    )
    producer.init_transactions(30)
    for start, end in ((0, "commit"), (10, "abort"), (20, "commit"), (30, "leave open")):
        producer.begin_transaction()
        for number in range(start, start + 10):
            producer.produce(topic, b"%d" % number, partition=0)
        assert producer.flush(60) == 0
        if end == "commit":
            producer.commit_transaction(30)
        elif end == "abort":
            producer.abort_transaction(30)
    options = {"subscribe": topic, "kafka_isolation_level": "read_committed"}
    found = [int(value) for _, _, value in values(read(spark, server, **options))]
    assert found == [*range(10), *range(20, 30)]
    everything = [int(value) for _, _, value in values(read(spark, server, subscribe=topic))]
    assert everything == list(range(40))
    producer.abort_transaction(30)
    # What was open is aborted: the end moves on, and there is nothing new before it.
    assert [int(v) for _, _, v in values(read(spark, server, **options))] == found


def test_records_deleted_before_a_batch_are_not_part_of_it(
    spark: SparkSession, server: RunningServer
) -> None:
    topic = new_topic(server.bootstrap)
    send(server.bootstrap, topic, numbered(20))
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, 5)]).values()
    assert deleted.result(60).low_watermark == 5
    kept = [(0, number, b"%d" % number) for number in range(5, 20)]
    assert values(read(spark, server, subscribe=topic)) == kept


def test_an_unknown_topic_is_named_in_the_error(spark: SparkSession, server: RunningServer) -> None:
    options = {"kafka_allow_auto_create_topics": "false", "subscribe": "spark-is-not-there"}
    with pytest.raises(Exception, match="UnknownTopicOrPartition"):
        read(spark, server, **options).collect()


@pytest.mark.long
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(spark: SparkSession, server: RunningServer, codec: str) -> None:
    topic = new_topic(server.bootstrap, 2)
    send(server.bootstrap, topic, numbered(5000, 2), **{"compression.type": codec})
    found = values(read(spark, server, subscribe=topic))
    assert found == [(p, o, b"%d" % (o * 2 + p)) for p in range(2) for o in range(2500)]


@pytest.mark.long
def test_the_older_way_to_ask_for_offsets_finds_the_same(
    spark: SparkSession, server: RunningServer, two: str
) -> None:
    """Through a consumer in a group, as Spark did before 3.1 and still does on request."""
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(setting, "true")
    try:
        assert values(read(spark, server, subscribe=two)) == WHOLE
    finally:
        spark.conf.unset(setting)


@pytest.mark.long
def test_append_time_is_told_from_create_time(spark: SparkSession, server: RunningServer) -> None:
    topic = new_topic(server.bootstrap, message_timestamp_type="LogAppendTime")
    send(server.bootstrap, topic, [Record(value=b"x", timestamp=BASE_MS)])
    [row] = read(spark, server, subscribe=topic).collect()
    assert row.timestampType == 1
    assert row.timestamp.timestamp() * 1000 > BASE_MS + 10**9


@pytest.mark.long
def test_values_of_a_megabyte_come_whole(spark: SparkSession, server: RunningServer) -> None:
    topic = new_topic(server.bootstrap, max_message_bytes=str(4 << 20))
    sizes = [1 << 20, 1, 3 << 20, 700_000]
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    records = [Record(value=body) for body in bodies]
    send(server.bootstrap, topic, records, **{"message.max.bytes": 4 << 20})
    found = values(read(spark, server, subscribe=topic))
    assert [value for _, _, value in found] == bodies
