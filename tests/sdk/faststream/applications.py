"""What the tests of FastStream's broker share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from faststream import FastStream, TestApp
from pydantic import BaseModel

from rockgate.sdk import Consumer, ConsumerSettings, Message, Producer, Received, Start
from rockgate.sdk.faststream import RocketBroker, RocketSubscriber

BEGINNING = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5, tries_max=2)
numbers = count()


class Order(BaseModel):
    number: int
    what: str = "tea"


async def send(name_server: str, topic: str, body: bytes, *, tag: str | None = None) -> None:
    async with Producer(name_server, group="setup") as producer:
        await producer.send(Message(topic, body, tag=tag))


async def one_of(name_server: str, topic: str, tags: str = "*") -> Received:
    (found,) = await some_of(name_server, topic, tags, 1)
    return found


async def some_of(name_server: str, topic: str, tags: str, count: int) -> list[Received]:
    found: list[Received] = []
    async with Consumer(
        name_server, group=f"reader-{next(numbers)}", topics={topic: tags}, settings=BEGINNING
    ) as consumer:
        async with asyncio.timeout(30):
            async for message in consumer:
                found.append(message)
                if len(found) == count:
                    break
    return found


def done_count(subscriber: RocketSubscriber) -> int:
    """How many messages were acknowledged."""
    assert subscriber.consumer is not None
    topics = subscriber.consumer.statistics.topics
    found = topics.get(subscriber.config.topic)
    return found.ok_count if found else 0


@asynccontextmanager
async def running(broker: RocketBroker) -> AsyncIterator[RocketBroker]:
    async with TestApp(FastStream(broker)):
        yield broker
