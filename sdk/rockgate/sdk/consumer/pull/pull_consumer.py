"""Reads by queue and offset: the application chooses queues, keeps offsets and acts on the status.

    async with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
        for queue in await consumer.queues("orders"):
            found = await consumer.pull(queue, await consumer.begin(queue))

A pull carries what is wanted with it, so nothing has to be subscribed. `topics` are shared with
the other members of the group: `balanced` names those of their queues that are this one's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.consumer.broker_calls import BrokerCalls, PullStatus
from rockgate.sdk.consumer.delivery.redelivery import BROKER_CHOOSES, level_after
from rockgate.sdk.consumer.offsets.commits import commit_all
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.pull.membership import Membership, MembershipSettings
from rockgate.sdk.consumer.queues.rounds import Share
from rockgate.sdk.consumer.settings import RETRY_COUNT_MAX
from rockgate.sdk.consumer.subscription import SQL92, Subscription, by_sql, by_tags
from rockgate.sdk.credentials import Credentials, Tls
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.message import check_group
from rockgate.sdk.received import Received, split
from rockgate.sdk.results import Queue

HOLD_S: Final = 20.0
"""How long a broker holds a blocking pull back while there is nothing."""
BLOCKING_S: Final = 30.0
AT_ONCE_S: Final = 10.0
PERSIST_S: Final = 5.0
COUNT_MAX: Final = 32
COUNT_LIMIT: Final = 1024
UNDERSTOOD_MAX: Final = 256
"""Conditions of which it is remembered that brokers understand them."""

_log: Final = logging.getLogger(__name__)

OnQueues = Callable[[str, Sequence[Queue], Sequence[Queue]], None]
"""Called when the queues of a topic change: with the topic, all queues, and this member's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """The result of a pull; the next one always continues at `next_offset`."""

    status: PullStatus
    next_offset: int
    min_offset: int
    """The first offset that the queue still has."""
    max_offset: int
    """The offset that its next message gets."""
    messages: tuple[Received, ...] = ()


