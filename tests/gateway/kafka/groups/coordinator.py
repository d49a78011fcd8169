"""The parts of group handlers over a store in memory; responses as clients read them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from itertools import count
from typing import Any, TypeVar, cast

from tests.gateway.kafka.world import KafkaWorld, call

from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.consumer.assignment.topics import CatalogTopics
from rockgate.gateway.kafka.groups.consumer.config import ConsumerGroupsConfig, Timings
from rockgate.gateway.kafka.groups.consumer.coordinator import ConsumerGroups
from rockgate.gateway.kafka.groups.consumer.migration import MigrationPolicy
from rockgate.gateway.kafka.groups.expiry import Expiry
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.other_kinds import OtherGroups
from rockgate.gateway.kafka.groups.streams.config import StreamsGroupsConfig, StreamsTimings
from rockgate.gateway.kafka.groups.streams.coordinator import StreamsGroups
from rockgate.gateway.kafka.handlers.consumer_group_describe import ConsumerGroupDescribe
from rockgate.gateway.kafka.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeat
from rockgate.gateway.kafka.handlers.delete_groups import DeleteGroups
from rockgate.gateway.kafka.handlers.describe_groups import DescribeGroups
from rockgate.gateway.kafka.handlers.heartbeat import Heartbeat
from rockgate.gateway.kafka.handlers.join_group import JoinGroup
from rockgate.gateway.kafka.handlers.leave_group import LeaveGroup
from rockgate.gateway.kafka.handlers.list_groups import ListGroups
from rockgate.gateway.kafka.handlers.offset_commit import OffsetCommit
from rockgate.gateway.kafka.handlers.offset_delete import OffsetDelete
from rockgate.gateway.kafka.handlers.offset_fetch import OffsetFetch
from rockgate.gateway.kafka.handlers.sync_group import SyncGroup
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatRequest
from rockgate.protocol.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from rockgate.protocol.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rockgate.protocol.kafka.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from rockgate.protocol.kafka.schema import decode, encode

T = TypeVar("T")
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\0\0\0\0"
"""A consumer's subscription: version 0, the topic orders, no user data."""


