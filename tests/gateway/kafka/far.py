"""A remote deployment in memory: every answer has to be awaited, and is never a plain value."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.gateway.kafka.admin import seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.classic.memory import Record
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.groups import Groups, new_member_id
from rockgate.gateway.kafka.groups.progress import CommittedOffset, NewOffset
from rockgate.gateway.kafka.handlers.metadata import Metadata
from rockgate.gateway.kafka.handlers.offset_commit import OffsetCommit
from rockgate.gateway.kafka.handlers.offset_fetch import OffsetFetch
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.topics.catalog import NewTopic, Refusal, Refusals, TopicView
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.kafka.topics.placement import NO_NODE, CoordinatorType, LeaderRun, Node
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

A = TypeVar("A")
NODES = (Node(1, "one", 9092), Node(2, "two", 9092))
REFUSED = Refusal(ErrorCode.POLICY_VIOLATION, "not there")


@dataclass(eq=False)
class FarTopic:
    name: str
    queue_count: int
    id: bytes
    config: Mapping[str, str] = field(default_factory=dict)
    is_internal: bool = False
    position: int = 0


class FarCatalog:
    """Remote topics; only requested ones are known. `no-…` is rejected."""

    topic_partitions_max = 100

    def __init__(self) -> None:
        self.version = 0
        self.there: dict[str, FarTopic] = {}
        self.known: dict[str, FarTopic] = {}

    def add(self, name: str, count: int) -> FarTopic:
        topic = FarTopic(name, count, len(self.there).to_bytes(15, "big") + b"\1")
        self.there[name] = topic
        return topic

    async def learn(self, names: Iterable[str | None] | None) -> None:
        wanted = [*self.there] if names is None else list(names)
        if not all(wanted):
            wanted = [*self.there]
        await asyncio.sleep(0)
        for name in wanted:
            if name in self.there:
                self.known[name] = self.there[name]
        self.version += 1

    def find(self, name: str) -> FarTopic | None:
        return self.known.get(name)

    def find_id(self, topic_id: bytes) -> FarTopic | None:
        return next((each for each in self.known.values() if each.id == topic_id), None)

    def __iter__(self) -> Iterator[FarTopic]:
        return iter(list(self.known.values()))

    def names_from(self, name: str) -> Iterator[str]:
        return iter(sorted(each for each in self.known if each >= name))

    def check_room(self, count: int) -> None:
        pass

    async def create(self, news: Sequence[NewTopic]) -> Refusals:
        await asyncio.sleep(0)
        for new in news:
            if not new.name.startswith("no-"):
                self.known[new.name] = self.add(new.name, new.partition_count)
        return self._refused(new.name for new in news)

    async def grow(self, counts: Mapping[str, int]) -> Refusals:
        await asyncio.sleep(0)
        for name, count in counts.items():
            if not name.startswith("no-"):
                self.there[name].queue_count = count
        return self._refused(counts)

    async def delete(self, names: Sequence[str]) -> Refusals:
        await asyncio.sleep(0)
        for name in names:
            if not name.startswith("no-"):
                del self.there[name], self.known[name]
        return self._refused(names)

    async def alter(self, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        await asyncio.sleep(0)
        for name, config in configs.items():
            if not name.startswith("no-"):
                self.there[name].config = config
        return self._refused(configs)

    @staticmethod
    def _refused(names: Iterable[str]) -> Refusals:
        return {name: REFUSED for name in names if name.startswith("no-")}


class FarPlacement:
    """Two nodes that alternate as leaders; every third partition has none."""

    version = 0
    controller_id = 2

    def nodes(self, peer: Peer) -> Sequence[Node]:
        return NODES

    def leaders(self, topic: TopicView, first: int, end: int) -> Iterator[LeaderRun]:
        for at in range(first, end):
            yield LeaderRun(at, at + 1, (1, 2, NO_NODE)[(at + self.version) % 3], 0)

    async def coordinator(self, type_: CoordinatorType, key: str, peer: Peer) -> Node:
        await asyncio.sleep(0)
        if type_ is CoordinatorType.TRANSACTION:
            raise RequestError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "no transactions")
        return NODES[len(key) % 2]


@dataclass(frozen=True)
class FarOffset:
    offset: int
    leader_epoch: int
    metadata: str


class FarProgress:
    """Remote offsets; partition 9 is unreachable."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, bytes, int], FarOffset] = {}

    def has(self, group: str) -> bool:
        return group in self.groups()

    def groups(self) -> set[str]:
        return {group for group, _, _ in self.offsets}

    def count(self, group: str, count_max: int) -> int:
        return sum(key[0] == group for key in self.offsets)

    async def fetch(
        self, group: str, topic_id: bytes, partitions: Sequence[int]
    ) -> list[CommittedOffset | None]:
        await asyncio.sleep(0)
        return [self.offsets.get((group, topic_id, at)) for at in partitions]

    async def partitions_of(self, group: str) -> list[tuple[bytes, list[int]]]:
        await asyncio.sleep(0)
        found: dict[bytes, list[int]] = {}
        for of, topic_id, at in sorted(self.offsets):
            if of == group:
                found.setdefault(topic_id, []).append(at)
        return list(found.items())

    async def commit(self, group: str, offsets: Sequence[NewOffset]) -> list[ErrorCode]:
        await asyncio.sleep(0)
        for each in offsets:
            if each.partition != 9:
                self.offsets[group, each.topic_id, each.partition] = FarOffset(
                    each.offset, each.leader_epoch, each.metadata
                )
        unreachable = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return [unreachable if each.partition == 9 else ErrorCode.NONE for each in offsets]

    async def remove(self, group: str, partitions: Sequence[tuple[bytes, int]]) -> None:
        await asyncio.sleep(0)
        for topic_id, at in partitions:
            self.offsets.pop((group, topic_id, at), None)

    async def delete(self, groups: Sequence[str]) -> None:
        await asyncio.sleep(0)
        for key in [key for key in self.offsets if key[0] in groups]:
            del self.offsets[key]


