"""`dead-letters`: the dead letters of RocketMQ's groups, and sending them back.

A dead letter is a record of `rmq.dlq.GROUP` whose headers say what it was
(docs/internals/retry.md). Those that are sent back stay where they are; how far that has come is in
the checkpoint. A header with its place makes a rerun exact: what a killed run had written of its
last step is found by it behind where the topics ended before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from pyspark.sql import functions as F

from rockgate.pipeline.admin import probe
from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.errors import BadOption, UnknownTopic
from rockgate.pipeline.files import checkpoint, paths
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.report.tables import table
from rockgate.pipeline.spark import delay, kafka
from rockgate.pipeline.spark.failures import spark_errors
from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics
from rockgate.pipeline.spark.records import HEADERS_TYPE, header, header_value, with_headers
from rockgate.pipeline.stream import Pace, Stopping, run_stream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PREFIX = "rmq.dlq."
FROM_HEADER = "__RESENT_FROM"
"""What `rockgate dlq resend` adds, too: group, partition and offset of the letter."""
BEFORE = "before.json"
STEP_RECORDS = 100_000
MARKS = (
    "RETRY_TOPIC",
    "ORIGIN_MESSAGE_ID",
    "RECONSUME_TIME",
    "MAX_RECONSUME_TIMES",
    "__RETRY_QUEUE",
    "__RETRY_OFFSET",
    "__RETRY_SINCE",
    "__DLQ_SINCE",
    "__DLQ_REASON",
    "__ORIGIN",
    "WAIT",
)
"""The headers that retrying adds: they describe the dead letter, and are not the record's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `dead-letters`."""

    cluster: Cluster
    groups: tuple[str, ...] = ()
    """The groups whose dead letters are read; by default all."""
    where: str = ""
    """An SQL condition on the dead letters' columns."""
    into: str = ""
    """Parquet below this path: `letters` and `summary`."""
    is_json: bool = False
    """Whether the table is objects."""
    is_resending: bool = False
    delay_ms: int = 0
    has_marks: bool = True
    """Whether the header with the letter's place is added."""
    step_records: int = STEP_RECORDS
    checkpoint: str = ""

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""
        self.check_words()
        if is_here:
            if self.into:
                paths.check_folder(self.into, "--into")
            if self.checkpoint:
                paths.check_folder(self.checkpoint, "--checkpoint")
        probe.check_server(self.cluster)

    def check_words(self) -> None:
        """BadOption for options that conflict."""
        if self.is_resending and not self.checkpoint:
            raise BadOption(
                "--resend requires a --checkpoint, which records what was already resent."
            )
        if self.delay_ms and not self.is_resending:
            raise BadOption("--delay requires --resend.")

    def topics(self) -> Topics:
        """The dead-letter topics of the selected groups."""
        if self.groups:
            return Topics(names=tuple(PREFIX + group for group in self.groups))
        return Topics(pattern=PREFIX.replace(".", r"\.") + ".+")


# Tables to tables


def letters(records: DataFrame) -> DataFrame:
    """Records of dead-letter topics, with their headers of the retries as columns."""
    headers = F.col("headers")

    def number(name: str) -> Column:
        return header_value(headers, name).try_cast("long")

    topic = F.replace(header_value(headers, "RETRY_TOPIC"), F.lit("|"), F.lit("."))
    topic = F.regexp_replace(topic, "^%RETRY%", "rmq.retry.")
    own = F.filter(headers, lambda each: ~each["key"].isin(*MARKS, FROM_HEADER))
    return records.select(
        F.col("topic").substr(F.lit(len(PREFIX) + 1), F.length("topic")).alias("group"),
        topic.alias("topic"),
        number("__RETRY_QUEUE").cast("int").alias("queue"),
        number("__RETRY_OFFSET").alias("offset"),
        number("RECONSUME_TIME").alias("tries"),
        number("MAX_RECONSUME_TIMES").alias("tries_max"),
        F.coalesce(header_value(headers, "__DLQ_REASON"), F.lit("unknown")).alias("reason"),
        F.timestamp_millis(number("__RETRY_SINCE")).alias("failed_since"),
        F.timestamp_millis(number("__DLQ_SINCE")).alias("dead_since"),
        "timestamp",
        header_value(headers, "ORIGIN_MESSAGE_ID").alias("message_id"),
        "key",
        "value",
        own.alias("headers"),
        F.col("topic").alias("dead_topic"),
        F.col("partition").alias("dead_partition"),
        F.col("offset").alias("dead_offset"),
    )


