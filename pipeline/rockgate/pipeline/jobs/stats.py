"""`stats`: how much goes through topics, how long it takes, and how far groups are behind.

Per topic and window: records, bytes, rates, the largest record, and the time that records took.
That time is counted from the record's timestamp to this job's clock while it follows; over what is
stored already it can only be counted from a header that has the earlier time in milliseconds (the
mirror's `mirror.timestamp`, say) to the record's timestamp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from rockgate.pipeline.admin import probe
from rockgate.pipeline.admin.interface import Admin, lag
from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.files import checkpoint, paths
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report import html as report
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.failures import spark_errors
from rockgate.pipeline.spark.kafka import Cluster, Offsets, Reading, Topics
from rockgate.pipeline.spark.records import header_value, milliseconds, size
from rockgate.pipeline.stream import Pace, Stopping, run_stream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LAG_SCHEMA = (
    "time timestamp, `group` string, topic string, partition int, "
    "committed bigint, end bigint, lag bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `stats`."""

    cluster: Cluster
    topics: Topics
    window: str = "1 minute"
    late: str = "1 minute"
    """While it follows: how much later than the newest a record may come and still be counted."""
    groups: tuple[str, ...] = ()
    """The groups whose lag is reported; by default all groups of these topics."""
    latency_header: str = ""
    into: str = ""
    """Parquet below this path: `windows` and `lag`."""
    to_topic: str = ""
    """JSON into this topic."""
    report: str = ""
    """An HTML file."""
    reading: Reading = field(default_factory=Reading)
    pace: Pace = field(default_factory=Pace)
    checkpoint: str = ""

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""
        self.check_words()
        self.reading.check()
        if self.report:
            paths.check_file(self.report, "--report")
        if is_here:
            if self.into:
                paths.check_folder(self.into, "--into")
            if self.checkpoint:
                paths.check_folder(self.checkpoint, "--checkpoint")
        probe.check_topics(self.cluster, self.topics.names)

    def check_words(self) -> None:
        """BadOption for options that conflict."""
        if not (self.into or self.to_topic or self.report):
            raise BadOption("Give an output: --into, --to-topic or --report.")
        if self.pace.is_following:
            if self.report:
                raise BadOption("--report cannot be combined with --follow.")
            if not self.checkpoint:
                raise BadOption("--follow requires a --checkpoint.")


def windows(records: DataFrame, window: str, latency_ms: Column | None = None) -> DataFrame:
    """One row for each topic and window of the records' own time."""
    taken = F.lit(None).cast("double") if latency_ms is None else latency_ms.cast("double")
    measured = records.select(
        "topic", "timestamp", size(records).alias("bytes"), taken.alias("latency_ms")
    )
    grouped = measured.groupBy(F.window("timestamp", window).alias("window"), "topic").agg(
        F.count(F.lit(1)).alias("records"),
        F.sum("bytes").alias("bytes"),
        F.max("bytes").alias("bytes_max"),
        F.percentile_approx("latency_ms", 0.5).alias("latency_p50_ms"),
        F.percentile_approx("latency_ms", 0.99).alias("latency_p99_ms"),
        F.max("latency_ms").alias("latency_max_ms"),
    )
    seconds = F.unix_timestamp("window.end") - F.unix_timestamp("window.start")
    return grouped.select(
        F.col("window.start").alias("start"),
        F.col("window.end").alias("end"),
        "topic",
        "records",
        "bytes",
        "bytes_max",
        (F.col("records") / seconds).alias("records_per_second"),
        (F.col("bytes") / seconds).alias("bytes_per_second"),
        *(f"latency_{name}_ms" for name in ("p50", "p99", "max")),
    )


def latency(header: str, *, is_following: bool) -> Column | None:
    """The latency of a record in milliseconds; None where it is unknown."""
    stamped = milliseconds(F.col("timestamp"))
    if header:
        return stamped - header_value(F.col("headers"), header).try_cast("long")
    return F.unix_millis(F.current_timestamp()) - stamped if is_following else None