class DictMemory:
    """Groups as a dictionary."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}

    def names(self) -> Iterable[str]:
        return self.records

    def find(self, name: str) -> Record | None:
        return self.records.get(name)

    def save(self, name: str, group: SavedGroup) -> None:
        self.records[name] = Record(0, group)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.records.pop(name, None)


class Pending:
    """Without any open transaction."""

    def has(self, group: str) -> bool:
        return False

    def groups(self) -> Iterable[str]:
        return ()

    def has_at(self, group: str, topic_id: bytes, partition: int) -> bool:
        return False


class AtOnce:
    """Durability that is handled remotely."""

    def after_changes(self, answer: A, /) -> A:
        return answer


class Far:
    """The whole deployment, and handlers over it."""

    def __init__(self) -> None:
        self.catalog, self.placement, self.progress = FarCatalog(), FarPlacement(), FarProgress()
        self.groups = Groups(
            config=GroupsConfig(),
            saved=DictMemory(),
            progress=self.progress,
            durability=AtOnce(),
            new_id=new_member_id,
            pending=Pending(),
        )

    def metadata(self, *, auto_create: bool = False) -> Metadata:
        return Metadata(
            catalog=self.catalog,
            placement=self.placement,
            metadata_cache=MetadataCache(self.placement),
            cluster_id="far",
            config=TopicsConfig(auto_create=auto_create, partitions=2),
            durability=AtOnce(),
        )

    def offset_commit(self) -> OffsetCommit:
        return OffsetCommit(
            catalog=self.catalog,
            progress=self.progress,
            groups=self.groups,
            durability=AtOnce(),
            now_ms=lambda: 0,
            metadata_bytes_max=100,
        )

    def offset_fetch(self) -> OffsetFetch:
        return OffsetFetch(catalog=self.catalog, progress=self.progress, pending=Pending())

    async def commit(self, name: str, partitions: Iterable[int], version: int = 8) -> list[int]:
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=at, committed_offset=at, committed_metadata="m"
                        )
                        for at in partitions
                    ],
                )
            ],
        )
        answer = await seen(self.offset_commit().handle(request, call(version)), version)
        return [each.error_code for each in answer.topics[0].partitions]


def unlimited() -> Any:
    """Quotas without limits."""

    class Unlimited:
        def take_partitions(self, *_: Any, **__: Any) -> None:
            pass

    return Unlimited()
