"""Pulls by schedule against a real server: called for its own queues, again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.sdk import (
    Closed,
    MembershipSettings,
    Message,
    Producer,
    PullConsumer,
    PullStatus,
    PullTasks,
    Queue,
)

QUICKLY = MembershipSettings(rebalance_s=0.3)


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("tasks"), rocketmq=True) as running:
        host, port = running.address("namesrv")
        yield f"{host}:{port}"


async def send(name_server: str, topic: str, how_many: int) -> None:
    async with Producer(name_server, group="shop") as producer:
        for number in range(how_many):
            await producer.send(Message(topic, b"%d" % number))


@pytest.mark.row("PC-2")
async def test_every_queue_of_a_member_is_pulled_again_and_again(name_server: str) -> None:
    await send(name_server, "tasks-a", 12)
    found: list[bytes] = []
    called: list[Queue] = []
    tasks = PullTasks(name_server, group="g-tasks", settings=QUICKLY)

    @tasks.on("tasks-a")
    async def pull(queue: Queue, consumer: PullConsumer) -> float | None:
        called.append(queue)
        if called.count(queue) == 1:
            return 0.01
        result = await consumer.pull(queue, await consumer.committed(queue) or 0, count_max=2)
        if result.status is PullStatus.FOUND:
            found.extend(message.body for message in result.messages)
            consumer.commit(queue, result.next_offset)
        return 0.05

    async with tasks:
        await until(lambda: len(found) == 12, "everything")
        assert len(tasks.queues) == 4
        with pytest.raises(Closed, match="before the tasks are opened"):
            tasks.on("other")
    assert sorted(map(int, found)) == list(range(12))
    assert tasks.queues == []


async def test_a_queue_that_moves_away_is_not_called_for_any_more(name_server: str) -> None:
    await send(name_server, "tasks-b", 4)

    def member(name: str) -> PullTasks:
        tasks = PullTasks(name_server, group="g-moves", settings=QUICKLY, instance=name)

        @tasks.on("tasks-b")
        async def wait(queue: Queue, consumer: PullConsumer) -> float | None:
            await asyncio.Event().wait()
            return None

        return tasks

    async with member("one") as one:
        assert len(one.queues) == 4
        async with member("two") as two:
            await until(lambda: len(one.queues) == len(two.queues) == 2, "two queues each")
            assert not set(one.queues) & set(two.queues)


async def test_a_call_that_raises_is_made_again(
    name_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rockgate.sdk.consumer.pull.pull_tasks.FAILED_S", 0.01)
    await send(name_server, "tasks-c", 1)
    calls: list[Queue] = []
    tasks = PullTasks(name_server, group="g-raises", settings=QUICKLY)
    with pytest.raises(ValueError, match="No topic has a function"):
        await tasks.open()

    @tasks.on("tasks-c")
    async def fail(queue: Queue, consumer: PullConsumer) -> float | None:
        calls.append(queue)
        raise ZeroDivisionError

    async with tasks:
        await until(lambda: len(calls) > 12, "several calls")
