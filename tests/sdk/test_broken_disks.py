"""The SDK on a server that cannot write: errors that say so by type, and nothing that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.gateway.server import RunningServer, environment
from tests.gateway.test_full_disk import Filling
from tests.waiting import until

from rockgate.sdk import (
    Admin,
    Consumer,
    ConsumerSettings,
    LitePullConsumer,
    LitePullSettings,
    Message,
    Producer,
    PullConsumer,
    Queue,
    Received,
    Refused,
    SdkError,
    Start,
)

RAISING = """
import os
from rockgate.store.log import commitlog

def raising(real):
    def append(*arguments, **more):
        if os.path.exists(os.environ["APPENDS_RAISE_WHILE"]):
            raise OSError(5, "Input/output error")
        return real(*arguments, **more)
    return append

for name in ("append", "append_batch", "append_group", "append_messages"):
    if hasattr(commitlog.CommitLog, name):
        setattr(commitlog.CommitLog, name, raising(getattr(commitlog.CommitLog, name)))
"""
CALL_S = 20.0
"""No call of these may take longer, whatever the disk does."""
BEGINNING = ConsumerSettings(
    start=Start.BEGINNING, rebalance_s=0.5, persist_s=0.2, local_retry_s=0.1
)


class Full:
    """A server whose disk has no room for a while."""

    def __init__(self, folder: Path) -> None:
        self._filling = Filling(folder)
        self.server = self._filling.server

    def fail(self) -> None:
        self._filling.set_free(0)

    def mend(self) -> None:
        self._filling.set_free(1 << 39)


class Raising:
    """A server whose appends raise for a while."""

    def __init__(self, folder: Path) -> None:
        self._trigger = folder / "raise"
        patch = folder / "patch"
        patch.mkdir()
        (patch / "sitecustomize.py").write_text(RAISING)
        rooms = environment()["PYTHONPATH"]
        variables = {
            "PYTHONPATH": f"{patch}:{rooms}",
            "APPENDS_RAISE_WHILE": str(self._trigger),
        }
        self.server = RunningServer(folder, variables=variables, rocketmq=True)

    def fail(self) -> None:
        self._trigger.touch()

    def mend(self) -> None:
        self._trigger.unlink()


class Broken:
    """A server with a topic, whose disk can be made to fail."""

    def __init__(self, disk: Full | Raising) -> None:
        self.disk = disk
        self.name_server = "{}:{}".format(*disk.server.address("namesrv"))
        self.queue = Queue("orders", "", 0)

    async def fill(self) -> None:
        async with Producer(self.name_server, group="shop") as producer:
            for number in range(4):
                sent = await producer.send(Message("orders", b"m%d" % number), key="one queue")
            await producer.send(Message("probes", b"probe"))
        self.queue = sent.queue

    @asynccontextmanager
    async def failing(self) -> AsyncIterator[None]:
        """While this lasts nothing can be written."""
        self.disk.fail()
        try:
            await self._wait(is_broken=True)
            yield
        finally:
            self.disk.mend()
            await self._wait(is_broken=False)

    async def _wait(self, *, is_broken: bool) -> None:
        async with (
            asyncio.timeout(CALL_S),
            Producer(self.name_server, group="probe", retry_count=0, instance="probe") as producer,
        ):
            while True:
                try:
                    await producer.send(Message("probes", b"probe"))
                except SdkError:
                    if is_broken:
                        return
                else:
                    if not is_broken:
                        return


@pytest.fixture(scope="module", params=[Full, Raising], ids=["full", "raising"])
def broken(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Broken]:
    disk = request.param(tmp_path_factory.mktemp("broken"))
    with disk.server:
        made = Broken(disk)
        asyncio.run(made.fill())
        yield made


async def refused(call: Awaitable[object]) -> Refused:
    """How a broker has refused a call, in time."""
    async with asyncio.timeout(CALL_S):
        with pytest.raises(Refused) as found:
            await call
    return found.value


async def test_changes_of_an_admin_are_refused_and_questions_answered(broken: Broken) -> None:
    queue = broken.queue
    async with Admin(broken.name_server) as admin:
        changes: list[Callable[[], Awaitable[object]]] = [
            lambda: admin.topics.create("more"),
            lambda: admin.topics.update("orders", read_queues=9, write_queues=9),
            lambda: admin.groups.create("more"),
            lambda: admin.offsets.commit("more", queue, 1),
            lambda: admin.offsets.reset("more", "orders"),
        ]
        async with broken.failing():
            for change in changes:
                assert (await refused(change())).code != 0
            assert "orders" in await admin.topics.names()
            ends = {each.queue: each.max_offset for each in await admin.topics.bounds("orders")}
            assert ends[queue] >= 4
            assert await admin.offsets.committed("more", queue) is None
            assert (await admin.groups.lag("more", "orders")).lag >= 0
        for change in changes:
            async with asyncio.timeout(CALL_S):
                await change()


async def test_what_a_pull_consumer_gives_back_or_commits_is_refused(broken: Broken) -> None:
    async with PullConsumer(broken.name_server, group="g-pull") as consumer:
        message = (await consumer.pull(broken.queue, 0)).messages[0]
        async with broken.failing():
            await refused(consumer.send_back(message))
            consumer.commit(broken.queue, 1)
            await refused(consumer.persist())
            found = await consumer.pull(broken.queue, 0)
            assert found.messages[0].body == b"m0"
        await consumer.persist()
        await consumer.send_back(message)
    async with Admin(broken.name_server) as admin:
        assert await admin.offsets.committed("g-pull", broken.queue) == 1


async def test_a_commit_of_what_was_polled_is_refused_and_can_be_made_again(
    broken: Broken,
) -> None:
    settings = LitePullSettings(start=Start.BEGINNING, auto_commit=False)
    async with LitePullConsumer(
        broken.name_server, group="g-lite", topics={"orders": "*"}, settings=settings
    ) as consumer:
        async with asyncio.timeout(CALL_S):
            while not await consumer.poll(1.0, count_max=1):
                pass
        async with broken.failing():
            await refused(consumer.commit())
        await consumer.commit()
        assert await consumer.committed(broken.queue) == 1


async def test_a_retry_that_no_broker_takes_is_an_error_and_the_message_is_still_there(
    broken: Broken,
) -> None:
    async with (
        Consumer(
            broken.name_server, group="g-iter", topics=["orders"], settings=BEGINNING
        ) as consumer,
        asyncio.timeout(3 * CALL_S),
    ):
        message = await anext(consumer)
        async with broken.failing():
            for give_back in (message.retry, message.dead_letter):
                with pytest.raises(SdkError, match="could not be sent back"):
                    await give_back()
        await message.retry(timedelta(seconds=1))
        again = message
        while again.message_id != message.message_id or again.tries < 2:
            again = await anext(consumer)


async def test_listeners_that_fail_on_a_broken_disk_are_called_again_and_nothing_is_lost(
    broken: Broken,
) -> None:
    consumer = Consumer(broken.name_server, group="g-listens", settings=BEGINNING)
    calls: list[tuple[bytes, int]] = []
    is_broken = True

    @consumer.on("orders")
    async def listen(message: Received) -> None:
        calls.append((message.body, message.tries))
        if is_broken and message.body == b"m0":
            raise ValueError("on purpose")

    async with broken.failing():
        await consumer.open()
        await until(lambda: calls.count((b"m0", 1)) > 2, "it is called again here")
        is_broken = False
    await until(lambda: not consumer.statistics.cached_count, "everything is consumed")
    async with asyncio.timeout(CALL_S):
        await consumer.close()
    assert {body for body, _ in calls} == {b"m0", b"m1", b"m2", b"m3"}
    async with Admin(broken.name_server) as admin:
        assert await admin.offsets.committed("g-listens", broken.queue) == 4


async def test_a_consumer_is_closed_in_time_on_a_broken_disk(broken: Broken) -> None:
    seen: list[bytes] = []
    consumer = Consumer(broken.name_server, group="g-close", settings=BEGINNING)

    @consumer.on("orders")
    async def listen(message: Received) -> None:
        seen.append(message.body)

    await consumer.open()
    await until(lambda: len(seen) == 4, "four messages")
    async with broken.failing():
        async with asyncio.timeout(CALL_S):
            await consumer.close()
