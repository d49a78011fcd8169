"""Batches: handlers that get several messages at once, and messages that are sent together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import pytest
from faststream import AckPolicy, BaseMiddleware, Context
from faststream.exceptions import NackMessage, RejectMessage, SetupError
from faststream.specification import AsyncAPI
from tests.sdk.faststream.applications import BEGINNING, Order, done_count, running, send, some_of
from tests.waiting import until

from rockgate.sdk import Closed, Received
from rockgate.sdk.faststream import RocketBatch, RocketBroker

ORDERS = [Order(number=number) for number in range(5)]


async def send_orders(broker: RocketBroker, topic: str) -> None:
    """To one queue, so that a pull brings them together."""
    async with broker:
        results = await broker.publish_batch(*ORDERS, topic=topic, tag="new")
    assert len({result.queue for result in results}) == 1
    assert [result.offset - results[0].offset for result in results] == [0, 1, 2, 3, 4]


@pytest.mark.row("FS-3")
async def test_a_handler_of_batches_gets_lists_of_validated_bodies(
    broker: RocketBroker, topic: str
) -> None:
    seen: list[list[Order]] = []
    batches: list[RocketBatch] = []

    @broker.subscriber(topic, "new", batch=True, max_records=3)
    async def handle(orders: list[Order], message: Annotated[RocketBatch, Context()]) -> None:
        seen.append(orders)
        batches.append(message)

    await send_orders(broker, topic)
    async with running(broker):
        await until(lambda: sum(map(len, seen)) == 5, "all have come")
    assert sorted(seen, key=lambda part: part[0].number) == [ORDERS[:3], ORDERS[3:]]
    first = min(batches, key=lambda batch: batch.raw_message[0].offset)
    assert [json.loads(each.body) for each in first.raw_message] == [
        order.model_dump() for order in ORDERS[:3]
    ]
    assert all(isinstance(each, Received) for each in first.raw_message)
    assert first.headers == first.batch_headers[0]
    assert [each["content-type"] for each in first.batch_headers] == ["application/json"] * 3


@pytest.mark.row("FS-3")
async def test_a_batch_is_acknowledged_as_a_whole(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    seen: list[int] = []

    def registered(each: RocketBroker) -> None:
        @each.subscriber(topic, "new", batch=True)
        async def handle(orders: list[Order]) -> None:
            seen.extend(order.number for order in orders)

    registered(broker)
    await send_orders(broker, topic)
    async with running(broker):
        await until(lambda: len(seen) == 5, "all have come")
    following = RocketBroker(name_server, group=broker.group, settings=BEGINNING)
    registered(following)
    async with running(following):
        await following.publish_batch(Order(number=9), topic=topic, tag="new")
        await until(lambda: 9 in seen, "the last one came")
    assert sorted(seen) == [0, 1, 2, 3, 4, 9]


@pytest.mark.row("FS-3")
@pytest.mark.parametrize(
    ("error", "policy", "comes_again"),
    [
        (ConnectionError(), AckPolicy.NACK_ON_ERROR, True),
        (NackMessage(after=timedelta(seconds=1)), AckPolicy.NACK_ON_ERROR, True),
        (ConnectionError(), AckPolicy.REJECT_ON_ERROR, False),
        (RejectMessage(), AckPolicy.NACK_ON_ERROR, False),
        (ConnectionError(), AckPolicy.ACK, False),
        (ConnectionError(), AckPolicy.MANUAL, True),
    ],
)
async def test_what_a_handler_fails_comes_again_message_by_message_or_not_at_all(
    error: Exception,
    policy: AckPolicy,
    comes_again: bool,
    broker: RocketBroker,
    name_server: str,
    topic: str,
) -> None:
    is_dead = policy is AckPolicy.REJECT_ON_ERROR or isinstance(error, RejectMessage)
    tries: list[tuple[int, int]] = []
    subscriber = broker.subscriber(topic, "new", batch=True, ack_policy=policy)

    @subscriber
    async def handle(orders: list[Order], message: Annotated[RocketBatch, Context()]) -> None:
        raws = message.raw_message
        tries.extend((order.number, raw.tries) for order, raw in zip(orders, raws, strict=True))
        if any(raw.tries == 1 for raw in raws):
            raise error
        await message.ack()

    await send_orders(broker, topic)
    async with running(broker):
        await until(lambda: len(tries) >= 5, "all have come")
        if is_dead:
            await some_of(name_server, f"%DLQ%{broker.group}", "*", 5)
        else:
            await until(lambda: done_count(subscriber) == 5, "all are acknowledged", 60)
    again = [(number, 2) for number in range(5)] if comes_again else []
    assert sorted(tries, key=lambda each: each[::-1]) == [(n, 1) for n in range(5)] + again


@pytest.mark.row("FS-3")
async def test_a_rejected_batch_is_dead_letters(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    seen: list[int] = []

    @broker.subscriber(topic, "new", batch=True)
    async def handle(orders: list[Order]) -> None:
        seen.extend(order.number for order in orders)
        raise RejectMessage

    await send_orders(broker, topic)
    async with running(broker):
        await until(lambda: len(seen) == 5, "all have come")
    letters = await some_of(name_server, f"%DLQ%{broker.group}", "*", 5)
    assert sorted(json.loads(each.body)["number"] for each in letters) == [0, 1, 2, 3, 4]


@pytest.mark.row("FS-3")
async def test_a_middleware_sees_a_batch_as_one(broker: RocketBroker, topic: str) -> None:
    received: list[Any] = []
    published: list[Sequence[Any]] = []

    class Note(BaseMiddleware):
        async def on_receive(self) -> None:
            received.append(self.msg)

        async def publish_scope(self, call_next: Any, cmd: Any) -> Any:
            published.append(cmd.batch_bodies)
            return await call_next(cmd)

    broker.add_middleware(Note)

    @broker.subscriber(topic, "new", batch=True)
    async def handle(orders: list[Order]) -> None: ...

    await send_orders(broker, topic)
    async with running(broker):
        await until(lambda: sum(map(len, received)) == 5, "all have come")
    assert published == [tuple(ORDERS)]


# Publishing


@pytest.mark.row("FS-3")
async def test_what_a_handler_returns_is_published_as_a_batch(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    @broker.subscriber(topic, "new")
    @broker.publisher(topic, tag="part", batch=True)
    async def handle(text: str) -> list[str]:
        return text.split()

    async with running(broker):
        await broker.publish(" ", topic, tag="new")  # nothing to send
        await broker.publish("tea and milk", topic, tag="new", correlation_id="c-7")
        found = await some_of(name_server, topic, "part", 3)
    assert [each.body for each in found] == [b"tea", b"and", b"milk"]
    assert len({each.queue for each in found}) == 1
    assert {each.properties["correlation_id"] for each in found} == {"c-7"}


@pytest.mark.row("FS-3")
async def test_a_publisher_of_batches_sends_by_itself(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    publisher = broker.publisher(topic, tag="part", batch=True)
    async with running(broker):
        results = await publisher.publish("tea", b"milk", key="o-1", headers={"source": "till"})
        assert await publisher.publish() == []
    assert len({result.queue for result in results}) == 1
    found = await some_of(name_server, topic, "part", 2)
    assert [(each.body, each.key, each.properties["source"]) for each in found] == [
        (b"tea", "o-1", "till"),
        (b"milk", "o-1", "till"),
    ]


@pytest.mark.row("FS-3")
async def test_messages_of_one_key_go_to_one_queue_in_batches_too(
    broker: RocketBroker, topic: str
) -> None:
    async with broker:
        for key in ("o-1", "o-2", "o-3", "o-4"):
            single = await broker.publish("a", topic, key=key)
            batch = await broker.publish_batch("b", "c", topic=topic, key=key)
            assert {result.queue for result in batch} == {single.queue}
        assert await broker.publish_batch(topic=topic) == []


@pytest.mark.row("FS-3")
async def test_a_broker_that_is_not_connected_sends_no_batch(broker: RocketBroker) -> None:
    with pytest.raises(Closed, match="not connected"):
        await broker.publish_batch("a", "b", topic="orders")


@pytest.mark.row("FS-3")
@pytest.mark.parametrize("count", [0, 1025])
def test_the_size_of_a_batch_has_a_limit(broker: RocketBroker, count: int) -> None:
    with pytest.raises(SetupError, match="max_records must be 1 to 1,024"):
        broker.subscriber("orders", batch=True, max_records=count)


@pytest.mark.row("FS-3")
async def test_a_request_in_a_batch_is_consumed_without_a_reply(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    seen: list[str] = []

    @broker.subscriber(topic, "ask", batch=True)
    async def handle(texts: list[str]) -> str:
        seen.extend(texts)
        return "answer"

    async with running(broker):
        with pytest.raises(TimeoutError):
            await broker.request("question", topic, tag="ask", timeout=1)
        await send(name_server, topic, b"end", tag="ask")
        await until(lambda: "end" in seen, "both have come")
    assert sorted(seen) == ["end", "question"]


@pytest.mark.row("FS-3")
def test_the_document_says_that_a_payload_is_a_list() -> None:
    broker = RocketBroker("127.0.0.1:9876", group="shop")

    @broker.subscriber("orders", batch=True)
    async def handle(orders: list[Order]) -> None: ...

    document = json.loads(AsyncAPI(broker, title="shop").to_specification().to_json())
    assert [each["type"] for each in document["components"]["schemas"].values()].count("array") == 1
