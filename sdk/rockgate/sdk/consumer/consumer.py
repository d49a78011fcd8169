"""Consumes messages as a member of a group: by iteration, or by listeners.

    async with Consumer("127.0.0.1:9876", group="billing", topics={"orders": "paid"}) as consumer:
        async for message in consumer:
            …

Requesting the next message acknowledges the one before it. Leaving the block by an exception, a
`break` or a cancellation does not: that message is redelivered, as docs/internals/consumer.md says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

from rockgate.sdk.client.client import Client
from rockgate.sdk.client.consumers import GroupTaken
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.consumer.delivery.concurrent import ConcurrentDispatch
from rockgate.sdk.consumer.delivery.inbox import Inbox
from rockgate.sdk.consumer.delivery.listeners import Listeners, OnMessage, OnMessages
from rockgate.sdk.consumer.delivery.observed import Call, Observed
from rockgate.sdk.consumer.delivery.orderly import OrderlyDispatch, verdict_of
from rockgate.sdk.consumer.delivery.retry_topic import RetryTopic
from rockgate.sdk.consumer.holding import Dispatch
from rockgate.sdk.consumer.life import Life, State
from rockgate.sdk.consumer.member import Member, OnQueues
from rockgate.sdk.consumer.observation import Observation
from rockgate.sdk.consumer.queues.pauses import Pauses
from rockgate.sdk.consumer.settings import ConsumerSettings, instance_of
from rockgate.sdk.consumer.signals import setting
from rockgate.sdk.consumer.subscription import Subscription, by_tags, wanted
from rockgate.sdk.credentials import Credentials, Tls
from rockgate.sdk.errors import Closed
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.message import check_group
from rockgate.sdk.namespaces import unwrap_queue, wrap
from rockgate.sdk.observe.statistics import ConsumerStatistics
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

CLOSE_S: Final = 5.0

_log: Final = logging.getLogger(__name__)

L = TypeVar("L", bound=OnMessage)
B = TypeVar("B", bound=OnMessages)


class Consumer:
    """One member of a group. Consumers and producers of the same name servers share one client."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        topics: Mapping[str, str] | Sequence[str] = (),
        settings: ConsumerSettings | None = None,
        namespace: str = "",
        instance: str | None = None,
        client: Client | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        on_assigned: OnQueues | None = None,
        on_revoked: OnQueues | None = None,
        hooks: Sequence[ConsumeHook] = (),
        tracer_provider: TracerProvider | None = None,
        trace: bool | str = False,
    ) -> None:
        """`topics` by name, each with its tags (`"TagA || TagB"`, `"*"`), or their names alone.

        `on_assigned` and `on_revoked` are notified of queues that this member gets and loses.
        `namespace`, `hooks`, `tracer_provider` and `trace` are as a producer has them.
        """
        check_group(group)
        if namespace:
            check_group(namespace)
        self.group = group
        self._settings = settings or ConsumerSettings()
        if client is None:
            instance = instance_of(self._settings.model, instance)
        self._lease = Lease(
            name_servers, instance=instance, client=client, credentials=credentials, tls=tls
        )
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._namespace = namespace
        self._observation = Observation(
            group, namespace=namespace, hooks=hooks, tracer_provider=tracer_provider, trace=trace
        )
        self._observed = Observed(group)
        self._subscriptions: dict[str, Subscription] = {}
        """By the topic as the application knows it; each names it as it travels."""
        self._listeners = Listeners(workers=self._settings.workers)
        given = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
        for topic, expression in given.items():
            self._subscriptions[topic] = by_tags(wrap(namespace, topic), expression)
        self._member: Member | None = None
        self._workers: ConcurrentDispatch | OrderlyDispatch | None = None
        self._inbox = Inbox()
        self._unsettled: tuple[Received, Call] | None = None
        self._life = Life()
        self._pauses = Pauses()
        self._may_end = asyncio.Event()
        """Set when it is closed, or a signal asks for that."""

    @overload
    def on(self, topic: str, tags: str = "*", *, sql: str | None = None) -> Callable[[L], L]: ...

    @overload
    def on(
        self, topic: str, tags: str = "*", *, sql: str | None = None, batch: int
    ) -> Callable[[B], B]: ...

    def on(
        self, topic: str, tags: str = "*", *, sql: str | None = None, batch: int | None = None
    ) -> Callable[[Any], Any]:
        """Have messages of a topic consumed by a function; with `batch`, up to that many at once.

        A coroutine function runs on the loop, any other in one of `workers` threads. What it
        returns and raises says what becomes of the messages (docs/reference/sdk.md, "Listeners").
        """
        if self._life.state is not State.CREATED:
            raise Closed("Listeners are registered before the consumer is opened.")
        subscription = wanted(wrap(self._namespace, topic), tags, sql)

        def register(listener: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self._listeners.add(topic, listener, batch)
            self._subscriptions[topic] = subscription
            return listener

        return register

    @property
    def statistics(self) -> ConsumerStatistics:
        """Its current state: rates over the last minute, cached messages, and lag."""
        if self._member is None:
            return self._observation.figures()
        return self._observation.figures(self._member.holding.assignment, self._member.pull_counts)

    # Life

    async def open(self) -> Self:
        """Join the group and begin to pull; a consumer is opened once."""
        if self._life.state is State.CREATED:
            self._check()
        with self._life.opening(may_retry=GroupTaken):
            await self._join()
        return self

    def _check(self) -> None:
        if not self._subscriptions:
            raise ValueError("The consumer subscribes to no topics.")
        if not self._settings.auto_commit and not (self._settings.is_orderly and self._listeners):
            raise ValueError("Manual commit is for listeners of an orderly consumer.")
        self._listeners.check(self._subscriptions)

    async def _join(self) -> None:
        client = await self._lease.open()
        try:
            self._observed = self._observation.over(client, self._settings.consume_timeout_s)
            member = self._member_over(client)
            if self._workers is not None:
                self._workers.start()
            await member.start()
        except BaseException:
            if self._workers is not None:
                await self._workers.close(0.0)
            self._observation.cancel()
            self._lease.abort()
            raise
        self._member = member

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        """Stop pulling, wait for listeners up to the time-out, commit, and leave the group.

        What was not finished by then is redelivered. A close that is cancelled waits for nothing.
        """
        await self._life.settled()
        member = self._member
        if member is None:
            return
        self._member = None
        self._life.turn(State.CLOSING)
        self._inbox.close()
        until_s = asyncio.get_running_loop().time() + timeout_s
        try:
            await member.stop_pulling()
            if self._workers is not None:
                left_count = await self._workers.close(timeout_s)
                if left_count:
                    _log.warning("closed with %d listeners running", left_count)
            self._end_call()
            await member.leave()
            left_s = until_s - asyncio.get_running_loop().time()
            await self._observation.close(max(left_s, 0.0))
        except BaseException:
            self._observation.cancel()
            self._lease.abort()
            raise
        else:
            await self._lease.close()
        finally:
            self._listeners.close()
            self._life.turn(State.CLOSED)
            self._may_end.set()

    async def run(self) -> None:
        """Open, have listeners consume until SIGINT or SIGTERM comes, and close.

        Nothing else installs signal handlers; the previous ones are restored when this returns. It
        also ends when the consumer is closed. A second signal waits for nothing.
        """
        self.check_listeners()
        with setting(self._may_end):
            async with self:
                await self._may_end.wait()

    def check_listeners(self) -> None:
        """ValueError if there are none: what is pulled would never be consumed."""
        if not self._listeners:
            raise ValueError("run() needs listeners; register them with on().")

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
        if self._member is None:
            return ()
        return [unwrap_queue(self._namespace, queue) for queue in self._member.queues]

    async def queues_of(self, topic: str) -> list[Queue]:
        """All queues of a topic that may be read, whoever reads them."""
        return await self._running.queues_of(wrap(self._namespace, topic))

    # Reading

    def __aiter__(self) -> AsyncIterator[Received]:
        if self._listeners:
            raise ValueError("A consumer with listeners cannot be iterated over.")
        return self

    async def __anext__(self) -> Received:
        """The next message; the one before it is acknowledged by that."""
        if self._unsettled is not None:
            await self._unsettled[0].ack()
            self._end_call()
        message = await self._inbox.get()
        self._unsettled = message, self._observed.call([message], is_iterated=True).__enter__()
        return message

    # While it runs

    @overload
    async def subscribe(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        listener: OnMessage | None = None,
    ) -> None: ...

    @overload
    async def subscribe(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        listener: OnMessages,
        batch: int,
    ) -> None: ...

    async def subscribe(
        self,
        topic: str,
        tags: str = "*",
        *,
        sql: str | None = None,
        listener: Callable[[Any], Any] | None = None,
        batch: int | None = None,
    ) -> None:
        """Consume another topic from now on, or other messages of one; from `open` on before it.

        `batch` is as `on` has it. What was pulled before may still come by the former expression.
        """
        await self._life.settled()
        self._life.check_alive()
        has_listener = listener is not None or topic in self._listeners
        if self._member is not None and bool(self._listeners) is not has_listener:
            raise ValueError("A listener is needed where others are, and only there.")
        subscription = wanted(wrap(self._namespace, topic), tags, sql)
        if listener is None and batch is not None:
            raise ValueError("Without a listener there is nothing to give a batch to.")
        if listener is not None:
            self._listeners.add(topic, listener, batch)
            if isinstance(self._workers, OrderlyDispatch):
                self._workers.take_up_to(max(self._settings.batch_max, self._listeners.batch_max))
        if self._member is not None:
            await self._member.subscribe(subscription)
        self._subscriptions[topic] = subscription

    async def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; its listener stays for messages that are already pulled."""
        await self._life.settled()
        self._life.check_alive()
        if self._member is not None:
            await self._member.unsubscribe(wrap(self._namespace, topic))
        self._subscriptions.pop(topic, None)

    def pause(self, *topics: str) -> None:
        """Stop pulling these topics, or all; what was pulled is still delivered."""
        self._life.check_alive()
        self._pauses.pause(self._wire(topics))

    def resume(self, *topics: str) -> None:
        """Pull these topics again, or all."""
        self._life.check_alive()
        self._pauses.resume(self._wire(topics))
        if self._member is not None:
            self._member.resumed()

    def resize(self, workers: int) -> None:
        """Set how many listeners run at once; those that run are not interrupted."""
        self._life.check_alive()
        self._settings = replace(self._settings, workers=workers)
        self._listeners.resize(workers)
        if self._workers is not None:
            self._workers.resize(workers)

    # Private

    @property
    def _running(self) -> Member:
        if self._member is None:
            raise Closed("The consumer is not open. Use `async with` or `await consumer.open()`.")
        return self._member

    def _member_over(self, client: Client) -> Member:
        subscriptions = list(self._subscriptions.values())
        group = wrap(self._namespace, self.group)
        resend = RetryTopic(client, group).send
        batch_max = max(self._settings.batch_max, self._listeners.batch_max)
        settings = replace(self._settings, batch_max=batch_max)
        dispatch: Dispatch
        if settings.is_orderly:
            listener = verdict_of(self._consume) if self._listeners else self._inbox
            dispatch = self._workers = OrderlyDispatch(listener, settings)
        elif self._listeners:
            split = self._listeners.split
            dispatch = self._workers = ConcurrentDispatch(self._consume, settings, split)
        else:
            dispatch = self._inbox
        return Member(
            client,
            group,
            subscriptions,
            settings,
            dispatch,
            resend,
            namespace=self._namespace,
            statistics=self._observation.statistics,
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            direct=self._consume if self._listeners else None,
            hooks=self._observation.hooks,
            pauses=self._pauses,
        )

    async def _consume(self, messages: Sequence[Received]) -> int | None:
        return await self._listeners.consume(messages, self._observed)

    def _end_call(self) -> None:
        """The application is done with a message, or never will be."""
        if self._unsettled is not None:
            (message, call), self._unsettled = self._unsettled, None
            call.done = int(message.was_settled and not message.was_retried)
            call.end()

    def _wire(self, topics: Sequence[str]) -> list[str]:
        return [wrap(self._namespace, topic) for topic in topics]