class Coordinator(KafkaWorld):
    """A world with groups. Its clocks are `hand` for members and `clock` for offsets."""

    groups_config = GroupsConfig()
    streams_config = StreamsGroupsConfig(initial_delay_ms=0)
    others: Sequence[OtherGroups] | None = None
    """Coordinators of further protocols, instead of the server's."""

    def open(self) -> None:
        self.hand.timers.clear()
        super().open()
        ids = count(1)
        self.durability = Durability(self.store)
        self.group_topics = CatalogTopics(StoreCatalog(self.store.topics, 1_000_000))
        consumers = self.make_consumers(ids)
        self.streams = self.make_streams()
        self.groups = Groups(
            config=self.groups_config,
            saved=self.folds.groups,
            progress=StoreProgress(self.store.progress),
            durability=self.durability,
            new_id=lambda prefix: f"{prefix}-{self.store.epochs.current}-{next(ids)}",
            clock=self.hand,
            consumers=consumers,
            others=self.make_others() if self.others is None else self.others,
        )
        self.groups.load()
        self.expiry = Expiry(
            config=self.groups_config,
            groups=self.groups,
            saved=self.folds.groups,
            progress=self.store.progress,
            topics=self.store.topics,
            now_ms=self.clock.now_ms,
        )
        self.handlers = self.make_handlers(consumers)

    def make_consumers(self, ids: Iterator[int]) -> ConsumerGroups:
        """The coordinator of the consumer protocol, over the store that was opened."""
        configs = self.folds.configs
        timings = Timings(
            ConsumerGroupsConfig(),
            self.groups_config,
            lambda group: configs.of(ResourceType.GROUP, group),
        )
        return ConsumerGroups(
            memory=self.folds.consumers,
            topics=self.group_topics,
            timing=timings.of,
            policy=MigrationPolicy.BIDIRECTIONAL,
            new_id=lambda prefix: f"{prefix}-{next(ids)}",
        )

    def make_handlers(self, consumers: ConsumerGroups) -> dict[str, Any]:
        """The handlers of the requests about groups, by the name of the request."""
        catalog = StoreCatalog(self.store.topics, 1_000_000)
        store, groups, durability = self.store, self.groups, self.durability
        progress = StoreProgress(store.progress)
        return {
            "JoinGroup": JoinGroup(groups),
            "SyncGroup": SyncGroup(groups),
            "Heartbeat": Heartbeat(groups),
            "LeaveGroup": LeaveGroup(groups),
            "OffsetCommit": OffsetCommit(
                catalog=catalog,
                progress=progress,
                groups=groups,
                durability=durability,
                now_ms=store.clock.now_ms,
                metadata_bytes_max=self.groups_config.metadata_bytes_max,
            ),
            "OffsetFetch": OffsetFetch(
                catalog=catalog,
                progress=progress,
                pending=self.folds.transactions.pending,
                check=groups.check_fetch,
            ),
            "OffsetDelete": OffsetDelete(
                catalog=catalog, progress=progress, groups=groups, durability=durability
            ),
            "ConsumerGroupHeartbeat": ConsumerGroupHeartbeat(consumers, durability),
            "ConsumerGroupDescribe": ConsumerGroupDescribe(groups, self.group_topics),
            "ListGroups": ListGroups(groups),
            "DescribeGroups": DescribeGroups(groups),
            "DeleteGroups": DeleteGroups(groups=groups, durability=durability),
        }

    def make_streams(self) -> StreamsGroups:
        configs = self.folds.configs
        timings = StreamsTimings(
            self.streams_config,
            self.groups_config,
            lambda group: configs.of(ResourceType.GROUP, group),
        )
        return StreamsGroups(memory=self.folds.streams, topics=self.group_topics, timing=timings.of)

    def make_others(self) -> Sequence[OtherGroups]:
        """The coordinators of further kinds, over the store that was opened."""
        return [self.streams]

    # Requests

    def send(self, request: Any, version: int) -> Any:
        """The handler's response to an encoded request; maybe a future."""
        name = type(request).__name__.removesuffix("Request")
        arrived = decode(type(request), version, encode(request, version))
        return self.handlers[name].handle(arrived, call(version))

    def ask(self, request: Any, response: type[T], version: int) -> T:
        """The immediate response, as a client reads it."""
        return read(self.send(request, version), response, version)

    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.hand.advance(milliseconds / 1000)

    # Members

    def send_join(
        self, group: str = "g", member_id: str = "", version: int = 3, instance: str | None = None
    ) -> Awaitable[JoinGroupResponse]:
        protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[protocol],
        )
        return cast(Awaitable[JoinGroupResponse], self.send(request, version))

    async def member(self, group: str = "g", **asked: Any) -> JoinGroupResponse:
        """The only member of a group, with an assignment."""
        waiting = self.send_join(group, **asked)
        self.pass_time(4_000)
        joined = await waiting
        assert joined.error_code == 0
        synced = self.sync(group, joined, {joined.member_id: b"all"})
        assert (await synced if isinstance(synced, asyncio.Future) else synced).error_code == 0
        return joined

    def sync(self, group: str, joined: JoinGroupResponse, assignments: dict[str, bytes]) -> Any:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        return cast("SyncGroupResponse | Awaitable[SyncGroupResponse]", self.send(request, 3))

    def beat(self, joined: JoinGroupResponse, group: str = "g") -> int:
        request = HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
        )
        return cast(int, self.send(request, 3).error_code)

    def leave(self, joined: JoinGroupResponse, group: str = "g") -> None:
        request = LeaveGroupRequest(
            group_id=group, members=[MemberIdentity(member_id=joined.member_id)]
        )
        assert self.send(request, 3).members[0].error_code == 0

    def commit(
        self,
        offset: int,
        group: str = "g",
        topic: str = "orders",
        *,
        member: JoinGroupResponse | None = None,
        partition: int = 0,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 7,
    ) -> Any:
        found = self.store.topics.find(topic)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation_id if member else -1,
            member_id=member.member_id if member else "",
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=found.id if found is not None else b"\1" * 16,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=3,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        return self.send(request, version)

    def committed(self, group: str = "g", topic: str = "orders", partition: int = 0) -> int | None:
        found = self.store.progress.fetch(group, self.store.topics.get(topic).id, partition)
        return found.offset if found is not None else None


def code_of(response: Any) -> int:
    """The error code of the first partition in a commit's response."""
    return cast(int, response.topics[0].partitions[0].error_code)


def read(response: object, kind: type[T], version: int) -> T:
    """A response as a client reads it."""
    return decode(kind, version, encode(response, version))
