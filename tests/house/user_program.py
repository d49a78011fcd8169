"""A user's program over the whole of the SDK: test_typing.py checks it against an installed wheel.

`assert_type` keeps names from turning into Any, which every other check would let through.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import assert_type

from rockgate.sdk import (
    Admin,
    Consumer,
    ConsumerSettings,
    ConsumerStatistics,
    LitePullConsumer,
    LitePullSettings,
    Message,
    Outcome,
    Producer,
    PullConsumer,
    PullResult,
    PullStatus,
    Queue,
    Received,
    Retry,
    SdkError,
    SendResult,
    Start,
    TopicSettings,
)
from rockgate.sdk.blocking import (
    BlockingAdmin,
    BlockingConsumer,
    BlockingLitePullConsumer,
    BlockingProducer,
    BlockingPullConsumer,
)

SERVERS = "127.0.0.1:9876"
SETTINGS = ConsumerSettings(start=Start.BEGINNING, tries_max=3)


async def check(message: Received) -> Outcome:
    return Outcome.COMMIT if message.key else Outcome.UNKNOWN


async def send() -> None:
    async with Producer(SERVERS, group="shop", checker=check) as producer:
        message = Message("orders", b"one tea", tag="new", keys=["o-1"], delay=timedelta(seconds=1))
        try:
            result = await producer.send(message, key="o-1")
        except SdkError as failed:
            assert_type(failed.code, int | None)
            return
        assert_type(result, SendResult)
        assert_type(result.queue, Queue)
        assert_type(await producer.send_batch([message]), list[SendResult])
        async with producer.transaction(message) as transaction:
            transaction.rollback()
        assert_type(transaction.outcome, Outcome)


async def iterate() -> None:
    async with Consumer(
        SERVERS, group="kitchen", topics={"orders": "new || paid"}, settings=SETTINGS
    ) as consumer:
        async for message in consumer:
            assert_type(message, Received)
            assert_type(message.body, bytes)
            assert_type(message.key, str | None)
            assert_type(message.tries, int)
            assert_type(message.stored_at, datetime)
            assert_type(message.properties, Mapping[str, str])
            await message.retry(after=timedelta(seconds=10))
        assert_type(consumer.statistics, ConsumerStatistics)


async def listen() -> None:
    def lost(queues: Sequence[Queue]) -> None:
        assert_type(queues, Sequence[Queue])

    consumer = Consumer(SERVERS, group="kitchen", settings=SETTINGS, on_revoked=lost)

    @consumer.on("orders", sql="price > 10")
    async def cook(message: Received) -> None:
        if message.tries > 1:
            raise Retry(after=timedelta(minutes=1))

    @consumer.on("invoices")
    def file(message: Received) -> None:
        message.body.decode()

    @consumer.on("steps", batch=32)
    async def note(messages: Sequence[Received]) -> int | None:
        return len(messages) - 1

    await cook(Received.of("orders", b"by hand"))  # a listener stays what it was
    assert_type(await note([]), int | None)
    await consumer.run()


async def pull() -> None:
    settings = LitePullSettings(start=Start.BEGINNING, auto_commit=False)
    async with LitePullConsumer(
        SERVERS, group="nightly", topics=["sales"], settings=settings
    ) as consumer:
        assert_type(await consumer.poll(timeout_s=2, count_max=100), list[Received])
        for queue in consumer.assignment():
            assert_type(await consumer.committed(queue), int | None)
            await consumer.seek(queue, consumer.position(queue))
        await consumer.commit()
    async with PullConsumer(SERVERS, group="nightly") as by_hand:
        result = await by_hand.pull(Queue("sales", "broker-a", 0), 0)
        assert_type(result, PullResult)
        assert_type(result.status, PullStatus)


async def administer() -> None:
    async with Admin(SERVERS) as admin:
        await admin.topics.create("orders", TopicSettings(write_queues=8))
        assert_type(await admin.topics.names(), list[str])
        assert_type((await admin.groups.lag("kitchen", "orders")).lag, int)
        assert_type(await admin.messages.by_key("orders", "o-1"), list[Received])


def without_a_loop() -> None:
    with BlockingProducer(SERVERS, group="shop", timeout_s=2.0) as producer:
        assert_type(producer.send(Message("orders", b"one tea")), SendResult)
        assert_type(producer.submit(Message("orders", b"a cup")), Future[SendResult])
    with BlockingConsumer(SERVERS, group="till", topics=["orders"], settings=SETTINGS) as consumer:
        for message in consumer:
            assert_type(message, Received)
            consumer.ack(message)
    with BlockingLitePullConsumer(SERVERS, group="etl", topics=["orders"]) as polling:
        assert_type(polling.poll(1.0, count_max=100), list[Received])
        assert_type(polling.assignment(), list[Queue])
    with BlockingPullConsumer(SERVERS, group="audit") as pulling:
        (first, *_) = pulling.queues("orders")
        assert_type(pulling.pull(first, pulling.begin(first), block=True), PullResult)
    with BlockingAdmin(SERVERS) as admin:
        admin.topics.create("orders", TopicSettings(write_queues=8))
        assert_type(admin.groups.lag("kitchen", "orders").lag, int)


if __name__ == "__main__":
    asyncio.run(send())
    asyncio.run(iterate())
    asyncio.run(listen())
    asyncio.run(pull())
    asyncio.run(administer())
    without_a_loop()
