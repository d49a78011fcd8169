"""`replay`: archived records back to a topic, in the order that they had in their partitions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rockgate.pipeline.admin import probe
from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.admin.target_topics import ensure_topics, named
from rockgate.pipeline.errors import BadOption, Stopped, UnknownTopic
from rockgate.pipeline.files import archive, checkpoint, paths
from rockgate.pipeline.files.archive import Part
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import delay, kafka
from rockgate.pipeline.spark.failures import spark_errors
from rockgate.pipeline.spark.kafka import Cluster
from rockgate.pipeline.spark.records import header, milliseconds, with_headers
from rockgate.pipeline.stream import Stopping, stopped_by_signals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEXT = "next.json"
STEP_RECORDS = 500_000
STEP_SECONDS = 2.0
"""With a rate, a step has as many records as it allows for this long."""

Bounds = dict[tuple[str, int], tuple[int, int]]
"""For each topic and partition of the archive the offsets from and up to, the second excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which archived records are replayed."""

    topics: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    where: str = ""
    """An SQL condition on the archive's columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `replay`."""

    cluster: Cluster
    archive: str
    to: str
    """The topic; `{topic}` in it stands for the archived one's name."""
    selection: Selection = field(default_factory=Selection)
    rate: float = 0.0
    """Records per second; 0 for no limit."""
    timestamp_header: str = ""
    delay_ms: int = 0
    """How long after its replay a record appears."""
    checkpoint: str = ""
    step_records: int = STEP_RECORDS

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""
        if is_here:
            paths.check_present(self.archive, "ARCHIVE")
            paths.check_folder(self.checkpoint or self.archive, "--checkpoint")
        probe.check_server(self.cluster)


def chosen(archived: DataFrame, selection: Selection) -> DataFrame:
    """The selected rows of the archive."""
    found = archived
    if selection.topics:
        found = found.where(F.col("topic").isin(*selection.topics))
    if selection.since is not None:
        found = found.where(F.col("timestamp") >= F.lit(selection.since))
    if selection.until is not None:
        found = found.where(F.col("timestamp") < F.lit(selection.until))
    return found.where(selection.where) if selection.where else found


def records(
    archived: DataFrame, to: str, timestamp_header: str = "", delay_ms: int = 0
) -> DataFrame:
    """Rows of the archive as records of their new topics, in order within each partition."""
    headers = F.col("headers")
    if delay_ms:
        headers = delay.delayed(headers, delay_ms)
    if timestamp_header:
        headers = with_headers(headers, header(timestamp_header, milliseconds(F.col("timestamp"))))
    # One task has a partition's records in order, and a task's producer keeps it.
    ordered = archived.repartition("topic", "partition").sortWithinPartitions(
        "topic", "partition", "offset"
    )
    renamed = F.replace(F.lit(to), F.lit("{topic}"), F.col("topic")).alias("topic")
    return ordered.select(renamed, "partition", "key", "value", headers.alias("headers"))


