"""What an application of Kafka Streams computes: subtopologies, and the topics between them.

It comes with the first heartbeat of a member and is written as one record of the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

SUBTOPOLOGIES_MAX: Final = 500
TOPICS_MAX: Final = 2_000
"""Maximum number of topics that all subtopologies name together; of co-partitioned ones as well."""
TOPOLOGY_BYTES_MAX: Final = 512 << 10
"""Maximum size of its record."""


class InternalTopic(msgspec.Struct, array_like=True, frozen=True):
    """A topic that the group has to itself."""

    name: str
    partitions: int
    """0 if the server decides."""
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


class Copartition(msgspec.Struct, array_like=True, frozen=True):
    """Topics that need the same number of partitions, by their places in the lists."""

    sources: tuple[int, ...]
    repartition_sources: tuple[int, ...]


class Subtopology(msgspec.Struct, array_like=True, frozen=True):
    """A connected part: it is computed by as many tasks as its largest source has partitions."""

    id: str
    sources: tuple[str, ...]
    changelogs: tuple[InternalTopic, ...]
    repartition_sinks: tuple[str, ...]
    repartition_sources: tuple[InternalTopic, ...]
    copartitions: tuple[Copartition, ...]

    def read(self) -> Iterator[str]:
        """The topics that its tasks read."""
        yield from self.sources
        for topic in self.repartition_sources:
            yield topic.name

    def copartitioned(self) -> Iterator[frozenset[str]]:
        """The names of topics that need the same number of partitions."""
        for each in self.copartitions:
            yield frozenset(
                [
                    *(self.sources[at] for at in each.sources),
                    *(self.repartition_sources[at].name for at in each.repartition_sources),
                ]
            )


class StreamsTopology(msgspec.Struct, array_like=True, frozen=True):
    """The whole."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]
    """In the order of their ids."""

    def read(self) -> Iterator[str]:
        """The topics that tasks read, some perhaps more than once."""
        for each in self.subtopologies:
            yield from each.read()

    def required(self) -> frozenset[str]:
        """The topics that have to exist."""
        changelogs = (topic.name for each in self.subtopologies for topic in each.changelogs)
        return frozenset([*self.read(), *changelogs])

    def named(self) -> frozenset[str]:
        """All topics that are named in it."""
        sinks = (name for each in self.subtopologies for name in each.repartition_sinks)
        return self.required().union(sinks)

    def subtopology_of(self) -> dict[str, str]:
        """The subtopology that reads a topic, by the topic's name."""
        return {name: each.id for each in self.subtopologies for name in each.read()}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StreamsTopology).decode


def pack_topology(topology: StreamsTopology) -> bytes:
    """The record of a topology."""
    return _encode(topology)


def unpack_topology(data: bytes) -> StreamsTopology:
    """The topology of a record."""
    return _decode(data)
