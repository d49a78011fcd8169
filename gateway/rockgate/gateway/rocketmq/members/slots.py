"""The slots of coordinators: 64 of them, each with a fixed master whose lock its gateway holds.

A group's slot is its CRC-32 modulo 64. The master of each slot is written down once, in the form of
a partition table of 64, so that it does not move when a broker is away. The gateway that leads a
slot, as it would lead a partition of that number, serves it once it also has its lock:

    elsewhere → waiting     it leads the slot, and its wait is over: it asks for the lock
    waiting   → held        the master gave the lock: groups are served
    held      → elsewhere   another leads it (after a moment), or the lock or the master is lost:
                            its groups are given up, and their members join again elsewhere
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Collection
from typing import Final

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.rocketmq.members.gateways import GROUP
from rockgate.gateway.rocketmq.members.locks import LOCK_S, RENEW_S, BrokerLocks
from rockgate.gateway.rocketmq.members.terms import LeaderTerms
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable

SLOT_COUNT: Final = 64
RETRY_S: Final = 0.25
"""How soon a lock that another still has is asked for again."""
NEW_S: Final = 30.0
"""How long members that another gateway coordinated may come."""
VALID_S: Final = LOCK_S - 10.0
"""How long a lock counts that was not renewed."""

log = logging.getLogger(__name__)


def slot_of(name: str) -> int:
    """The slot of a group, or of a topic's table."""
    return zlib.crc32(name.encode()) % SLOT_COUNT


