"""Fetch over a cluster: sessions over queues of brokers, and what they learn without asking."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from tests.gateway.rocketmq.fake_brokers import QUEUE, FakeBrokers, InlineThreads, NoFence, settle
from tests.gateway.rocketmq.queues.writing import NOW_MS

from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.handlers.fetch import Fetch, Fetched
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.handlers.fetch import (
    EXAMINE_MS,
    PARTITIONS_MAX,
    ClusterFetch,
    ClusterFinder,
    ClusterPartitionReader,
    NoLimits,
    NothingCold,
    WatchedReaders,
)
from rockgate.gateway.rocketmq.members.leadership import NOT_SERVED, SERVED, PartitionLease
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable
from rockgate.gateway.rocketmq.topics.topic import ClusterTopic
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.fetch import FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.records.record import read_records

TOPIC = "orders"
VERSION = 12
HERE = Address("a", 1)
PARTITION = QUEUE.queue_id
"""Of partitions 0 and 1 the broker has messages in the second."""


class OneTopic:
    """A topic of two partitions, or none."""

    def __init__(self) -> None:
        self.topic: ClusterTopic | None = ClusterTopic(
            TOPIC, bytes(16), PartitionTable.parse(f"{QUEUE.broker}:2")
        )
        self.learning: asyncio.Future[None] | None = None

    def learn(self, names: Iterable[str]) -> Awaitable[None] | None:
        return self.learning

    def find(self, name: str) -> ClusterTopic | None:
        return self.topic


class Leads:
    """Whether another gateway leads."""

    def __init__(self) -> None:
        self.is_lost = False

    def lease(self, queue: QueueName) -> PartitionLease:
        return NOT_SERVED if self.is_lost else SERVED

    def is_elsewhere(self, queue: QueueName) -> bool:
        return self.is_lost

    def watch(self, watcher: object) -> None:
        """No notice: sessions look for themselves."""


class Masters:
    masters: tuple[str, ...] = (QUEUE.broker,)
    readable: frozenset[str] = frozenset()


class HandMilliseconds:
    ms = 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms


class Fetching:
    """A client with one session."""

    def __init__(self, count: int = 0) -> None:
        self.brokers = FakeBrokers()
        self.add(count)
        self.leads, self.masters, self.catalog = Leads(), Masters(), OneTopic()
        catalog: Any = self.catalog
        cluster: Any = self.masters
        self.queues = ClusterQueues(
            self.brokers, InlineThreads(), self.leads, NoFence(), group="g", now_ms=lambda: NOW_MS
        )
        self.clock = HandMilliseconds()
        self.sessions = FetchSessions(
            WatchedReaders(),
            self.clock,
            sessions_max=10,
            partitions_max=100,
            examine_ms=EXAMINE_MS,
        )
        self.handler = ClusterFetch(
            catalog,
            Fetch(
                finder=ClusterFinder(catalog, self.queues),
                poll_registry=PollRegistry(),
                sessions=self.sessions,
                reader=ClusterPartitionReader(cluster, self.leads),
                cold_reads=NothingCold(),
                visible_batches=NothingCold(),
                bytes_max=1 << 20,
                throttling=NoLimits(),
            ),
        )
        self.id, self.epoch = 0, 0

    def add(self, count: int) -> None:
        first = len(self.brokers.messages)
        self.brokers.messages += [(b"%d" % at, b"") for at in range(first, first + count)]
        self.brokers.tell()

    async def ask(
        self, offset: int | None = None, *, wait_ms: int = 0, max_bytes: int = 1 << 20
    ) -> Fetched:
        """The next poll of the session; with an offset it asks for the partition anew."""
        topics = []
        if offset is not None:
            asked = FetchPartition(
                partition=PARTITION, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            topics = [FetchTopic(topic=TOPIC, partitions=[asked])]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=topics,
        )
        peer = Peer(connection_id=1, local=HERE, remote=HERE, resume=lambda: None)
        call = Call(VERSION, None, peer)
        answer = self.handler.handle(request, call)
        found = answer if isinstance(answer, Fetched) else await answer
        self.id = found.session_id
        self.epoch += 1
        return found


def one(fetched: Fetched) -> FetchedPartition:
    [topic] = fetched.topics
    [partition] = topic.partitions
    return partition


def values(fetched: Fetched) -> list[bytes | None]:
    return [r.value for batch in one(fetched).records or () for r in read_records(batch)]


async def test_a_session_is_opened_and_answers_with_news_alone() -> None:
    world = Fetching(3)
    first = await world.ask(0, wait_ms=5_000)
    assert values(first) == [b"0", b"1", b"2"]
    assert world.id
    assert (await world.ask(3)).topics == []
    assert (await world.ask()).topics == []
    assert (await world.ask()).error_code == 0


async def test_a_session_that_waits_is_answered_when_a_message_comes() -> None:
    world = Fetching(1)
    await world.ask(0, wait_ms=5_000)
    await world.ask(1)
    waiting = asyncio.ensure_future(world.ask(wait_ms=30_000))
    await settle(lambda: world.brokers.pulls[-1][0] == 1)
    assert not waiting.done()
    world.add(2)
    async with asyncio.timeout(5):
        assert values(await waiting) == [b"1", b"2"]


async def test_a_session_learns_that_another_gateway_leads() -> None:
    world = Fetching(1)
    await world.ask(0, wait_ms=5_000)
    await world.ask(1)
    world.leads.is_lost = True
    world.clock.ms += EXAMINE_MS
    assert one(await world.ask()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.leads.is_lost = False
    assert one(await world.ask()).error_code == 0


async def test_a_session_learns_that_its_broker_is_away() -> None:
    world = Fetching(1)
    await world.ask(0, wait_ms=5_000)
    world.masters.masters = ()
    world.clock.ms += EXAMINE_MS
    assert one(await world.ask()).error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_a_session_goes_on_at_another_reader_when_its_own_was_closed() -> None:
    world = Fetching(1)
    await world.ask(0, wait_ms=5_000)
    await world.ask(1)
    world.queues.forget(QUEUE.topic)
    world.add(1)
    assert values(await world.ask(wait_ms=5_000)) == [b"1"]


async def test_a_deleted_topic_is_unknown_to_its_session() -> None:
    world = Fetching(1)
    await world.ask(0, wait_ms=5_000)
    world.catalog.topic = None
    world.queues.forget(QUEUE.topic)
    assert one(await world.ask()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_offset_out_of_range_is_answered_at_once() -> None:
    world = Fetching(1)
    assert one(await world.ask(9, wait_ms=5_000)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_session_that_is_not_used_is_closed_and_releases_its_reader() -> None:
    world = Fetching(1)
    await world.ask(0, wait_ms=5_000)
    world.clock.ms += 121_000
    world.sessions.expire()
    assert len(world.sessions) == 0
    assert (await world.ask()).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_what_does_not_fit_is_left_for_the_next_poll() -> None:
    world = Fetching(100)
    found: list[bytes | None] = []
    async with asyncio.timeout(10):
        while len(found) < 100:
            fetched = await world.ask(len(found), wait_ms=5_000, max_bytes=300)
            found += values(fetched) if fetched.topics else []
    assert found == [b"%d" % at for at in range(100)]


async def test_a_request_with_too_many_partitions_is_refused() -> None:
    world = Fetching()
    partitions = [FetchPartition(partition=at) for at in range(PARTITIONS_MAX + 1)]
    request = FetchRequest(topics=[FetchTopic(topic=TOPIC, partitions=partitions)])
    peer = Peer(connection_id=1, local=HERE, remote=HERE, resume=lambda: None)
    call = Call(VERSION, None, peer)
    answer = world.handler.handle(request, call)
    assert isinstance(answer, Fetched)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
