"""Where the state of each partition can be asked for: the end points of members, and their tasks.

Clients are sent the table when their epoch of it is another one. The epoch does not last: after a
start it begins again, and every client gets the table once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.consumer.group import TopicShape
from rockgate.gateway.kafka.groups.streams.configured import ConfiguredTopology
from rockgate.gateway.kafka.groups.streams.member import StreamsMember

PARTITIONS_MAX: Final = 20_000
"""Maximum number of partitions in the table; a larger one is sent empty."""
EndPoint: TypeAlias = tuple[str, int]
FindTopic: TypeAlias = Callable[[str], TopicShape | None]


class PartitionsAt(NamedTuple):
    """The partitions at one end point, by the names of their topics."""

    endpoint: EndPoint
    active: Mapping[str, list[int]]
    standby: Mapping[str, list[int]]


class EndpointTable:
    """The end points of a group, and the epoch of this information."""

    def __init__(self) -> None:
        self.epoch = 0
        self._made: tuple[int, ConfiguredTopology | None] | None = None
        self._table: tuple[PartitionsAt, ...] = ()

    def changed(self) -> None:
        """A member with an end point has other tasks, or is gone."""
        self.epoch += 1

    def of(
        self,
        members: Iterable[StreamsMember],
        configured: ConfiguredTopology | None,
        find: FindTopic,
    ) -> tuple[PartitionsAt, ...]:
        """The table, made once in an epoch."""
        key = (self.epoch, configured)
        if self._made is None or self._made[0] != key[0] or self._made[1] is not key[1]:
            self._made, self._table = key, tuple(partitions_at(members, configured, find))
        return self._table


def partitions_at(
    members: Iterable[StreamsMember], configured: ConfiguredTopology | None, find: FindTopic
) -> Iterator[PartitionsAt]:
    """The partitions that tasks read, by end point; none if there are too many of them."""
    there = [each for each in members if each.process.endpoint is not None]
    if configured is None or not configured.is_ready or not there:
        return
    topics: dict[str, dict[str, int]] = {}
    for each in configured.topology.subtopologies:
        found = {name: find(name) for name in each.read()}
        topics[each.id] = {name: shape.queue_count for name, shape in found.items() if shape}
    total = sum(
        len(parts) * len(topics.get(subtopology, ()))
        for member in there
        for kind in (member.assigned.active, member.assigned.standby)
        for subtopology, parts in kind.items()
    )
    if total > PARTITIONS_MAX:
        return
    for member in there:
        if (endpoint := member.process.endpoint) is not None:
            yield PartitionsAt(
                endpoint,
                _partitions(member.assigned.active, topics),
                _partitions(member.assigned.standby, topics),
            )


def _partitions(
    held: Mapping[str, Mapping[int, int]], topics: Mapping[str, Mapping[str, int]]
) -> dict[str, list[int]]:
    found = {}
    for subtopology, parts in held.items():
        for name, count in topics.get(subtopology, {}).items():
            # A topic with fewer partitions than the subtopology has tasks is not read by all.
            found[name] = sorted(each for each in parts if each < count)
    return found