def lag_rows(
    time: datetime, committed: Mapping[str, Offsets], ends: Offsets
) -> list[tuple[Any, ...]]:
    """One row for each group and partition that it has committed in, as LAG_SCHEMA has them."""
    found = []
    for group, offsets in sorted(committed.items()):
        known = {place: offset for place, offset in offsets.items() if place in ends}
        behind = lag(known, ends)
        for place in sorted(known):
            numbers = (known[place], ends[place], behind[place])
            found.append((time, group, *place, *numbers))
    return found


def run(
    spark: SparkSession, options: Options, reporter: Reporter, stopping: Stopping | None = None
) -> None:
    """Measure the stored records, or follow new ones until stopped."""
    options.check_words()
    with Admin(spark, options.cluster) as admin:
        admin.topics(options.topics)
        job = _Stats(spark, options, admin, reporter)
        if options.pace.is_following:
            job.follow(stopping)
        else:
            with spark_errors():
                job.measure()
    reporter.done("measured")


def _in_utc(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose times say so: Spark hands them out in this machine's zone, and without it."""
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


class _Stats:
    def __init__(
        self, spark: SparkSession, options: Options, admin: Admin, reporter: Reporter
    ) -> None:
        self._spark = spark
        self._options = options
        self._admin = admin
        self._reporter = reporter

    def measure(self) -> None:
        """All records that the topics hold now."""
        options = self._options
        table = kafka.batch(
            self._spark, options.cluster, options.topics, start=options.reading.start
        )
        found = self._windows(table).orderBy("start", "topic").cache()
        try:
            self._put(found, self._lag(), "")
            rows = [_in_utc(row.asDict()) for row in found.collect()]
            self._reporter.step(0, sum(row["records"] for row in rows))
            if options.report:
                self._report(rows, [row.asDict() for row in self._lag().collect()])
        finally:
            found.unpersist()

    def follow(self, stopping: Stopping | None) -> None:
        """Each window once it is over, and the lag at every step."""
        options = self._options
        progress = Files(self._spark, options.checkpoint)
        checkpoint.claim(
            progress,
            {"job": "stats", "topics": str(options.topics), "window": options.window},
        )
        records = kafka.stream(self._spark, options.cluster, options.topics, options.reading)
        run_stream(
            self._windows(records.withWatermark("timestamp", options.late)),
            lambda frame, number: self._put(frame, self._lag(), f"/batch={number}"),
            checkpoint=progress.uri(),
            pace=options.pace,
            reporter=self._reporter,
            stopping=stopping,
        )

    def _windows(self, records: DataFrame) -> DataFrame:
        options = self._options
        taken = latency(options.latency_header, is_following=options.pace.is_following)
        return windows(records, options.window, taken)

    def _lag(self) -> DataFrame:
        counts = self._admin.topics(self._options.topics)
        places = [(name, number) for name, count in counts.items() for number in range(count)]
        groups = self._options.groups or sorted(self._admin.groups())
        committed = {group: self._admin.group_offsets(group) for group in groups}
        rows = lag_rows(datetime.now(UTC), committed, self._admin.end_offsets(places))
        return self._spark.createDataFrame(rows, LAG_SCHEMA)

    def _put(self, found: DataFrame, behind: DataFrame, folder: str) -> None:
        """Write the figures; a batch that is done again replaces its own folder."""
        options = self._options
        if options.into:
            root = Files(self._spark, options.into)
            found.write.mode("overwrite").parquet(root.uri(f"windows{folder}"))
            behind.write.mode("overwrite").parquet(root.uri(f"lag{folder}"))
        if options.to_topic:
            for kind, table in (("window", found), ("lag", behind)):
                columns = [F.lit(kind).alias("kind"), *table.columns]
                value = F.to_json(F.struct(*columns)).alias("value")
                # They are few, and one task writes them in their order.
                keyed = table.select(F.col("topic").alias("key"), value).coalesce(1)
                kafka.write(keyed, options.cluster, options.to_topic)

    def _report(self, rows: Sequence[dict[str, Any]], behind: Sequence[dict[str, Any]]) -> None:
        title = f"{self._options.topics} at {self._options.cluster.bootstrap}"
        Path(self._options.report).write_text(report.html(title, rows, behind), encoding="utf-8")
        self._reporter.say(f"wrote {self._options.report}")