class PullConsumer:
    """A member of a group that pulls by itself."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        topics: Sequence[str] = (),
        on_queues: OnQueues | None = None,
        settings: MembershipSettings | None = None,
        instance: str | None = None,
        client: Client | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
    ) -> None:
        """`topics` are shared with other members; `on_queues` hears when its part changes."""
        check_group(group)
        self.group = group
        self._lease = Lease(
            name_servers, instance=instance, client=client, credentials=credentials, tls=tls
        )
        self._topics = [by_tags(topic) for topic in topics]
        self._on_queues = on_queues
        self._settings = settings or MembershipSettings()
        self._offsets = OffsetTable()
        self._known: dict[str, Share] = {}
        self._understood: set[tuple[str, str]] = set()
        """Topics and filters that brokers have accepted."""
        self._client: Client
        self._calls: BrokerCalls | None = None
        self._membership: Membership | None = None
        self._persisting: asyncio.Task[None] | None = None
        self._was_opened = False

    # Life

    async def open(self) -> Self:
        """Join the group; a consumer is opened once."""
        if self._was_opened:
            raise Closed("The pull consumer is already open; it can be opened only once.")
        self._was_opened = True
        client = await self._lease.open()
        try:
            calls = BrokerCalls(client, self.group)
            membership = Membership(client, calls, self.group, self._settings, self._shared)
            await membership.start(self._topics)
        except BaseException:
            self._lease.abort()
            raise
        self._client, self._calls, self._membership = client, calls, membership
        self._persisting = asyncio.get_running_loop().create_task(self._persist_often())
        return self

    async def close(self) -> None:
        """Save offsets and leave the group."""
        membership, calls = self._membership, self._calls
        if membership is None or calls is None:
            return
        self._membership = self._calls = None
        try:
            await membership.stop()
            if self._persisting is not None:
                self._persisting.cancel()
                await asyncio.wait([self._persisting])
            await self._persist(calls, is_awaited=True)
            membership.leave()
        except BaseException:
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

    # Queues

    async def queues(self, topic: str) -> list[Queue]:
        """All queues of a topic that may be read, sorted; UnknownTopic if there is none."""
        self._asking()
        return sorted((await self._client.routes.readable(topic)).readable)

    def balanced(self, topic: str) -> list[Queue]:
        """Those queues of one of `topics` that are this member's now."""
        if self._membership is None:
            raise _closed()
        return list(self._membership.share(topic).mine)

    # Pulling

    async def pull(
        self,
        queue: Queue,
        offset: int,
        tags: str = "*",
        *,
        sql: str | None = None,
        count_max: int = COUNT_MAX,
        block: bool = False,
        timeout_s: float | None = None,
    ) -> PullResult:
        """Messages of a queue from an offset on, `count_max` at most.

        With `block` the broker waits for up to 20 s until there is one. Without `timeout_s` an
        answer is waited for 10 s, or 30 s with `block`.
        """
        wanted = by_tags(queue.topic, tags) if sql is None else by_sql(queue.topic, sql)
        if offset < 0:
            raise ValueError(f"Offset must be at least 0, not {offset:,}.")
        if not 1 <= count_max <= COUNT_LIMIT:
            raise ValueError(f"count_max must be 1 to {COUNT_LIMIT:,}, not {count_max:,}.")
        if timeout_s is None:
            timeout_s = BLOCKING_S if block else AT_ONCE_S
        elif timeout_s <= 0:
            raise ValueError(f"timeout_s must be greater than 0, not {timeout_s:g}.")
        if wanted.kind == SQL92:
            await self._check(wanted)
        return await self._pull(
            queue, offset, wanted, count_max=count_max, block=block, timeout_s=timeout_s
        )

    async def _check(self, wanted: Subscription) -> None:
        """Refused if brokers do not understand a condition; those before 5.0 would ignore it."""
        name = wanted.topic, wanted.expression
        if name not in self._understood:
            await self._asking().check(wanted)
            if len(self._understood) >= UNDERSTOOD_MAX:
                self._understood.clear()
            self._understood.add(name)

    async def _pull(
        self,
        queue: Queue,
        offset: int,
        wanted: Subscription,
        *,
        count_max: int,
        block: bool,
        timeout_s: float,
    ) -> PullResult:
        pulled = await self._asking().pull(
            queue,
            offset,
            wanted,
            count_max=count_max,
            # A version tells brokers which condition is meant; tags have no use for one.
            sub_version=self._client.now_ms() if wanted.kind == SQL92 else 0,
            suspend_ms=round(HOLD_S * 1000) if block else 0,
            with_expression=True,
            timeout_s=timeout_s,
        )
        status = pulled.status
        messages: list[Received] = []
        if status is PullStatus.FOUND:
            try:
                messages = split(pulled.body, queue)
            except MalformedContent as wrong:
                raise SdkError(f"Cannot decode the broker's messages: {wrong}") from None
            # Brokers compare codes of tags, which two tags may share.
            messages = [each for each in messages if wanted.wants(each.tag)]
            if not messages:
                status = PullStatus.NO_MATCHED_MESSAGE
        return PullResult(
            status=status,
            next_offset=pulled.next_offset,
            min_offset=pulled.min_offset,
            max_offset=pulled.max_offset,
            messages=tuple(messages),
        )

    # Offsets of the group

    def known_offset(self, queue: Queue) -> int | None:
        """The group's progress as set or read here before, without asking a broker."""
        self._asking()
        return self._offsets.get(queue)

    async def committed(self, queue: Queue, *, from_store: bool = False) -> int | None:
        """The group's progress: as set here, or from the broker; None if unknown."""
        calls = self._asking()
        known = None if from_store else self._offsets.get(queue)
        if known is not None:
            return known
        found = await calls.committed(queue)
        if found is not None:
            self._offsets.update(queue, found, increase_only=False)
            self._offsets.persisted(queue, found)
        return found

    def commit(self, queue: Queue, offset: int) -> None:
        """Set the group's offset; it is sent to the broker within 5 s, and by `close`."""
        self._asking()
        if offset < 0:
            raise ValueError(f"Offset must be at least 0, not {offset:,}.")
        self._offsets.update(queue, offset, increase_only=False)

    async def persist(self) -> None:
        """Tell brokers at once how far the group is; what fails is raised, and persisted later."""
        await commit_all(self._asking(), self._offsets, is_awaited=True, is_required=True)

    async def send_back(
        self,
        message: Received,
        after: timedelta | None = None,
        *,
        group: str | None = None,
        tries_max: int = RETRY_COUNT_MAX,
    ) -> None:
        """Have a message redelivered to this group, or to another, after a delay."""
        if group is not None:
            check_group(group)
        level = BROKER_CHOOSES if after is None else level_after(after)
        calls = self._asking()
        if group is not None and group != self.group:
            calls = BrokerCalls(self._client, group)
        await calls.send_back(message, level, tries_max)

    # Bounds

    async def begin(self, queue: Queue) -> int:
        """The offset of the first message that a queue still has."""
        return await self._asking().begin(queue)

    async def end(self, queue: Queue) -> int:
        """The offset that the next message of a queue gets."""
        return await self._asking().end(queue)

    async def search(self, queue: Queue, at: datetime) -> int:
        """The offset of the first message that was stored at this time or later."""
        return await self._asking().search(queue, ms_of(at))

    async def earliest(self, queue: Queue) -> datetime | None:
        """When the first message of a queue was stored; None if it has none."""
        found = await self._asking().earliest_ms(queue)
        return None if found < 0 else datetime.fromtimestamp(found / 1000, UTC)

    # Private

    def _asking(self) -> BrokerCalls:
        if self._calls is None:
            raise _closed()
        return self._calls

    async def _shared(self, topic: str, share: Share) -> None:
        before, self._known[topic] = self._known.get(topic), share
        if before == share or self._on_queues is None:
            return
        try:
            self._on_queues(topic, share.queues, share.mine)
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("on_queues failed for topic %s", topic)

    async def _persist_often(self) -> None:
        while True:
            await asyncio.sleep(PERSIST_S)
            try:
                await self._persist(self._asking())
            except Closed:
                return

    async def _persist(self, calls: BrokerCalls, *, is_awaited: bool = False) -> None:
        await commit_all(calls, self._offsets, is_awaited=is_awaited)


def ms_of(at: datetime) -> int:
    """A time as sent to brokers; one without a zone is rejected because it is ambiguous."""
    if at.tzinfo is None:
        raise ValueError(f"Time {at} has no time zone.")
    return round(at.timestamp() * 1000)


def _closed() -> Closed:
    return Closed("The pull consumer is not open. Use `async with` or `await consumer.open()`.")
