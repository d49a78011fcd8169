"""Settling messages: finished, to be redelivered, or a dead letter; and the group's progress.

A message is sent back before it is finished here, so a process that dies in between repeats it and
loses nothing. If a broker does not accept it back, it is sent to the retry topic of its group as a
new message. If that fails too it stays cached, and runs again later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.delivery.order import Ruling, Verdict
from rockgate.sdk.consumer.delivery.redelivery import BROKER_CHOOSES, DEAD_LETTER, level_after
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.errors import SdkError
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

_log: Final = logging.getLogger(__name__)


class Order(Protocol):
    """Has the messages of one queue consumed one after the other."""

    async def settle(self, message: Received, verdict: Verdict) -> None:
        """The application has settled a message."""

    async def is_at_rest(self, timeout_s: float) -> bool:
        """Whether no listener runs, or all of them end within this time."""


Resend = Callable[[Received, int, int], Awaitable[None]]
"""Sends a message to its group's retry topic, with a delay level and a maximum of retries."""


@dataclass(slots=True)
class SettleCounts:
    """The outcomes of the messages of one group."""

    finished: int = 0
    sent_back: int = 0
    dropped: int = 0
    """Failed in a broadcasting group, where messages are not redelivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleContext:
    """What the settlements of one member share."""

    calls: BrokerCalls
    settings: ConsumerSettings
    offsets: OffsetTable
    counts: SettleCounts
    resend: Resend


class QueueSettlement:
    """Settles the messages of one queue while it is held."""

    def __init__(
        self,
        context: SettleContext,
        queue: Queue,
        cached: ProcessQueue[Received],
        made_room: Callable[[], None],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._queue = queue
        self._cached = cached
        self._made_room = made_room
        self._lost = lost
        self.order: Order | None = None
        """Set once the queue is consumed in order: then that settles its messages."""

    async def finish(self, message: Received) -> None:
        """It is consumed."""
        if self.order is not None:
            await self.order.settle(message, Verdict(Ruling.COMMIT))
        else:
            self.finished([message])

    async def retry(self, message: Received, after: timedelta | None) -> None:
        """Let it be redelivered; SdkError if no broker accepts it."""
        if self.order is not None:
            suspend_s = None if after is None else after.total_seconds()
            await self.order.settle(message, Verdict(Ruling.AGAIN, suspend_s=suspend_s))
            return
        await self._send_back(message, BROKER_CHOOSES if after is None else level_after(after))

    async def dead_letter(self, message: Received) -> None:
        """Make it a dead letter; SdkError if no broker accepts it."""
        if self.order is not None:
            await self.order.settle(message, Verdict(Ruling.AGAIN, dead_count=1))
            return
        await self._send_back(message, DEAD_LETTER)

    def finished(self, messages: Sequence[Received]) -> None:
        """These are done with: the group is as far as the first that is not."""
        cached = self._cached
        offset = cached.finish(messages, asyncio.get_running_loop().time())
        if cached.is_dropped:
            # Another member reads the queue now, from the committed offset.
            _log.info("%d messages were finished of a queue that has moved", len(messages))
            return
        self._context.counts.finished += len(messages)
        if offset is not None:
            self._context.offsets.update(self._queue, offset, increase_only=True)
        self._made_room()

    def committed(self, count: int, offset: int) -> None:
        """In order: messages were consumed, and the group is this far, which may be less."""
        if self._cached.is_dropped and not self._is_still_ours:
            return
        self._context.counts.finished += count
        self._context.offsets.update(self._queue, offset, increase_only=False)
        self._made_room()

    @property
    def _is_still_ours(self) -> bool:
        """Whether a queue that is being released is still waited for, and still locked here."""
        cached = self._cached
        if self._context.settings.model is Model.BROADCASTING:
            return not cached.is_lost
        return not cached.is_lost and cached.is_locked(asyncio.get_running_loop().time())

    async def is_locked(self) -> bool:
        """Lock the queue again; return whether it is, and no other member consumed it meanwhile.

        After a lock has expired, another member may have locked the queue and consumed from it.
        """
        is_had = self._queue in await self._context.calls.lock([self._queue])
        return is_had and await self.is_current()

    async def is_current(self) -> bool:
        """Whether the group is no further than this member knows; if it is, the queue is lost."""
        known = await self._context.calls.committed(self._queue)
        if self._cached.is_lost:
            return False
        mine = self._context.offsets.get(self._queue)
        if known is None or known <= (self._cached.begin_offset if mine is None else mine):
            return True
        _log.warning("%s was consumed by another member up to %d", self._queue, known)
        self.lose()
        return False

    def lose(self) -> None:
        """The queue is another member's: its offset is for that one to commit."""
        self._cached.is_dropped = self._cached.is_lost = True
        self._context.offsets.remove(self._queue)
        self._lost()

    async def failed(self, messages: Sequence[Received], level: int) -> list[Received]:
        """Send back what failed; what no broker accepted is returned, and is still cached."""
        if self._context.settings.model is Model.BROADCASTING:
            for message in messages:
                _log.warning("message %s failed; broadcasting does not retry", message.message_id)
            self._context.counts.dropped += len(messages)
            self.finished(messages)
            return []
        taken: list[Received] = []
        left: list[Received] = []
        for message in messages:
            if self._cached.is_dropped:
                return []
            (taken if await self.sent_back(message, level) else left).append(message)
        if taken:
            self.finished(taken)
        return left

    async def _send_back(self, message: Received, level: int) -> None:
        if await self.failed([message], level):
            raise SdkError(f"Message {message.message_id} could not be sent back.")

    async def sent_back(self, message: Received, level: int) -> bool:
        """Whether a broker has it again."""
        context = self._context
        retry_count_max = context.settings.retry_count_max
        try:
            await context.calls.send_back(message, level, retry_count_max)
        except SdkError as refused:
            _log.warning("sending %s back failed: %s", message.message_id, refused)
            try:
                await context.resend(message, level, retry_count_max)
            except SdkError as failed:
                _log.warning("sending %s to its retry topic: %s", message.message_id, failed)
                return False
        context.counts.sent_back += 1
        return True