def chosen(found: DataFrame, where: str) -> DataFrame:
    """The dead letters that match."""
    return found.where(where) if where else found


def summary(found: DataFrame) -> DataFrame:
    """One row for each group, topic and reason."""
    return (
        found.groupBy("group", "topic", "reason")
        .agg(
            F.count(F.lit(1)).alias("letters"),
            F.max("tries").alias("tries"),
            F.min("timestamp").alias("oldest"),
            F.min("failed_since").alias("failed_since"),
            F.max("dead_since").alias("last_dead"),
        )
        .orderBy("group", "topic", "reason")
    )


def place() -> Column:
    """The location of a dead letter, in one string."""
    parts = ("group", "dead_partition", "dead_offset")
    return F.concat_ws("/", *(F.col(part).cast("string") for part in parts))


def records(
    found: DataFrame, counts: Mapping[str, int], *, delay_ms: int = 0, has_marks: bool = True
) -> DataFrame:
    """Dead letters as records of their original topics, which have that many partitions now."""
    more = []
    if has_marks:
        more.append(header(FROM_HEADER, place()))
    headers = with_headers(F.col("headers"), *more) if more else F.col("headers")
    if delay_ms:
        headers = delay.delayed(headers, delay_ms)
    pairs = [F.lit(part) for each in sorted(counts.items()) for part in each]
    count = F.try_element_at(F.create_map(*pairs), F.col("topic")) if pairs else F.lit(0)
    # Without a partition the producer chooses one, by the key.
    partition = F.when(F.col("queue") < count, F.col("queue")).alias("partition")
    return found.where(F.col("topic").isNotNull()).select(
        "topic", partition, "key", "value", headers.alias("headers")
    )


# Running


def run(
    spark: SparkSession, options: Options, reporter: Reporter, stopping: Stopping | None = None
) -> None:
    """List the dead letters, or resend them."""
    options.check_words()
    _check_condition(spark, options)
    with Admin(spark, options.cluster) as admin:
        topics = _present(admin, options)
        if topics is None:
            reporter.done("no dead letters")
        elif options.is_resending:
            _resend(spark, options, topics, admin, reporter, stopping)
        else:
            with spark_errors():
                _report(spark, options, topics, reporter)


def _present(admin: Admin, options: Options) -> Topics | None:
    """The requested topics that exist: a group without dead letters has none."""
    there = {name for name in admin.topic_names() if name.startswith(PREFIX)}
    topics = options.topics()
    if topics.names:
        there &= set(topics.names)
        return Topics(names=tuple(sorted(there))) if there else None
    return topics if there else None


def _check_condition(spark: SparkSession, options: Options) -> None:
    from pyspark.errors import PySparkException

    source = (
        "topic string, partition int, offset bigint, timestamp timestamp, key binary, "
        f"value binary, headers {HEADERS_TYPE}"
    )
    try:
        chosen(letters(spark.createDataFrame([], source)), options.where).schema  # noqa: B018 - analysed for its errors
    except PySparkException as error:
        raise BadOption(f"Invalid --where: {str(error).splitlines()[0]}") from None


def _report(
    spark: SparkSession,
    options: Options,
    topics: Topics,
    reporter: Reporter,
    out: TextIO | None = None,
) -> None:
    found = chosen(letters(kafka.batch(spark, options.cluster, topics)), options.where)
    lines = summary(found).cache()
    try:
        rows = [row.asDict() for row in lines.collect()]
        if options.into:
            root = Files(spark, options.into)
            lines.write.mode("overwrite").parquet(root.uri("summary"))
            found.write.mode("overwrite").parquet(root.uri("letters"))
    finally:
        lines.unpersist()
    (out or sys.stdout).write(_rendered(rows, is_json=options.is_json))
    reporter.step(0, sum(row["letters"] for row in rows))
    reporter.done()


