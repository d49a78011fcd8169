"""Brokers, name servers and gateways on virtual time: the members' own code, over wires that fail.

A connection has two ends. What a cut swallows is lost for both; what a stopped process is sent
waits until it continues. Brokers keep members for 120 s and locks for 60 s, in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.members.cluster_member import ClusterMember
from rockgate.gateway.rocketmq.members.gateways import GROUP, Gateway
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import (
    ConsumerIds,
    HeartbeatBody,
    ProducerInfo,
    ProducerTable,
)
from rockgate.protocol.remoting.bodies.queues import LockBody, LockedBody, MessageQueue
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command

LOCK_S = 60.0
FORGET_S = 120.0
RESET_S = 1.0
"""How long after a cut the broker's end of a connection that was given up is closed."""


def now() -> float:
    return asyncio.get_running_loop().time()


async def sleep(seconds: float) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


class Stoppable:
    """A process that can be stopped: what is due meanwhile happens when it continues."""

    def __init__(self) -> None:
        self.runs = asyncio.Event()
        self.runs.set()

    @property
    def is_stopped(self) -> bool:
        return not self.runs.is_set()


class ProcessClock(Stoppable):
    """The clock of one process."""

    def __init__(self) -> None:
        super().__init__()
        self.is_dead = False
        self._waiting: list[Callable[[], object]] = []

    def time(self) -> float:
        return now()

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, self._due, callback)

    def go_on(self) -> None:
        self.runs.set()
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            self._due(callback)

    def _due(self, callback: Callable[[], object]) -> None:
        if self.is_dead:
            return
        if self.is_stopped:
            self._waiting.append(callback)
        else:
            callback()


@dataclass(eq=False)
class Connection:
    """One connection; `is_cut` while packets are lost."""

    gateway: SimGateway
    broker: SimBroker
    is_open: bool = True
    is_given_up: bool = False
    """Whether the gateway's end is closed, though the broker's is not."""


@dataclass(eq=False)
class Joined:
    client_id: str
    heard_at: float


class SimBroker(Stoppable):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.is_up = True
        self.members: dict[Connection, Joined] = {}
        self.locks: dict[MessageQueue, tuple[str, float]] = {}

    def closed(self, connection: Connection) -> None:
        if self.members.pop(connection, None) is not None:
            self.tell()

    def tell(self) -> None:
        for connection in list(self.members):
            connection.gateway.told(connection)

    def forget(self) -> None:
        for connection, joined in list(self.members.items()):
            if now() - joined.heard_at > FORGET_S:
                self.closed(connection)

    def handle(self, connection: Connection, code: RequestCode, body: Buffer) -> Command:
        self.forget()
        answer: Any = None
        if code is RequestCode.HEART_BEAT:
            beat = javajson.decode(body, HeartbeatBody, "34")
            is_new = connection not in self.members
            self.members[connection] = Joined(beat.client_id, now())
            if is_new:
                self.tell()
        elif code is RequestCode.UNREGISTER_CLIENT:
            self.closed(connection)
        elif code is RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            connection.gateway.cluster.listed[connection.gateway, self.name] = now()
            answer = ConsumerIds(consumer_id_list=[e.client_id for e in self.members.values()])
        elif code is RequestCode.GET_ALL_PRODUCER_INFO:
            rows = [
                ProducerInfo(
                    client_id=each.client_id,
                    remote_ip="",
                    language="",
                    version=0,
                    last_update_timestamp=round(each.heard_at * 1000),
                )
                for each in self.members.values()
            ]
            answer = ProducerTable(data={GROUP: rows})
        elif code is RequestCode.LOCK_BATCH_MQ:
            asked = javajson.decode(body, LockBody, "41")
            mine = [each for each in asked.mq_set if self._lock(each, asked.client_id)]
            answer = LockedBody(lock_ok_mq_set=mine)
        elif code is RequestCode.UNLOCK_BATCH_MQ:
            asked = javajson.decode(body, LockBody, "42")
            for each in asked.mq_set:
                if self.locks.get(each, ("", 0.0))[0] == asked.client_id:
                    del self.locks[each]
        elif code is not RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP:
            raise AssertionError(code)
        return Command(
            ResponseCode.SUCCESS, body=b"" if answer is None else javajson.encode(answer)
        )

    def _lock(self, queue: MessageQueue, client_id: str) -> bool:
        holder, at = self.locks.get(queue, (client_id, now()))
        if holder != client_id and now() - at <= LOCK_S:
            return False
        self.locks[queue] = (client_id, now())
        return True


@dataclass
class Cluster:
    """Everything there is."""

    random: Random
    brokers: dict[str, SimBroker] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    gateways: list[SimGateway] = field(default_factory=list)
    cut: set[tuple[SimGateway, SimBroker]] = field(default_factory=set)
    muted: set[SimGateway] = field(default_factory=set)
    """Gateways whose notifications (40) are lost."""
    untold: dict[tuple[SimGateway, str], float] = field(default_factory=dict)
    """When a gateway last missed a notification or an answer of a broker."""
    listed: dict[tuple[SimGateway, str], float] = field(default_factory=dict)
    """When a broker last gave its list to a gateway."""

    def latency(self) -> float:
        return self.random.uniform(0.0005, 0.02)

    def heal(self, gateway: SimGateway, broker: SimBroker) -> None:
        """Packets pass again; ends that were given up are reset."""
        self.cut.discard((gateway, broker))
        for connection in list(broker.members):
            if connection.gateway is gateway and connection.is_given_up:
                asyncio.get_running_loop().call_later(RESET_S, broker.closed, connection)

    def kill_broker(self, broker: SimBroker) -> None:
        broker.is_up = False
        broker.members.clear()
        broker.locks.clear()
        for gateway in self.gateways:
            gateway.lose(broker)


