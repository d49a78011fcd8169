"""A world with share groups, and members of them as clients are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.gateway.kafka.groups.coordinator import Coordinator, read
from tests.gateway.kafka.world import call
from tests.world import NOW_MS

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.fetch.time_search import TimeSearch
from rockgate.gateway.kafka.groups.other_kinds import OtherGroups
from rockgate.gateway.kafka.groups.share.config import ShareGroupsConfig, ShareSettings
from rockgate.gateway.kafka.groups.share.coordinator import ShareGroups
from rockgate.gateway.kafka.handlers.alter_share_group_offsets import AlterShareGroupOffsets
from rockgate.gateway.kafka.handlers.delete_share_group_offsets import DeleteShareGroupOffsets
from rockgate.gateway.kafka.handlers.describe_share_group_offsets import DescribeShareGroupOffsets
from rockgate.gateway.kafka.handlers.share_acknowledge import ShareAcknowledge
from rockgate.gateway.kafka.handlers.share_fetch import ShareFetch
from rockgate.gateway.kafka.handlers.share_group_describe import ShareGroupDescribe
from rockgate.gateway.kafka.handlers.share_group_heartbeat import ShareGroupHeartbeat
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.share.acknowledgements import AcknowledgeType
from rockgate.gateway.kafka.share.acknowledging import Acknowledging
from rockgate.gateway.kafka.share.fetching import ShareFetching
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.gateway.kafka.share.sessions import LEFT_MS_MAX, ShareSessions
from rockgate.protocol.kafka.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from rockgate.protocol.kafka.messages.share_fetch import AcknowledgementBatch as FetchedBatch
from rockgate.protocol.kafka.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from rockgate.protocol.kafka.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from rockgate.protocol.kafka.records.batch import split
from rockgate.protocol.kafka.records.record import read_records
from rockgate.store.inflight.share_window import ShareWindow

ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
REJECT, RENEW, GAP = AcknowledgeType.REJECT, AcknowledgeType.RENEW, AcknowledgeType.GAP


class Got(NamedTuple):
    """A record that a member was given."""

    partition: int
    offset: int
    deliveries: int
    value: bytes


class Shares(Coordinator):
    """A world with share groups. Locks are by `clock`, sessions of members by `hand`."""

    share_config = ShareGroupsConfig()
    permitted: Permitted = UNCHECKED

    def make_others(self) -> Sequence[OtherGroups]:
        configs, store = self.folds.configs, self.store
        self.share_settings = ShareSettings(
            self.share_config, lambda group: configs.of(ResourceType.GROUP, group)
        )
        self.records = ShareRecords(
            state=self.folds.share_state,
            journal=store.appender,
            policy=self.share_settings.policy,
            monotonic_ms=store.clock.monotonic_ms,
            wake=lambda topic_id, number: self.poll_registry.wake_changed(
                store.queues.of(topic_id)[number]
            ),
        )
        self.shares = ShareGroups(
            memory=self.folds.shares,
            records=self.records,
            topics=self.group_topics,
            timing=self.share_settings.timing,
        )
        self.share_sessions = ShareSessions(
            sessions_max=self.share_config.sessions_max,
            partitions_max=self.share_config.session_partitions_max,
            release=self.records.release,
            monotonic_ms=store.clock.monotonic_ms,
        )
        self.shares.on_left.append(self.share_sessions.close)
        self.shares.on_leaving.append(self.share_sessions.leave)
        return (self.shares,)

    def open(self) -> None:
        super().open()
        store, groups, durability = self.store, self.groups, self.durability
        fetching = ShareFetching(
            records=self.records,
            topics=store.topics,
            queues=store.queues,
            reader=self.partitions,
            search=TimeSearch(store.reader, self.epochs, self.cold_reads, BatchThreads()),
            cold_reads=self.cold_reads,
            clock=store.clock,
        )
        acknowledging = Acknowledging(
            records=self.records, fetching=fetching, permitted=self.permitted
        )
        self.handlers |= {
            "ShareGroupHeartbeat": ShareGroupHeartbeat(self.shares, durability, self.permitted),
            "ShareGroupDescribe": ShareGroupDescribe(
                groups, self.shares, self.group_topics, self.permitted
            ),
            "ShareFetch": ShareFetch(
                is_share=lambda name: groups.holder(name) is GroupType.SHARE,
                policy=self.share_settings.policy,
                sessions=self.share_sessions,
                fetching=fetching,
                acknowledging=acknowledging,
                poll_registry=self.poll_registry,
                durability=durability,
                bytes_max=1 << 30,
                permitted=self.permitted,
            ),
            "ShareAcknowledge": ShareAcknowledge(
                policy=self.share_settings.policy,
                sessions=self.share_sessions,
                acknowledging=acknowledging,
                durability=durability,
            ),
            "DescribeShareGroupOffsets": DescribeShareGroupOffsets(
                groups=groups,
                records=self.records,
                topics=store.topics,
                queues=store.queues,
                reader=self.partitions,
                leader_epoch=store.epochs.current,
                permitted=self.permitted,
            ),
            "AlterShareGroupOffsets": AlterShareGroupOffsets(
                groups=groups,
                records=self.records,
                topics=store.topics,
                queues=store.queues,
                durability=durability,
            ),
            "DeleteShareGroupOffsets": DeleteShareGroupOffsets(
                groups=groups, records=self.records, topics=store.topics, durability=durability
            ),
        }

    def end_left_sessions(self) -> None:
        """Let the time pass that the sessions of members who have left still have."""
        self.pass_time(LEFT_MS_MAX)
        self.share_sessions.close_ended()

    def configure(self, group: str = "g", **configs: str) -> None:
        """Set the share configs of a group, by their names with underscores for dots."""
        own = {f"share.{key.replace('_', '.')}": value for key, value in configs.items()}
        self.folds.configs.put(ResourceType.GROUP, {group: own})

    def window(self, group: str = "g", topic: str = "orders", partition: int = 0) -> ShareWindow:
        found = self.folds.share_state.find(group, self.store.topics.get(topic).id, partition)
        assert found is not None
        return found

    def produce(self, *values: bytes, topic: str = "orders", partition: int = 0) -> None:
        """Append batches of one record each."""
        for value in values:
            self.append(topic, partition, value=value)

    def batch(self, count: int, topic: str = "orders", partition: int = 0) -> None:
        """Append one batch of many records."""
        self.append(topic, partition, times=(NOW_MS,) * count)


class Sharer:
    """A share consumer: a member with its session."""

    def __init__(
        self, world: Shares, name: str = "m", group: str = "g", topics: Iterable[str] = ("orders",)
    ) -> None:
        self.world = world
        self.name = name
        self.group = group
        self.topics = tuple(topics)
        self.member_epoch = 0
        self.epoch = 0
        self.wanted: set[tuple[bytes, int]] = set()
        self.peer = call(1).peer

    # Membership

    def beat(self, **said: Any) -> ShareGroupHeartbeatResponse:
        """A heartbeat; the first one joins."""
        if self.member_epoch == 0 and "subscribed_topic_names" not in said:
            said["subscribed_topic_names"] = list(self.topics)
        epoch = said.pop("member_epoch", self.member_epoch)
        request = ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.name, member_epoch=epoch, **said
        )
        answer = self.world.ask(request, ShareGroupHeartbeatResponse, 1)
        if not answer.error_code:
            self.member_epoch = answer.member_epoch
            if answer.assignment is not None:
                self.wanted = {
                    (each.topic_id, number)
                    for each in answer.assignment.topic_partitions
                    for number in each.partitions
                }
        return answer

    def leave(self) -> int:
        return self.beat(member_epoch=-1).error_code

    # Records

    def request(self, **said: Any) -> ShareFetchRequest:
        """The next ShareFetch, with everything that is assigned; `acks` acknowledges."""
        acks = said.pop("acks", {})
        wanted = said.pop("wanted", sorted(self.wanted if self.epoch == 0 else acks))
        topics: dict[bytes, list[FetchPartition]] = {}
        for topic_id, number in sorted({*wanted, *acks}):
            topics.setdefault(topic_id, []).append(
                FetchPartition(
                    partition_index=number,
                    acknowledgement_batches=[
                        FetchedBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                        for first, last, types in acks.get((topic_id, number), ())
                    ],
                )
            )
        asked: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": [
                FetchTopic(topic_id=topic_id, partitions=some) for topic_id, some in topics.items()
            ],
            "forgotten_topics_data": [
                ForgottenTopic(topic_id=topic_id, partitions=[number])
                for topic_id, number in said.pop("forgotten", ())
            ],
        }
        return ShareFetchRequest(**{**asked, **said})

    async def fetch(self, version: int = 2, **said: Any) -> ShareFetchResponse:
        """A ShareFetch and its answer, as a client reads it."""
        return await self.answer(self.send(version, **said), version)

    def send(self, version: int = 2, **said: Any) -> Any:
        """Send a ShareFetch; its answer may be a future."""
        return self.world.send(self.request(**said), version)

    async def answer(self, response: Any, version: int = 2) -> ShareFetchResponse:
        """The answer, read; the session continues if there was no error."""
        if asyncio.iscoroutine(response) or asyncio.isfuture(response):
            response = await response
        answer = read(response, ShareFetchResponse, version)
        if not answer.error_code:
            self.epoch += 1
        return answer

    async def take(self, **said: Any) -> list[Got]:
        """Fetch, and return the records that were acquired."""
        answer = await self.fetch(**said)
        assert not answer.error_code, answer
        return got(answer)

    def acknowledge(
        self,
        *batches: tuple[int, int, list[int]],
        partition: int = 0,
        topic: str = "orders",
        version: int = 2,
        **said: Any,
    ) -> ShareAcknowledgeResponse:
        """A ShareAcknowledge of ranges in one partition."""
        asked: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "topics": [
                AcknowledgeTopic(
                    topic_id=self.world.store.topics.get(topic).id,
                    partitions=[
                        AcknowledgePartition(
                            partition_index=partition,
                            acknowledgement_batches=[
                                AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=types
                                )
                                for first, last, types in batches
                            ],
                        )
                    ],
                )
            ],
        }
        request = ShareAcknowledgeRequest(**{**asked, **said})
        answer = self.world.ask(request, ShareAcknowledgeResponse, version)
        if not answer.error_code:
            self.epoch += 1
        return answer

    def code(self, *batches: tuple[int, int, list[int]], **said: Any) -> int:
        """Acknowledge; the error of the partition, or else of the request."""
        answer = self.acknowledge(*batches, **said)
        return answer.error_code or answer.responses[0].partitions[0].error_code


def got(answer: ShareFetchResponse) -> list[Got]:
    """The acquired records of an answer, in order."""
    found: list[Got] = []
    for topic in answer.responses:
        for data in topic.partitions:
            assert not data.error_code, data
            records = {
                record.offset: record.value or b""
                for header, view in split(memoryview(data.records))
                if not header.is_control
                for record in read_records(view)
            }
            for each in data.acquired_records:
                for offset in range(each.first_offset, each.last_offset + 1):
                    value = records.get(offset, b"")
                    found.append(Got(data.partition_index, offset, each.delivery_count, value))
    return found


def offsets(some: Iterable[Got]) -> list[int]:
    """Their offsets."""
    return [each.offset for each in some]


def joined(world: Shares, *names: str, **said: Any) -> list[Sharer]:
    """Members of one group, all of which know what they read."""
    members = [Sharer(world, name, **said) for name in names]
    for member in members:
        member.beat()
    world.pass_time(1_100)
    for member in members:
        member.beat()
    return members
