"""`mirror`: topics of one Kafka cluster to another, with their partitions, keys and headers.

Spark's sink has no timestamp column, so a record's own time and offset travel in two headers,
`mirror.timestamp` (milliseconds) and `mirror.offset`. The second also makes a rerun exact: what a
killed run had written of its last batch is found by it at the end of the target and left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rockgate.pipeline.admin import probe
from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.admin.target_topics import ensure_topics, named
from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.files import checkpoint, paths
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.kafka import Cluster, Offsets, Reading, Topics
from rockgate.pipeline.spark.records import header, header_value, milliseconds, with_headers
from rockgate.pipeline.stream import Pace, Stopping, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMESTAMP_HEADER = "mirror.timestamp"
OFFSET_HEADER = "mirror.offset"
GROUP_START = "group:"
EARLIEST = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `mirror`."""

    source: Cluster
    target: Cluster
    topics: Topics
    checkpoint: str
    to: str = "{topic}"
    """What a topic is called at the target."""
    reading: Reading = field(default_factory=Reading)
    """Its `start` may also be `group:NAME`: where that group of the source has committed."""
    pace: Pace = field(default_factory=Pace)
    has_marks: bool = True
    """Whether the two headers are added."""

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""
        self.check_words()
        if not self.reading.start.startswith(GROUP_START):
            self.reading.check()
        if is_here:
            paths.check_folder(self.checkpoint, "--checkpoint")
        probe.check_topics(self.source, self.topics.names, "--from")
        probe.check_server(self.target, "--to")

    def check_words(self) -> None:
        """BadOption for options that conflict."""
        if self.source.bootstrap == self.target.bootstrap and self.to == "{topic}":
            raise BadOption(
                "Source and target are the same. Use --rename to give the topics other names."
            )
        if self.reading.start.startswith(GROUP_START) and not self.topics.names:
            raise BadOption(f"--start {GROUP_START}NAME requires --topic, not --pattern.")


def records(source: DataFrame, to: str = "{topic}", *, has_marks: bool = True) -> DataFrame:
    """Records of the source as records for the target."""
    headers = F.col("headers")
    if has_marks:
        headers = with_headers(
            headers,
            header(TIMESTAMP_HEADER, milliseconds(F.col("timestamp"))),
            header(OFFSET_HEADER, F.col("offset")),
        )
    renamed = F.replace(F.lit(to), F.lit("{topic}"), F.col("topic")).alias("topic")
    return source.select(renamed, "partition", "key", "value", headers.alias("headers"))


def run(
    spark: SparkSession, options: Options, reporter: Reporter, stopping: Stopping | None = None
) -> None:
    """Mirror until it is through or stopped."""
    options.check_words()
    progress = Files(spark, options.checkpoint)
    with Admin(spark, options.source) as source, Admin(spark, options.target) as target:
        source.topics(options.topics)
        target.check()
        start = starting_offsets(source, options)
        checkpoint.claim(progress, _identity(options))
        step = Step(spark, options, source, target, reporter)
        step.unfinished = checkpoint.unfinished_batch(progress)
        reading = replace(options.reading, start=start)
        reporter.say(
            f"{options.topics} of {options.source.bootstrap} to {options.target.bootstrap}"
        )
        if options.has_marks:
            reporter.say(
                "Spark's sink cannot write timestamps: the source timestamp is in header "
                f"{TIMESTAMP_HEADER}, the offset in {OFFSET_HEADER}"
            )
        run_stream(
            kafka.stream(spark, options.source, options.topics, reading),
            step,
            checkpoint=progress.uri(),
            pace=options.pace,
            reporter=reporter,
            stopping=stopping,
        )
    reporter.done("mirrored")


def _identity(options: Options) -> dict[str, str]:
    return {
        "job": "mirror",
        "topics": str(options.topics),
        "rename": options.to,
        "source": options.source.bootstrap,
        "target": options.target.bootstrap,
    }


def starting_offsets(admin: Admin, options: Options) -> str:
    """Where the first run begins, in Spark's form."""
    if not options.reading.start.startswith(GROUP_START):
        return options.reading.start
    group = options.reading.start.removeprefix(GROUP_START)
    committed = admin.group_offsets(group)
    if not any(topic in options.topics.names for topic, _ in committed):
        raise BadOption(
            f"Group {group} has no committed offsets for {options.topics} "
            f"at {options.source.bootstrap}."
        )
    return kafka.offsets_json(
        {
            topic: {number: committed.get((topic, number), EARLIEST) for number in range(count)}
            for topic, count in admin.partition_counts(options.topics.names).items()
        }
    )


class Step:
    """Writes a batch; of one that an earlier run left unfinished, only what is missing."""

    def __init__(
        self,
        spark: SparkSession,
        options: Options,
        source: Admin,
        target: Admin,
        reporter: Reporter,
    ) -> None:
        self._spark = spark
        self._options = options
        self._source = source
        self._target = target
        self._reporter = reporter
        self._counts: dict[str, int] = {}
        self.unfinished: int | None = None
        """The batch that an earlier run may have written in part."""

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write one batch."""
        self._prepare()
        if number == self.unfinished and self._options.has_marks:
            frame = self._without_written(frame)
        kafka.write(
            records(frame, self._options.to, has_marks=self._options.has_marks),
            self._options.target,
        )

    def _prepare(self) -> None:
        """Topics of the target have as many partitions as those of the source have by now."""
        counts = self._source.topics(self._options.topics)
        if counts != self._counts:
            wanted = {named(self._options.to, name): count for name, count in counts.items()}
            ensure_topics(self._target, wanted, self._reporter)
            self._counts = counts

    def _without_written(self, frame: DataFrame) -> DataFrame:
        written = last_offsets(self._spark, self._options, self._target, frame)
        for (topic, partition), offset in written.items():
            is_there = (
                (F.col("topic") == topic)
                & (F.col("partition") == partition)
                & (F.col("offset") <= offset)
            )
            frame = frame.where(~is_there)
        if written:
            self._reporter.say("skipped what the interrupted run wrote of its last batch")
        return frame


def last_offsets(spark: SparkSession, options: Options, admin: Admin, batch: DataFrame) -> Offsets:
    """The last offset of the source that each partition of the target has.

    Of a partition at most as many records are looked at as the batch has for it, from the end: the
    interrupted run cannot have written more.
    """
    sizes = {
        (row.topic, row.partition): row["count"]
        for row in batch.groupBy("topic", "partition").count().collect()
    }
    places = {(named(options.to, topic), number): (topic, number) for topic, number in sizes}
    ends, starts = admin.end_offsets(places), admin.start_offsets(places)
    windows: dict[str, dict[int, int]] = {}
    for at, origin in places.items():
        windows.setdefault(at[0], {})[at[1]] = max(starts[at], ends[at] - sizes[origin])
    for topic, partitions in windows.items():
        # Spark requires every partition of a topic to be listed.
        for number in range(admin.partition_counts([topic])[topic]):
            partitions.setdefault(number, -1)
    tail = kafka.batch(
        spark, options.target, Topics(names=tuple(windows)), start=kafka.offsets_json(windows)
    )
    marked = tail.select(
        "topic",
        "partition",
        header_value(F.col("headers"), OFFSET_HEADER).cast("long").alias("source_offset"),
    )
    found = marked.groupBy("topic", "partition").agg(F.max("source_offset").alias("last")).collect()
    return {
        places[row.topic, row.partition]: row["last"]
        for row in found
        if row["last"] is not None and (row.topic, row.partition) in places
    }
