"""Servers that die, members that come, go and hang: nothing that was acknowledged is lost.

The faults are seeded. Messages may come twice where at-least-once allows it, and every message that
a producer was told of comes at least once.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.budget import budget
from tests.gateway.server import RunningServer
from tests.seeds import seeded
from tests.waiting import until

from rockgate.sdk import Client, Message, Producer, SdkError
from rockgate.sdk.consumer.consumer import Consumer
from rockgate.sdk.consumer.settings import ConsumerSettings, Start
from rockgate.sdk.received import Received

QUICK = ConsumerSettings(
    start=Start.BEGINNING, rebalance_s=0.5, persist_s=0.2, retry_s=0.2, local_retry_s=0.2
)
TOPIC, GROUP = "orders", "chaos"


class Members:
    """The members of a group, each with a client of its own, and what they have consumed."""

    def __init__(self, name_server: str, random: Random) -> None:
        self._name_server = name_server
        self._random = random
        self._living: dict[str, tuple[Consumer, Client]] = {}
        self._number = 0
        self.seen: list[bytes] = []

    async def join(self) -> None:
        """One more, if the server is there; if not, the next try may have more luck."""
        self._number += 1
        name = f"m{self._number}"
        client = Client(self._name_server, instance=name)
        consumer = Consumer(client=client, group=GROUP, settings=QUICK)

        @consumer.on(TOPIC)
        async def listen(message: Received) -> None:
            fate = self._random.random()
            if fate < 0.02 and message.tries < 3:
                raise ZeroDivisionError
            if fate < 0.04:
                # One that takes its time: others of its queue overtake it.
                for _ in range(self._random.randrange(200)):
                    await asyncio.sleep(0)
            self.seen.append(message.body)

        await client.open()
        try:
            await consumer.open()
        except SdkError:
            await client.close()
            return
        self._living[name] = (consumer, client)

    async def leave(self) -> None:
        """One less: it takes leave, or is gone in the middle of what it does."""
        if not self._living:
            return
        consumer, client = self._living.pop(self._random.choice(sorted(self._living)))
        if self._random.random() < 0.5:
            client.abort()
        with suppress(SdkError):
            await consumer.close(timeout_s=1.0)
        await client.close()

    async def close(self) -> None:
        """All of them."""
        while self._living:
            await self.leave()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._living)


async def produce(name_server: str, sent: list[bytes], is_over: asyncio.Event) -> None:
    """Send until it is over; what was acknowledged is in `sent`."""
    async with Producer(name_server, group="shop", timeout_s=2.0) as producer:
        number = 0
        while not is_over.is_set():
            number += 1
            body = b"%06d" % number
            with suppress(SdkError):
                await producer.send(Message(TOPIC, body))
                sent.append(body)


@pytest.mark.timeout(300)
async def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    random = seeded()
    sent: list[bytes] = []
    is_over = asyncio.Event()
    # What fails waits for the third level.
    settings = ["remoting.delay_levels=1s 1s 1s 1s 1s"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        host, port = server.address("namesrv")
        name_server = f"{host}:{port}"
        members = Members(name_server, random)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(members.close)
            producing = asyncio.create_task(produce(name_server, sent, is_over))
            await until(lambda: sent, "the topic is there")
            for _ in range(budget("consumer_faults")):
                match random.randrange(4):
                    case 0 | 1:
                        await members.join()
                    case 2:
                        await members.leave()
                    case _:
                        await asyncio.to_thread(server.kill)
                        await asyncio.to_thread(server.restart)
                goal = len(sent) + 50
                await until(partial(_is_as_long, sent, goal), "more was sent")
            is_over.set()
            await producing
            await members.join()
            while not members.count:
                await members.join()
            await until(lambda: set(sent) <= set(members.seen), "everything acknowledged is read")
    assert sent


@pytest.mark.timeout(300)
async def test_a_storm_of_members_ends_with_every_queue_read_by_one(tmp_path: Path) -> None:
    random = seeded()
    settings = ["num.partitions=16"]
    with RunningServer(tmp_path, settings=settings, rocketmq=True) as server:
        host, port = server.address("namesrv")
        name_server = f"{host}:{port}"
        sent = [b"%04d" % number for number in range(200)]
        async with Producer(name_server, group="shop") as producer:
            for body in sent[:100]:
                await producer.send(Message(TOPIC, body))
            members = Members(name_server, random)
            await asyncio.gather(*(members.join() for _ in range(budget("consumer_storm"))))
            while members.count > 3:
                leaving = min(5, members.count - 3)
                await asyncio.gather(*(members.leave() for _ in range(leaving)))
            for body in sent[100:]:
                await producer.send(Message(TOPIC, body))
            await until(lambda: set(sent) <= set(members.seen), "everything was read")
            await members.close()


def _is_as_long(found: list[bytes], count: int) -> bool:
    return len(found) >= count
