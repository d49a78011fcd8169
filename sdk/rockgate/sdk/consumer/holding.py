"""The queues that a member holds: how one is acquired, locked, and released.

A queue is acquired with its lock (orderly) and its first offset, and released with its offset
persisted and its lock released; whatever fails of that is retried in the next round. Locks are
renewed before they expire. A broker that refuses to renew one has assigned the queue to another
member, which may be ahead by now: it is dropped as it is, and acquired again when possible.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rockgate.sdk.consumer.broker_calls import BrokerCalls, by_broker
from rockgate.sdk.consumer.delivery.settlement import QueueSettlement, SettleContext
from rockgate.sdk.consumer.offsets.first import FirstOffsets
from rockgate.sdk.consumer.offsets.store import GroupOffsets
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.assignment import Assignment
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.queues.puller import PullContext, PullCounts, Puller
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Model
from rockgate.sdk.consumer.subscription import Subscription
from rockgate.sdk.errors import Closed, SdkError, TimedOut, Unreachable
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

REST_S: Final = 1.0
"""How long a round waits for the listener of an orderly queue that is being released."""

_log: Final = logging.getLogger(__name__)


class Dispatch(Protocol):
    """Delivers messages to their consumer."""

    def submit(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        messages: Sequence[Received],
    ) -> None:
        """Deliver messages of one queue."""


@dataclass(frozen=True, slots=True)
class Held:
    """A queue that is consumed here."""

    cached: ProcessQueue[Received]
    settlement: QueueSettlement
    puller: Puller
    task: asyncio.Task[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingContext:
    """What the queues of a member share."""

    calls: BrokerCalls
    settings: ConsumerSettings
    store: GroupOffsets
    dispatch: Dispatch
    settling: SettleContext
    pull_counts: PullCounts
    subscription: Callable[[str], tuple[Subscription, int] | None]
    is_paused: Callable[[str], bool]
    announce: Callable[[], Awaitable[None]]
    changed: Callable[[], None]
    """Called when a queue was dropped outside of a round: a round is due."""
    hooks: Sequence[ConsumeHook] = ()


class Holding:
    """The queues of one member."""

    def __init__(self, context: HoldingContext) -> None:
        self._context = context
        self._settings = context.settings
        self.assignment: Assignment[Received] = Assignment()
        self.held: dict[Queue, Held] = {}
        self.offsets: OffsetTable = context.settling.offsets
        self._first_offsets = FirstOffsets(context.store, context.calls, context.settings.start)
        self._limits: dict[str, FlowLimits] = {}
        self._releasing = asyncio.Lock()
        """A round and a reset may both release a queue: one after the other."""
        self._pulling = PullContext(
            calls=context.calls,
            settings=context.settings,
            offsets=self.offsets,
            counts=context.pull_counts,
            subscription=context.subscription,
            limits=self.limits,
            is_paused=context.is_paused,
            hand_over=self._hand_over,
            announce=context.announce,
            offset_illegal=self.reset,
            hooks=context.hooks,
        )

    @property
    def is_locking(self) -> bool:
        """Whether brokers are asked for locks: a broadcasting member has every queue anyway."""
        return self._settings.is_orderly and self._settings.model is Model.CLUSTERING

    def limits(self, topic: str) -> FlowLimits:
        """How much of each queue of a topic may be cached."""
        return self._limits.get(topic) or self._settings.flow

    def divide_limits(self, topic: str) -> None:
        """The queues of a topic have changed: its cache limits are divided again."""
        count = sum(queue.topic == topic for queue in self.assignment)
        self._limits[topic] = self._settings.flow.shared_by(count)

    # Taking up

    async def take_up(self, missing: Collection[Queue]) -> list[Queue]:
        """Start consuming queues, those of each broker by themselves; those that were acquired."""
        # A lock counts from when it was asked for: its broker may have answered long ago.
        asked_at_s = asyncio.get_running_loop().time()
        locked = await self.lock(missing) if self.is_locking else set(missing)
        parts = by_broker(queue for queue in missing if queue in locked)
        taken = await asyncio.gather(*(self._take_up(part, asked_at_s) for part in parts.values()))
        return sorted(queue for part in taken for queue in part)

    async def _take_up(self, queues: Sequence[Queue], asked_at_s: float) -> list[Queue]:
        """The queues of one broker, as far as their first offsets are known."""
        taken: list[Queue] = []
        for queue in queues:
            try:
                # Read after the lock was acquired: its previous owner has persisted it by now.
                offset = await self._first_offsets.of(queue)
            except Closed:
                raise
            except (TimedOut, Unreachable) as failed:
                _log.warning("%d queues of %s: %s", len(queues) - len(taken), queue.broker, failed)
                break
            except Exception as failed:  # noqa: BLE001 # a store of the application's may raise it
                _log.warning("%s/%s/%d is not consumed yet: %s", *_parts(queue), failed)
                continue
            cached = self.assignment.acquire(queue, asyncio.get_running_loop().time())
            cached.begin_offset = offset
            cached.lock_s_max = self._settings.lock_s_max
            cached.pull_idle_s_max = self._settings.pull_idle_s_max
            if self.is_locking:
                cached.locked_at_s = asked_at_s
            self.held[queue] = self._begin(queue, cached, offset)
            taken.append(queue)
        return taken

    def _begin(self, queue: Queue, cached: ProcessQueue[Received], offset: int) -> Held:
        settlement = QueueSettlement(
            self._context.settling,
            queue,
            cached,
            lambda: self._made_room(queue, cached),
            self._context.changed,
        )
        puller = Puller(self._pulling, queue, cached, offset, settlement)
        task = asyncio.get_running_loop().create_task(puller.run())
        task.add_done_callback(_ended)
        return Held(cached, settlement, puller, task)

    # Locks

    async def lock(self, queues: Iterable[Queue]) -> set[Queue]:
        """Request locks, all of a broker's at once; returns those that were granted."""
        found: set[Queue] = set()
        for broker, part in by_broker(queues).items():
            try:
                found |= await self._context.calls.lock(part)
            except Closed:
                raise
            except SdkError as failed:
                _log.warning("locks of %d queues on %s: %s", len(part), broker, failed)
        return found

    async def renew_locks(self) -> None:
        """Renew the locks of all queues that are consumed here.

        A queue that is being released stays locked until its listener has ended.
        """
        for broker, part in by_broker(
            queue for queue, cached in self.assignment.items() if not cached.is_lost
        ).items():
            asked_at_s = asyncio.get_running_loop().time()
            try:
                locked = await self._context.calls.lock(part)
            except Closed:
                raise
            except SdkError as failed:
                # Locks are valid until they expire; then each queue requests its own again.
                _log.warning("locks of %d queues on %s: %s", len(part), broker, failed)
                continue
            for queue in part:
                await self._renewed(queue, asked_at_s, is_had=queue in locked)

    async def _renewed(self, queue: Queue, asked_at_s: float, *, is_had: bool) -> None:
        held = self.held.get(queue)
        if held is None or held.cached.is_lost:
            return
        if not is_had:
            _log.warning("%s/%s/%d is locked by another member", *_parts(queue))
            held.cached.locked_at_s = None
            held.settlement.lose()
            return
        # A broker that restarts forgets its locks: while a listener here outlasts one, another
        # member may have had the queue and released it again.
        if not held.cached.is_locked(asked_at_s) or held.cached.is_lock_outlasted(asked_at_s):
            try:
                if not await held.settlement.is_current():
                    return
            except Closed:
                raise
            except SdkError as failed:
                _log.warning("offset of %s/%s/%d: %s", *_parts(queue), failed)
                return
        held.cached.locked_at_s = asked_at_s

    # Giving up

    async def release(self, queue: Queue) -> bool:
        """Persist the offset of a dropped queue and release it; not while its listener runs."""
        async with self._releasing:
            return queue not in self.assignment or await self._release(queue)

    async def _release(self, queue: Queue) -> bool:
        held = self.held.get(queue)
        if held is not None:
            if held.task is not asyncio.current_task():
                held.task.cancel()
            order = held.settlement.order
            if order is not None and not await order.is_at_rest(REST_S):
                return False
        is_awaited = self._settings.is_orderly
        await self._context.store.persist(self.offsets, self._own([queue]), is_awaited=is_awaited)
        if self.is_locking:
            await self._unlock([queue])
        self.offsets.remove(queue)
        self.held.pop(queue, None)
        self.assignment.released(queue)
        return True

    async def reset(self, queue: Queue, offset: int) -> None:
        """Restart at another offset: what is cached here is no longer consumed."""
        async with self._releasing:
            cached = self.assignment.get(queue)
            if cached is None:
                return
            self.assignment.drop(queue)
            cached.is_lost = True
            self.offsets.update(queue, offset, increase_only=False)
            await self._release(queue)
        self._context.changed()

    async def persist(self, *, is_awaited: bool = False) -> None:
        """Persist the group's progress; what fails is retried next time."""
        queues = self._own(self.assignment) if self.is_locking else None
        await self._context.store.persist(self.offsets, queues, is_awaited=is_awaited)

    def _own(self, queues: Iterable[Queue]) -> list[Queue]:
        """The queues whose progress this member may commit: in order, only locked ones."""
        if not self.is_locking:
            return list(queues)
        now_s = asyncio.get_running_loop().time()
        found = ((queue, self.assignment.get(queue)) for queue in queues)
        return [queue for queue, cached in found if cached is not None and cached.is_locked(now_s)]

    async def leave(self) -> None:
        """Persist everything and release every queue, for other members to resume at once."""
        queues = list(self.assignment)
        try:
            await self.persist(is_awaited=True)
            if self.is_locking:
                await self._unlock(queues)
        finally:
            for queue in queues:
                self.assignment.drop(queue)

    async def _unlock(self, queues: Iterable[Queue]) -> None:
        for broker, part in by_broker(queues).items():
            try:
                await self._context.calls.unlock(part)
            except Closed:
                raise
            except SdkError as failed:
                _log.warning("unlocking %d queues on %s: %s", len(part), broker, failed)

    # Private

    def _hand_over(
        self, queue: Queue, cached: ProcessQueue[Received], messages: list[Received]
    ) -> None:
        held = self.held.get(queue)
        if held is not None and held.cached is cached:
            self._context.dispatch.submit(cached, held.settlement, messages)

    def _made_room(self, queue: Queue, cached: ProcessQueue[Received]) -> None:
        held = self.held.get(queue)
        if held is not None and held.cached is cached:
            held.puller.made_room()


def _parts(queue: Queue) -> tuple[str, str, int]:
    return queue.topic, queue.broker, queue.id


def _ended(task: asyncio.Task[None]) -> None:
    """A puller ended unexpectedly: its queue is acquired again once its pull has expired."""
    if not task.cancelled() and task.exception() is not None:
        error = task.exception()
        if not isinstance(error, Closed):
            _log.error("a puller ended", exc_info=error)
