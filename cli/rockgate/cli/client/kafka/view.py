"""A cluster as Metadata describes it: brokers, topics, and who leads each partition."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.messages.metadata import MetadataResponse
from rockgate.protocol.kafka.schema import Encoded

T = TypeVar("T")
Place = tuple[str, int]
"""A topic's name and the number of a partition."""

NO_NODE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker and where to reach it."""

    node_id: int
    address: Address
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Who leads a partition and where its replicas are."""

    index: int
    error_code: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and its partitions by number; a missing one has an error and no partitions."""

    name: str
    topic_id: bytes
    error_code: int
    is_internal: bool
    partitions: Mapping[int, Partition]

    @property
    def replication_factor(self) -> int:
        """Replicas of each partition; the most, should they differ."""
        return max((len(each.replicas) for each in self.partitions.values()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one Metadata answer says."""

    cluster_id: str | None
    controller: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, Topic]


def view_of(answer: MetadataResponse) -> View:
    """The answer as values; partitions come in the order of their numbers."""
    nodes = {
        each.node_id: Node(
            node_id=each.node_id, address=Address(each.host, each.port), rack=each.rack
        )
        for each in answer.brokers
    }
    topics = {
        each.name: Topic(
            name=each.name,
            topic_id=each.topic_id,
            error_code=each.error_code,
            is_internal=each.is_internal,
            partitions={
                part.partition_index: Partition(
                    index=part.partition_index,
                    error_code=part.error_code,
                    leader=part.leader_id,
                    leader_epoch=part.leader_epoch,
                    replicas=tuple(part.replica_nodes),
                    in_sync=tuple(part.isr_nodes),
                    offline=tuple(part.offline_replicas),
                )
                for part in sorted(decoded(each.partitions), key=lambda p: p.partition_index)
            },
        )
        for each in decoded(answer.topics)
        if each.name is not None
    }
    return View(
        cluster_id=answer.cluster_id,
        controller=answer.controller_id,
        nodes=dict(sorted(nodes.items())),
        topics=dict(sorted(topics.items())),
    )


def decoded(items: Sequence[T | Encoded] | None) -> list[T]:
    """The elements of an array that was read: only one to be written can hold encoded ones."""
    return [item for item in items or () if not isinstance(item, Encoded)]


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Partition numbers by topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    return topics
