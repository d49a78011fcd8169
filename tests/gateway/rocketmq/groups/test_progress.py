"""Committed offsets at brokers that lose first commits which arrive side by side."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from rockgate.gateway.kafka.groups.progress import NewOffset
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.groups.progress import ClusterProgress
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable
from rockgate.gateway.rocketmq.topics.topic import ClusterTopic
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.headers.offsets import (
    OffsetAnswer,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)

ID = bytes(16)
PARTITIONS = 8


def new(partition: int, offset: int) -> NewOffset:
    return NewOffset(ID, partition, offset, -1, "", -1)


class Brokers:
    """Two masters. A commit that finds no table of its group makes one, as RocketMQ does."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str, str], dict[int, int]] = {}
        self.topic = ClusterTopic("orders", ID, PartitionTable.parse("a:4;b:4"))
        self.in_flight = self.in_flight_max = 0
        self.is_away = False

    def version(self, broker: str) -> int:
        return 500

    def find_id(self, topic_id: bytes) -> ClusterTopic | None:
        return self.topic if topic_id == ID else None

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        if self.is_away:
            raise BrokerLost("away")
        if code is RequestCode.UPDATE_CONSUMER_OFFSET:
            assert isinstance(header, UpdateConsumerOffsetHeader)
            place = (broker, header.consumer_group, header.topic)
            table = self.tables.get(place)
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight, self.in_flight_max)
            await asyncio.sleep(0)
            self.in_flight -= 1
            if table is None:
                table = self.tables[place] = {}
            table[header.queue_id] = header.commit_offset
            return Command(0)
        await asyncio.sleep(0)
        if code is RequestCode.QUERY_CONSUMER_OFFSET:
            assert isinstance(header, QueryConsumerOffsetHeader)
            place = (broker, header.consumer_group, header.topic)
            offset = self.tables.get(place, {}).get(header.queue_id)
            if offset is None:
                return Command(ResponseCode.QUERY_NOT_FOUND)
            return Command(0, headers.write(OffsetAnswer(offset=offset)))
        assert code is RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, code
        return Command(0)


def progress_at(brokers: Any) -> ClusterProgress:
    return ClusterProgress(brokers, brokers)


async def offsets_of(progress: ClusterProgress) -> list[int | None]:
    found = await progress.fetch("g", ID, list(range(PARTITIONS)))
    return [None if each is None else each.offset for each in found]


async def test_first_commits_in_many_partitions_are_all_there() -> None:
    brokers = Brokers()
    progress = progress_at(brokers)
    assert await progress.commit("g", [new(at, 25 + at) for at in range(PARTITIONS)]) is None
    assert await offsets_of(progress) == [25 + at for at in range(PARTITIONS)]


async def test_first_commits_of_several_members_are_all_there() -> None:
    brokers = Brokers()
    progress = progress_at(brokers)
    await asyncio.gather(
        *(progress.commit("g", [new(at, 7)]) for at in range(PARTITIONS)),
    )
    assert await offsets_of(progress) == [7] * PARTITIONS


async def test_later_commits_go_side_by_side() -> None:
    brokers = Brokers()
    progress = progress_at(brokers)
    commits = [new(at, 1) for at in range(PARTITIONS)]
    await progress.commit("g", commits)
    brokers.in_flight_max = 0
    await progress.commit("g", commits)
    assert brokers.in_flight_max == PARTITIONS


async def test_after_a_first_commit_that_failed_the_next_is_first_again() -> None:
    brokers = Brokers()
    progress = progress_at(brokers)
    commits = [new(at, 1) for at in range(PARTITIONS)]
    brokers.is_away = True
    codes = await progress.commit("g", commits)
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * PARTITIONS
    brokers.is_away = False
    assert await progress.commit("g", commits) is None
    assert await offsets_of(progress) == [1] * PARTITIONS
