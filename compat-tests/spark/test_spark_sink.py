"""Spark's sink on the server: every column that it takes, from batches and from streams."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.gateway.server import RunningServer
from tests.spark import MARKS, new_topic, numbered, read_topic, send

pytestmark = MARKS
CLIENT = f"spark {version('pyspark')}"

SECONDS_MAX = 60.0
SCHEMA = (
    "topic string, partition int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


def test_a_batch_is_written_with_topic_partition_key_and_headers(
    spark: SparkSession, server: RunningServer
) -> None:
    one, two = new_topic(server.bootstrap, 2), new_topic(server.bootstrap, 2)
    rows = [
        (one, 1, b"k1", b"v1", [("h", b"1"), ("h", b"2")]),
        (two, 0, None, b"v2", None),
        (one, 0, b"k3", None, [("empty", None)]),
        (two, 1, b"", b"", []),
    ]
    frame = spark.createDataFrame(rows, SCHEMA)
    options = {"kafka.bootstrap.servers": server.bootstrap, "includeHeaders": "true"}
    frame.write.format("kafka").options(**options).save()
    for topic in (one, two):
        found = [
            (m.topic(), m.partition(), m.key(), m.value(), m.headers() or [])
            for m in read_topic(server.bootstrap, topic, 2, 2)
        ]
        wanted = sorted((row for row in rows if row[0] == topic), key=lambda row: row[1])
        assert found == [(*row[:4], row[4] or []) for row in wanted]


def test_a_topic_option_wins_over_the_column_and_keys_choose_partitions_as_java_does(
    spark: SparkSession, server: RunningServer
) -> None:
    topic = new_topic(server.bootstrap, 4)
    frame = spark.range(200).select(
        F.lit("spark-not-this-one").alias("topic"),
        F.concat(F.lit("k"), F.col("id") % 10).alias("key"),
        F.col("id").cast("string").alias("value"),
    )
    options = {"kafka.bootstrap.servers": server.bootstrap, "topic": topic}
    frame.write.format("kafka").options(**options).save()
    found = read_topic(server.bootstrap, topic, 200, 4)
    assert sorted(int(m.value()) for m in found) == list(range(200))
    # murmur2, as Kafka's own partitioner has it: each key is in one partition, and in that one.
    assert {(m.key(), m.partition()) for m in found} == {
        (b"k%d" % n, murmur2(b"k%d" % n) % 4) for n in range(10)
    }


def test_a_stream_is_written_and_resumed_from_its_checkpoint(
    spark: SparkSession, server: RunningServer, tmp_path: Path
) -> None:
    source, sink = new_topic(server.bootstrap, 2), new_topic(server.bootstrap, 2)
    kafka = {"kafka.bootstrap.servers": server.bootstrap, "includeHeaders": "true"}
    for start in (0, 50):
        send(server.bootstrap, source, numbered(50, 2, start=start))
        reader = spark.readStream.format("kafka").options(**kafka)
        frame = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
        out = frame.select(
            "partition",
            "key",
            F.concat(F.lit("<"), F.col("value").cast("string"), F.lit(">")).alias("value"),
            F.array(
                F.struct(
                    F.lit("offset").alias("key"),
                    F.col("offset").cast("string").cast("binary").alias("value"),
                )
            ).alias("headers"),
        )
        writer = out.writeStream.format("kafka").options(**kafka).option("topic", sink)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert writer.start().awaitTermination(SECONDS_MAX)
    found = read_topic(server.bootstrap, sink, 100, 2)
    assert [(m.partition(), m.offset(), m.key(), m.value(), m.headers()) for m in found] == [
        (p, o, b"k%d" % n, b"<%d>" % n, [("offset", b"%d" % o)])
        for p in range(2)
        for o in range(50)
        for n in [o * 2 + p]
    ]


def test_a_value_that_is_too_large_fails_the_write_and_says_so(
    spark: SparkSession, server: RunningServer
) -> None:
    topic = new_topic(server.bootstrap, max_message_bytes="1000")
    frame = spark.createDataFrame([(bytes(5000),)], "value binary")
    options = {"kafka.bootstrap.servers": server.bootstrap, "topic": topic}
    with pytest.raises(
        Py4JJavaError, match=r"RecordTooLargeException.*max\.message\.bytes\) is 1,000"
    ):
        frame.write.format("kafka").options(**options).save()


@pytest.mark.long
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["1", "all"])
def test_every_codec_and_acks_is_written(
    spark: SparkSession, server: RunningServer, codec: str, acks: str
) -> None:
    topic = new_topic(server.bootstrap, 2)
    options = {
        "kafka.bootstrap.servers": server.bootstrap,
        "topic": topic,
        "kafka.compression.type": codec,
        "kafka.acks": acks,
        "kafka.enable.idempotence": str(acks == "all").lower(),
    }
    frame = spark.range(2000).select(F.col("id").cast("string").alias("value"))
    frame.write.format("kafka").options(**options).save()
    found = read_topic(server.bootstrap, topic, 2000, 2)
    assert sorted(int(m.value()) for m in found) == list(range(2000))


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, made positive."""
    mask, multiplier, seed = 0xFFFFFFFF, 0x5BD1E995, 0x9747B28C
    result = (seed ^ len(data)) & mask
    for start in range(0, len(data) - len(data) % 4, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        result = (result * multiplier & mask) ^ word
    rest = data[len(data) - len(data) % 4 :]
    if rest:
        result = (result ^ int.from_bytes(rest, "little")) * multiplier & mask
    result = (result ^ result >> 13) * multiplier & mask
    return (result ^ result >> 15) & 0x7FFFFFFF
