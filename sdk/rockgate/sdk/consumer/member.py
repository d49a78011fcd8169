"""One member of a group: which queues it is to consume, and its periodic work.

    rebalance    every 20 s, when a broker says that members have changed, and at once at the start
    persist      offsets, every 5 s
    renew        locks of an orderly member, every 20 s
    expire       messages whose listeners hang, every minute

docs/internals/consumer.md has the states of a queue and of a message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Final

from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.command import Command
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.connection import Link
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.delivery.expiry import send_back_hanging
from rockgate.sdk.consumer.delivery.settlement import Resend, SettleContext, SettleCounts
from rockgate.sdk.consumer.holding import Dispatch, Holding, HoldingContext
from rockgate.sdk.consumer.offsets.store import offset_store
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.pauses import Pauses
from rockgate.sdk.consumer.queues.puller import PullCounts
from rockgate.sdk.consumer.queues.rounds import Rounds, connect, over_topics, share_of
from rockgate.sdk.consumer.server_requests import AskedMember, Direct, ServerRequests
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.consumer.subscription import SQL92, Subscription, by_tags
from rockgate.sdk.errors import Closed
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.namespaces import unwrap_queue
from rockgate.sdk.observe.statistics import Statistics
from rockgate.sdk.results import Queue

EXPIRE_S: Final = 60.0

_log: Final = logging.getLogger(__name__)

OnQueues = Callable[[Sequence[Queue]], Awaitable[None] | None]
"""Called with the queues that this member starts, or stops, consuming."""


class Member:
    """A client's membership of one group."""

    def __init__(
        self,
        client: Client,
        group: str,
        subscriptions: Sequence[Subscription],
        settings: ConsumerSettings,
        dispatch: Dispatch,
        resend: Resend,
        *,
        namespace: str = "",
        statistics: Statistics | None = None,
        on_assigned: OnQueues | None = None,
        on_revoked: OnQueues | None = None,
        direct: Direct | None = None,
        hooks: Sequence[ConsumeHook] = (),
        pauses: Pauses | None = None,
    ) -> None:
        self._client = client
        self._group = group
        self.settings = settings
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._subscriptions = {each.topic: each for each in subscriptions}
        if settings.model is Model.CLUSTERING:
            retry = by_tags(f"{RETRY_PREFIX}{group}")
            self._subscriptions[retry.topic] = retry
        self._version = self._pull_version = client.now_ms()
        self._calls = BrokerCalls(client, group, namespace)
        self.pauses = pauses or Pauses()
        self._rounds = Rounds(group, settings.rebalance_s)
        self._tasks: list[asyncio.Task[None]] = []
        self.offsets = OffsetTable()
        self.pull_counts = PullCounts(statistics=statistics or Statistics())
        self.settle_counts = SettleCounts()
        self._store = offset_store(self._calls, client.id, settings)
        self.holding = Holding(
            HoldingContext(
                calls=self._calls,
                settings=settings,
                store=self._store,
                dispatch=dispatch,
                settling=SettleContext(
                    calls=self._calls,
                    settings=settings,
                    offsets=self.offsets,
                    counts=self.settle_counts,
                    resend=resend,
                ),
                pull_counts=self.pull_counts,
                subscription=self._subscription,
                is_paused=self.pauses.is_paused,
                announce=client.announce,
                changed=self._rounds.wake,
                hooks=hooks,
            )
        )
        self._requests = ServerRequests(
            AskedMember(
                settings=settings,
                queues=self.holding,
                data=self.data,
                wake=self._rounds.wake,
                statistics=self.pull_counts.statistics.topics,
                started_ms=client.now_ms(),
                now_ms=client.now_ms,
                namespace=namespace,
                name_servers=client.name_servers.addresses,
                direct=direct,
            )
        )

    # Life

    async def start(self) -> None:
        """Join the group. What is subscribed must exist, and be understood by its brokers."""
        await self._store.load()
        for subscription in self._subscriptions.values():
            await self._check(subscription)
        self._client.add_consumer(self._group, self)
        try:
            await self._client.announce()
            is_complete = await self.rebalance()
        except BaseException:
            self._client.remove_consumer(self._group)
            await self.stop_pulling()
            raise
        settings = self.settings
        expire_s = min(EXPIRE_S, settings.consume_timeout_s)
        rounds: list[Awaitable[None]] = [
            self._rounds.run(self.rebalance, is_complete=is_complete),
            self._every(settings.persist_s, self.holding.persist),
        ]
        if self.holding.is_locking:
            rounds.append(self._every(settings.lock_renew_s, self.holding.renew_locks))
        if not settings.is_orderly:
            rounds.append(self._every(expire_s, self.expire))
        self._tasks = [asyncio.ensure_future(each) for each in rounds]

    async def stop_pulling(self) -> None:
        """Acquire no further queues."""
        await self._requests.close()
        tasks = [*self._tasks, *(held.task for held in self.holding.held.values())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def leave(self) -> None:
        """Commit offsets and unregister, so that other members resume from there at once."""
        queues = list(self.holding.assignment)
        try:
            await self.holding.leave()
        finally:
            self._client.remove_consumer(self._group)
        await self._notify(self._on_revoked, queues)

    # What is consumed

    @property
    def queues(self) -> list[Queue]:
        """The queues that are consumed here now."""
        return sorted(self.holding.held)

    async def queues_of(self, topic: str) -> list[Queue]:
        """All queues of a topic, whoever consumes them."""
        return self._named(sorted((await self._client.routes.readable(topic)).readable))

    async def subscribe(self, subscription: Subscription) -> None:
        """Consume a topic from now on, or others of its messages."""
        await self._check(subscription)
        self._subscriptions[subscription.topic] = subscription
        await self._announce()
        self._rounds.wake()

    async def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic. Its queues are released in a round that begins at once."""
        if self._subscriptions.pop(topic, None) is not None:
            await self._announce()
            self._rounds.wake()

    def resumed(self) -> None:
        """Pull paused topics again, after a round that begins at once."""
        self._rounds.wake()

    # Heartbeats and brokers' requests

    def data(self) -> ConsumerData:
        """The subscriptions for heartbeats."""
        data = self.settings.data(self._group)
        data.subscription_data_set = [
            each.data(self._version) for each in self._subscriptions.values()
        ]
        return data

    def route_changed(self, topic: str) -> None:
        """The queues of a topic have changed: rebalance at once if it is consumed here."""
        if topic in self._subscriptions:
            self._rounds.wake()

    def asked(self, link: Link, command: Command) -> None:
        """Handle a broker's request."""
        self._requests.asked(link, command)

    # Rebalance

    async def rebalance(self) -> bool:
        """One round; whether everything could be done."""
        if self.pauses.is_all:
            return True
        topics = list(self._subscriptions)
        before = set(self.holding.assignment)
        is_complete = await over_topics(self._group, topics, self._rebalance_topic)
        is_complete &= await self._release(
            self.holding.assignment.truncate(self._subscriptions.keys())
        )
        changed = {queue.topic for queue in before ^ set(self.holding.assignment)}
        for topic in changed:
            self.holding.divide_limits(topic)
        if changed:
            await self._announce()
        return is_complete

    async def _rebalance_topic(self, topic: str) -> bool:
        is_shared = self.settings.model is Model.CLUSTERING
        allocation = self.settings.allocation if is_shared else None
        share = await share_of(self._client, self._calls, self._group, topic, allocation)
        if share is None:
            return False
        assignment = self.holding.assignment
        now_s = asyncio.get_running_loop().time()
        is_released = await self._release(assignment.release(topic, share.mine, now_s))
        missing = assignment.missing(share.mine)
        taken = await self.holding.take_up(missing)
        await self._notify(self._on_assigned, taken)
        if taken:
            _log.info(
                "group %s consumes %d of %d queues of %s",
                self._group,
                sum(queue.topic == topic for queue in assignment),
                len(share.queues),
                topic,
            )
        return is_released and len(taken) == len(missing)

    async def _release(self, dropped: Sequence[Queue]) -> bool:
        """Release dropped queues; whether all of them could be."""
        released = [queue for queue in dropped if await self.holding.release(queue)]
        await self._notify(self._on_revoked, released)
        return len(released) == len(dropped)

    async def _check(self, subscription: Subscription) -> None:
        if subscription.topic.startswith(RETRY_PREFIX):
            return
        await connect(self._client, subscription.topic)
        if subscription.kind == SQL92:
            await self._calls.check(subscription)

    async def _announce(self) -> None:
        """Subscriptions have changed: send brokers a later version than they have."""
        version = self._version = max(self._client.now_ms(), self._version + 1)
        await self._client.announce()
        # A broker that has not heard of a version refuses pulls that carry it.
        self._pull_version = version

    # Periodically

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except Closed:
                return

    async def expire(self) -> None:
        """Send back messages whose listeners hang."""
        for held in list(self.holding.held.values()):
            now_s = asyncio.get_running_loop().time()
            timeout_s = self.settings.consume_timeout_s
            await send_back_hanging(held.cached, held.settlement, now_s, timeout_s)

    # Private

    def _subscription(self, topic: str) -> tuple[Subscription, int] | None:
        found = self._subscriptions.get(topic)
        return None if found is None else (found, self._pull_version)

    async def _notify(self, callback: OnQueues | None, queues: Sequence[Queue]) -> None:
        if callback is None or not queues:
            return
        try:
            result = callback(self._named(queues))
            if isawaitable(result):
                await result
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("callback for %d queues failed", len(queues))

    def _named(self, queues: Iterable[Queue]) -> list[Queue]:
        """Queues as the application knows them."""
        return [unwrap_queue(self._calls.namespace, queue) for queue in queues]
