"""Members of a group, each in a process of its own as far as the network and its tasks go.

A process that is killed loses its connections first; then its tasks are ended, and nothing that
they still do has an effect.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final
from weakref import WeakSet

from tests.sdk.memorynet import pass_time
from tests.sdk.simulation.cluster import NAME_SERVER, Cluster
from tests.sdk.simulation.ledger import Ledger

from rockgate.sdk import Client, SdkError
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.delivery.redelivery import Retry
from rockgate.sdk.consumer.settings import ConsumerSettings, FlowLimits, Start
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

GROUP: Final = "g"
CONCURRENT: Final = ConsumerSettings(
    start=Start.BEGINNING,
    workers=6,
    consume_timeout_s=40.0,
    tries_max=3,
    # So little that a busy queue is over a limit now and then.
    pull_count_max=6,
    flow=FlowLimits(count_max=8, span_max=30),
)
ORDERLY: Final = replace(CONCURRENT, is_orderly=True)
HANG_S: Final = (45.0, 120.0)
FOREVER_S: Final = 3600.0
POISON_EVERY: Final = 90
RESTART_S: Final = 3.0

_process: contextvars.ContextVar[str] = contextvars.ContextVar("process", default="")


class Tasks:
    """Which process each task belongs to: the one that has started it."""

    def __init__(self) -> None:
        self._by_process: dict[str, WeakSet[asyncio.Task[Any]]] = {}
        asyncio.get_running_loop().set_task_factory(self._make)  # type: ignore[arg-type]

    def of(self, process: str) -> list[asyncio.Task[Any]]:
        """Those of a process that run."""
        return [task for task in self._by_process.get(process, ()) if not task.done()]

    def _make(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **more: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **more)
        self._by_process.setdefault(_process.get(), WeakSet()).add(task)
        return task


class Member:
    """One process with one consumer."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        ledger: Ledger,
        tasks: Tasks,
        settings: ConsumerSettings,
        topics: list[str],
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._ledger = ledger
        self._tasks = tasks
        self._settings = settings
        self._topics = topics
        self._context = contextvars.copy_context()
        self._context.run(_process.set, name)
        self._tries: Counter[int] = Counter()
        self._skew_ms = 0
        self.is_dead = False
        self._client: Client | None = None
        self.consumer: Consumer | None = None
        self._opening = self._spawn(self._open())

    @property
    def queues(self) -> set[Queue]:
        """What it holds."""
        return set(self.consumer.queues) if self.consumer else set()

    @property
    def is_consistent(self) -> bool:
        """Whether what it holds is what it was assigned, each with one puller."""
        if self.consumer is None:
            return True
        running = [task.get_coro() for task in self._tasks.of(self.name)]
        pulling = [each for each in running if getattr(each, "__qualname__", "") == "Puller.run"]
        return len(pulling) == len(self.queues) == self.consumer.statistics.queue_count

    def jump(self, ms: int) -> None:
        """Its clock on the wall is set."""
        self._skew_ms += ms

    async def leave(self) -> float:
        """Close it as an application does; how long that took."""
        began_s = asyncio.get_running_loop().time()
        self._opening.cancel()
        await asyncio.wait([self._opening])
        await self._spawn(self._close())
        self.is_dead = True
        return asyncio.get_running_loop().time() - began_s

    async def kill(self, *, is_silent: bool) -> None:
        """End it as kill -9 does, or a machine that loses its power."""
        self.is_dead = True
        self._cluster.wires.kill(self.name, is_silent=is_silent)
        while tasks := self._tasks.of(self.name):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(coroutine, context=self._context)

    async def _open(self) -> None:
        """Come up, however long that takes: an application is started again until it does."""
        while True:
            client = self._client = Client(
                NAME_SERVER,
                instance=self.name,
                dial=self._cluster.wires.dialler(self.name),
                now_ms=lambda: self._cluster.now_ms() + self._skew_ms,
            )
            consumer = Consumer(client=client, group=GROUP, settings=self._settings)
            for topic in self._topics:
                consumer.on(topic)(self._listen)
            await client.open()
            try:
                await consumer.open()
            except SdkError:
                await client.close()
                await pass_time(RESTART_S)
                continue
            self.consumer = consumer
            self._ledger.note(None, f"{self.name} is open")
            return

    async def _close(self) -> None:
        if self.consumer is not None:
            with suppress(SdkError):
                await self.consumer.close()
        if self._client is not None:
            await self._client.close()

    async def _listen(self, message: Received) -> None:
        stored = self._cluster.log(message.source).stored[message.offset]
        assert int(message.body) == stored.number
        run = self._ledger.begin(self.name, stored)
        is_done = False
        try:
            self._tries[stored.number] += 1
            attempt = self._tries[stored.number]
            random = Random(f"{self._cluster.seed}/{self.name}/{stored.number}/{attempt}")
            if stored.number % POISON_EVERY == 7:
                raise ZeroDivisionError
            if not self._cluster.wires.is_calm:
                await self._suffer(random, run)
            else:
                await pass_time(random.uniform(0.0, 0.02))
            is_done = not self.is_dead
        finally:
            self._ledger.end(run, is_done=is_done)

    async def _suffer(self, random: Random, run: Any) -> None:
        fate = random.random()
        if fate < 0.03:
            raise ZeroDivisionError
        if fate < 0.04:
            raise Retry(timedelta(seconds=random.choice((0, 1, 5))))
        if fate < 0.045:
            self._ledger.hung(run)
            await pass_time(random.uniform(*HANG_S))
        elif fate < 0.048 and not self._settings.is_orderly:
            # With orderly consumption only the application could end it.
            self._ledger.hung(run)
            await pass_time(FOREVER_S)
        elif fate < 0.07:
            await pass_time(random.uniform(1.0, 20.0))
        else:
            await pass_time(random.uniform(0.0, 0.1))
