"""Groups of both protocols over records in memory, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar, cast

from tests.gateway.fakes import HandClock
from tests.store.journals import MemoryJournal

from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.classic.events import GroupState, Join, Joined, Sync, Synced
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.consumer.config import ConsumerGroupsConfig, Timings
from rockgate.gateway.kafka.groups.consumer.coordinator import ConsumerGroups
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup
from rockgate.gateway.kafka.groups.consumer.heartbeats import Beat, HeartbeatOutcome
from rockgate.gateway.kafka.groups.consumer.member import Owned, Partitions
from rockgate.gateway.kafka.groups.consumer.migration import MigrationPolicy
from rockgate.gateway.kafka.groups.consumer.records import NAME, TOPIC, Key
from rockgate.gateway.kafka.groups.fold import SavedGroups
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.folds import KeyedFold

T = TypeVar("T")
REBALANCE_MS = 60_000
GROUP = "g"


@dataclass(frozen=True)
class FakeTopic:
    id: bytes
    queue_count: int


class FakeTopics:
    """Topics that tests create, extend and delete."""

    def __init__(self, **counts: int) -> None:
        self.version = 0
        self._ids = count(1)
        self._topics: dict[str, FakeTopic] = {}
        for name, queue_count in counts.items():
            self.put(name, queue_count)

    def put(self, name: str, queue_count: int) -> None:
        """Create a topic, or give it that many partitions."""
        known = self._topics.get(name)
        topic_id = next(self._ids).to_bytes(16, "big") if known is None else known.id
        self._topics[name] = FakeTopic(topic_id, queue_count)
        self.version += 1

    def drop(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def find(self, name: str) -> FakeTopic | None:
        return self._topics.get(name)

    def names(self) -> Iterator[str]:
        return iter(list(self._topics))

    def name_of(self, topic_id: bytes) -> str | None:
        names = (name for name, topic in self._topics.items() if topic.id == topic_id)
        return next(names, None)


class _NoProgress:
    def has(self, group: str) -> bool:
        return False

    def groups(self) -> tuple[str, ...]:
        return ()


class _AtOnce:
    def after_changes(self, answer: T) -> T:
        return answer


class ConsumerBench:
    """A server's groups; `restart` begins again with what was written."""

    def __init__(
        self,
        config: ConsumerGroupsConfig | None = None,
        groups: GroupsConfig | None = None,
        **topics: int,
    ) -> None:
        self.clock = HandClock()
        self.topics = FakeTopics(**(topics or {"a": 4, "b": 3}))
        self.config = config or ConsumerGroupsConfig()
        self.groups_config = groups or GroupsConfig(initial_delay_ms=0)
        self.configs: dict[str, dict[str, str]] = {}
        self.journal = MemoryJournal()
        self.saved = SavedGroups(self.journal)
        self.records: KeyedFold[Key, bytes] = KeyedFold(
            self.journal, name=NAME, topic=TOPIC, key=Key, value=bytes
        )
        self.journal.attach(self.saved, self.records)
        self._ids = count(1)
        self.restart()

    def restart(self) -> None:
        """Kill the server and start it again."""
        self.clock.timers.clear()
        timings = Timings(
            self.config, self.groups_config, lambda group: self.configs.get(group, {})
        )
        self.consumers = ConsumerGroups(
            memory=self.records,
            topics=self.topics,
            timing=timings.of,
            policy=MigrationPolicy(self.config.migration),
            new_id=lambda prefix: f"{prefix}-{next(self._ids)}",
        )
        self.groups = Groups(
            config=self.groups_config,
            saved=self.saved,
            progress=cast(Any, _NoProgress()),
            durability=cast(Any, _AtOnce()),
            new_id=lambda prefix: f"{prefix}-{next(self._ids)}",
            clock=self.clock,
            consumers=self.consumers,
        )
        self.groups.load()

    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds / 1000)

    @property
    def group(self) -> ConsumerGroup:
        found = self.consumers.find(GROUP)
        assert found is not None, "the group has members of the consumer protocol"
        return found

    # The consumer protocol

    def beat(self, member_id: str, epoch: int, **said: Any) -> HeartbeatOutcome:
        """A heartbeat; `names` may be a text of them, `owned` topics by name."""
        if isinstance(said.get("names"), str):
            said["names"] = frozenset(said["names"].split())
        if said.get("owned") is not None:
            said["owned"] = self.ids(said["owned"])
        return self.consumers.beat(GROUP, Beat(member_id=member_id, epoch=epoch, **said))

    def join(self, member_id: str, names: str | None = "a", **said: Any) -> HeartbeatOutcome:
        said.setdefault("rebalance_ms", REBALANCE_MS)
        return self.beat(member_id, 0, names=names, owned={}, **said)

    def ids(self, partitions: Mapping[Any, Any]) -> Partitions:
        return {self.id(name): frozenset(held) for name, held in partitions.items()}

    def id(self, name: str | bytes) -> bytes:
        """The id of a topic; one that is gone is known by its id alone."""
        if isinstance(name, bytes):
            return name
        topic = self.topics.find(name)
        assert topic is not None
        return topic.id

    def named(self, owned: Owned | Partitions | None) -> dict[str, list[int]] | None:
        """Partitions by name, sorted."""
        if owned is None:
            return None
        return {self.topics.name_of(each) or "?": sorted(held) for each, held in owned.items()}

    def state(self) -> GroupState:
        return self.group.state

    def epochs(self) -> tuple[int, int]:
        return self.group.head.epoch, self.group.head.assignment_epoch

    # The classic protocol

    def classic_join(
        self,
        member_id: str = "",
        names: str = "a",
        *,
        owned: Mapping[str, list[int]] | None = None,
        **said: Any,
    ) -> Any:
        held = [TopicPartition(topic=t, partitions=p) for t, p in (owned or {}).items()]
        subscription = ConsumerProtocolSubscription(topics=names.split(), owned_partitions=held)
        join = Join(
            waiter=Waiter[Joined](),
            member_id=member_id,
            instance_id=None,
            client_id="c",
            client_host="/h",
            session_ms=10_000,
            rebalance_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", encode_versioned(subscription, 1)),),
            needs_id=False,
            can_skip=True,
        )
        return self.groups.join(GROUP, replace(join, **said))

    def classic_sync(self, joined: Joined, assigned: Mapping[str, list[int]] | None = None) -> Any:
        """The assignment by name; the leader brings its own."""
        held = [TopicPartition(topic=t, partitions=p) for t, p in (assigned or {}).items()]
        data = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=held), 1)
        sync = Sync(
            waiter=Waiter[Synced](),
            generation=joined.generation,
            member_id=joined.member_id,
            instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments={} if assigned is None else {joined.member_id: data},
        )
        synced = cast(Synced, self.groups.sync(GROUP, sync))
        if synced.code:
            return synced.code
        found = decode_assignment(synced.assignment).assigned_partitions
        return {each.topic: each.partitions for each in found}

    def classic_beat(self, joined: Joined) -> ErrorCode:
        beat = events.MemberHeartbeat(
            waiter=Waiter[ErrorCode](),
            generation=joined.generation,
            member_id=joined.member_id,
            instance_id=None,
        )
        return self.groups.heartbeat(GROUP, beat)

    def classic_leave(self, *leavers: tuple[str, str | None]) -> Any:
        leave = events.Leave(
            waiter=Waiter[list[ErrorCode]](), leavers=[events.Leaver(*each) for each in leavers]
        )
        return self.groups.leave(GROUP, leave)

    def stable_classic(self, assigned: Mapping[str, list[int]], names: str = "a") -> Joined:
        """The only member of a classic group."""
        joined = cast(Joined, self.classic_join(names=names))
        assert not isinstance(joined, Awaitable), "an empty group does not wait here"
        assert self.classic_sync(joined, assigned) == assigned
        return joined

    # Offsets

    def commit(
        self, member_id: str, epoch: int, partitions: Mapping[str, list[int]], version: int = 9
    ) -> ErrorCode:
        commit = events.Commit(
            waiter=Waiter[ErrorCode](),
            generation=epoch,
            member_id=member_id,
            instance_id=None,
            version=version,
        )
        asked = [(self.id(t), each) for t, held in partitions.items() for each in held]
        return self.groups.check_commit(GROUP, commit, lambda: asked)
