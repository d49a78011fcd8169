"""One cluster to another:

partitions, keys and headers are preserved, and a rerun repeats nothing.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.peers import KafkaPeer
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.sql import SparkSession
from tests.bench.peers.brought import brought
from tests.gateway.server import RunningServer
from tests.spark import MARKS, Record, grow_topic, new_topic, numbered, read_topic, send

from rockgate.pipeline.errors import BadOption, UnknownTopic
from rockgate.pipeline.jobs.mirror import OFFSET_HEADER, TIMESTAMP_HEADER, Options, records, run
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics

pytestmark = MARKS

BASE_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A second server, to mirror to."""
    with RunningServer(tmp_path_factory.mktemp("other")) as running:
        yield Cluster(bootstrap=running.bootstrap)


def options(source: Cluster, target: Cluster, topic: str, tmp_path: Path, **more: Any) -> Options:
    topics = Topics(names=(topic,))
    place = str(tmp_path / "checkpoint")
    return Options(source=source, target=target, topics=topics, checkpoint=place, **more)


def as_sent(message: Message) -> tuple[Any, ...]:
    """A mirrored record as it was, by its marks."""
    headers = message.headers() or []
    *own, (time_name, time), (offset_name, offset) = headers
    assert (time_name, offset_name) == (TIMESTAMP_HEADER, OFFSET_HEADER)
    place = (message.partition(), int(offset))
    return (*place, message.key(), message.value(), tuple(own), int(time))


def test_records_keep_their_partition_key_headers_and_time(
    spark: SparkSession,
    cluster: Cluster,
    other: Cluster,
    reporter: Reporter,
    told: io.StringIO,
    tmp_path: Path,
) -> None:
    topic = new_topic(cluster.bootstrap, 3)
    sent = [
        Record(
            value=b"%d" % n if n % 5 else None,
            key=b"k%d" % n if n % 3 else None,
            partition=n % 3,
            timestamp=BASE_MS + n,
            headers=(("a", b"1"), ("a", None)) if n % 2 else (),
        )
        for n in range(60)
    ]
    send(cluster.bootstrap, topic, sent)
    run(spark, options(cluster, other, topic, tmp_path), reporter)
    found = read_topic(other.bootstrap, topic, 60, 3)
    assert [as_sent(message) for message in found] == [
        (r.partition, o, r.key, r.value, r.headers, r.timestamp)
        for p in range(3)
        for o, r in enumerate(each for each in sent if each.partition == p)
    ]
    assert f"created topic {topic} with 3 partitions" in told.getvalue()
    assert (
        f"cannot write timestamps: the source timestamp is in header {TIMESTAMP_HEADER}"
        in told.getvalue()
    )


def test_a_rerun_continues_and_follows_new_partitions(
    spark: SparkSession, cluster: Cluster, other: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap, 1)
    send(cluster.bootstrap, topic, numbered(10))
    chosen = options(cluster, other, topic, tmp_path, to="copy.{topic}")
    run(spark, chosen, reporter)
    grow_topic(cluster.bootstrap, topic, 2)
    send(cluster.bootstrap, topic, numbered(10, 2, start=10))
    run(spark, chosen, reporter)
    found = read_topic(other.bootstrap, f"copy.{topic}", 20, 2)
    assert [(m.partition(), m.value()) for m in found] == [
        *((0, b"%d" % n) for n in [*range(10), *range(10, 20, 2)]),
        *((1, b"%d" % n) for n in range(11, 20, 2)),
    ]


def test_what_a_killed_run_had_written_is_not_written_again(
    spark: SparkSession,
    cluster: Cluster,
    other: Cluster,
    reporter: Reporter,
    told: io.StringIO,
    tmp_path: Path,
) -> None:
    topic = new_topic(cluster.bootstrap, 2)
    send(cluster.bootstrap, topic, numbered(40, 2))
    chosen = options(cluster, other, topic, tmp_path)
    run(spark, chosen, reporter)
    # As after kill -9 when all of a batch was written, and the note that it is done was not.
    for kept in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        kept.unlink()
    send(cluster.bootstrap, topic, numbered(10, 2, start=40))
    run(spark, chosen, reporter)
    found = read_topic(other.bootstrap, topic, 50, 2)
    assert sorted(int(m.value()) for m in found) == list(range(50))
    assert "skipped what the interrupted run wrote" in told.getvalue()


