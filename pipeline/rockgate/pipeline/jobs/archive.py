"""`archive`: topics to Parquet, partitioned by topic and date, each record exactly once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rockgate.pipeline.admin import probe
from rockgate.pipeline.admin.interface import Admin
from rockgate.pipeline.files import archive, checkpoint, paths
from rockgate.pipeline.files import compaction as merging
from rockgate.pipeline.files.archive import Part
from rockgate.pipeline.files.compaction import Merging
from rockgate.pipeline.files.interface import Files
from rockgate.pipeline.report.progress import Reporter
from rockgate.pipeline.spark import kafka
from rockgate.pipeline.spark.kafka import Cluster, Reading, Topics
from rockgate.pipeline.stream import Pace, Stopping, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `archive`."""

    cluster: Cluster
    topics: Topics
    into: str
    """The archive's root: any path or address that Spark can write to."""
    reading: Reading = field(default_factory=Reading)
    pace: Pace = field(default_factory=Pace)
    merging: Merging = field(default_factory=Merging)
    checkpoint: str = ""
    """The archive's own folder for it, unless named."""

    def check(self, *, is_here: bool) -> None:
        """Raise the errors that can be found without Spark; paths only for a local session."""
        self.reading.check()
        if is_here:
            paths.check_folder(self.into, "--into")
            paths.check_folder(self.checkpoint or self.into, "--checkpoint")
        probe.check_topics(self.cluster, self.topics.names)


def run(
    spark: SparkSession, options: Options, reporter: Reporter, stopping: Stopping | None = None
) -> None:
    """Archive until it is through or stopped."""
    with Admin(spark, options.cluster) as admin:
        admin.topics(options.topics)
    files = Files(spark, options.into)
    progress = Files(spark, options.checkpoint or files.uri(archive.CHECKPOINT))
    checkpoint.claim(
        progress,
        {"job": "archive", "topics": str(options.topics), "into": files.uri()},
    )
    swept = merging.sweep(files)
    if swept:
        reporter.say(f"removed {swept} files that an interrupted merge had left")
    step = Step(spark, files, options.merging, reporter)
    records = kafka.stream(spark, options.cluster, options.topics, options.reading)
    reporter.say(f"{options.topics} of {options.cluster.bootstrap} to {files.uri()}")
    run_stream(
        archive.rows(records),
        step,
        checkpoint=progress.uri(),
        pace=options.pace,
        reporter=reporter,
        stopping=stopping,
    )
    reporter.done(f"archived to {files.uri()}")


class Step:
    """Writes a batch, and merges where that made too many files."""

    def __init__(
        self, spark: SparkSession, files: Files, merging: Merging, reporter: Reporter
    ) -> None:
        self._spark = spark
        self._files = files
        self._merging = merging
        self._reporter = reporter

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Publish the files of one batch."""
        parts = archive.publish(self._files, self._spark, frame, "batch")
        self._merge({(part.topic, part.date) for part in parts})

    def _merge(self, touched: Iterable[tuple[str, str]]) -> None:
        for topic, date in sorted(touched):
            folder = self._files.below(f"topic={topic}/date={date}")
            live, _ = archive.split(archive.parsed(folder))
            for found in merging.runs(live, self._merging):
                part: Part = merging.merge(self._spark, self._files, found)
                self._reporter.say(f"merged {len(found)} files into {part.path}")
