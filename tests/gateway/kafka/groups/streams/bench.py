"""Streams groups over records in memory, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, cast

from tests.gateway.fakes import HandClock
from tests.gateway.kafka.groups.consumer.bench import FakeTopics
from tests.store.journals import MemoryJournal

from rockgate.gateway.kafka.groups.classic.events import Commit, GroupState
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.fold import SavedGroups
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.streams.config import StreamsGroupsConfig, StreamsTimings
from rockgate.gateway.kafka.groups.streams.configured import StatusCode
from rockgate.gateway.kafka.groups.streams.coordinator import StreamsGroups
from rockgate.gateway.kafka.groups.streams.group import StreamsGroup
from rockgate.gateway.kafka.groups.streams.heartbeats import StreamsBeat, StreamsOutcome
from rockgate.gateway.kafka.groups.streams.member import HeldTasks, StreamsTasks
from rockgate.gateway.kafka.groups.streams.records import NAME, TOPIC, StreamsKey
from rockgate.gateway.kafka.groups.streams.topology import (
    Copartition,
    InternalTopic,
    StreamsTopology,
    Subtopology,
)
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.folds import KeyedFold

GROUP = "g"
REBALANCE_MS = 60_000
Ids = Mapping[str, Any]


def internal(name: str, partitions: int = 0) -> InternalTopic:
    return InternalTopic(name, partitions, 0, ())


def subtopology(
    id_: str,
    sources: str = "",
    *,
    changelogs: str = "",
    sinks: str = "",
    repartition: str | Mapping[str, int] = "",
    copartitions: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (),
) -> Subtopology:
    """Topics as texts of names; repartition topics with their numbers of partitions, if fixed."""
    fixed = dict.fromkeys(repartition.split(), 0) if isinstance(repartition, str) else repartition
    return Subtopology(
        id_,
        tuple(sources.split()),
        tuple(map(internal, changelogs.split())),
        tuple(sinks.split()),
        tuple(internal(name, partitions) for name, partitions in fixed.items()),
        tuple(Copartition(*each) for each in copartitions),
    )


def topology(*subtopologies: Subtopology, epoch: int = 0) -> StreamsTopology:
    return StreamsTopology(epoch, subtopologies)


SIMPLE = topology(subtopology("0", "in"))
"""One task for each partition of the topic in, without a state."""
COUNTS = topology(
    subtopology("0", "in", sinks="g-repartition"),
    subtopology("1", repartition="g-repartition", changelogs="g-changelog"),
)
"""A word count: a task that reads and one that counts, for each partition of the topic in."""


class NoProgress:
    def has(self, group: str) -> bool:
        return False

    def groups(self) -> tuple[str, ...]:
        return ()

    def delete(self, groups: Iterable[str]) -> None:
        pass


class StreamsBench:
    """A server's groups; `restart` begins again with what was written."""

    def __init__(self, config: StreamsGroupsConfig | None = None, **topics: int) -> None:
        self.clock = HandClock()
        self.topics = FakeTopics(**(topics or {"in": 4}))
        self.config = config or StreamsGroupsConfig(initial_delay_ms=0)
        self.groups_config = GroupsConfig(initial_delay_ms=0)
        self.configs: dict[str, dict[str, str]] = {}
        self.journal = MemoryJournal()
        self.saved = SavedGroups(self.journal)
        self.records: KeyedFold[StreamsKey, bytes] = KeyedFold(
            self.journal, name=NAME, topic=TOPIC, key=StreamsKey, value=bytes
        )
        self.journal.attach(self.saved, self.records)
        self._ids = count(1)
        self.restart()

    def restart(self) -> None:
        """Kill the server and start it again."""
        self.clock.timers.clear()
        timings = StreamsTimings(
            self.config, self.groups_config, lambda group: self.configs.get(group, {})
        )
        self.streams = StreamsGroups(memory=self.records, topics=self.topics, timing=timings.of)
        self.groups = Groups(
            config=self.groups_config,
            saved=self.saved,
            progress=cast(Any, NoProgress()),
            durability=cast(Any, None),
            new_id=lambda prefix: f"{prefix}-{next(self._ids)}",
            clock=self.clock,
            others=[self.streams],
        )
        self.groups.load()

    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds / 1000)

    @property
    def group(self) -> StreamsGroup:
        machine = self.streams.machine(GROUP)
        assert machine is not None, "the group has members"
        return machine.group

    def state(self) -> GroupState:
        return self.group.state

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        active: Ids | None = None,
        standby: Ids | None = None,
        **said: Any,
    ) -> StreamsOutcome:
        """A heartbeat; with active tasks, the member says all that it owns."""
        if active is not None:
            said["owned"] = (StreamsTasks(ids(active), ids(standby or {})), True)
        return self.streams.beat(GROUP, StreamsBeat(member_id=member_id, epoch=epoch, **said))

    def join(self, member_id: str, said: StreamsTopology = SIMPLE, **more: Any) -> StreamsOutcome:
        """The first heartbeat; every member is in a process of its own unless it says so."""
        more = {"process_id": member_id, "rebalance_ms": REBALANCE_MS, **more}
        return self.beat(member_id, 0, topology=said, active={}, **more)

    def create_missing(self, outcome: StreamsOutcome) -> None:
        """Do what the handler does with the topics that are missing."""
        for topic in outcome.missing:
            self.topics.put(topic.name, topic.partitions)

    def commit(self, member_id: str, epoch: int, *partitions: tuple[str, int]) -> ErrorCode:
        """Whether offsets may be committed."""
        commit = Commit(
            waiter=Waiter[ErrorCode](), generation=epoch, member_id=member_id, instance_id=None
        )
        named = [(self.topics.find(name), partition) for name, partition in partitions]
        return self.groups.check_commit(
            GROUP, commit, lambda: [(topic.id, at) for topic, at in named if topic is not None]
        )


def ids(said: Ids) -> dict[str, frozenset[int]]:
    return {subtopology: frozenset(parts) for subtopology, parts in said.items()}


def listed(held: HeldTasks | None) -> dict[str, list[int]] | None:
    """The active tasks of an answer, sorted; None if it has none to tell."""
    if held is None:
        return None
    return {subtopology: sorted(parts) for subtopology, parts in held.active.items()}


def codes(outcome: StreamsOutcome) -> list[StatusCode]:
    return [each.code for each in outcome.statuses]