def plan(parts: Sequence[Part], done: dict[tuple[str, int], int], size: int) -> Iterator[Bounds]:
    """Steps of about `size` offsets, evenly over the partitions, behind what is done already."""
    ranges: Bounds = {}
    for part in parts:
        at = (part.topic, part.partition)
        first, end = ranges.get(at, (part.first, part.last + 1))
        ranges[at] = (min(first, part.first), max(end, part.last + 1))
    ranges = {at: (max(first, done.get(at, 0)), end) for at, (first, end) in ranges.items()}
    ranges = {at: (first, end) for at, (first, end) in ranges.items() if first < end}
    total = sum(end - first for first, end in ranges.values())
    count = -(-total // max(size, 1))
    for number in range(count):
        step = {
            at: (
                first + (end - first) * number // count,
                first + (end - first) * (number + 1) // count,
            )
            for at, (first, end) in ranges.items()
        }
        yield {at: (first, end) for at, (first, end) in step.items() if first < end}


def run(
    spark: SparkSession, options: Options, reporter: Reporter, stopping: Stopping | None = None
) -> None:
    """Replay until it is through or stopped; a rerun resumes where this one ends."""
    files = Files(spark, options.archive)
    parts = archive.live(files, options.selection.topics)
    if not parts:
        raise UnknownTopic(
            f"No records of {', '.join(options.selection.topics) or 'any topic'} "
            f"are archived in {files.uri()}."
        )
    _check_condition(spark, options)
    counts: dict[str, int] = {}
    for part in parts:
        topic = named(options.to, part.topic)
        counts[topic] = max(counts.get(topic, 0), part.partition + 1)
    with Admin(spark, options.cluster) as admin:
        _ensure_topics(admin, counts, options, reporter)
    place = options.to.replace("{topic}", "_")
    progress = Files(spark, options.checkpoint or files.uri(f"_replay/{place}"))
    checkpoint.claim(progress, _identity(options, files))
    if stopping is not None:
        _replay(spark, options, parts, progress, reporter, stopping)
    else:
        with stopped_by_signals(reporter) as by_signal:
            _replay(spark, options, parts, progress, reporter, by_signal)


def _ensure_topics(
    admin: Admin, counts: dict[str, int], options: Options, reporter: Reporter
) -> None:
    if not options.delay_ms:
        ensure_topics(admin, counts, reporter)
        return
    present = sorted(set(counts) & admin.topic_names())
    delay.check_topics(admin.topic_configs(present, delay.TOPIC_CONFIG) if present else {})
    ensure_topics(admin, counts, reporter, {delay.TOPIC_CONFIG: delay.LETTING[0]})


def _identity(options: Options, files: Files) -> dict[str, str]:
    chosen = options.selection
    return {
        "job": "replay",
        "archive": files.uri(),
        "to": options.to,
        "bootstrap": options.cluster.bootstrap,
        "topics": ",".join(chosen.topics),
        "since": chosen.since.isoformat() if chosen.since else "",
        "until": chosen.until.isoformat() if chosen.until else "",
        "where": chosen.where,
        **({"delay_ms": str(options.delay_ms)} if options.delay_ms else {}),
    }


def _check_condition(spark: SparkSession, options: Options) -> None:
    from pyspark.errors import PySparkException

    try:
        chosen(spark.createDataFrame([], archive.SCHEMA), options.selection).schema  # noqa: B018 - analysed for its errors
    except PySparkException as error:
        raise BadOption(f"Invalid --where: {str(error).splitlines()[0]}") from None


def _replay(
    spark: SparkSession,
    options: Options,
    parts: Sequence[Part],
    progress: Files,
    reporter: Reporter,
    stopping: Stopping,
) -> None:
    done = _load(progress)
    size = int(options.rate * STEP_SECONDS) or 1 if options.rate else options.step_records
    began, sent = time.monotonic(), 0
    for number, bounds in enumerate(plan(parts, done, size)):
        if stopping.is_requested:
            break
        with spark_errors():
            count = _write(spark, options, parts, bounds)
        done.update({at: end for at, (_, end) in bounds.items()})
        _save(progress, done)
        sent += count
        reporter.step(number, count)
        if options.rate:
            stopping.wait(began + sent / options.rate - time.monotonic())
    left = sum(end - first for step in plan(parts, done, size) for first, end in step.values())
    if left:
        raise Stopped(f"stopped with {left:,} offsets left; run the same command to continue")
    reporter.done("replayed")


def _write(spark: SparkSession, options: Options, parts: Sequence[Part], bounds: Bounds) -> int:
    within = [part for part in parts if _touches(part, bounds)]
    table = chosen(archive.read(spark, options.archive, parts=within), options.selection)
    condition = F.lit(False)
    for (topic, partition), (first, end) in bounds.items():
        condition = condition | (
            (F.col("topic") == topic)
            & (F.col("partition") == partition)
            & (F.col("offset") >= first)
            & (F.col("offset") < end)
        )
    table = table.where(condition)
    # Counting reads few columns; keeping the rows for both would cost more.
    count: int = table.count()
    if count:
        table = records(table, options.to, options.timestamp_header, options.delay_ms)
        kafka.write(table, options.cluster)
    return count


def _touches(part: Part, bounds: Bounds) -> bool:
    first, end = bounds.get((part.topic, part.partition), (0, 0))
    return part.first < end and first <= part.last


def _load(progress: Files) -> dict[tuple[str, int], int]:
    if not progress.exists(NEXT):
        return {}
    stored = json.loads(progress.read_text(NEXT))
    return {
        (topic, int(partition)): offset
        for topic, offsets in stored.items()
        for partition, offset in offsets.items()
    }


def _save(progress: Files, done: dict[tuple[str, int], int]) -> None:
    offsets: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in sorted(done.items()):
        offsets.setdefault(topic, {})[partition] = offset
    progress.write_text(NEXT, json.dumps(offsets) + "\n")
