"""FastStream's own applications over the broker, against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import pytest
from faststream import AckPolicy, BaseMiddleware, Context, Depends, Header
from faststream.exceptions import (
    FeatureNotSupportedException,
    NackMessage,
    RejectMessage,
    SetupError,
)
from faststream.specification import AsyncAPI
from tests.sdk.faststream.applications import BEGINNING, Order, done_count, one_of, running, send
from tests.waiting import until

from rockgate.sdk import Closed, Received
from rockgate.sdk.faststream import RocketBroker, RocketMessage

# What handlers get


@pytest.mark.row("FS-2")
async def test_a_handler_gets_the_validated_body_and_what_it_depends_on(
    broker: RocketBroker, topic: str
) -> None:
    seen: list[tuple[Any, ...]] = []

    def price(order: Order) -> int:
        return order.number * 100

    @broker.subscriber(topic, "new")
    async def handle(
        order: Order,
        cents: Annotated[int, Depends(price)],
        message: Annotated[RocketMessage, Context()],
        source: Annotated[str, Header()],
    ) -> None:
        seen.append((order, cents, message.raw_message.tag, message.raw_message.key, source))

    async with running(broker):
        result = await broker.publish(
            Order(number=7), topic, tag="new", key="o-7", headers={"source": "till"}
        )
        assert result.queue.topic == topic
        await until(lambda: seen, "the handler is called")
    assert seen == [(Order(number=7), 700, "new", "o-7", "till")]


@pytest.mark.row("FS-2")
async def test_a_message_of_any_producer_is_decoded_as_json_if_it_is(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    seen: list[object] = []

    @broker.subscriber(topic, "new")
    async def handle(body: dict[str, int]) -> None:
        seen.append(body)

    await send(name_server, topic, json.dumps({"number": 1}).encode(), tag="new")
    async with running(broker):
        await until(lambda: seen, "the handler is called")
    assert seen == [{"number": 1}]


async def test_a_plain_function_handles_messages_too(broker: RocketBroker, topic: str) -> None:
    seen: list[str] = []

    @broker.subscriber(topic, "new")
    def handle(text: str) -> None:
        seen.append(text)

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: seen, "the handler is called")
    assert seen == ["one tea"]


# What becomes of messages


@pytest.mark.row("FS-1")
async def test_a_handler_that_fails_gets_the_message_again_and_then_it_is_a_dead_letter(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    tries: list[int] = []

    @broker.subscriber(topic, "new")
    async def handle(text: str, message: Annotated[RocketMessage, Context()]) -> None:
        tries.append(message.raw_message.tries)
        raise ConnectionError("the bank does not answer")

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: len(tries) == 3, "it has been tried three times")
    assert tries == [1, 2, 3]
    letter = await one_of(name_server, f"%DLQ%{broker.group}")
    assert (letter.body, letter.origin_topic) == (b"one tea", topic)


@pytest.mark.row("FS-1")
async def test_a_body_that_is_not_valid_comes_again(broker: RocketBroker, topic: str) -> None:
    seen: list[int] = []

    class Count(BaseMiddleware):
        async def on_receive(self) -> None:
            assert isinstance(self.msg, Received)
            seen.append(self.msg.tries)

    broker.add_middleware(Count)

    @broker.subscriber(topic, "new")
    async def handle(order: Order) -> None:
        raise AssertionError("it is not called")

    async with running(broker):
        await broker.publish({"number": "many"}, topic, tag="new")
        await until(lambda: 2 in seen, "it came again", 60)


@pytest.mark.row("FS-1")
async def test_nack_says_when_a_message_comes_again(broker: RocketBroker, topic: str) -> None:
    seen: list[tuple[int, float]] = []

    @broker.subscriber(topic, "new")
    async def handle(text: str, message: Annotated[RocketMessage, Context()]) -> None:
        seen.append((message.raw_message.tries, asyncio.get_running_loop().time()))
        if message.raw_message.tries == 1:
            raise NackMessage(after=timedelta(seconds=30))  # the fourth level: 2 s here

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: len(seen) == 2, "it came again", 60)
    (_, first_s), (tries, second_s) = seen
    assert tries == 2
    assert second_s - first_s >= 2.0


@pytest.mark.row("FS-1")
@pytest.mark.parametrize(
    ("policy", "comes_again"),
    [
        (AckPolicy.NACK_ON_ERROR, True),
        (AckPolicy.REJECT_ON_ERROR, False),
        (AckPolicy.ACK, False),
        (AckPolicy.ACK_FIRST, False),
        (AckPolicy.MANUAL, True),
    ],
)
async def test_the_policy_decides_about_a_message_whose_handler_fails(
    policy: AckPolicy, comes_again: bool, broker: RocketBroker, name_server: str, topic: str
) -> None:
    seen: list[str] = []
    subscriber = broker.subscriber(topic, "new", ack_policy=policy)

    @subscriber
    async def handle(text: str, message: Annotated[RocketMessage, Context()]) -> None:
        seen.append(text)
        if message.raw_message.tries == 1 and text == "fails":
            raise ConnectionError("the bank does not answer")
        await message.ack()

    async with running(broker):
        await broker.publish("fails", topic, tag="new")
        await until(lambda: seen, "it came")
        if policy is AckPolicy.REJECT_ON_ERROR:
            assert (await one_of(name_server, f"%DLQ%{broker.group}")).body == b"fails"
        else:
            await until(lambda: done_count(subscriber) == 1, "it is acknowledged", 60)
    assert seen == ["fails"] * (2 if comes_again else 1)


@pytest.mark.row("FS-1")
async def test_the_first_decision_about_a_message_counts(broker: RocketBroker, topic: str) -> None:
    subscriber = broker.subscriber(topic, "new")

    @subscriber
    async def handle(text: str, message: Annotated[RocketMessage, Context()]) -> None:
        await message.ack()
        raise ConnectionError("the bank does not answer")

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: done_count(subscriber) == 1, "it is acknowledged", 60)


@pytest.mark.row("FS-1")
async def test_a_message_that_is_rejected_is_a_dead_letter_at_once(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    tries: list[int] = []

    @broker.subscriber(topic, "new")
    async def handle(text: str, message: Annotated[RocketMessage, Context()]) -> None:
        tries.append(message.raw_message.tries)
        raise RejectMessage

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: tries, "it came")
    letter = await one_of(name_server, f"%DLQ%{broker.group}")
    assert (letter.body, tries) == (b"one tea", [1])


@pytest.mark.row("FS-1")
async def test_a_message_that_was_handled_does_not_come_to_the_next_member(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    seen: list[str] = []

    def registered(each: RocketBroker) -> None:
        @each.subscriber(topic, "new")
        async def handle(text: str) -> None:
            seen.append(text)

    registered(broker)
    async with running(broker):
        await broker.publish("first", topic, tag="new")
        await until(lambda: seen, "it came")
    following = RocketBroker(name_server, group=broker.group, settings=BEGINNING)
    registered(following)
    async with running(following):
        await following.publish("second", topic, tag="new")
        await until(lambda: len(seen) == 2, "the second one came")
    assert seen == ["first", "second"]


# Publishing


@pytest.mark.row("FS-2")
async def test_what_a_handler_returns_is_published(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    await send(name_server, f"{topic}-bills", b"makes the topic", tag="setup")

    @broker.subscriber(topic, "new")
    @broker.publisher(f"{topic}-bills", tag="bill")
    async def handle(order: Order) -> Order:
        return Order(number=order.number, what="paid")

    async with running(broker):
        await broker.publish(Order(number=7), topic, tag="new", correlation_id="c-7")
        found = await one_of(name_server, f"{topic}-bills", "bill")
    assert json.loads(found.body) == {"number": 7, "what": "paid"}
    assert found.properties["content-type"] == "application/json"
    assert found.properties["correlation_id"] == "c-7"


@pytest.mark.row("FS-2")
async def test_a_publisher_sends_by_itself_and_with_a_delay(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    publisher = broker.publisher(topic, tag="later")
    async with running(broker):
        await publisher.publish("tea is ready", key="o-1", delay=timedelta(milliseconds=300))
    found = await one_of(name_server, topic, "later")
    assert (found.body, found.key) == (b"tea is ready", "o-1")
    assert found.stored_at - found.born_at >= timedelta(milliseconds=300)


@pytest.mark.row("FS-2")
async def test_a_request_gets_what_the_handler_returns(broker: RocketBroker, topic: str) -> None:
    @broker.subscriber(topic, "ask")
    async def handle(order: Order) -> Order:
        return Order(number=order.number + 1)

    publisher = broker.publisher(topic, tag="ask")
    async with running(broker):
        answer = await broker.request(Order(number=1), topic, tag="ask", timeout=20)
        assert await answer.decode() == {"number": 2, "what": "tea"}
        second = await publisher.request(Order(number=2))
        assert await second.decode() == {"number": 3, "what": "tea"}


@pytest.mark.row("FS-2")
async def test_a_middleware_sees_what_comes_and_what_is_published(
    broker: RocketBroker, topic: str
) -> None:
    seen: list[tuple[str, object]] = []

    class Note(BaseMiddleware):
        async def consume_scope(self, call_next: Callable[[Any], Awaitable[Any]], msg: Any) -> Any:
            seen.append(("in", msg.body))
            return await call_next(msg)

        async def publish_scope(self, call_next: Callable[[Any], Awaitable[Any]], cmd: Any) -> Any:
            seen.append(("out", cmd.destination))
            return await call_next(cmd)

    broker.add_middleware(Note)

    @broker.subscriber(topic, "new")
    async def handle(text: str) -> None: ...

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: len(seen) == 2, "it came")
    assert seen == [("out", topic), ("in", b"one tea")]


# Life


async def test_groups_of_one_broker_each_get_every_message(
    broker: RocketBroker, topic: str
) -> None:
    seen: set[str] = set()

    @broker.subscriber(topic, "new")
    async def bill(text: str) -> None:
        seen.add("bill")

    @broker.subscriber(topic, "new", group=f"{broker.group}-audit")
    async def audit(text: str) -> None:
        seen.add("audit")

    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: seen == {"bill", "audit"}, "both have it")


async def test_two_subscribers_of_one_topic_in_a_group_are_refused(
    broker: RocketBroker, topic: str
) -> None:
    for _ in range(2):

        @broker.subscriber(topic)
        async def handle(text: str) -> None: ...

    with pytest.raises(SetupError, match="two subscribers of topic"):
        await broker.start()
    with pytest.raises(Closed, match="not connected"):
        await broker.publish("one tea", topic)


@pytest.mark.row("FS-2")
async def test_a_broker_that_stops_lets_a_handler_finish(broker: RocketBroker, topic: str) -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @broker.subscriber(topic, "new")
    async def handle(text: str) -> None:
        began.set()
        await may_end.wait()
        ended.set()

    await broker.start()
    await broker.publish("one tea", topic, tag="new")
    await asyncio.wait_for(began.wait(), 30)
    stopping = asyncio.create_task(broker.stop())
    for _ in range(1000):  # as many turns of the loop as a stop needs that waits for no one
        await asyncio.sleep(0)
    assert not stopping.done()
    may_end.set()
    await stopping
    assert ended.is_set()


async def test_a_broker_is_started_again_after_a_stop(broker: RocketBroker, topic: str) -> None:
    seen: list[str] = []

    @broker.subscriber(topic, "new")
    async def handle(text: str) -> None:
        seen.append(text)

    for text in ("first", "second"):
        await broker.start()
        await broker.publish(text, topic, tag="new")
        await until(partial(seen.__contains__, text), f"the {text} one came")
        await broker.stop()
    assert seen == ["first", "second"]


async def test_ping_says_whether_a_name_server_answers(broker: RocketBroker) -> None:
    assert not await broker.ping()
    async with broker:
        assert await broker.ping()
    assert not await broker.ping()
    nowhere = RocketBroker("127.0.0.1:1", group="nobody")
    async with nowhere:
        assert not await nowhere.ping(timeout=2)


async def test_what_is_not_supported_says_so(broker: RocketBroker, topic: str) -> None:
    subscriber = broker.subscriber(topic)
    async with broker:
        with pytest.raises(FeatureNotSupportedException, match="LitePullConsumer"):
            await subscriber.get_one()
        with pytest.raises(FeatureNotSupportedException, match="Consumer"):
            aiter(subscriber)


def test_the_document_names_topics_and_payloads() -> None:
    broker = RocketBroker("127.0.0.1:9876;127.0.0.1:9877", group="shop")

    @broker.subscriber("orders", "new")
    @broker.publisher("invoices")
    async def bill(order: Order) -> Order:
        return order

    document = json.loads(AsyncAPI(broker, title="shop").to_specification().to_json())
    assert {each["host"] for each in document["servers"].values()} == {
        "127.0.0.1:9876",
        "127.0.0.1:9877",
    }
    assert {each["address"] for each in document["channels"].values()} == {"orders", "invoices"}
    assert "Order" in document["components"]["schemas"]
