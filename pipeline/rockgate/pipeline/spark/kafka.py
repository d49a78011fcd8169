"""Reading topics and writing them, with Spark's own source and sink.

A `Cluster` is an address and the options of Kafka's own client (`security.protocol` and the like);
the same options serve the source, the sink and the admin client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rockgate.pipeline.errors import BadOption
from rockgate.pipeline.spark.records import for_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS_PER_BATCH = 1_000_000
ADMIN_DEFAULTS = {
    # Kafka's default of a minute is long for a mistyped address.
    "default.api.timeout.ms": "15000",
    "request.timeout.ms": "10000",
    "client.id": "rockgate-pipeline",
}
"""What an admin client has unless the user says otherwise."""

Offsets = dict[tuple[str, int], int]
"""An offset for each (topic, partition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where a Kafka server is, and how its clients are set up."""

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of Kafka's own client; a login is among them."""

    def spark_options(self) -> dict[str, str]:
        """The options of the source and the sink."""
        given = {f"kafka.{name}": value for name, value in self.options.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Which topics: by name, or by a pattern that also finds those that come later."""

    names: tuple[str, ...] = ()
    pattern: str = ""

    def __post_init__(self) -> None:
        if bool(self.names) == bool(self.pattern):
            raise BadOption("Give topics by name or by pattern, not both.")

    def __str__(self) -> str:
        return self.pattern or ",".join(self.names)

    def spark_options(self) -> dict[str, str]:
        """The options of the source."""
        if self.pattern:
            # Spark would accept a match anywhere; Kafka's own subscriptions match the full name.
            return {"subscribePattern": f"^(?:{self.pattern})$"}
        return {"subscribe": ",".join(self.names)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How topics are read."""

    start: str = "earliest"
    """earliest, latest, or offsets per partition in JSON; a checkpoint goes before it."""
    offsets_per_batch: int = OFFSETS_PER_BATCH
    is_loss_allowed: bool = False
    """Whether to continue when records were deleted before they were read."""

    def check(self) -> None:
        """BadOption, if Spark would not accept the start."""
        if self.start in ("earliest", "latest"):
            return
        try:
            offsets = json.loads(self.start)
            if all(
                int(number) >= 0 <= int(at) + 2
                for each in offsets.values()
                for number, at in each.items()
            ):
                return
        except (ValueError, AttributeError, TypeError):
            pass
        raise BadOption(
            f"Invalid --start {self.start!r}: expected earliest, latest, or offsets such as "
            '{"orders": {"0": 17, "1": -2}}.'
        )

    def spark_options(self) -> dict[str, str]:
        """The options of the source."""
        return {
            "startingOffsets": self.start,
            "maxOffsetsPerTrigger": str(self.offsets_per_batch),
            "failOnDataLoss": str(not self.is_loss_allowed).lower(),
            "includeHeaders": "true",
        }


def stream(spark: SparkSession, cluster: Cluster, topics: Topics, reading: Reading) -> DataFrame:
    """The records of topics as a stream, with headers."""
    options = {**cluster.spark_options(), **topics.spark_options(), **reading.spark_options()}
    return spark.readStream.format("kafka").options(**options).load()


def batch(
    spark: SparkSession,
    cluster: Cluster,
    topics: Topics,
    *,
    start: str = "earliest",
    end: str = "latest",
) -> DataFrame:
    """The records that topics hold now, with headers."""
    options = {
        **cluster.spark_options(),
        **topics.spark_options(),
        "startingOffsets": start,
        "endingOffsets": end,
        "includeHeaders": "true",
        "failOnDataLoss": "false",
    }
    return spark.read.format("kafka").options(**options).load()


def write(frame: DataFrame, cluster: Cluster, topic: str | None = None) -> None:
    """Write a table to a topic, or to the topics of its column `topic`."""
    options = {**cluster.spark_options(), "includeHeaders": "true"}
    if topic is not None:
        options["topic"] = topic
    for_sink(frame).write.format("kafka").options(**options).save()


def offsets_json(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """Offsets per topic and partition as the source takes them; -2 is earliest, -1 latest."""
    spelt = {
        topic: {str(number): offset for number, offset in sorted(partitions.items())}
        for topic, partitions in sorted(offsets.items())
    }
    return json.dumps(spelt)


def names_of(text: Sequence[str]) -> tuple[str, ...]:
    """Topic names given one by one or with commas between."""
    return tuple(name for each in text for name in each.split(",") if name)
