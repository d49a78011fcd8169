"""One queue: pull, cache, hand over, and again, until the queue is dropped.

docs/internals/consumer.md has the table of what follows each response. One request is in flight at
a time, so a queue that is over a limit is not pulled until it is below it again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.sdk.consumer.broker_calls import BrokerCalls, Pulled, PullStatus
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.process_queue import Limit, ProcessQueue
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Model
from rockgate.sdk.consumer.subscription import Subscription
from rockgate.sdk.errors import Closed, Refused, SdkError
from rockgate.sdk.hooks import ConsumeHook, filtered
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.namespaces import unwrap
from rockgate.sdk.observe.statistics import Statistics
from rockgate.sdk.received import Received, Settlement, split
from rockgate.sdk.results import Queue

FLOW_S: Final = 0.05
PAUSED_S: Final = 1.0
FLOW_LOG_EVERY: Final = 1000
UNKNOWN_TO_BROKER: Final = frozenset(
    (
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
        ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ResponseCode.FILTER_DATA_NOT_EXIST,
        ResponseCode.FILTER_DATA_NOT_LATEST,
    )
)
"""From a broker that was restarted, or has a newer heartbeat than the one it acts on."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class PullCounts:
    """The outcomes of the pulls of one group."""

    pulls: int = 0
    messages: int = 0
    failed: int = 0
    held_back: dict[Limit, int] = field(default_factory=lambda: dict.fromkeys(Limit, 0))
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullContext:
    """What the pullers of one member share."""

    calls: BrokerCalls
    settings: ConsumerSettings
    offsets: OffsetTable
    counts: PullCounts
    subscription: Callable[[str], tuple[Subscription, int] | None]
    """The subscription to a topic, and its version."""
    limits: Callable[[str], FlowLimits]
    """How much of each queue of a topic may be cached."""
    is_paused: Callable[[str], bool]
    hand_over: Callable[[Queue, ProcessQueue[Received], list[Received]], None]
    announce: Callable[[], Awaitable[None]]
    offset_illegal: Callable[[Queue, int], Awaitable[None]]
    hooks: Sequence[ConsumeHook] = ()


