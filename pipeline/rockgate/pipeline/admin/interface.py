"""Asking a Kafka server about topics and groups, and creating topics.

A driver has Kafka's own admin client in its JVM (jvm.py). A client of Spark Connect has no JVM, and
sends the requests itself, with the same options (kafka_python.py). Every call is bounded, and
failures become our own errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rockgate.pipeline.errors import UnknownTopic
from rockgate.pipeline.spark.kafka import Cluster, Offsets, Topics
from rockgate.pipeline.spark.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Client(Protocol):
    """The admin requests that jobs make; failures raise PipelineErrors."""

    def close(self) -> None: ...
    def check(self) -> None: ...
    def topic_names(self) -> set[str]: ...
    def matching(self, pattern: str) -> list[str]: ...
    def partition_counts(self, names: Sequence[str]) -> dict[str, int]: ...
    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None: ...
    def grow_topic(self, name: str, partitions: int) -> None: ...
    def topic_configs(self, names: Iterable[str], config: str) -> dict[str, str | None]: ...
    def end_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets: ...
    def start_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets: ...
    def groups(self) -> set[str]: ...
    def group_offsets(self, group: str) -> Offsets: ...


def _client(spark: SparkSession, cluster: Cluster) -> _Client:
    if is_remote(spark):
        from rockgate.pipeline.admin.kafka_python import KafkaPythonClient

        return KafkaPythonClient(spark, cluster)
    from rockgate.pipeline.admin.jvm import JvmClient

    return JvmClient(spark, cluster)


class Admin:
    """One admin client; closed at the end of its `with` block."""

    def __init__(self, spark: SparkSession, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = _client(spark, cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    # Topics

    def check(self) -> None:
        """Check that a Kafka server responds; NotReachable otherwise."""
        self._client.check()

    def topic_names(self) -> set[str]:
        """Every topic that is not internal."""
        return self._client.topic_names()

    def topics(self, topics: Topics) -> dict[str, int]:
        """The partition counts of the selected topics; UnknownTopic if there are none."""
        if topics.names:
            return self.partition_counts(topics.names)
        found = self._client.matching(topics.pattern)
        if not found:
            raise UnknownTopic(f"No topic at {self._cluster.bootstrap} matches {topics.pattern}.")
        return self.partition_counts(found)

    def partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        """How many partitions each of these topics has; UnknownTopic names those missing."""
        wanted = sorted(set(names))
        missing = sorted(set(wanted) - self.topic_names())
        if missing:
            raise UnknownTopic(
                f"Topic {', '.join(missing)} does not exist at {self._cluster.bootstrap}. "
                "List topics with `rockgate topics list`."
            )
        return self._client.partition_counts(wanted)

    def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """A topic with that many partitions, and the server's defaults for the rest."""
        self._client.create_topic(name, partitions, configs or {})

    def grow_topic(self, name: str, partitions: int) -> None:
        """More partitions for a topic."""
        self._client.grow_topic(name, partitions)

    def topic_configs(self, names: Iterable[str], config: str) -> dict[str, str | None]:
        """One config of each of these topics; None from a server that does not know it."""
        return self._client.topic_configs(names, config)

    # Offsets

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets:
        """The offset behind the last record of each partition."""
        return self._client.end_offsets(places)

    def start_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets:
        """The offset of the first record of each partition."""
        return self._client.start_offsets(places)

    def groups(self) -> set[str]:
        """Every group that has committed something or has members."""
        return self._client.groups()

    def group_offsets(self, group: str) -> Offsets:
        """The committed offsets of a group; empty if there are none."""
        return self._client.group_offsets(group)


def lag(committed: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]) -> Offsets:
    """How many records each partition has after the committed offset; never negative."""
    return {place: max(0, ends[place] - offset) for place, offset in committed.items()}
