"""Who may write tables: the holder of a lock, for the moment of writing.

#slots      the master of each coordinator slot, made once
#tables     says that tables are written down: without it they were lost, or never were there
TOPIC       a topic's partition table, guarded by a lock at the master of the topic's slot
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.rocketmq.members.gateways import GROUP
from rockgate.gateway.rocketmq.members.locks import BrokerLocks
from rockgate.gateway.rocketmq.members.slots import SLOT_COUNT, Slots
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable, is_broker
from rockgate.gateway.rocketmq.topics.written import NAMESPACE, longest

SLOTS_KEY: Final = "#slots"
LOCK_QUEUE_ID: Final = 0
TRIES: Final = 30
TRY_S: Final = 0.1

log = logging.getLogger(__name__)


class NameServers(Protocol):
    """Values that every name server has."""

    @property
    def masters(self) -> Sequence[str]:
        """The names of masters that are there."""
        ...

    async def values(self, namespace: str, key: str) -> list[str]:
        """What name servers have under a key."""
        ...

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        """Store a value at every name server."""
        ...


class TableLocks:
    """Locks of topics' tables."""

    def __init__(self, locks: BrokerLocks, slots: Slots, clock: Clock) -> None:
        self._locks = locks
        self._slots = slots
        self._clock = clock

    @asynccontextmanager
    async def writing(self, wire: str) -> AsyncIterator[None]:
        """Hold the lock of a topic's table; BrokerLost if it cannot be had."""
        place = self._slots.place(wire)
        if place is None:
            raise BrokerLost("The masters of the coordinator slots are not known yet.")
        async with self.at(place.broker, f"{GROUP}/{wire}"):
            yield

    @asynccontextmanager
    async def at(self, broker: str, name: str) -> AsyncIterator[None]:
        """Hold a lock at a broker."""
        lock = {QueueName(name, broker, LOCK_QUEUE_ID)}
        for _ in range(TRIES):
            if await self._locks.take_over(broker, lock):
                break
            await _pause(self._clock, TRY_S)
        else:
            raise BrokerLost(f"Another gateway holds the lock of {name} at broker {broker}.")
        try:
            yield
        finally:
            try:
                await self._locks.unlock(broker, lock)
            except BrokerLost as lost:
                log.info("the lock of %s is not freed: %s", name, lost)


async def slot_table(
    name_servers: NameServers, locks: TableLocks, fixed: Sequence[str] = ()
) -> PartitionTable | None:
    """The written table of slots, made if there is none; None if it cannot be had now.

    `fixed` are the brokers that the settings name; then nothing is written.
    """
    if fixed:
        return _spread(fixed)
    table = await _written(name_servers)
    if table is not None:
        return table if table.count == SLOT_COUNT else None
    masters = [each for each in sorted(name_servers.masters) if is_broker(each)]
    if not masters:
        return None
    async with locks.at(masters[0], f"{GROUP}/{SLOTS_KEY}"):
        table = await _written(name_servers)
        if table is None:
            table = _spread(masters)
            await name_servers.put_value(NAMESPACE, SLOTS_KEY, table.text)
            log.info("coordinator slots are at brokers %s", table.text)
    return table if table.count == SLOT_COUNT else None


async def _written(name_servers: NameServers) -> PartitionTable | None:
    """The table as it is written; an empty one if name servers contradict each other."""
    texts = await name_servers.values(NAMESPACE, SLOTS_KEY)
    if not texts:
        return None
    found = longest(SLOTS_KEY, texts)
    if found is None or found.count != SLOT_COUNT:
        log.error(
            "The table of coordinator slots is damaged: %s. No group is coordinated. Write one of "
            "%d slots with `mqadmin updateKvConfig -s %s -k %s -v BROKER:COUNT;…`.",
            texts,
            SLOT_COUNT,
            NAMESPACE,
            SLOTS_KEY,
        )
        return PartitionTable()
    return found


def _spread(brokers: Sequence[str]) -> PartitionTable:
    return PartitionTable().spread(SLOT_COUNT, list(brokers))


async def _pause(clock: Clock, seconds: float) -> None:
    over = asyncio.Event()
    clock.call_later(seconds, over.set)
    await over.wait()
