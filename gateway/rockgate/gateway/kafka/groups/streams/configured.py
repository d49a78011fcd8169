"""A topology on the topics that exist: how many tasks there are, and what is missing.

Pure functions. A repartition topic has as many partitions as the largest source of the subtopology
that writes to it, unless the topology says how many; topics that are joined have equally many; a
changelog has one for each task. Where topics do not fit, a status says which.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from rockgate.gateway.kafka.groups.streams.topology import (
    InternalTopic,
    StreamsTopology,
    Subtopology,
)
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

_NAMED_MAX: Final = 3
CountOf = Callable[[str], int | None]
"""The number of partitions of a topic; None if it does not exist."""


class StatusCode(IntEnum):
    """What the members should know of their group. Part of the wire."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Something that the members should know, in Kafka's words."""

    code: StatusCode
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredTopology:
    """A topology with numbers."""

    topology: StreamsTopology
    task_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of tasks of each subtopology; empty if it cannot be known."""
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions that each internal topic has to have."""
    missing: tuple[InternalTopic, ...] = ()
    """Internal topics that have to be created, with their numbers of partitions."""
    problem: GroupStatus | None = None
    """Why no tasks can be assigned."""

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None

    def with_count(self, topic: InternalTopic) -> InternalTopic:
        """An internal topic with the number of partitions that it has to have."""
        count = self.partition_counts.get(topic.name, topic.partitions)
        return InternalTopic(topic.name, count, topic.replication_factor, topic.configs)


class _Misfit(Exception):
    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = GroupStatus(code, detail)


def configure(topology: StreamsTopology, count_of: CountOf, tasks_max: int) -> ConfiguredTopology:
    """Decide all numbers; RequestError if the topology fits no topics at all."""
    try:
        return _configure(topology, count_of, tasks_max)
    except _Misfit as misfit:
        return ConfiguredTopology(topology=topology, problem=misfit.status)


def check_topology(topology: StreamsTopology) -> None:
    """Refuse a topology that could not be configured whatever topics there were."""
    for each in topology.subtopologies:
        if not each.sources and not each.repartition_sources:
            raise invalid(f"No source topics found for subtopology {each.id}")
        for topic in each.changelogs:
            if topic.partitions:
                raise invalid(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it "
                    f"is set to {topic.partitions}."
                )
    _repartition_counts(topology, lambda name: 1)


def invalid(reason: str) -> RequestError:
    """The refusal of a topology."""
    return RequestError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)


