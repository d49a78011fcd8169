"""Reads in batches that the application asks for: subscribed and balanced, or queues by hand.

    async with LitePullConsumer("127.0.0.1:9876", group="etl", topics=["orders"]) as consumer:
        while messages := await consumer.poll(timeout_s=10):
            …

Polling for the next batch acknowledges the one before it: automatic commits commit no more than
that. With `auto_commit=False` only `commit` commits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rockgate.sdk.client.client import Client
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.consumer.observation import Observation
from rockgate.sdk.consumer.pull.lite_member import LiteMember, lite_member
from rockgate.sdk.consumer.pull.lite_queues import LiteCalls
from rockgate.sdk.consumer.pull.lite_settings import LitePullSettings
from rockgate.sdk.consumer.pull.pull_consumer import OnQueues, ms_of
from rockgate.sdk.consumer.queues.rounds import Share
from rockgate.sdk.consumer.settings import instance_of
from rockgate.sdk.consumer.subscription import Subscription, by_sql, by_tags
from rockgate.sdk.credentials import Credentials, Tls
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.message import check_group
from rockgate.sdk.namespaces import unwrap, unwrap_queue, wrap, wrap_queue
from rockgate.sdk.observe.statistics import ConsumerStatistics
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

CLOSE_S: Final = 5.0
POLL_S: Final = 5.0
POLL_COUNT: Final = 10
POLL_COUNT_MAX: Final = 1024

_log: Final = logging.getLogger(__name__)


class LitePullConsumer:
    """A member of a group that polls."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        topics: Mapping[str, str] | Sequence[str] = (),
        on_queues: OnQueues | None = None,
        settings: LitePullSettings | None = None,
        namespace: str = "",
        instance: str | None = None,
        client: Client | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        hooks: Sequence[ConsumeHook] = (),
        tracer_provider: TracerProvider | None = None,
        trace: bool | str = False,
    ) -> None:
        """`topics` as a Consumer has them; `on_queues` hears when queues of one of them change.

        `namespace`, `hooks`, `tracer_provider` and `trace` are as a Consumer has them.
        """
        check_group(group)
        if namespace:
            check_group(namespace)
        self.group = group
        self._settings = settings or LitePullSettings()
        if client is None:
            instance = instance_of(self._settings.model, instance)
        self._lease = Lease(
            name_servers, instance=instance, client=client, credentials=credentials, tls=tls
        )
        self._namespace = namespace
        self._observation = Observation(
            group, namespace=namespace, hooks=hooks, tracer_provider=tracer_provider, trace=trace
        )
        wanted = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
        self._topics = [self._wanted(topic, tags, None) for topic, tags in wanted.items()]
        self._on_queues = on_queues
        self._state: LiteMember | None = None
        self._was_opened = False
        self._assigned: dict[str, Subscription] | None = None
        """Subscriptions to topics whose queues were assigned manually; None while subscribed."""
        self._known: dict[str, Share] = {}
        self._arrived = asyncio.Event()
        self._committed_at_s = 0.0

    # Life

    async def open(self) -> Self:
        """Join the group; a consumer is opened once."""
        if self._was_opened:
            raise Closed("The lite pull consumer is already open; it can be opened only once.")
        self._was_opened = True
        client = await self._lease.open()
        try:
            self._state = state = self._over(client)
            self._committed_at_s = asyncio.get_running_loop().time()
            await state.held.store.load()
            await state.membership.start(self._topics)
        except BaseException:
            if self._state is not None:
                self._state.held.cancel()
            self._state = None
            self._observation.cancel()
            self._lease.abort()
            raise
        return self

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        """Stop pulling, commit what is settled unless commits are manual, and leave the group.

        What is left of RocketMQ's trace is written within the time-out.
        """
        state, self._state = self._state, None
        if state is None:
            return
        self._arrived.set()
        try:
            await state.membership.stop()
            await state.held.stop()
            if self._settings.auto_commit:
                await state.held.store.persist(state.held.offsets, is_awaited=True)
            state.membership.leave()
            state.polled.end(is_done=False)
            await self._observation.close(timeout_s)
        except BaseException:
            state.held.cancel()
            self._observation.cancel()
            self._lease.abort()
            raise
        await self._lease.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # What is read

    async def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Read a topic together with the other members of the group."""
        state = self._open
        if self._assigned is not None:
            raise SdkError("Queues were assigned by hand; a consumer subscribes or is assigned.")
        wanted = self._wanted(topic, tags, sql)
        if sql is not None:
            await state.calls.check(wanted)
        await state.membership.subscribe(wanted)

    async def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic."""
        state = self._open
        topic = wrap(self._namespace, topic)
        await state.membership.unsubscribe(topic)
        self._known.pop(topic, None)
        await state.held.keep(topic, ())

    async def assign(
        self, queues: Sequence[Queue], tags: str = "*", *, sql: str | None = None
    ) -> None:
        """Read exactly these queues, regardless of other members."""
        state = self._open
        if state.membership.topics:
            raise SdkError("Topics are subscribed; a consumer subscribes or is assigned.")
        queues = [self._wire(queue) for queue in queues]
        topics = {queue.topic for queue in queues}
        wanted = {topic: self._wanted(topic, tags, sql) for topic in topics}
        if sql is not None:
            for each in wanted.values():
                await state.calls.check(each)
        self._assigned = wanted
        for topic in sorted(topics | {queue.topic for queue in state.held.queues}):
            await state.held.keep(topic, [queue for queue in queues if queue.topic == topic])

    def assignment(self) -> list[Queue]:
        """The queues that are read here now."""
        return self._seen(self._open.held.queues)

    async def queues(self, topic: str) -> list[Queue]:
        """All queues of a topic that may be read, sorted."""
        routes = self._open.client.routes
        found = (await routes.readable(wrap(self._namespace, topic))).readable
        return sorted(self._seen(found))

    # Reading

    async def poll(
        self, timeout_s: float = POLL_S, *, count_max: int = POLL_COUNT
    ) -> list[Received]:
        """The next messages, `count_max` at most; none if there are none within the time."""
        if timeout_s < 0:
            raise ValueError(f"timeout_s must be at least 0, not {timeout_s:g}.")
        if not 1 <= count_max <= POLL_COUNT_MAX:
            raise ValueError(f"count_max must be 1 to {POLL_COUNT_MAX:,}, not {count_max:,}.")
        state = self._open
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        polls = state.held.polls
        polls.settle()
        state.polled.end(is_done=True)
        await self._commit_when_due(state)
        while True:
            self._arrived.clear()
            found = polls.take(count_max, loop.time())
            if found:
                state.held.made_room()
                state.polled.begin(found)
                return found
            left_s = deadline_s - loop.time()
            if left_s <= 0:
                return []
            try:
                async with asyncio.timeout(left_s):
                    await self._arrived.wait()
            except TimeoutError:
                return []
            if self._state is None:
                raise _closed()

    def pause(self, queues: Sequence[Queue]) -> None:
        """Let polls return nothing of these queues, not even messages already pulled."""
        held = self._open.held
        wire = [self._wire(queue) for queue in queues]
        for queue in wire:
            held.check(queue)
        held.polls.pause(wire)

    def resume(self, queues: Sequence[Queue]) -> None:
        """Let polls return messages of these queues again."""
        self._open.held.polls.resume([self._wire(queue) for queue in queues])
        self._arrived.set()

    @property
    def paused(self) -> list[Queue]:
        """Queues that are paused."""
        return sorted(self._seen(self._open.held.polls.paused))

    @property
    def statistics(self) -> ConsumerStatistics:
        """Its current state: rates over the last minute, cached messages, and lag."""
        state = self._state
        if state is None:
            return self._observation.figures()
        return self._observation.figures(state.held.assignment, state.held.counts)

    # Where

    def position(self, queue: Queue) -> int:
        """Where the next poll continues in a queue."""
        held = self._open.held
        queue = self._wire(queue)
        held.check(queue)
        found = held.polls.positions.get(queue)
        assert found is not None, queue
        return found

    async def seek(self, queue: Queue, offset: int) -> None:
        """Continue at another offset of a queue; what is cached of it is discarded."""
        state = self._open
        queue = self._wire(queue)
        state.held.check(queue)
        first, end = await state.calls.begin(queue), await state.calls.end(queue)
        if not first <= offset <= end:
            raise ValueError(f"Offset must be {first:,} to {end:,}, not {offset:,}.")
        await state.held.seek(queue, offset)

    async def seek_to_begin(self, queue: Queue) -> None:
        """Continue at the first message that a queue still has."""
        await self.seek(queue, await self._open.calls.begin(self._wire(queue)))

    async def seek_to_end(self, queue: Queue) -> None:
        """Continue behind the last message of a queue."""
        await self.seek(queue, await self._open.calls.end(self._wire(queue)))

    async def offset_for_time(self, queue: Queue, at: datetime) -> int:
        """The offset of the first message that was stored at this time or later."""
        return await self._open.calls.search(self._wire(queue), ms_of(at))

    async def committed(self, queue: Queue) -> int | None:
        """How far the group is, as the broker or the file has it; None if that is not known."""
        return await self._open.held.store.read(self._wire(queue))

    async def commit(self, offsets: Mapping[Queue, int] | None = None) -> None:
        """Commit everything that polls have returned, or up to these offsets.

        A commit that fails is raised, after the other queues were tried.
        """
        state = self._open
        polls, queues = state.held.polls, None
        if offsets is None:
            done = polls.positions.all()
            state.polled.end(is_done=True)
        else:
            queues = done = {self._wire(queue): offset for queue, offset in offsets.items()}
        for queue, offset in done.items():
            state.held.check(queue)
            if offset < 0:
                raise ValueError(f"Offset must be at least 0, not {offset:,}.")
            polls.settled.update(queue, offset, increase_only=False)
        await state.held.store.persist(polls.settled, queues, is_awaited=True, is_required=True)

    # Private

    def _over(self, client: Client) -> LiteMember:
        return lite_member(
            client,
            LiteCalls(client, wrap(self._namespace, self.group), self._namespace),
            self._settings,
            self._observation,
            on_share=self._shared,
            subscription=self._subscription,
            arrived=self._arrived.set,
        )

    def _subscription(self, topic: str) -> tuple[Subscription, int] | None:
        if self._assigned is not None:
            wanted = self._assigned.get(topic)
        else:
            wanted = None if self._state is None else self._state.membership.subscription(topic)
        return None if wanted is None else (wanted, 0)

    async def _shared(self, topic: str, share: Share) -> None:
        if self._state is None:
            return
        await self._state.held.keep(topic, share.mine)
        before, self._known[topic] = self._known.get(topic), share
        if before != share and self._on_queues is not None:
            try:
                queues, mine = self._seen(share.queues), self._seen(share.mine)
                self._on_queues(unwrap(self._namespace, topic), queues, mine)
            except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
                _log.exception("on_queues failed for topic %s", topic)

    async def _commit_when_due(self, state: LiteMember) -> None:
        now_s = asyncio.get_running_loop().time()
        is_due = now_s - self._committed_at_s >= self._settings.auto_commit_s
        if self._settings.auto_commit and is_due:
            self._committed_at_s = now_s
            await state.held.store.persist(state.held.offsets)

    # Names, here and on the wire

    def _wanted(self, topic: str, tags: str, sql: str | None) -> Subscription:
        name = wrap(self._namespace, topic)
        return by_tags(name, tags) if sql is None else by_sql(name, sql)

    def _wire(self, queue: Queue) -> Queue:
        return wrap_queue(self._namespace, queue)

    def _seen(self, queues: Iterable[Queue]) -> list[Queue]:
        return [unwrap_queue(self._namespace, queue) for queue in queues]

    @property
    def _open(self) -> LiteMember:
        if self._state is None:
            raise _closed()
        return self._state


def _closed() -> Closed:
    return Closed("The consumer is not open. Use `async with` or `await consumer.open()`.")
