"""Orderly consumption against a real server: order holds in each queue, whoever comes and goes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, pairwise

import pytest
from tests.gateway.server import RunningServer
from tests.waiting import until

from rockgate.sdk import Client, Message, Producer, SdkError
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

LOCK_EXPIRY_S = 3.0
ORDERLY = ConsumerSettings(
    start=Start.BEGINNING,
    is_orderly=True,
    rebalance_s=0.5,
    suspend_s=0.02,
    lock_renew_s=0.5,
    lock_s_max=2.0,
)
numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = [f"remoting.lock_expiry_ms={LOCK_EXPIRY_S * 1000:.0f}"]
    with RunningServer(
        tmp_path_factory.mktemp("orderly"), settings=settings, rocketmq=True
    ) as running:
        yield running


@pytest.fixture
def name_server(server: RunningServer) -> str:
    host, port = server.address("namesrv")
    return f"{host}:{port}"


@pytest.fixture
def topic() -> str:
    """A topic of the test's own."""
    return f"ordered-{next(numbers)}"


async def send(name_server: str, topic: str, how_many: int, begin: int = 0) -> None:
    """Numbered messages, each number to every queue."""
    async with Producer(name_server, group="shop") as producer:
        await producer.send(Message(topic, b"first"))
        queues = await producer.queues(topic)
        for number in range(begin, begin + how_many):
            await asyncio.gather(
                *(producer.send(Message(topic, b"%d" % number), queue=each) for each in queues)
            )


def told(message: Received) -> int | None:
    """The number of a message, if it has one."""
    return None if message.body == b"first" else int(message.body)


class Seen:
    """What listeners were given, by queue, in order."""

    def __init__(self) -> None:
        self.by_queue: dict[Queue, list[int]] = {}

    def add(self, message: Received) -> None:
        number = told(message)
        if number is not None:
            self.by_queue.setdefault(message.queue, []).append(number)

    def is_complete(self, how_many: int, queue_count: int) -> bool:
        wanted = set(range(how_many))
        return len(self.by_queue) == queue_count and all(
            wanted <= set(each) for each in self.by_queue.values()
        )

    def check_order(self, repeats_max: int = 0) -> None:
        """A number follows the one before it; a hand-over may go back to what was not committed."""
        for found in self.by_queue.values():
            backs = 0
            for before, after in pairwise(found):
                assert after <= before + 1, found
                backs += after <= before
            assert backs <= repeats_max, found


async def test_listeners_see_each_queue_in_order_and_a_failure_in_place(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, 10)
    seen = Seen()
    failures: dict[Queue, int] = {}
    consumer = Consumer(name_server, group="o-listen", settings=ORDERLY)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        if told(message) == 4 and message.tries < 3:
            failures[message.queue] = failures.get(message.queue, 0) + 1
            raise ZeroDivisionError
        seen.add(message)

    async with consumer:
        await until(lambda: seen.is_complete(10, 4), "everything")
    seen.check_order()
    assert set(failures.values()) == {2}


async def test_iteration_is_in_order_and_a_retry_comes_before_what_follows(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, 5)
    seen = Seen()
    async with Consumer(name_server, group="o-iter", topics=[topic], settings=ORDERLY) as consumer:
        async with asyncio.timeout(60):
            async for message in consumer:
                if told(message) == 2 and message.tries == 1:
                    await message.retry()
                    continue
                seen.add(message)
                if seen.is_complete(5, 4):
                    await message.ack()
                    break
    seen.check_order()


async def test_what_was_not_settled_comes_again_and_nothing_else(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, 3)
    seen = Seen()
    settings = ORDERLY
    async with Consumer(name_server, group="o-again", topics=[topic], settings=settings) as first:
        async with asyncio.timeout(60):
            async for message in first:
                if told(message) == 1:
                    break
                seen.add(message)
    async with Consumer(name_server, group="o-again", topics=[topic], settings=settings) as second:
        async with asyncio.timeout(60):
            async for message in second:
                seen.add(message)
                if seen.is_complete(3, 4):
                    break
    seen.check_order()


