"""Listeners in order: one at a time for each queue, and the next message when one is done.

A queue has one task while it is held, which does what `QueueOrder` says. As many listeners run at
once as there are workers: a queue occupies a worker, and yields it when it has nothing to do,
rests, or has had it for a minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from rockgate.sdk.consumer.delivery.concurrent import Listener
from rockgate.sdk.consumer.delivery.order import Due, QueueOrder, Rest, Ruling, Run, Verdict
from rockgate.sdk.consumer.delivery.redelivery import DEAD_LETTER, DeadLetter, Retry
from rockgate.sdk.consumer.delivery.settlement import QueueSettlement
from rockgate.sdk.consumer.delivery.turns import Turns
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.settings import ConsumerSettings, Model
from rockgate.sdk.errors import Closed, SdkError
from rockgate.sdk.received import Received

_log: Final = logging.getLogger(__name__)

OrderlyListener = Callable[[Sequence[Received]], Awaitable[Verdict]]
"""Consumes messages of one queue, and returns the outcome."""


def verdict_of(listener: Listener) -> OrderlyListener:
    """Adapt a listener that returns a number of messages to one that returns a verdict."""

    async def consume(messages: Sequence[Received]) -> Verdict:
        try:
            done_count = await listener(messages)
        except Retry as retry:
            suspend_s = None if retry.after is None else retry.after.total_seconds()
            done_count = min(retry.done, len(messages) - 1)
            dead_count = len(messages) - done_count if isinstance(retry, DeadLetter) else 0
            return Verdict(Ruling.AGAIN, done_count, suspend_s, dead_count)
        if done_count is None or done_count >= len(messages):
            return Verdict(Ruling.DONE)
        return Verdict(Ruling.AGAIN, max(0, done_count))

    return consume


class Offers(Protocol):
    """Messages that wait for the iterator, one of each queue."""

    def offer(self, cached: ProcessQueue[Received], message: Received) -> asyncio.Future[Verdict]:
        """Offer a message to the iterator; the future has its outcome."""

    def withdraw(self, message: Received) -> None:
        """Do not deliver a message that has not been requested so far."""

    def settled(self, message: Received, verdict: Verdict) -> None:
        """The consumer of a message has settled it."""


class OrderlyDispatch:
    """Delivers pulled messages queue by queue: to a listener, or by iteration."""

    def __init__(self, consumed_by: OrderlyListener | Offers, settings: ConsumerSettings) -> None:
        self._consumed_by = consumed_by
        self._settings = settings
        self._batch_max = settings.batch_max
        self._turns = Turns(settings.workers)
        self._queues: set[_QueueTask] = set()
        self._is_closing = False

    def start(self) -> None:
        """Nothing runs before a queue has messages."""

    def resize(self, workers: int) -> None:
        """Set how many listeners run at once; those that run are not interrupted."""
        self._turns.resize(workers)

    def submit(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        messages: Sequence[Received],
    ) -> None:
        """Messages of one queue are cached."""
        if self._is_closing:
            return
        if settlement.order is None:
            queue = _QueueTask(cached, settlement, self._settings, self._consumed_by, self._turns)
            queue.take_up_to(self._batch_max)
            settlement.order = queue
            self._queues.add(queue)
            queue.start(self._queues.discard)
        elif isinstance(settlement.order, _QueueTask):
            settlement.order.wake()

    def take_up_to(self, batch_max: int) -> None:
        """Give a listener up to this many messages from now on."""
        self._batch_max = batch_max
        for queue in self._queues:
            queue.take_up_to(batch_max)

    async def close(self, timeout_s: float) -> int:
        """Begin nothing more, and wait for what runs; how many did not end, and were cancelled."""
        self._is_closing = True
        tasks = [queue.close() for queue in self._queues]
        if not tasks:
            return 0
        try:
            _, left = await asyncio.wait(tasks, timeout=timeout_s)
        finally:
            for task in tasks:
                task.cancel()
        return len(left)


class _QueueTask:
    """What is done for one queue while it is held."""

    def __init__(
        self,
        cached: ProcessQueue[Received],
        settlement: QueueSettlement,
        settings: ConsumerSettings,
        consumed_by: OrderlyListener | Offers,
        turns: Turns,
    ) -> None:
        self._cached = cached
        self._settlement = settlement
        self._settings = settings
        self._listener: OrderlyListener | None = None
        self._offers: Offers | None = None
        if callable(consumed_by):
            self._listener = consumed_by
        else:
            self._offers = consumed_by
        self._turns = turns
        self._order = QueueOrder(cached, settings, batch_max=1 if self._offers else None)
        self._arrived = asyncio.Event()
        self._resting = asyncio.Event()
        self._resting.set()
        self._running: Sequence[Received] = ()
        self._decided: Verdict | None = None
        self._has_turn = False
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self, ended: Callable[[_QueueTask], None]) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: ended(self))

    def take_up_to(self, batch_max: int) -> None:
        """Give the listener up to this many messages; who asks for messages gets one."""
        if self._offers is None:
            self._order.batch_max = batch_max

    def wake(self) -> None:
        """There is something to do."""
        self._arrived.set()

    def close(self) -> asyncio.Task[None]:
        """End when the listener that runs ends; at once if none does."""
        assert self._task is not None
        self._is_closing = True
        if self._resting.is_set() or self._offers is not None:
            self._task.cancel()
        return self._task

    # What is asked of it while it runs

    async def settle(self, message: Received, verdict: Verdict) -> None:
        """What becomes of a message, whatever the listener returns; done at once without one."""
        if all(message is not each for each in self._running):
            return
        if verdict.ruling is Ruling.AGAIN:
            done_count = next(at for at, each in enumerate(self._running) if each is message)
            ruling = Ruling.AGAIN if self._settings.auto_commit else Ruling.ROLLBACK
            self._decided = Verdict(ruling, done_count, verdict.suspend_s, verdict.dead_count)
        elif not self._settings.auto_commit:
            self._decided = verdict
        if self._offers is not None:
            self._offers.settled(message, self._decided or verdict)
            await self._resting.wait()

    async def is_at_rest(self, timeout_s: float) -> bool:
        """Whether no listener runs, or all of them end within this time."""
        self.wake()
        if self._offers is not None:
            for message in self._running:
                self._offers.withdraw(message)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._resting.wait()
        return self._resting.is_set()

    # Private

    async def _run(self) -> None:
        try:
            while not self._is_closing:
                if self._turns.are_too_many:
                    self._end_turn()
                if not self._has_turn and self._offers is None:
                    await self._turns.acquire()
                    self._has_turn = True
                step = self._order.next(_now_s())
                if isinstance(step, Run):
                    await self._consume(step.messages)
                    continue
                self._end_turn()
                if isinstance(step, Rest):
                    await asyncio.sleep(step.seconds)
                elif step is Due.ASK_LOCK:
                    await self._ask_lock()
                elif step is Due.IDLE:
                    await self._arrived.wait()
                    self._arrived.clear()
                else:
                    return
        finally:
            self._end_turn()
            self._resting.set()

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.release()

    async def _ask_lock(self) -> None:
        asked_at_s = _now_s()
        is_had = False
        try:
            is_had = await self._settlement.is_locked()
        except Closed:
            raise
        except SdkError as failed:
            _log.warning("a lock could not be asked for: %s", failed)
        self._order.lock_answered(is_had=is_had, now_s=asked_at_s if is_had else _now_s())

    async def _consume(self, messages: Sequence[Received]) -> None:
        self._arrived.clear()
        self._resting.clear()
        self._running, self._decided = messages, None
        now_s = _now_s()
        for message in messages:
            message.started_at_s = now_s
            # It may be the same one again, that was settled before.
            message.was_settled = message.was_retried = False
        try:
            if self._listener is not None:
                verdict = await self._listener(messages)
            else:
                assert self._offers is not None
                verdict = await self._offers.offer(self._cached, messages[0])
        except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
            _log.exception("listener failed for %s", messages[0])
            verdict = Verdict(Ruling.AGAIN)
        try:
            await self._settle(verdict if self._decided is None else self._decided)
        finally:
            self._running = ()
            self._resting.set()

    async def _settle(self, verdict: Verdict) -> None:
        sent_count = 0
        for message in self._order.judged(verdict):
            # Of a queue that is given up the next member sends it away.
            if self._cached.is_dropped or not await self._sent_away(message):
                break
            sent_count += 1
        finished = self._order.settled(_now_s(), sent_count)
        if finished is not None:
            self._settlement.committed(*finished)

    async def _sent_away(self, message: Received) -> bool:
        """Whether a message that had its last try is a dead letter, or dropped by broadcasting."""
        _log.warning("giving up message %s after %d tries", message.message_id, message.tries)
        if self._settings.model is Model.BROADCASTING:
            return True
        return await self._settlement.sent_back(message, DEAD_LETTER)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
