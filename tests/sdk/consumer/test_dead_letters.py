"""Messages that a consumer gives up: dead letters at once, without the tries that are left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.sdk import (
    Consumer,
    ConsumerSettings,
    DeadLetter,
    Message,
    Producer,
    PullConsumer,
    PullStatus,
    Received,
    Retry,
    Start,
)

BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
IN_ORDER = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5, is_orderly=True, suspend_s=0.01)
BOTH = pytest.mark.parametrize("settings", [BEGINNING, IN_ORDER], ids=["concurrent", "in order"])
numbers = count()


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningServer(tmp_path_factory.mktemp("dead"), rocketmq=True) as running:
        yield "{}:{}".format(*running.address("namesrv"))


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"given-up-{next(numbers)}"


async def send(name_server: str, topic: str, *bodies: bytes) -> None:
    async with Producer(name_server, group="shop") as producer:
        for body in bodies:
            await producer.send(Message(topic, body), key="one queue")


async def dead_letters(name_server: str, group: str, how_many: int) -> list[Received]:
    """The first dead letters of a group, once there are that many."""
    found: list[Received] = []
    async with asyncio.timeout(30), PullConsumer(name_server, group="reader") as reader:
        queues = await reader.queues(f"%DLQ%{group}")
        offset = 0
        while len(found) < how_many:
            pulled = await reader.pull(queues[0], offset, block=True)
            if pulled.status is PullStatus.FOUND:
                found += pulled.messages
            offset = pulled.next_offset
    return found


@BOTH
async def test_a_listener_gives_a_message_up_at_once(
    name_server: str, topic: str, settings: ConsumerSettings
) -> None:
    await send(name_server, topic, b"hopeless", b"fine")
    group = f"gives-up-{next(numbers)}"
    consumer = Consumer(name_server, group=group, settings=settings)
    seen: list[tuple[bytes, int]] = []

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.append((message.body, message.tries))
        if message.body == b"hopeless":
            raise DeadLetter

    async with consumer:
        await until(
            lambda: len(seen) == 2 and not consumer.statistics.cached_count, "both, and no more"
        )
    (letter,) = await dead_letters(name_server, group, 1)
    assert (letter.body, letter.origin_topic) == (b"hopeless", topic)
    assert sorted(seen) == [(b"fine", 1), (b"hopeless", 1)]


@BOTH
async def test_of_a_batch_what_is_done_is_not_given_up(
    name_server: str, topic: str, settings: ConsumerSettings
) -> None:
    await send(name_server, topic, b"a", b"b", b"c")
    group = f"gives-up-{next(numbers)}"
    consumer = Consumer(name_server, group=group, settings=settings)
    calls: list[list[bytes]] = []

    @consumer.on(topic, batch=3)
    async def listen(messages: Sequence[Received]) -> None:
        calls.append([each.body for each in messages])
        raise DeadLetter(done=1)

    async with consumer:
        await until(lambda: calls and not consumer.statistics.cached_count, "nothing is left")
    letters = await dead_letters(name_server, group, 2)
    assert (calls, [each.body for each in letters]) == ([[b"a", b"b", b"c"]], [b"b", b"c"])


@BOTH
async def test_a_message_that_is_iterated_over_can_be_given_up(
    name_server: str, topic: str, settings: ConsumerSettings
) -> None:
    await send(name_server, topic, b"hopeless", b"fine")
    group = f"gives-up-{next(numbers)}"
    seen: list[bytes] = []
    async with (
        asyncio.timeout(30),
        Consumer(name_server, group=group, topics=[topic], settings=settings) as consumer,
    ):
        async for message in consumer:
            seen.append(message.body)
            if message.body == b"hopeless":
                await message.dead_letter()
                await message.dead_letter()
            if len(seen) == 2:
                break
        (failed,) = (each.failed_count for each in consumer.statistics.topics.values())
    letters = await dead_letters(name_server, group, 1)
    assert (seen, [each.body for each in letters]) == ([b"hopeless", b"fine"], [b"hopeless"])
    assert failed == 1


def test_a_wish_is_the_same_one_behind_other_messages() -> None:
    assert isinstance(DeadLetter(done=1).with_done(3), DeadLetter)
    assert not isinstance(Retry().with_done(3), DeadLetter)
    assert (DeadLetter().with_done(3).done, Retry().with_done(3).done) == (3, 3)
