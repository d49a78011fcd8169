"""Produce over a cluster: the order in which a connection's batches take their places."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from tests.gateway.rocketmq.fake_brokers import QUEUE, settle
from tests.gateway.rocketmq.queues.writing import NOW_MS, Writing

from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.handlers.produce import ClusterProduce
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable
from rockgate.gateway.rocketmq.topics.topic import ClusterTopic
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

TOPIC = "orders"
VERSION = 9
HERE = Address("a", 1)


class SlowCatalog:
    """A topic that is known before all of it is: its configs are asked for as well."""

    def __init__(self) -> None:
        self.known: ClusterTopic | None = None
        self.routes, self.configs = asyncio.Event(), asyncio.Event()

    def learn(self, names: Iterable[str]) -> Awaitable[None] | None:
        return self._ask() if self.known is None else None

    def find(self, name: str) -> ClusterTopic | None:
        return self.known

    async def _ask(self) -> None:
        await self.routes.wait()
        table = PartitionTable.parse(f"{QUEUE.broker}:2")
        self.known = ClusterTopic(TOPIC, bytes(16), table)
        await self.configs.wait()


class OneQueue:
    """The writer of the only queue."""

    def __init__(self, world: Writing) -> None:
        self._world = world

    def writer(self, queue: object) -> Any:
        return self._world.writer


class Masters:
    """The brokers that have one."""

    def __init__(self) -> None:
        self.masters: tuple[str, ...] = (QUEUE.broker,)


class Connection:
    """Starts requests in order, while none of them holds those behind it, as sessions do."""

    def __init__(self, produce: ClusterProduce) -> None:
        self._produce = produce
        self._backlog: list[ProduceRequest] = []
        self.peer = Peer(connection_id=1, local=HERE, remote=HERE, resume=self._start)
        self.answers: list[asyncio.Future[Any]] = []

    def send(self, sequence: int) -> None:
        records = [Record(0, NOW_MS, None, b"%d" % sequence, ())]
        batch = build_batch(
            records, base_offset=0, producer_id=7, producer_epoch=0, base_sequence=sequence
        )
        data = PartitionProduceData(index=QUEUE.queue_id, records=bytes(batch))
        topic = TopicProduceData(name=TOPIC, partition_data=[data])
        self._backlog.append(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]))
        self._start()

    def _start(self) -> None:
        while self._backlog and not self.peer.reading_count:
            call = Call(VERSION, None, self.peer)
            answer: Any = self._produce.handle(self._backlog.pop(0), call)
            self.answers.append(asyncio.ensure_future(answer))


def connected(world: Writing, catalog: SlowCatalog, cluster: Masters) -> Connection:
    there: Any = (catalog, cluster, OneQueue(world))
    return Connection(
        ClusterProduce(
            catalog=there[0],
            cluster=there[1],
            queues=there[2],
            message_bytes_max=1 << 20,
            now_ms=lambda: NOW_MS,
        )
    )


async def answered(connection: Connection, count: int) -> list[tuple[int, int]]:
    """Error and offset of each batch."""
    await settle(lambda: len(connection.answers) == count)
    found = [(await each).topics[0].partitions[0] for each in connection.answers]
    return [(each.error_code, each.base_offset) for each in found]


async def test_a_batch_does_not_overtake_one_that_waits_until_its_topic_is_known() -> None:
    # The simpler rule: whoever finds the topic known takes its place. It is known a moment before
    # the first request continues; its batch then comes second, and stays out of order.
    world, catalog = Writing(), SlowCatalog()
    connection = connected(world, catalog, Masters())
    connection.send(0)
    connection.send(1)
    catalog.routes.set()
    for _ in range(10):
        await asyncio.sleep(0)
    connection.send(2)
    for _ in range(50):
        await asyncio.sleep(0)
    assert world.brokers.messages == []
    catalog.configs.set()
    assert await answered(connection, 3) == [(0, 0), (0, 1), (0, 2)]
    assert [body for body, _ in world.brokers.messages] == [b"0", b"1", b"2"]


async def test_a_batch_does_not_overtake_one_that_came_while_its_broker_had_no_master() -> None:
    world, catalog, cluster = Writing(), SlowCatalog(), Masters()
    catalog.routes.set()
    catalog.configs.set()
    cluster.masters = ()
    connection = connected(world, catalog, cluster)
    connection.send(0)
    assert await answered(connection, 1) == [(ErrorCode.LEADER_NOT_AVAILABLE, -1)]
    cluster.masters = (QUEUE.broker,)
    for sequence in (1, 0, 1):
        connection.send(sequence)
    found = await answered(connection, 4)
    assert found[1:] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), (0, 0), (0, 1)]
