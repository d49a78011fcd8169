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

CACHED_SIZE_MAX = 4096
"""A larger topic is not cached: nearly all of it is a slice of a run that is."""

_Form = tuple[int, int]
"""A version, and the operations that the client may do, or NOT_ASKED. Clients have few different
ones in common: those of readers, of writers, of administrators."""
FORMS_MAX = 64


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

    def topic(self, topic: TopicView, version: int, *, operations: int) -> Encoded:
        """Return a topic ready for a response, from the cache if it has not changed."""
        by_id = self._topics.get((version, operations))
        if by_id is None:
            if len(self._topics) >= FORMS_MAX:
                self._topics.clear()
            by_id = self._topics[version, operations] = {}
        cached = by_id.get(topic.id)
        if cached is not None and cached[0] == topic.position:
            return cached[1]
        described = self._describe(topic, version, operations)
        encoded = encode_part(MetadataResponse, described, version)
        if len(encoded.data) <= CACHED_SIZE_MAX:
            by_id[topic.id] = (topic.position, encoded)
        return encoded

    def all_topics(self, listed: int, version: int, *, operations: int) -> Encoded | None:
        """Return the list of all topics as of a version of the catalog, if it was cached."""
        cached = self._all.get((version, operations))
        return cached[1] if cached is not None and cached[0] == listed else None

    def keep_all(self, listed: int, topics: Encoded, *, operations: int) -> None:
        """Cache the list of all topics until something changes."""
        self._all[topics.version, operations] = (listed, topics)

    def forget(self, topic: TopicView) -> None:
        """Drop a deleted topic."""
        self._all.clear()
        for by_id in self._topics.values():
            by_id.pop(topic.id, None)

    def _describe(self, topic: TopicView, version: int, operations: int) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=names.to_kafka(topic.name),
            topic_id=topic.id,
            is_internal=topic.is_internal,
            partitions=self._partitions.between(topic, 0, topic.queue_count, version),
            topic_authorized_operations=operations,
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
