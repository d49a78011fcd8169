"""The topics as Metadata describes them, encoded and cached.

A topic is encoded once per requested version, and again only after it or the leaders have changed;
so is the list of all topics. A poll of ten thousand topics is then little more than joining bytes.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.topics.catalog import TopicView
from rockgate.gateway.kafka.topics.partition_runs import PlacedPartitions
from rockgate.gateway.kafka.topics.placement import NO_NODE, Placement
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import Encoded, encode_part

TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Everything a client may do to a topic, as bits: read, write, create, delete, alter, describe and
the two for configs. There are no ACLs, so everything is allowed."""
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""The same for the cluster: create, alter, describe, its actions, configs and idempotent writes."""
NOT_ASKED = -(1 << 31)
CACHED_SIZE_MAX = 4096
"""A larger topic is not cached: nearly all of it is a slice of a run that is."""

_Form = tuple[int, bool]
"""A version, and whether operations were requested."""


class MetadataCache:
    """Encoded topics by form and id."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._partitions = PlacedPartitions(MetadataResponse, _partition, placement)
        self.placed = placement.version
        """The version of the placement for which it was filled."""
        self._topics: dict[_Form, dict[bytes, tuple[int, Encoded]]] = {}
        self._all: dict[_Form, tuple[int, Encoded]] = {}

    def renew(self) -> None:
        """Drop everything, because the leaders have changed."""
        self.placed = self._placement.version
        self._topics.clear()
        self._all.clear()

    def topic(self, topic: TopicView, version: int, *, with_operations: bool) -> Encoded:
        """Return a topic ready for a response, from the cache if it has not changed."""
        by_id = self._topics.setdefault((version, with_operations), {})
        cached = by_id.get(topic.id)
        if cached is not None and cached[0] == topic.position:
            return cached[1]
        described = self._describe(topic, version, with_operations)
        encoded = encode_part(MetadataResponse, described, version)
        if len(encoded.data) <= CACHED_SIZE_MAX:
            by_id[topic.id] = (topic.position, encoded)
        return encoded

    def all_topics(self, listed: int, version: int, *, with_operations: bool) -> Encoded | None:
        """Return the list of all topics as of a version of the catalog, if it was cached."""
        cached = self._all.get((version, with_operations))
        return cached[1] if cached is not None and cached[0] == listed else None

    def keep_all(self, listed: int, topics: Encoded, *, with_operations: bool) -> None:
        """Cache the list of all topics until something changes."""
        self._all[topics.version, with_operations] = (listed, topics)

    def forget(self, topic: TopicView) -> None:
        """Drop a deleted topic."""
        self._all.clear()
        for by_id in self._topics.values():
            by_id.pop(topic.id, None)

    def _describe(
        self, topic: TopicView, version: int, with_operations: bool
    ) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=names.to_kafka(topic.name),
            topic_id=topic.id,
            is_internal=topic.is_internal,
            partitions=self._partitions.between(topic, 0, topic.queue_count, version),
            topic_authorized_operations=TOPIC_OPERATIONS if with_operations else NOT_ASKED,
        )


def _partition(index: int, node_id: int, epoch: int) -> MetadataResponsePartition:
    nodes = [] if node_id == NO_NODE else [node_id]
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=node_id,
        leader_epoch=epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
    )
