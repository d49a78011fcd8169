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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Final, Self

from rockgate.sdk.client.client import Client
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.consumer.offsets.commits import commit_all
from rockgate.sdk.consumer.pull.lite_queues import LiteCalls, LiteQueues
from rockgate.sdk.consumer.pull.lite_settings import LitePullSettings
from rockgate.sdk.consumer.pull.membership import Membership, MembershipSettings
from rockgate.sdk.consumer.pull.pull_consumer import OnQueues, ms_of
from rockgate.sdk.consumer.queues.rounds import Share
from rockgate.sdk.consumer.settings import Start
from rockgate.sdk.consumer.subscription import Subscription, by_sql, by_tags
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.message import check_group
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

POLL_S: Final = 5.0
POLL_COUNT: Final = 10
POLL_COUNT_MAX: Final = 1024

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    """What an open consumer works with."""

    client: Client
    calls: LiteCalls
    membership: Membership
    held: LiteQueues


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
        instance: str | None = None,
        client: Client | None = None,
    ) -> None:
        """`topics` as a Consumer has them; `on_queues` hears when queues of one of them change."""
        check_group(group)
        self.group = group
        self._lease = Lease(name_servers, instance=instance, client=client)
        wanted = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
        self._topics = [by_tags(topic, tags) for topic, tags in wanted.items()]
        self._on_queues = on_queues
        self._settings = settings or LitePullSettings()
        self._state: _Open | None = None
        self._was_opened = False
        self._assigned: dict[str, Subscription] | None = None
        """What is wanted of topics whose queues were assigned by hand; None while subscribed."""
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
            await state.membership.start(self._topics)
        except BaseException:
            if self._state is not None:
                self._state.held.cancel()
            self._state = None
            self._lease.abort()
            raise
        return self

    async def close(self) -> None:
        """Pull no more, commit what is settled unless commits are by hand, and leave the group."""
        state, self._state = self._state, None
        if state is None:
            return
        self._arrived.set()
        try:
            await state.membership.stop()
            await state.held.stop()
            if self._settings.auto_commit:
                await commit_all(state.calls, state.held.polls.settled, is_awaited=True)
            state.membership.leave()
        except BaseException:
            state.held.cancel()
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
        wanted = by_tags(topic, tags) if sql is None else by_sql(topic, sql)
        if sql is not None:
            await state.calls.check(wanted)
        await state.membership.subscribe(wanted)

    async def unsubscribe(self, topic: str) -> None:
        """Read a topic no more."""
        state = self._open
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
        topics = {queue.topic for queue in queues}
        wanted = {
            topic: by_tags(topic, tags) if sql is None else by_sql(topic, sql) for topic in topics
        }
        if sql is not None:
            for each in wanted.values():
                await state.calls.check(each)
        self._assigned = wanted
        for topic in sorted(topics | {queue.topic for queue in state.held.queues}):
            await state.held.keep(topic, [queue for queue in queues if queue.topic == topic])

    def assignment(self) -> list[Queue]:
        """The queues that are read here now."""
        return self._open.held.queues

    async def queues(self, topic: str) -> list[Queue]:
        """All queues of a topic that may be read, sorted."""
        return sorted((await self._open.client.routes.readable(topic)).readable)

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
        await self._commit_when_due(state)
        while True:
            self._arrived.clear()
            found = polls.take(count_max, loop.time())
            if found:
                state.held.made_room()
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
        """Have polls hand nothing out of these queues, also of what was pulled already."""
        held = self._open.held
        for queue in queues:
            held.check(queue)
        held.polls.pause(queues)

    def resume(self, queues: Sequence[Queue]) -> None:
        """Have polls hand out of these queues again."""
        self._open.held.polls.resume(queues)
        self._arrived.set()

    @property
    def paused(self) -> list[Queue]:
        """Queues that are paused."""
        return sorted(self._open.held.polls.paused)

    # Where

    def position(self, queue: Queue) -> int:
        """Where the next poll continues in a queue."""
        held = self._open.held
        held.check(queue)
        found = held.polls.positions.get(queue)
        assert found is not None, queue
        return found

    async def seek(self, queue: Queue, offset: int) -> None:
        """Continue at another offset of a queue; what is cached of it is discarded."""
        state = self._open
        state.held.check(queue)
        first, end = await state.calls.begin(queue), await state.calls.end(queue)
        if not first <= offset <= end:
            raise ValueError(f"Offset must be {first:,} to {end:,}, not {offset:,}.")
        await state.held.seek(queue, offset)

    async def seek_to_begin(self, queue: Queue) -> None:
        """Continue at the first message that a queue still has."""
        await self.seek(queue, await self._open.calls.begin(queue))

    async def seek_to_end(self, queue: Queue) -> None:
        """Continue behind the last message of a queue."""
        await self.seek(queue, await self._open.calls.end(queue))

    async def offset_for_time(self, queue: Queue, at: datetime) -> int:
        """The offset of the first message that was stored at this time or later."""
        return await self._open.calls.search(queue, ms_of(at))

    async def committed(self, queue: Queue) -> int | None:
        """How far the group is, as the broker has it; None if it does not know."""
        return await self._open.calls.committed(queue)

    async def commit(self, offsets: Mapping[Queue, int] | None = None) -> None:
        """Tell brokers that everything is done that was handed out, or up to these offsets."""
        state = self._open
        polls = state.held.polls
        for queue, offset in (polls.positions.all() if offsets is None else offsets).items():
            state.held.check(queue)
            if offset < 0:
                raise ValueError(f"Offset must be at least 0, not {offset:,}.")
            polls.settled.update(queue, offset, increase_only=False)
        await commit_all(state.calls, polls.settled, offsets, is_awaited=True)

    # Private

    def _over(self, client: Client) -> _Open:
        calls = LiteCalls(client, self.group)
        start = self._settings.start
        membership = Membership(
            client,
            calls,
            self.group,
            MembershipSettings(
                start=Start.TIME if isinstance(start, datetime) else start,
                allocation=self._settings.allocation,
                rebalance_s=self._settings.rebalance_s,
            ),
            self._shared,
        )
        queues = LiteQueues(client, calls, self._settings, self._subscription, self._arrived.set)
        return _Open(client, calls, membership, queues)

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
                self._on_queues(topic, share.queues, share.mine)
            except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
                _log.exception("on_queues failed for topic %s", topic)

    async def _commit_when_due(self, state: _Open) -> None:
        now_s = asyncio.get_running_loop().time()
        is_due = now_s - self._committed_at_s >= self._settings.auto_commit_s
        if self._settings.auto_commit and is_due:
            self._committed_at_s = now_s
            await commit_all(state.calls, state.held.polls.settled)

    @property
    def _open(self) -> _Open:
        if self._state is None:
            raise _closed()
        return self._state


def _closed() -> Closed:
    return Closed("The consumer is not open. Use `async with` or `await consumer.open()`.")