@pytest.mark.row("ORD-8")
async def test_a_message_that_always_fails_ends_in_the_dead_letters(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, 2)
    seen = Seen()
    settings = ConsumerSettings(
        start=Start.BEGINNING, is_orderly=True, rebalance_s=0.5, suspend_s=0.02, tries_max=2
    )
    consumer = Consumer(name_server, group="o-dead", settings=settings)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        if told(message) == 0:
            raise ZeroDivisionError
        seen.add(message)

    async with consumer:
        await until(lambda: len(seen.by_queue) == 4, "what follows, in each queue")
    dead: list[bytes] = []
    beginning = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
    async with Consumer(
        name_server, group="undertaker", topics=["%DLQ%o-dead"], settings=beginning
    ) as c:
        async with asyncio.timeout(30):
            async for message in c:
                dead.append(message.body)
                assert (message.topic, message.origin_topic) == ("%DLQ%o-dead", topic)
                if len(dead) == 4:
                    break
    assert dead == [b"0"] * 4


@pytest.mark.row("ORD-11", "REB-16")
async def test_a_queue_is_locked_for_one_member_and_free_when_it_leaves(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, 1)
    seen = Seen()
    consumer = Consumer(name_server, group="o-lock", settings=ORDERLY)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.add(message)

    async with Client(name_server, instance="rival") as rival:
        calls = BrokerCalls(rival, "o-lock")
        async with consumer:
            await until(lambda: seen.is_complete(1, 4), "everything")
            assert await calls.lock(seen.by_queue) == set()
        assert await calls.lock(seen.by_queue) == set(seen.by_queue)


@pytest.mark.row("ORD-1", "REB-12")
async def test_a_queue_that_a_rival_has_locked_is_taken_up_when_it_is_free(
    name_server: str, topic: str
) -> None:
    await send(name_server, topic, 1)
    seen = Seen()
    consumer = Consumer(name_server, group="o-rival", settings=ORDERLY)

    @consumer.on(topic)
    async def listen(message: Received) -> None:
        seen.add(message)

    async with Client(name_server, instance="rival") as rival:
        calls = BrokerCalls(rival, "o-rival")
        queues = (await rival.routes.readable(topic)).readable
        held, free = queues[:1], queues[1:]
        assert await calls.lock(held) == set(held)
        async with consumer:
            await until(lambda: set(seen.by_queue) >= set(free), "the free queues")
            assert not set(seen.by_queue) & set(held)
            await calls.unlock(held)
            await until(lambda: seen.is_complete(1, 4), "everything")
            # Renewed many times, it stays this member's for longer than a lock lasts.
            loop = asyncio.get_running_loop()
            deadline_s = loop.time() + LOCK_EXPIRY_S + 0.5
            await until(lambda: loop.time() > deadline_s, "longer than a lock lasts")
            assert await calls.lock(queues) == set()


async def test_order_holds_when_members_come_and_one_dies(name_server: str, topic: str) -> None:
    seen = Seen()
    by_member: dict[str, int] = {"one": 0, "two": 0}
    clients: dict[str, Client] = {}
    await send(name_server, topic, 1)

    async def member(name: str) -> Consumer:
        clients[name] = await Client(name_server, instance=name).open()
        consumer = Consumer(client=clients[name], group="o-die", settings=ORDERLY)

        @consumer.on(topic)
        async def listen(message: Received) -> None:
            seen.add(message)
            by_member[name] += 1
            await asyncio.sleep(0)

        return await consumer.open()

    one = await member("one")
    await until(lambda: len(seen.by_queue) == 4, "the first of each queue")
    two = await member("two")
    sent = 1
    while by_member["two"] < 20:
        await send(name_server, topic, 10, sent)
        sent += 10
        assert sent < 3000
    # It dies silently: its locks have to expire before the other may continue.
    clients["two"].abort()
    await send(name_server, topic, 50, sent)
    sent += 50
    await until(lambda: seen.is_complete(sent, 4), "everything")
    await one.close()
    with suppress(SdkError):
        await two.close()
    await clients["one"].close()
    # Once for the queues that were handed over, once for those that came back.
    seen.check_order(repeats_max=2)


async def test_manual_commit_needs_listeners_in_order(name_server: str) -> None:
    for settings in (
        ConsumerSettings(auto_commit=False),
        ConsumerSettings(auto_commit=False, is_orderly=True),
    ):
        with pytest.raises(ValueError, match="Manual commit"):
            await Consumer(name_server, group="g", topics=["t"], settings=settings).open()