def _configure(topology: StreamsTopology, count_of: CountOf, tasks_max: int) -> ConfiguredTopology:
    internal = {topic.name for each in topology.subtopologies for topic in each.repartition_sources}
    sources = {name for each in topology.subtopologies for name in each.sources} - internal
    if missing := sorted(name for name in sources if count_of(name) is None):
        detail = f"Source topics {_listed(missing)} are missing."
        raise _Misfit(StatusCode.MISSING_SOURCE_TOPICS, detail)
    decided = _repartition_counts(topology, count_of)

    def known(name: str) -> int:
        count = count_of(name)
        return decided[name] if count is None else count

    _enforce_copartitions(topology, decided, known)
    task_counts: dict[str, int] = {}
    for each in topology.subtopologies:
        task_counts[each.id] = max(known(name) for name in each.read())
        decided.update(dict.fromkeys((t.name for t in each.changelogs), task_counts[each.id]))
    if (total := sum(task_counts.values())) > tasks_max:
        detail = f"The topology has {total:,} tasks, and a group at most {tasks_max:,}."
        raise _Misfit(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    absent = _absent(topology, decided, count_of)
    problem = None
    if absent:
        detail = f"Internal topics are missing: {_listed([topic.name for topic in absent])}"
        problem = GroupStatus(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(
        topology=topology,
        task_counts=task_counts,
        partition_counts=decided,
        missing=absent,
        problem=problem,
    )


def _repartition_counts(topology: StreamsTopology, count_of: CountOf) -> dict[str, int]:
    """The number of partitions of every repartition topic, from its writer's sources.

    A subtopology whose sources are all known comes before one that waits for a further source, as
    it does in a loop.
    """
    subtopologies = topology.subtopologies
    counts = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_sources
        if topic.partitions
    }
    readers: dict[str, list[int]] = {}
    unknown: list[int] = []
    for at, each in enumerate(subtopologies):
        waits = {topic.name for topic in each.repartition_sources if topic.name not in counts}
        unknown.append(len(waits))
        for name in waits:
            readers.setdefault(name, []).append(at)
    whole = [at for at, count in enumerate(unknown) if not count]
    partial = [
        at for at, each in enumerate(subtopologies) if unknown[at] and _has_any(each, counts)
    ]
    done: set[int] = set()
    while whole or partial:
        at = heapq.heappop(whole or partial)
        if at in done:
            continue
        done.add(at)
        largest = _largest(subtopologies[at], counts, count_of)
        for name in subtopologies[at].repartition_sinks:
            if name in counts:
                continue
            counts[name] = largest
            for reader in readers.get(name, ()):
                unknown[reader] -= 1
                heapq.heappush(partial if unknown[reader] else whole, reader)
    for at, each in enumerate(subtopologies):
        if at not in done and not counts.keys() >= set(each.repartition_sinks):
            raise invalid(
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved."
            )
        if any(topic.name not in counts for topic in each.repartition_sources):
            raise invalid(
                "Failed to compute number of partitions for all repartition topics, because a "
                "repartition source topic is never used as a sink topic."
            )
    return counts


def _has_any(each: Subtopology, counts: Mapping[str, int]) -> bool:
    return bool(each.sources) or any(topic.name in counts for topic in each.repartition_sources)


def _largest(each: Subtopology, counts: Mapping[str, int], count_of: CountOf) -> int:
    found = [counts[topic.name] for topic in each.repartition_sources if topic.name in counts]
    found += [count for name in each.sources if (count := count_of(name)) is not None]
    return max(found, default=1)


def _enforce_copartitions(
    topology: StreamsTopology, decided: dict[str, int], known: Callable[[str], int]
) -> None:
    """Give topics that are joined the same number of partitions, or say that they differ."""
    repartition = {
        topic.name: bool(topic.partitions)
        for each in topology.subtopologies
        for topic in each.repartition_sources
    }
    for each in topology.subtopologies:
        for names in each.copartitioned():
            inner = {name: known(name) for name in names if name in repartition}
            outer = {name: known(name) for name in names if name not in repartition}
            fixed = {name: count for name, count in inner.items() if repartition[name]}
            if outer:
                count = _same(outer)
            elif fixed:
                count = _same(fixed)
            else:
                count = max(inner.values(), default=0)
            for name, has in fixed.items():
                if has != count:
                    raise _Misfit(
                        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                        f"Number of partitions [{has}] of repartition topic [{name}] doesn't match "
                        f"number of partitions [{count}] of the source topic.",
                    )
            decided.update(dict.fromkeys(inner, count))


def _same(counts: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        pairs = ", ".join(f"{name}={counts[name]}" for name in sorted(counts))
        raise _Misfit(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{pairs}}}]",
        )
    return next(iter(counts.values()))


def _absent(
    topology: StreamsTopology, decided: Mapping[str, int], count_of: CountOf
) -> tuple[InternalTopic, ...]:
    """The internal topics to create; one that exists has to fit."""
    absent: dict[str, InternalTopic] = {}
    for each in topology.subtopologies:
        for topic in (*each.repartition_sources, *each.changelogs):
            expected = topic.partitions or decided[topic.name]
            found = count_of(topic.name)
            if found is None:
                absent[topic.name] = InternalTopic(
                    topic.name, expected, topic.replication_factor, topic.configs
                )
            elif found != expected:
                raise _Misfit(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: expected "
                    f"{expected}, found {found}",
                )
    return tuple(absent[name] for name in sorted(absent))


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = len(found) - _NAMED_MAX
    listed = ", ".join(found[:_NAMED_MAX])
    return f"{listed} and {more} additional topics" if more > 0 else listed
