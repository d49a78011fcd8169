"""The archive on disk: Parquet files that say in their names which records they hold.

    ROOT/topic=orders/date=2026-11-16/00003-00000000000000000100-00000000000000000249.parquet

is all that partition 3 of `orders` has of that (UTC) date between the offsets 100 and 249. A file
appears by one rename, under a name that follows from its records: writing it again changes nothing.
**A file whose range is within that of another one of the same topic, date and partition is
superseded.** Ranges are either disjoint or nested, because a step's offsets are contiguous and a
merge only joins. So a merge is one rename as well, and what it leaves of the old files if it is
interrupted is neither read nor harmful: `live` leaves them out, the next run deletes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rockgate.pipeline.files.interface import File, Files
from rockgate.pipeline.spark.records import HEADERS_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGING = "_staging"
CHECKPOINT = "_checkpoint"
SCHEMA = (
    f"key binary, value binary, headers {HEADERS_TYPE}, partition int, offset bigint, "
    "timestamp timestamp, timestampType int, topic string, date string"
)
_NAME = re.compile(
    r"^topic=(?P<topic>[^/]+)/date=(?P<date>[^/]+)/"
    r"(?P<partition>\d{5,})-(?P<first>\d{20})-(?P<last>\d{20})\.parquet$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of the archive: whose records it has, and which."""

    topic: str
    date: str
    partition: int
    first: int
    last: int
    size: int = 0

    @property
    def path(self) -> str:
        """Its path below the root."""
        name = f"{self.partition:05d}-{self.first:020d}-{self.last:020d}.parquet"
        return f"topic={self.topic}/date={self.date}/{name}"

    @property
    def place(self) -> tuple[str, str, int]:
        """Topic, date and partition: ranges are compared within one."""
        return self.topic, self.date, self.partition

    def holds(self, other: Part) -> bool:
        """Whether this one contains everything of the other."""
        return self.first <= other.first and other.last <= self.last


def rows(records: DataFrame) -> DataFrame:
    """Records of the Kafka source as rows of the archive; nothing of a record is left out."""
    date = F.date_format(F.col("timestamp"), "yyyy-MM-dd").alias("date")
    columns = ("key", "value", "headers", "partition", "offset", "timestamp", "timestampType")
    return records.select(*columns, "topic", date)


def parsed(files: Iterable[File]) -> list[Part]:
    """The parts among files; whatever is named otherwise is not ours."""
    found = []
    for file in files:
        match = _NAME.match(file.path)
        if match:
            numbers = {name: int(match[name]) for name in ("partition", "first", "last")}
            found.append(Part(topic=match["topic"], date=match["date"], size=file.size, **numbers))
    return found


def split(parts: Iterable[Part]) -> tuple[list[Part], list[Part]]:
    """The parts that count, sorted by place and offset, and those that are superseded."""
    live: list[Part] = []
    superseded: list[Part] = []
    # The longer of two that begin together comes first, so a part is held by one before it.
    for part in sorted(parts, key=lambda each: (each.place, each.first, -each.last)):
        if live and live[-1].place == part.place and live[-1].holds(part):
            superseded.append(part)
        else:
            live.append(part)
    return live, superseded


def live(files: Files, topics: Sequence[str] = ()) -> list[Part]:
    """The parts that count, of some topics or of all."""
    folders = [f"topic={name}" for name in topics] or [
        name for name in files.folders() if name.startswith("topic=")
    ]
    return split(parsed(file for folder in folders for file in files.below(folder)))[0]


def read(
    spark: SparkSession, root: str, topics: Sequence[str] = (), parts: Sequence[Part] | None = None
) -> DataFrame:
    """The archive as a table, each record once, also while it is written or merged."""
    files = Files(spark, root)
    chosen = live(files, topics) if parts is None else parts
    if not chosen:
        return spark.createDataFrame([], SCHEMA)
    reader = spark.read.schema(SCHEMA).option("basePath", files.uri())
    return reader.parquet(*(files.uri(part.path) for part in chosen))


def stage(files: Files, spark: SparkSession, frame: DataFrame, name: str) -> list[tuple[str, Part]]:
    """Write rows aside, one file for each place; each with the part that it is going to be."""
    aside = f"{STAGING}/{name}"
    files.delete(aside)
    place = [F.col("topic"), F.col("date"), F.col("partition")]
    ordered = frame.repartition(*place).sortWithinPartitions(*place, "offset")
    writer = ordered.withColumn("_partition", F.col("partition")).write
    writer.partitionBy("topic", "date", "_partition").parquet(files.uri(aside))
    return _staged_parts(files, spark, aside)


def publish(files: Files, spark: SparkSession, frame: DataFrame, name: str) -> list[Part]:
    """Write rows aside, then give each file the name that its records have earned."""
    found = stage(files, spark, frame, name)
    files.rename_all([(staged, part.path) for staged, part in found])
    files.delete(f"{STAGING}/{name}")
    return [part for _, part in found]


def _staged_parts(files: Files, spark: SparkSession, aside: str) -> list[tuple[str, Part]]:
    sizes = {file.path: file.size for file in files.below(aside) if file.path.endswith(".parquet")}
    if not sizes:
        return []
    # Its types are given and not guessed: a topic may be called 7.
    table = spark.read.schema(f"{SCHEMA}, _partition int").parquet(files.uri(aside))
    ranges = table.groupBy("topic", "date", "partition", F.input_file_name().alias("file")).agg(
        F.min("offset").alias("first"), F.max("offset").alias("last")
    )
    found = []
    for row in ranges.collect():
        folder = f"topic={row.topic}/date={row.date}/_partition={row.partition}"
        path = f"{aside}/{folder}/{row.file.rpartition('/')[2]}"
        numbers = {"partition": row.partition, "first": row.first, "last": row.last}
        part = Part(topic=row.topic, date=row.date, size=sizes[path], **numbers)
        found.append((path, part))
    return found
