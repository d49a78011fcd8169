"""The topics as Metadata shows them, kept ready to send.

A topic is encoded once for each version that clients ask in, and again only after it has changed,
so that a poll of ten thousand partitions is little more than joining bytes.
"""

from __future__ import annotations

from rockgate.gateway.kafka import names
from rockgate.protocol.kafka.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import Encoded, encode_part
from rockgate.store.topic import Topic

TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Everything a client may do to a topic, as bits: read, write, create, delete, alter, describe and
the two for configs. Nobody is refused anything while there are no ACLs."""
NOT_ASKED = -(1 << 31)


class Catalogue:
    """Encoded topics by id, version and whether operations were asked for."""

    def __init__(self, node_id: int, leader_epoch: int) -> None:
        self._node_id = node_id
        self._leader_epoch = leader_epoch
        self._kept: dict[tuple[int, bool], dict[bytes, tuple[int, Encoded]]] = {}

    def topic(self, topic: Topic, version: int, *, with_operations: bool) -> Encoded:
        """Return a topic ready for a response, from the shelf if it has not changed."""
        shelf = self._kept.setdefault((version, with_operations), {})
        kept = shelf.get(topic.id)
        if kept is not None and kept[0] == topic.position:
            return kept[1]
        encoded = encode_part(MetadataResponse, self._describe(topic, with_operations), version)
        shelf[topic.id] = (topic.position, encoded)
        return encoded

    def has(self, topic: Topic, version: int, *, with_operations: bool) -> bool:
        """Whether a topic is on the shelf as it is now."""
        kept = self._kept.get((version, with_operations), {}).get(topic.id)
        return kept is not None and kept[0] == topic.position

    def forget(self, topic: Topic) -> None:
        """Let go of a deleted topic."""
        for shelf in self._kept.values():
            shelf.pop(topic.id, None)

    def _describe(self, topic: Topic, with_operations: bool) -> MetadataResponseTopic:
        nodes = [self._node_id]
        return MetadataResponseTopic(
            name=names.to_kafka(topic.name),
            topic_id=topic.id,
            is_internal=topic.is_internal,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=self._node_id,
                    leader_epoch=self._leader_epoch,
                    replica_nodes=nodes,
                    isr_nodes=nodes,
                )
                for index in range(topic.queue_count)
            ],
            topic_authorized_operations=TOPIC_OPERATIONS if with_operations else NOT_ASKED,
        )
