"""Reads messages in the name of a group: one after the other, or by listeners.

    async with Consumer("127.0.0.1:9876", group="billing", topics={"orders": "paid"}) as consumer:
        async for message in consumer:
            …

Asking for the next message acknowledges the one before it. A block that is left by an exception, a
`break` or a cancellation does not: that message comes again. docs/internals/consumer.md says when.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from rockgate.sdk.client import shared_clients
from rockgate.sdk.client.client import Client, addresses_of
from rockgate.sdk.consumer.delivery.concurrent import ConcurrentDispatch, Listener
from rockgate.sdk.consumer.delivery.inbox import Inbox
from rockgate.sdk.consumer.delivery.orderly import OrderlyDispatch, verdict_of
from rockgate.sdk.consumer.delivery.retry_topic import RetryTopic
from rockgate.sdk.consumer.holding import Dispatch
from rockgate.sdk.consumer.member import Member, OnQueues
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.consumer.subscription import Subscription, by_sql, by_tags
from rockgate.sdk.errors import Closed
from rockgate.sdk.message import check_group
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

CLOSE_S: Final = 5.0
BROADCASTING_INSTANCE: Final = "DEFAULT"
"""The same at every start, so that a broadcasting group finds its offsets again."""

_log: Final = logging.getLogger(__name__)

OnMessage = Callable[[Received], Awaitable[None]]
"""Consumes one message: it is acknowledged when this returns, and comes again if this raises."""


class Consumer:
    """One member of a group. Consumers and producers of the same name servers share one client."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        topics: Mapping[str, str] | Sequence[str] = (),
        settings: ConsumerSettings | None = None,
        instance: str | None = None,
        client: Client | None = None,
        on_assigned: OnQueues | None = None,
        on_revoked: OnQueues | None = None,
    ) -> None:
        """`topics` by name, each with its tags (`"TagA || TagB"`, `"*"`), or their names alone.

        `on_assigned` and `on_revoked` are told of queues that are consumed here, or no more.
        """
        check_group(group)
        if client is not None and name_servers:
            raise ValueError("Give name servers or a client, not both.")
        if client is None:
            addresses_of(name_servers)
        elif instance is not None:
            raise ValueError("Set `instance` on the client, not on a consumer that shares it.")
        self.group = group
        self._settings = settings or ConsumerSettings()
        self._name_servers = name_servers
        self._instance = instance
        if instance is None and self._settings.model is Model.BROADCASTING:
            self._instance = BROADCASTING_INSTANCE
        self._given = client
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._subscriptions: dict[str, Subscription] = {}
        self._listeners: dict[str, OnMessage] = {}
        wanted = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
        for topic, expression in wanted.items():
            self._subscriptions[topic] = by_tags(topic, expression)
        self._client: Client | None = None
        self._member: Member | None = None
        self._workers: ConcurrentDispatch | OrderlyDispatch | None = None
        self._inbox = Inbox()
        self._unsettled: Received | None = None
        self._was_opened = False

    def on(
        self, topic: str, tags: str = "*", *, sql: str | None = None
    ) -> Callable[[OnMessage], OnMessage]:
        """Have messages of a topic consumed by a function."""
        if self._was_opened:
            raise Closed("Listeners are registered before the consumer is opened.")
        subscription = by_tags(topic, tags) if sql is None else by_sql(topic, sql)

        def register(listener: OnMessage) -> OnMessage:
            self._subscriptions[topic] = subscription
            self._listeners[topic] = listener
            return listener

        return register

    # Life

    async def open(self) -> Self:
        """Join the group and begin to pull; a consumer is opened once."""
        if self._was_opened:
            raise Closed("The consumer is already open; a consumer can be opened only once.")
        if not self._subscriptions:
            raise ValueError("The consumer subscribes to no topics.")
        if not self._settings.auto_commit and not (self._settings.is_orderly and self._listeners):
            raise ValueError("Manual commit is for listeners of an orderly consumer.")
        if self._listeners and len(self._listeners) < len(self._subscriptions):
            missing = sorted(self._subscriptions.keys() - self._listeners.keys())
            raise ValueError(f"Topics without a listener: {', '.join(missing)}.")
        self._was_opened = True
        client = self._given or await shared_clients.acquire(self._name_servers, self._instance)
        try:
            member = self._member_over(client)
            if self._workers is not None:
                self._workers.start()
            await member.start()
        except BaseException:
            if self._workers is not None:
                await self._workers.close(0.0)
            if self._given is None and shared_clients.release(client):
                client.abort()
            raise
        self._client, self._member = client, member
        return self

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        """Pull no more, wait for listeners so long at most, commit, and leave the group.

        What was not finished by then comes again. A close that is cancelled waits for nothing.
        """
        client, member = self._client, self._member
        if client is None or member is None:
            return
        self._client = self._member = None
        self._inbox.close()
        try:
            await member.stop_pulling()
            if self._workers is not None:
                left_count = await self._workers.close(timeout_s)
                if left_count:
                    _log.warning("closed with %d listeners running", left_count)
            await member.leave()
        except BaseException:
            if self._given is None and shared_clients.release(client):
                client.abort()
            raise
        if self._given is None and shared_clients.release(client):
            await client.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def queues(self) -> Sequence[Queue]:
        """The queues that this member reads now, those of its group's retry topic included."""
        return () if self._member is None else self._member.queues

    # Reading

    def __aiter__(self) -> AsyncIterator[Received]:
        if self._listeners:
            raise ValueError("A consumer with listeners cannot be iterated over.")
        return self

    async def __anext__(self) -> Received:
        """The next message; the one before it is acknowledged by that."""
        if self._unsettled is not None:
            before, self._unsettled = self._unsettled, None
            await before.ack()
        message = await self._inbox.get()
        self._unsettled = message
        return message

    # While it runs

    async def subscribe(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        listener: OnMessage | None = None,
    ) -> None:
        """Consume another topic from now on, or other messages of one."""
        member = self._running
        if bool(self._listeners) is (listener is None and topic not in self._listeners):
            raise ValueError("A listener is needed where others are, and only there.")
        subscription = by_tags(topic, tags) if sql is None else by_sql(topic, sql)
        if listener is not None:
            self._listeners[topic] = listener
        await member.subscribe(subscription)
        self._subscriptions[topic] = subscription

    async def unsubscribe(self, topic: str) -> None:
        """Consume a topic no more; its listener stays, for what is still on its way."""
        await self._running.unsubscribe(topic)
        self._subscriptions.pop(topic, None)

    def pause(self, *topics: str) -> None:
        """Pull no more of these topics, or of all; what was pulled is still delivered."""
        self._running.pause(topics or None)

    def resume(self, *topics: str) -> None:
        """Pull these topics again, or all."""
        self._running.resume(topics or None)

    # Private

    @property
    def _running(self) -> Member:
        if self._member is None:
            raise Closed("The consumer is not open. Use `async with` or `await consumer.open()`.")
        return self._member

    def _member_over(self, client: Client) -> Member:
        subscriptions = list(self._subscriptions.values())
        resend = RetryTopic(client, self.group).send
        dispatch: Dispatch
        if self._settings.is_orderly:
            listener = verdict_of(self._listener()) if self._listeners else self._inbox
            dispatch = self._workers = OrderlyDispatch(listener, self._settings)
        elif self._listeners:
            dispatch = self._workers = ConcurrentDispatch(self._listener(), self._settings)
        else:
            dispatch = self._inbox
        return Member(
            client,
            self.group,
            subscriptions,
            self._settings,
            dispatch,
            resend,
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            direct=self._listener() if self._listeners else None,
        )

    def _listener(self) -> Listener:
        listeners = self._listeners

        async def consume(messages: Sequence[Received]) -> int | None:
            for done_count, message in enumerate(messages):
                try:
                    await listeners[message.topic](message)
                except Exception:
                    if not done_count:
                        raise
                    _log.exception("listener failed for %s", message)
                    return done_count
            return None

        return consume