class Puller:
    """Pulls one queue from an offset on."""

    def __init__(
        self,
        context: PullContext,
        queue: Queue,
        cached: ProcessQueue[Received],
        offset: int,
        settlement: Settlement | None,
    ) -> None:
        self._context = context
        self._queue = queue
        self._cached = cached
        self._settlement = settlement
        self._room = asyncio.Event()
        self.next_offset = offset

    def made_room(self) -> None:
        """Something was finished: a queue that was over a limit may be under it again."""
        self._room.set()

    async def run(self) -> None:
        """Pull until the queue is dropped, or its messages are no longer consumed."""
        try:
            await self._run()
        except (Closed, asyncio.CancelledError):
            if not self._cached.is_dropped:
                group = self._context.calls.group
                _log.info("group %s pulls %s no more", group, _name(self._queue))
            raise

    async def _run(self) -> None:
        while not self._cached.is_dropped:
            try:
                if not await self._is_ready():
                    continue
                pulled = await self._pull()
                if pulled is None or self._cached.is_dropped:
                    continue
                if pulled.status is PullStatus.OFFSET_ILLEGAL:
                    await self._correct(pulled)
                    return
                if self._take(pulled) and self._context.settings.pull_interval_s:
                    await asyncio.sleep(self._context.settings.pull_interval_s)
            except Closed:
                raise
            except SdkError as failed:
                # A retry topic may not exist yet: that is nothing to warn of.
                is_retry = self._queue.topic.startswith(RETRY_PREFIX)
                level = logging.INFO if is_retry else logging.WARNING
                _log.log(level, "pull of %s failed: %s", _name(self._queue), failed)
                await self._fail()
            except Exception:  # noqa: BLE001 # a hook of the application's: the queue is pulled on
                _log.exception("pull of %s failed", _name(self._queue))
                await self._fail()

    async def _fail(self) -> None:
        self._context.counts.failed += 1
        await asyncio.sleep(self._context.settings.retry_s)

    async def _is_ready(self) -> bool:
        """Whether a request can be made now; if not, some time has passed."""
        context, cached = self._context, self._cached
        now_s = asyncio.get_running_loop().time()
        cached.pulled_at_s = now_s
        if context.is_paused(self._queue.topic):
            await asyncio.sleep(PAUSED_S)
            return False
        is_orderly = context.settings.is_orderly
        limit = cached.limit(context.limits(self._queue.topic), is_orderly=is_orderly)
        if limit is not None:
            self._note_held_back(limit)
            self._room.clear()
            try:
                async with asyncio.timeout(FLOW_S):
                    await self._room.wait()
            except TimeoutError:
                pass
            return False
        is_locking = is_orderly and context.settings.model is Model.CLUSTERING
        if is_locking and not cached.is_locked(now_s):
            await asyncio.sleep(context.settings.retry_s)
            return False
        return True

    async def _pull(self) -> Pulled | None:
        context = self._context
        wanted = context.subscription(self._queue.topic)
        if wanted is None:
            # It is no longer subscribed, and the next round will release it.
            await asyncio.sleep(context.settings.retry_s)
            return None
        subscription, version = wanted
        context.counts.pulls += 1
        try:
            return await context.calls.pull(
                self._queue,
                self.next_offset,
                subscription,
                count_max=context.settings.pull_count_max,
                sub_version=version,
                commit_offset=self._commit_offset,
                with_expression=context.settings.pulls_carry_expression,
            )
        except Refused as refused:
            if refused.code not in UNKNOWN_TO_BROKER:
                raise
            _log.info("%s: %s", _name(self._queue), refused)
            await context.announce()
            await asyncio.sleep(context.settings.retry_s)
            return None

    @property
    def _commit_offset(self) -> int | None:
        """What a pull says of the group's progress, where the broker keeps it."""
        if self._context.settings.model is Model.BROADCASTING:
            return None
        return self._context.offsets.get(self._queue) or None

    def _take(self, pulled: Pulled) -> bool:
        """Pass on the pulled messages; return whether there were any."""
        context, cached = self._context, self._cached
        messages: list[Received] = []
        if pulled.status is PullStatus.FOUND:
            try:
                messages = split(
                    pulled.body, self._queue, self._settlement, context.calls.namespace
                )
            except MalformedContent as wrong:
                raise SdkError(f"Cannot decode the broker's messages: {wrong}") from None
            wanted = context.subscription(self._queue.topic)
            if messages:
                self._check_progress(messages[0].offset, pulled.next_offset)
            if wanted is not None and wanted[0].tags:
                messages = [each for each in messages if wanted[0].wants(each.tag)]
            messages = filtered(context.hooks, messages)
        self.next_offset = pulled.next_offset
        cached.lag = max(0, pulled.max_offset - pulled.next_offset)
        if messages:
            context.counts.messages += len(messages)
            context.counts.statistics.pulled(
                unwrap(context.calls.namespace, self._queue.topic),
                time.monotonic(),
                took_s=asyncio.get_running_loop().time() - cached.pulled_at_s,
                count=len(messages),
            )
            cached.put(messages)
            context.hand_over(self._queue, cached, messages)
        elif not cached.count:
            # None of the skipped messages is wanted: the group's progress moves past them.
            context.offsets.update(self._queue, pulled.next_offset, increase_only=True)
        return bool(messages)

    def _check_progress(self, first_offset: int, next_offset: int) -> None:
        if min(first_offset, next_offset) < self.next_offset:
            _log.warning(
                "%s was pulled from %d on, and the broker returned %d, to continue at %d",
                _name(self._queue),
                self.next_offset,
                first_offset,
                next_offset,
            )

    async def _correct(self, pulled: Pulled) -> None:
        _log.warning(
            "offset %d of %s is outside of %d to %d; continuing at %d",
            self.next_offset,
            _name(self._queue),
            pulled.min_offset,
            pulled.max_offset,
            pulled.next_offset,
        )
        await self._context.offset_illegal(self._queue, pulled.next_offset)

    def _note_held_back(self, limit: Limit) -> None:
        counts = self._context.counts.held_back
        counts[limit] += 1
        if counts[limit] % FLOW_LOG_EVERY == 1:
            _log.warning(
                "%s holds %d messages, %d bytes; not pulling (%s)",
                _name(self._queue),
                self._cached.count,
                self._cached.size,
                limit.value,
            )


def _name(queue: Queue) -> str:
    return f"{queue.topic}/{queue.broker}/{queue.id}"