def _rendered(rows: Sequence[Mapping[str, Any]], *, is_json: bool) -> str:
    if is_json:
        return "".join(json.dumps(_plain(row)) + "\n" for row in rows)
    titles = {
        "group": "GROUP",
        "topic": "TOPIC",
        "reason": "REASON",
        "letters": "LETTERS",
        "tries": "TRIES",
        "failed_since": "FAILED SINCE",
        "last_dead": "LAST DEAD",
    }
    return table(titles, [_plain(row) for row in rows])


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose times are text in UTC: Spark hands them out in this machine's zone."""
    return {
        name: value.astimezone(UTC).isoformat(timespec="milliseconds")
        if isinstance(value, datetime)
        else value
        for name, value in row.items()
    }


def _resend(
    spark: SparkSession,
    options: Options,
    topics: Topics,
    admin: Admin,
    reporter: Reporter,
    stopping: Stopping | None,
) -> None:
    progress = Files(spark, options.checkpoint)
    checkpoint.claim(
        progress,
        {
            "job": "dead-letters",
            "groups": ",".join(options.groups),
            "where": options.where,
            "bootstrap": options.cluster.bootstrap,
        },
    )
    step = Step(spark, options, admin, progress, reporter)
    step.unfinished = checkpoint.unfinished_batch(progress)
    reading = Reading(offsets_per_batch=options.step_records)
    run_stream(
        kafka.stream(spark, options.cluster, topics, reading),
        step,
        checkpoint=progress.uri(),
        pace=Pace(),
        reporter=reporter,
        stopping=stopping,
    )
    left_out = f"; {step.without_origin:,} have no original topic" if step.without_origin else ""
    reporter.done(f"resent {step.sent:,}{left_out}")


class Step:
    """Resends one step's letters; of a step that was interrupted, only those not yet resent."""

    def __init__(
        self,
        spark: SparkSession,
        options: Options,
        admin: Admin,
        progress: Files,
        reporter: Reporter,
    ) -> None:
        self._spark = spark
        self._options = options
        self._admin = admin
        self._progress = progress
        self._reporter = reporter
        self.unfinished: int | None = None
        """The step that an earlier run may have written in part."""
        self.sent = 0
        self.without_origin = 0
        """Dead letters without an original topic."""

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Send one step."""
        options = self._options
        found = chosen(letters(frame), options.where).persist()
        try:
            sizes = {row["topic"]: row["count"] for row in found.groupBy("topic").count().collect()}
            self.without_origin += sizes.pop(None, 0)
            if not sizes:
                return
            counts = self._targets(sorted(sizes))
            going = found
            if number == self.unfinished and options.has_marks:
                going = self._without_written(found, number)
            else:
                self._note(number, counts)
            kafka.write(
                records(going, counts, delay_ms=options.delay_ms, has_marks=options.has_marks),
                options.cluster,
            )
            self.sent += sum(sizes.values())
        finally:
            found.unpersist()

    def _targets(self, topics: Sequence[str]) -> dict[str, int]:
        """The partition counts of the topics; warns of those that do not accept the letters."""
        missing = sorted(set(topics) - self._admin.topic_names())
        if missing:
            raise UnknownTopic(
                f"Original topic {', '.join(missing)} no longer exists. Create it, or exclude its "
                "dead letters with --where."
            )
        if self._options.delay_ms:
            delay.check_topics(self._admin.topic_configs(topics, delay.TOPIC_CONFIG))
        return self._admin.partition_counts(topics)

    def _note(self, number: int, counts: Mapping[str, int]) -> None:
        """Write down where the topics end before the step writes to them."""
        places = [(name, each) for name, count in counts.items() for each in range(count)]
        ends: dict[str, dict[int, int]] = {}
        for (name, each), offset in self._admin.end_offsets(places).items():
            ends.setdefault(name, {})[each] = offset
        self._progress.write_text(BEFORE, json.dumps({"step": number, "ends": ends}) + "\n")

    def _without_written(self, found: DataFrame, number: int) -> DataFrame:
        noted = {}
        if self._progress.exists(BEFORE):
            noted = json.loads(self._progress.read_text(BEFORE))
        if noted.get("step") != number:
            return found
        ends = {
            name: {int(each): offset for each, offset in partitions.items()}
            for name, partitions in noted["ends"].items()
        }
        tail = kafka.batch(
            self._spark,
            self._options.cluster,
            Topics(names=tuple(ends)),
            start=kafka.offsets_json(ends),
        )
        written = tail.select(header_value(F.col("headers"), FROM_HEADER).alias("written"))
        self._reporter.say("skipping what the interrupted run wrote of its last step")
        return found.join(written, place() == F.col("written"), "left_anti")