class Slots:
    """All slots, those that are held here among them."""

    def __init__(self, terms: LeaderTerms, locks: BrokerLocks, clock: Clock) -> None:
        self._terms = terms
        self._locks = locks
        self._clock = clock
        self.on_lost: list[Callable[[Collection[int]], None]] = []
        """Called with slots whose groups are to be given up."""
        self._queues: list[QueueName] = []
        self._held: dict[int, float] = {}
        """Slots whose locks are held, and when that was last asked for."""
        self._held_since: dict[int, float] = {}
        self._lost: set[int] = set()
        self._workers: dict[str, _Worker] = {}
        terms.watch(self)

    # Asking

    @property
    def is_known(self) -> bool:
        """Whether the slots' masters are known."""
        return bool(self._queues)

    @property
    def held_count(self) -> int:
        """How many slots are held here."""
        return len(self._held)

    def place(self, name: str) -> QueueName | None:
        """The slot of a group as a queue; None before the slots' masters are known."""
        return self._queues[slot_of(name)] if self._queues else None

    def is_held(self, name: str) -> bool:
        """Whether a group is coordinated here now."""
        queue = self.place(name)
        return queue is not None and self.serves(queue)

    def is_new(self, name: str) -> bool:
        """Whether a group has been coordinated here for a short time only."""
        since = self._held_since.get(slot_of(name))
        return since is not None and self._clock.time() - since < NEW_S

    def serves(self, queue: QueueName) -> bool:
        """Whether groups of a slot are served here now."""
        at = self._held.get(queue.queue_id)
        if at is None or not self._terms.lease(queue).is_served:
            return False
        return self._clock.time() - at < VALID_S

    # Changing

    def use(self, table: PartitionTable) -> None:
        """Begin, with a table of the slots' masters."""
        assert table.count == SLOT_COUNT, "there is a master for each slot"
        self._queues = [
            QueueName(GROUP, table.place(slot).broker, slot) for slot in range(SLOT_COUNT)
        ]
        for queue in self._queues:
            self._terms.lease(queue)
        for broker in table.brokers:
            self._workers[broker] = _Worker(self, broker, self._clock)

    def refresh(self) -> None:
        """Have terms at brokers that are there again."""
        for queue in self._queues:
            if self._terms.lease(queue).is_served and queue.queue_id not in self._held:
                self._wake(queue.broker)

    def gained(self, queue: QueueName) -> None:
        """A term begins: the lock is asked for."""
        if queue.topic == GROUP:
            self._wake(queue.broker)

    def lost(self, queue: QueueName) -> None:
        """A term has ended: the slot is given up, its lock freed if the broker is there."""
        if queue.topic == GROUP and self._give_up(queue.queue_id):
            self._wake(queue.broker)

    async def close(self) -> bool:
        """Give up all slots and free their locks; whether all are free."""
        for worker in self._workers.values():
            worker.task.cancel()
        for slot in list(self._held):
            self._give_up(slot)
        return all(await asyncio.gather(*(each.free() for each in self._workers.values())))

    # What a worker does

    async def work(self, broker: str, freed: set[QueueName]) -> float | None:
        """Ask for locks, renew them and free them; seconds until there is more to do."""
        gone = [each for each in freed if each.queue_id not in self._held]
        freed.clear()
        if gone:
            try:
                await self._locks.unlock(broker, gone)
            except BrokerError:
                freed.update(gone)
                raise
        now = self._clock.time()
        mine = [each for each in self._queues if each.broker == broker]
        served = [each for each in mine if self._terms.lease(each).is_served]
        due = [
            each
            for each in served
            if each.queue_id in self._held and now - self._held[each.queue_id] >= RENEW_S - 1
        ]
        if due:
            retained = await self._locks.lock(broker, due)
            self._take(retained, now)
            for each in set(due) - retained:
                log.warning("slot %d is locked by another gateway", each.queue_id)
                self._give_up(each.queue_id)
        missing = [each for each in served if each.queue_id not in self._held]
        if missing:
            now = self._clock.time()
            try:
                taken = await self._locks.take_over(broker, missing)
            except BrokerError:
                # The broker may give them yet, and would keep them for a minute.
                freed.update(missing)
                raise
            self._take(taken, now)
            stale = [each for each in taken if each.queue_id not in self._held]
            if stale:
                await self._locks.unlock(broker, stale)
        is_missing = any(each.queue_id not in self._held for each in served)
        return RETRY_S if is_missing else RENEW_S if served else None

    # Private

    def _take(self, queues: Collection[QueueName], asked_at: float) -> None:
        """The broker gave locks: they count if the terms still run."""
        for queue in queues:
            if self._terms.lease(queue).is_served:
                self._held_since.setdefault(queue.queue_id, asked_at)
                self._held[queue.queue_id] = asked_at

    def _give_up(self, slot: int) -> bool:
        if self._held.pop(slot, None) is None:
            return False
        self._held_since.pop(slot, None)
        self._workers[self._queues[slot].broker].freed.add(self._queues[slot])
        if not self._lost:
            self._clock.call_later(0, self._tell)
        self._lost.add(slot)
        return True

    def _tell(self) -> None:
        lost, self._lost = self._lost, set()
        for listener in self.on_lost:
            listener(lost)

    def _wake(self, broker: str) -> None:
        worker = self._workers.get(broker)
        if worker is not None:
            worker.wake.set()


class _Worker:
    """What asks one broker for locks, one request after the other."""

    def __init__(self, slots: Slots, broker: str, clock: Clock) -> None:
        self._slots = slots
        self._broker = broker
        self._clock = clock
        self.freed: set[QueueName] = set()
        """Slots that were given up, whose locks are to be freed."""
        self.wake = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def free(self) -> bool:
        """Free what was given up; whether that was possible."""
        try:
            await self._slots.work(self._broker, self.freed)
        except BrokerError as failed:
            log.info("locks at broker %s are not freed: %s", self._broker, failed)
        return not self.freed

    async def _run(self) -> None:
        while True:
            self.wake.clear()
            try:
                wait_s = await self._slots.work(self._broker, self.freed)
            except BrokerError as failed:
                log.debug("cannot lock slots at broker %s: %s", self._broker, failed)
                wait_s = RETRY_S
            except Exception:  # one failure must not be the last
                log.exception("locking slots at broker %s failed", self._broker)
                wait_s = RENEW_S
            timer = None if wait_s is None else self._clock.call_later(wait_s, self.wake.set)
            await self.wake.wait()
            if timer is not None:
                timer.cancel()
