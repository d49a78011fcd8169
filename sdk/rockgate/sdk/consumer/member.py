"""One member of a group: its queues, their pullers, and what has to be done now and then.

    rebalance    every 20 s, when a broker says that members have changed, and at once at the start
    persist      offsets, every 5 s
    expire       messages whose listeners hang, every minute

docs/internals/consumer.md has the states of a queue and of a message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.connection import Link
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.delivery.settlement import (
    QueueSettlement,
    Resend,
    SettleContext,
    SettleCounts,
)
from rockgate.sdk.consumer.offsets.commits import commit_all
from rockgate.sdk.consumer.offsets.first import first_offset
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.assignment import Assignment
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.queues.puller import PullContext, PullCounts, Puller
from rockgate.sdk.consumer.queues.rounds import Rounds, connect, over_topics, share_of
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.consumer.subscription import SQL92, Subscription, by_tags
from rockgate.sdk.errors import Closed
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

EXPIRE_S: Final = 60.0

_log: Final = logging.getLogger(__name__)


class Dispatch(Protocol):
    """Who has messages consumed."""

    def submit(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        messages: Sequence[Received],
    ) -> None:
        """Have messages of one queue consumed."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A queue that is consumed here."""

    cached: ProcessQueue[Received]
    settlement: QueueSettlement
    puller: Puller
    task: asyncio.Task[None]


