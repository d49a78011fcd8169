"""Admin calls through the admin client of the connector's jars, in the JVM that runs anyway.

It is the client that Spark itself uses, so it takes exactly the options that the source and the
sink take, and needs no further installation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rockgate.pipeline.errors import JobFailed, NotReachable, PipelineError
from rockgate.pipeline.spark.kafka import ADMIN_DEFAULTS, Cluster, Offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALL_SECONDS_MAX = 30


class JvmClient:
    """Kafka's own admin client, by py4j."""

    def __init__(self, spark: SparkSession, cluster: Cluster) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self._cluster = cluster
        properties = jvm.java.util.Properties()
        for name, value in {**ADMIN_DEFAULTS, **cluster.options}.items():
            properties.setProperty(name, value)
        properties.setProperty("bootstrap.servers", cluster.bootstrap)
        self._client = self._guarded(
            lambda: jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close(self._jvm.java.time.Duration.ofSeconds(1))

    # Topics

    def check(self) -> None:
        """Check that a Kafka server responds; NotReachable otherwise."""
        self._get(self._client.describeCluster().clusterId())

    def topic_names(self) -> set[str]:
        """Every topic that is not internal."""
        return set(self._get(self._client.listTopics().names()))

    def matching(self, pattern: str) -> list[str]:
        """The topics whose whole name matches."""
        matches = self._jvm.java.util.regex.Pattern.matches
        return [name for name in self.topic_names() if matches(pattern, name)]

    def partition_counts(self, names: Sequence[str]) -> dict[str, int]:
        """The number of partitions of each of these topics, which exist."""
        described = self._get(self._client.describeTopics(list(names)).allTopicNames())
        return {name: described[name].partitions().size() for name in names}

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """A topic with that many partitions, and the server's defaults for the rest."""
        optional = self._jvm.java.util.Optional
        topic = self._jvm.org.apache.kafka.clients.admin.NewTopic(
            name, optional.of(partitions), optional.empty()
        )
        if configs:
            topic.configs(dict(configs))
        self._get(self._client.createTopics([topic]).all())

    def grow_topic(self, name: str, partitions: int) -> None:
        """More partitions for a topic."""
        to = self._jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(partitions)
        self._get(self._client.createPartitions({name: to}).all())

    def topic_configs(self, names: Iterable[str], config: str) -> dict[str, str | None]:
        """One config of each of these topics; None from a server that does not know it."""
        package = self._jvm.org.apache.kafka.common.config
        kind = package.ConfigResource.Type.TOPIC
        wanted = [package.ConfigResource(kind, name) for name in names]
        found = self._get(self._client.describeConfigs(wanted).all())
        entries = {place.name(): found[place].get(config) for place in found}
        return {name: entry and entry.value() for name, entry in entries.items()}

    # Offsets

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets:
        """The offset behind the last record of each partition."""
        return self._offsets(places, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())

    def start_offsets(self, places: Iterable[tuple[str, int]]) -> Offsets:
        """The offset of the first record of each partition."""
        return self._offsets(places, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest())

    def _offsets(self, places: Iterable[tuple[str, int]], spec: Any) -> Offsets:
        wanted = self._jvm.java.util.HashMap()
        for place in places:
            wanted.put(self._place(place), spec)
        found = self._get(self._client.listOffsets(wanted).all())
        return {(at.topic(), at.partition()): found[at].offset() for at in found}

    def groups(self) -> set[str]:
        """Every group that has committed something or has members."""
        return {each.groupId() for each in self._get(self._client.listConsumerGroups().all())}

    def group_offsets(self, group: str) -> Offsets:
        """The committed offsets of a group; empty if there are none."""
        asked = self._client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()
        found = self._get(asked)
        return {
            (at.topic(), at.partition()): found[at].offset()
            for at in found
            if found[at] is not None
        }

    def _place(self, place: tuple[str, int]) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition(*place)

    # Calls

    def _get(self, future: Any) -> Any:
        unit = self._jvm.java.util.concurrent.TimeUnit.SECONDS
        return self._guarded(lambda: future.get(CALL_SECONDS_MAX, unit))

    def _guarded(self, call: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return call()
        except Py4JJavaError as error:
            raise self._error_of(error.java_exception) from None

    def _error_of(self, thrown: Any) -> PipelineError:
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        kind, text = thrown.getClass().getSimpleName(), str(thrown.getMessage())
        at = self._cluster.bootstrap
        if kind in ("TimeoutException", "DisconnectException", "ConfigException"):
            return NotReachable(f"No Kafka server responds at {at}: {text}.")
        return JobFailed(f"{at} rejected the request: {kind}: {text}.")
