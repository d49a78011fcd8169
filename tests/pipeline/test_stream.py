"""Streams that are stopped: the step in hand is finished and noted, and the next is not begun."""

from __future__ import annotations

import io
import os
import signal
import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark import MARKS, new_topic, numbered, send
from tests.waiting import wait_until

from rockgate.pipeline.errors import DataLost, JobFailed, Stopped
from rockgate.pipeline.files import checkpoint
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics
from rockgate.pipeline.stream import Pace, Stopping, run_stream, stopped_by_signals

pytestmark = MARKS

QUICK = Pace(is_following=True, every="50 milliseconds")


@pytest.fixture
def frame(spark: SparkSession, cluster: Cluster) -> DataFrame:
    """A stream of a hundred numbers, ten in a step."""
    topic = new_topic(cluster.bootstrap)
    send(cluster.bootstrap, topic, numbered(100))
    reading = Reading(offsets_per_batch=10)
    return kafka.stream(spark, cluster, Topics(names=(topic,)), reading)


def numbers(frame: DataFrame) -> list[int]:
    return [int(bytes(row.value)) for row in frame.select("value").collect()]


def test_a_wish_to_stop_lets_the_step_finish_and_be_noted(
    spark: SparkSession, frame: DataFrame, reporter: Reporter, tmp_path: Path
) -> None:
    stopping, written = Stopping(), []

    def step(batch: DataFrame, number: int) -> None:
        if number == 2:
            stopping.request()
        written.extend(numbers(batch))

    place = str(tmp_path)
    run_stream(frame, step, checkpoint=place, pace=QUICK, reporter=reporter, stopping=stopping)
    assert written == list(range(30))
    # Nothing was begun that is not either noted as done or left to the next run untouched.
    run_stream(frame, step, checkpoint=place, pace=Pace(), reporter=reporter, stopping=Stopping())
    assert written == list(range(100))
    assert checkpoint.unfinished_batch(Files(spark, place)) is None


def test_a_stop_before_the_end_is_no_success_and_one_after_it_is(
    frame: DataFrame, reporter: Reporter, tmp_path: Path
) -> None:
    stopping, written = Stopping(), []

    def step(batch: DataFrame, number: int) -> None:
        if number in (1, 9):
            stopping.request()
        written.extend(numbers(batch))

    with pytest.raises(Stopped, match=r"^stopped before the end; run the same command to continue"):
        run_stream(
            frame, step, checkpoint=str(tmp_path), pace=Pace(), reporter=reporter, stopping=stopping
        )
    assert written == list(range(20))
    stopping = Stopping()
    run_stream(
        frame, step, checkpoint=str(tmp_path), pace=Pace(), reporter=reporter, stopping=stopping
    )
    assert stopping.is_requested and written == list(range(100))


def test_a_step_that_fails_is_done_again_by_the_next_run(
    frame: DataFrame, reporter: Reporter, tmp_path: Path
) -> None:
    written: list[int] = []
    is_broken = True

    def step(batch: DataFrame, number: int) -> None:
        if number == 1 and is_broken:
            raise JobFailed("the disk is full")
        written.extend(numbers(batch))

    for _ in range(2):
        with pytest.raises(JobFailed, match=r"^the disk is full$"):
            run_stream(frame, step, checkpoint=str(tmp_path), pace=Pace(), reporter=reporter)
    assert written == list(range(10))
    is_broken = False
    run_stream(frame, step, checkpoint=str(tmp_path), pace=Pace(), reporter=reporter)
    assert written == list(range(100))


def test_signals_mean_after_this_step_and_twice_at_once(
    reporter: Reporter, told: io.StringIO
) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with stopped_by_signals(reporter) as stopping:
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: stopping.is_requested, "the signal has come")
        assert not stopping.is_urgent
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: stopping.is_urgent, "the second has come")
    assert {number: signal.getsignal(number) for number in before} == before
    assert told.getvalue().count("stopping after this step") == 1


def test_a_pause_ends_when_the_end_is_wished_for() -> None:
    stopping = Stopping()
    threading.Timer(0.01, stopping.request).start()
    assert stopping.wait(60)


def test_lost_records_are_reported_with_the_way_out(
    spark: SparkSession, cluster: Cluster, reporter: Reporter, tmp_path: Path
) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = new_topic(cluster.bootstrap)
    frame = kafka.stream(spark, cluster, Topics(names=(topic,)), Reading())

    def run() -> None:
        run_stream(
            frame,
            lambda batch, _: batch.collect() and None,
            checkpoint=str(tmp_path),
            pace=Pace(),
            reporter=reporter,
        )

    send(cluster.bootstrap, topic, numbered(5))
    run()
    send(cluster.bootstrap, topic, numbered(5))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, 8)]).values()
    deleted.result(60)
    with pytest.raises(DataLost, match=r"deleted before they were read.*--allow-data-loss"):
        run()