def test_it_can_begin_where_a_group_has_committed(
    spark: SparkSession, cluster: Cluster, other: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    topic = new_topic(cluster.bootstrap, 2)
    send(cluster.bootstrap, topic, numbered(20, 2))
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "moving"})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    finally:
        consumer.close()
    start = Reading(start="group:moving")
    run(spark, options(cluster, other, topic, tmp_path, reading=start), reporter)
    found = read_topic(other.bootstrap, topic, 13, 2)
    assert [m.value() for m in found if m.partition() == 0] == [b"14", b"16", b"18"]
    with pytest.raises(BadOption, match="Group nobody has no committed offsets for"):
        start = Reading(start="group:nobody")
        run(spark, options(cluster, other, topic, tmp_path / "b", reading=start), reporter)


def test_mistakes_are_reported(
    spark: SparkSession, cluster: Cluster, other: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    with pytest.raises(UnknownTopic, match="Topic nowhere does not exist at"):
        run(spark, options(cluster, other, "nowhere", tmp_path), reporter)
    with pytest.raises(UnknownTopic, match="matches nothing-at-all"):
        chosen = Options(
            source=cluster,
            target=other,
            topics=Topics(pattern="nothing-at-all"),
            checkpoint=str(tmp_path),
        )
        run(spark, chosen, reporter)
    with pytest.raises(BadOption, match="Source and target are the same"):
        run(spark, options(cluster, cluster, "t", tmp_path), reporter)


def test_records_are_a_function_of_records_alone(spark: SparkSession) -> None:
    rows = spark.sql(
        "select 't' topic, 4 partition, cast('k' as binary) key, cast(null as binary) value, "
        "cast(null as array<struct<key: string, value: binary>>) headers, bigint(9) offset, "
        f"timestamp_millis({BASE_MS}) timestamp"
    )
    [row] = records(rows, "to.{topic}").collect()
    assert (row.topic, row.partition, bytes(row.key), row.value) == ("to.t", 4, b"k", None)
    assert [(h.key, bytes(h.value)) for h in row.headers] == [
        (TIMESTAMP_HEADER, b"%d" % BASE_MS),
        (OFFSET_HEADER, b"9"),
    ]
    [plain] = records(rows, has_marks=False).collect()
    assert (plain.topic, plain.headers) == ("t", None)


@pytest.mark.long
@pytest.mark.parametrize(
    "is_inward", [pytest.param(True, id="to rockgate"), pytest.param(False, id="back")]
)
def test_a_real_kafka_is_mirrored(
    spark: SparkSession,
    cluster: Cluster,
    reporter: Reporter,
    tmp_path: Path,
    apache: Cluster,
    is_inward: bool,
) -> None:
    source, target = (apache, cluster) if is_inward else (cluster, apache)
    topic = new_topic(source.bootstrap, 4)
    send(source.bootstrap, topic, numbered(1000, 4), **{"compression.type": "zstd"})
    run(spark, options(source, target, topic, tmp_path), reporter)
    found = read_topic(target.bootstrap, topic, 1000, 4)
    assert [as_sent(message)[:4] for message in found] == [
        (p, o, b"k%d" % n, b"%d" % n) for p in range(4) for o in range(250) for n in [o * 4 + p]
    ]


@pytest.fixture(scope="module")
def apache() -> Iterator[Cluster]:
    """Apache Kafka itself."""
    with brought("kafka"), KafkaPeer(heap="512m") as peer:
        yield Cluster(bootstrap=peer.bootstrap)