class Member:
    """A client's part in one group."""

    def __init__(
        self,
        client: Client,
        group: str,
        subscriptions: Sequence[Subscription],
        settings: ConsumerSettings,
        dispatch: Dispatch,
        resend: Resend,
    ) -> None:
        self._client = client
        self._group = group
        self.settings = settings
        self._dispatch = dispatch
        self._subscriptions = {each.topic: each for each in subscriptions}
        if settings.model is Model.CLUSTERING:
            retry = by_tags(f"{RETRY_PREFIX}{group}")
            self._subscriptions[retry.topic] = retry
        self._version = client.now_ms()
        self._calls = BrokerCalls(client, group)
        self._assignment: Assignment[Received] = Assignment()
        self._held: dict[Queue, _Held] = {}
        self._paused: set[str] = set()
        self._rounds = Rounds(group, settings.rebalance_s)
        self._tasks: list[asyncio.Task[None]] = []
        self.offsets = OffsetTable()
        self.pull_counts = PullCounts()
        self.settle_counts = SettleCounts()
        self._pulling = PullContext(
            calls=self._calls,
            settings=settings,
            offsets=self.offsets,
            counts=self.pull_counts,
            subscription=self._subscription,
            is_paused=self._paused.__contains__,
            hand_over=self._hand_over,
            announce=client.announce,
            offset_illegal=self._offset_illegal,
        )
        self._settling = SettleContext(
            calls=self._calls,
            settings=settings,
            offsets=self.offsets,
            counts=self.settle_counts,
            resend=resend,
        )

    # Life

    async def start(self) -> None:
        """Join the group. What is subscribed must exist, and be understood by its brokers."""
        for subscription in self._subscriptions.values():
            if subscription.topic.startswith(RETRY_PREFIX):
                continue
            await connect(self._client, subscription.topic)
            if subscription.kind == SQL92:
                await self._calls.check(subscription)
        self._client.add_consumer(self._group, self)
        try:
            await self._client.announce()
            is_complete = await self.rebalance()
        except BaseException:
            self._client.remove_consumer(self._group)
            raise
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._rounds.run(self.rebalance, is_complete=is_complete)),
            loop.create_task(self._persisting()),
        ]

    async def stop_pulling(self) -> None:
        """Take nothing up any more."""
        tasks = [*self._tasks, *(held.task for held in self._held.values())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def leave(self) -> None:
        """Say how far the group is and take leave, so that others go on from there at once."""
        try:
            await self.persist(is_awaited=True)
            if self.settings.is_orderly:
                await self._calls.unlock(self._assignment)
        finally:
            for queue in list(self._assignment):
                self._assignment.drop(queue)
            self._client.remove_consumer(self._group)

    @property
    def queues(self) -> list[Queue]:
        """The queues that are consumed here now."""
        return sorted(self._held)

    # What brokers see and ask

    def data(self) -> ConsumerData:
        """What is consumed here, as a heartbeat says it."""
        data = self.settings.data(self._group)
        data.subscription_data_set = [
            each.data(self._version) for each in self._subscriptions.values()
        ]
        return data

    def asked(self, link: Link, command: Command) -> None:
        """Take a request of a broker's."""
        if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self._rounds.wake()
        elif not command.is_oneway:
            unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            remark = f"request code {command.code} is not supported"
            link.respond(command, Command(unknown, remark=remark))

    # Rebalance

    async def rebalance(self) -> bool:
        """One round; whether everything could be done."""
        is_complete = await over_topics(
            self._group, list(self._subscriptions), self._rebalance_topic
        )
        for queue in self._assignment.truncate(self._subscriptions.keys()):
            await self._release(queue)
        return is_complete

    async def _rebalance_topic(self, topic: str) -> bool:
        is_shared = self.settings.model is Model.CLUSTERING
        allocation = self.settings.allocation if is_shared else None
        share = await share_of(self._client, self._calls, self._group, topic, allocation)
        if share is None:
            return False
        queues, wanted = share.queues, share.mine
        now_s = asyncio.get_running_loop().time()
        before = set(self._assignment)
        for queue in self._assignment.release(topic, wanted, now_s):
            await self._release(queue)
        missing = self._assignment.missing(wanted)
        locked = set(missing)
        if missing and self.settings.is_orderly and self.settings.model is Model.CLUSTERING:
            locked = await self._calls.lock(missing)
        for queue in missing:
            if queue in locked:
                await self._take_up(queue)
        if set(self._assignment) != before:
            _log.info(
                "group %s consumes %d of %d queues of %s",
                self._group,
                len([queue for queue in self._assignment if queue.topic == topic]),
                len(queues),
                topic,
            )
        return locked.issuperset(missing)

    async def _take_up(self, queue: Queue) -> None:
        offset = await first_offset(self._calls, queue, self.settings.start)
        cached = self._assignment.acquire(queue, asyncio.get_running_loop().time())
        if self.settings.is_orderly:
            cached.locked_at_s = asyncio.get_running_loop().time()
        settlement = QueueSettlement(
            self._settling, queue, cached, lambda: self._made_room(queue, cached)
        )
        puller = Puller(self._pulling, queue, cached, offset, settlement)
        task = asyncio.get_running_loop().create_task(puller.run())
        task.add_done_callback(_ended)
        self._held[queue] = _Held(cached, settlement, puller, task)

    async def _release(self, queue: Queue) -> None:
        """Commit how far a dropped queue is, and give it up."""
        held = self._held.get(queue)
        if held is not None and held.task is not asyncio.current_task():
            held.task.cancel()
        for each, offset in self.offsets.unpersisted([queue]).items():
            await self._calls.commit(each, offset)
        if self.settings.is_orderly:
            await self._calls.unlock([queue])
        self.offsets.remove(queue)
        self._held.pop(queue, None)
        self._assignment.released(queue)

    async def _offset_illegal(self, queue: Queue, offset: int) -> None:
        """A broker has another idea of a queue: begin again where it says."""
        self._assignment.drop(queue)
        self.offsets.update(queue, offset, increase_only=False)
        await self._release(queue)
        self._rounds.wake()

    # Now and then

    async def _persisting(self) -> None:
        while True:
            await asyncio.sleep(self.settings.persist_s)
            try:
                await self.persist()
            except Closed:
                return

    async def persist(self, *, is_awaited: bool = False) -> None:
        """Tell brokers how far the group is; one that cannot be told is told next time.

        What is not awaited may be lost with its connection; the next pull says it again.
        """
        await commit_all(self._calls, self.offsets, is_awaited=is_awaited)

    # Private

    def _subscription(self, topic: str) -> tuple[Subscription, int] | None:
        found = self._subscriptions.get(topic)
        return None if found is None else (found, self._version)

    def _hand_over(
        self, queue: Queue, cached: ProcessQueue[Received], messages: list[Received]
    ) -> None:
        held = self._held.get(queue)
        if held is not None and held.cached is cached:
            self._dispatch.submit(cached, held.settlement, messages)

    def _made_room(self, queue: Queue, cached: ProcessQueue[Received]) -> None:
        held = self._held.get(queue)
        if held is not None and held.cached is cached:
            held.puller.made_room()


def _ended(task: asyncio.Task[None]) -> None:
    """A puller ended by itself: its queue is taken up anew when nobody has pulled it for long."""
    if not task.cancelled() and task.exception() is not None:
        error = task.exception()
        if not isinstance(error, Closed):
            _log.error("a puller ended", exc_info=error)
