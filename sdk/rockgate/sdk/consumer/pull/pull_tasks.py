"""Scheduled pulls: a function is called repeatedly for each queue that this member owns.

    tasks = PullTasks("127.0.0.1:9876", group="report")

    @tasks.on("orders")
    async def pull(queue: Queue, consumer: PullConsumer) -> float | None:
        …
        return 5.0

It returns the number of seconds until its next call for that queue; None means as soon as possible,
200 ms later. When a queue moves to another member, its calls end and a running one is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self

from rockgate.sdk.client.client import Client
from rockgate.sdk.consumer.pull.membership import MembershipSettings
from rockgate.sdk.consumer.pull.pull_consumer import PullConsumer
from rockgate.sdk.errors import Closed
from rockgate.sdk.results import Queue

NEXT_S: Final = 0.2
FAILED_S: Final = 3.0
"""How long a queue rests whose call has raised."""
DELAY_S_MAX: Final = 24 * 3600.0

_log: Final = logging.getLogger(__name__)

PullTask = Callable[[Queue, PullConsumer], Awaitable[float | None]]
"""Pulls one queue; says in how many seconds it is to be called again."""


class PullTasks:
    """A pull consumer whose queues are pulled by functions."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        group: str,
        settings: MembershipSettings | None = None,
        instance: str | None = None,
        client: Client | None = None,
    ) -> None:
        self._make = partial(
            PullConsumer,
            name_servers,
            group=group,
            on_queues=self._changed,
            settings=settings,
            instance=instance,
            client=client,
        )
        self._functions: dict[str, PullTask] = {}
        self._consumer: PullConsumer | None = None
        self._running: dict[Queue, asyncio.Task[None]] = {}
        self._is_closed = False

    def on(self, topic: str) -> Callable[[PullTask], PullTask]:
        """Register a function that pulls the queues of a topic."""
        if self._consumer is not None:
            raise Closed("Functions are registered before the tasks are opened.")

        def register(function: PullTask) -> PullTask:
            self._functions[topic] = function
            return function

        return register

    async def open(self) -> Self:
        """Join the group and begin to call; once."""
        if self._consumer is not None:
            raise Closed("The pull tasks are already open; they can be opened only once.")
        if not self._functions:
            raise ValueError("No topic has a function.")
        self._consumer = self._make(topics=list(self._functions))
        try:
            await self._consumer.open()
        except BaseException:
            await self._end(list(self._running))
            raise
        return self

    async def close(self) -> None:
        """Cancel what is called, save offsets and leave the group."""
        self._is_closed = True
        await self._end(list(self._running))
        if self._consumer is not None:
            await self._consumer.close()

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
    def queues(self) -> list[Queue]:
        """The queues that functions are called for now."""
        return sorted(self._running)

    # Private

    def _changed(self, topic: str, queues: Sequence[Queue], mine: Sequence[Queue]) -> None:
        if self._is_closed:
            return
        for queue in [each for each in self._running if each.topic == topic]:
            if queue not in mine:
                self._running.pop(queue).cancel()
        for queue in mine:
            if queue not in self._running:
                task = asyncio.get_running_loop().create_task(self._repeat(queue))
                self._running[queue] = task

    async def _repeat(self, queue: Queue) -> None:
        consumer, function = self._consumer, self._functions[queue.topic]
        assert consumer is not None
        while True:
            try:
                delay_s = await function(queue, consumer)
            except Exception:  # noqa: BLE001 # the application's own code: whatever it raises
                if self._is_closed:
                    return
                _log.exception("the pull task of %s/%d failed", queue.topic, queue.id)
                delay_s = FAILED_S
            await asyncio.sleep(NEXT_S if delay_s is None else min(max(0.0, delay_s), DELAY_S_MAX))

    async def _end(self, queues: Sequence[Queue]) -> None:
        tasks = [self._running.pop(queue) for queue in queues]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