class SimGateway:
    """One gateway, and its connections."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self.cluster = cluster
        self.clock = ProcessClock()
        self.me = Gateway.at(Address("10.0.0.1", port))
        self._connections: dict[str, Connection] = {}
        self.member = ClusterMember(self.me, self, self.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self.is_leaving = False
        cluster.gateways.append(self)

    # Life

    def start(self) -> None:
        self._tasks = [asyncio.ensure_future(self.member.join()), asyncio.ensure_future(self._up())]

    async def _up(self) -> None:
        while True:
            await self._pause(5.0)
            self.member.refresh()

    async def _pause(self, seconds: float) -> None:
        over = asyncio.Event()
        self.clock.call_later(seconds, over.set)
        await over.wait()

    def kill(self) -> None:
        """The process ends; nothing happens if it has, as of one that was killed while it left."""
        if self.clock.is_dead:
            return
        self.clock.is_dead = True
        self.cluster.gateways.remove(self)
        for task in self._tasks:
            task.cancel()
        for broker in self.cluster.brokers.values():
            self.reset(broker)

    async def leave(self) -> None:
        if self.is_leaving:
            return
        self.is_leaving = True
        for task in self._tasks:
            task.cancel()
        # It may be killed meanwhile: then its clock stands still, and nothing would be over.
        leaving = asyncio.ensure_future(self.member.leave())
        self._tasks = [leaving]
        await asyncio.wait(self._tasks)
        if not leaving.cancelled():
            leaving.result()
        self.kill()

    def serves(self, queue: QueueName) -> bool:
        if self.clock.is_stopped or self.clock.is_dead:
            return False
        if queue.topic == GROUP:
            return self.member.slots.serves(queue)
        return self.member.terms.lease(queue).is_served

    # Connections

    def reset(self, broker: SimBroker) -> None:
        """The connection is closed at both ends; a broker that is cut off does not learn of it."""
        connection = self._connections.pop(broker.name, None)
        if connection is None:
            return
        connection.is_given_up = True
        self._lost(broker.name)
        if (self, broker) not in self.cluster.cut:
            delay = self.cluster.latency()
            asyncio.get_running_loop().call_later(delay, self._close, connection)

    def _close(self, connection: Connection) -> None:
        if connection.broker.is_stopped:
            asyncio.get_running_loop().call_later(0.05, self._close, connection)
        else:
            connection.broker.closed(connection)

    def lose(self, broker: SimBroker) -> None:
        """The broker's process is gone."""
        if self._connections.pop(broker.name, None) is not None:
            self._lost(broker.name)

    def _lost(self, broker: str) -> None:
        self.clock.call_later(self.cluster.latency(), lambda: self.member.membership.lost(broker))

    def told(self, connection: Connection) -> None:
        """A broker says that members have changed."""
        name = connection.broker.name
        if self in self.cluster.muted or (self, connection.broker) in self.cluster.cut:
            self.cluster.untold[self, name] = now()
            return
        delay = self.cluster.latency()
        self.clock.call_later(delay, lambda: self.member.membership.changed(name))

    # What members ask

    @property
    def masters(self) -> list[str]:
        return sorted(name for name, each in self.cluster.brokers.items() if each.is_up)

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        there = self.cluster.brokers[broker]
        connection = self._connections.get(broker)
        await self._running()
        if not there.is_up:
            await self._pause(0.01)
            raise BrokerLost("refused")
        if connection is None:
            connection = self._connections[broker] = Connection(self, there)
        answered: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._served(connection, code, bytes(body), answered))

        def give_up() -> None:
            if not answered.done():
                answered.set_exception(BrokerLost("no answer"))

        timer = self.clock.call_later(timeout_s, give_up)
        try:
            answer = await answered
        except BrokerLost:
            if self._connections.get(broker) is connection:
                self.reset(there)
            raise
        finally:
            timer.cancel()
            del task
        await self._running()
        return answer

    async def _served(
        self,
        connection: Connection,
        code: RequestCode,
        body: bytes,
        answered: asyncio.Future[Command],
    ) -> None:
        broker = connection.broker
        await sleep(self.cluster.latency())
        if (self, broker) in self.cluster.cut:
            self.cluster.untold[self, broker.name] = now()
            return
        if not broker.is_up:
            return
        await broker.runs.wait()
        # A connection that is closed meanwhile was served before: bytes come before their end.
        if not broker.is_up:
            return
        answer = broker.handle(connection, code, body)
        if connection.is_given_up:
            broker.closed(connection)
        await sleep(self.cluster.latency())
        if (self, broker) in self.cluster.cut:
            self.cluster.untold[self, broker.name] = now()
        elif not answered.done():
            answered.set_result(answer)

    async def send(self, queue: QueueName, body: Buffer, born_ms: int) -> Command:
        raise AssertionError("members send nothing")

    async def _running(self) -> None:
        await self.clock.runs.wait()

    async def values(self, namespace: str, key: str) -> list[str]:
        await self._running()
        await sleep(self.cluster.latency())
        return [v for k, v in self.cluster.values.items() if k == f"{namespace}/{key}"]

    async def namespace(self, namespace: str) -> dict[str, str]:
        await self._running()
        await sleep(self.cluster.latency())
        parts = [(*each.split("/", 1), value) for each, value in self.cluster.values.items()]
        return {key: value for found, key, value in parts if found == namespace}

    async def remove_value(self, namespace: str, key: str) -> None:
        await self.namespace("")
        self.cluster.values.pop(f"{namespace}/{key}", None)

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        await self._running()
        await sleep(self.cluster.latency())
        self.cluster.values[f"{namespace}/{key}"] = value
