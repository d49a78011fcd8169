"""The queues that a lite pull consumer reads: which, and how each of them is pulled.

Changes are serialized: rounds of assignment, the application and brokers that correct an offset may
all request some at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.sdk.client.client import Client
from rockgate.sdk.consumer.broker_calls import BrokerCalls, Pulled
from rockgate.sdk.consumer.offsets.first import FirstOffsets
from rockgate.sdk.consumer.offsets.store import GroupOffsets
from rockgate.sdk.consumer.offsets.table import OffsetTable
from rockgate.sdk.consumer.pull.lite_settings import LitePullSettings
from rockgate.sdk.consumer.pull.polls import Polls
from rockgate.sdk.consumer.pull.pull_consumer import BLOCKING_S, HOLD_S
from rockgate.sdk.consumer.queues.assignment import Assignment
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.queues.puller import PullContext, PullCounts, Puller
from rockgate.sdk.consumer.subscription import Subscription
from rockgate.sdk.errors import Closed, Refused, SdkError
from rockgate.sdk.hooks import ConsumeHook
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

_log: Final = logging.getLogger(__name__)


class LiteCalls(BrokerCalls):
    """The calls of a group that reads by lite pulls (361), which commit nothing by the way.

    Brokers before 5.0 do not know them, and are asked by plain pulls (11), which do the same.
    """

    def __init__(self, client: Client, group: str, namespace: str = "") -> None:
        super().__init__(client, group, namespace)
        self._plain: set[str] = set()
        """Brokers that do not know lite pulls."""

    async def pull(
        self,
        queue: Queue,
        offset: int,
        subscription: Subscription,
        *,
        count_max: int,
        sub_version: int = 0,
        commit_offset: int | None = None,
        suspend_ms: int = round(HOLD_S * 1000),
        with_expression: bool = True,
        is_lite: bool = True,
        timeout_s: float = BLOCKING_S,
    ) -> Pulled:
        """Messages of a queue from an offset on; the broker holds the pull for up to this long."""
        pull = partial(
            super().pull,
            queue,
            offset,
            subscription,
            count_max=count_max,
            sub_version=sub_version,
            suspend_ms=suspend_ms,
            with_expression=with_expression,
            timeout_s=timeout_s,
        )
        if is_lite and queue.broker not in self._plain:
            try:
                return await pull(is_lite=True)
            except Refused as refused:
                if refused.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise
                self._plain.add(queue.broker)
        return await pull(is_lite=False)


class LiteQueues:
    """What is read here."""

    def __init__(
        self,
        client: Client,
        calls: LiteCalls,
        store: GroupOffsets,
        settings: LitePullSettings,
        subscription: Callable[[str], tuple[Subscription, int] | None],
        arrived: Callable[[], None],
        *,
        counts: PullCounts,
        hooks: Sequence[ConsumeHook] = (),
    ) -> None:
        self.polls = Polls()
        self.counts = counts
        self.store = store
        self._first_offsets = FirstOffsets(store, calls, settings.start)
        self._settings = settings
        self._arrived = arrived
        self.assignment: Assignment[Received] = Assignment()
        self._pullers: dict[Queue, tuple[Puller, asyncio.Task[None]]] = {}
        self._changing = asyncio.Lock()
        self._is_over = False
        self._context = PullContext(
            calls=calls,
            settings=settings.pulling(),
            offsets=self.polls.positions,
            counts=counts,
            hooks=hooks,
            subscription=subscription,
            limits=lambda _: settings.flow,
            # What is paused is pulled on up to the flow limits, so that it resumes at once.
            is_paused=lambda _: False,
            hand_over=self._came,
            announce=client.announce,
            offset_illegal=self.reset,
        )

    @property
    def offsets(self) -> OffsetTable:
        """How far the group is: what polls have returned and is consumed."""
        return self.polls.settled

    @property
    def queues(self) -> list[Queue]:
        """Those that are read here now."""
        return sorted(self.assignment)

    def check(self, queue: Queue) -> None:
        """Refuse what is about a queue that is not read here."""
        if queue not in self.assignment:
            raise SdkError(
                f"Queue {queue.id} of {queue.topic} at {queue.broker} is not read by this consumer."
            )

    def made_room(self) -> None:
        """Messages were returned: a queue that was over a limit may be under it again."""
        for puller, _ in self._pullers.values():
            puller.made_room()

    async def keep(self, topic: str, wanted: Sequence[Queue]) -> None:
        """Read these queues of a topic and no others."""
        async with self._changing:
            now_s = asyncio.get_running_loop().time()
            for queue in self.assignment.release(topic, wanted, now_s):
                await self._stop([queue])
                if self._settings.auto_commit:
                    await self.store.persist(self.polls.settled, [queue])
                self.assignment.released(queue)
                self.polls.end(queue)
            for queue in self.assignment.missing(wanted):
                self._begin(queue, await self._first_offsets.of(queue))

    async def seek(self, queue: Queue, offset: int) -> None:
        """Continue at another offset of a queue; what is cached of it is discarded."""
        async with self._changing:
            self.check(queue)
            await self._restart(queue, offset)

    async def reset(self, queue: Queue, offset: int) -> None:
        """Continue at another offset: the group was set to it, or the broker has no other."""
        async with self._changing:
            if queue in self.assignment:
                await self._restart(queue, offset)
                self.polls.settled.update(queue, offset, increase_only=False)

    async def stop(self) -> None:
        """Stop pulling."""
        self._is_over = True
        await self._stop(list(self._pullers))

    def cancel(self) -> None:
        """The same, soon."""
        self._is_over = True
        for _, task in self._pullers.values():
            task.cancel()

    # Private

    def _begin(self, queue: Queue, offset: int) -> None:
        if self._is_over:
            return
        loop = asyncio.get_running_loop()
        cached = self.assignment.acquire(queue, loop.time())
        self.polls.begin(queue, cached, offset)
        puller = Puller(self._context, queue, cached, offset, None)
        self._pullers[queue] = (puller, loop.create_task(_run(puller)))

    async def _restart(self, queue: Queue, offset: int) -> None:
        self.assignment.drop(queue)
        await self._stop([queue])
        self.assignment.released(queue)
        self._begin(queue, offset)

    async def _stop(self, queues: Iterable[Queue]) -> None:
        # A puller whose offset was wrong requests this itself, and then ends.
        mine = asyncio.current_task()
        tasks = [self._pullers.pop(queue)[1] for queue in queues if queue in self._pullers]
        others = [task for task in tasks if task is not mine]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)

    def _came(self, queue: Queue, cached: ProcessQueue[Received], messages: list[Received]) -> None:
        self._arrived()


async def _run(puller: Puller) -> None:
    try:
        await puller.run()
    except Closed:
        return
    except Exception:  # noqa: BLE001 # the queue is acquired again once its pull has expired
        _log.exception("a puller ended")
