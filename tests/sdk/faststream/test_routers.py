"""Routers: handlers of a part of an application, which a broker includes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest
from faststream import AckPolicy, BaseMiddleware, Context, Depends
from faststream._internal.broker.router import BrokerRouter
from faststream._internal.configs import BrokerConfig
from faststream.exceptions import SetupError
from faststream.specification import AsyncAPI
from tests.sdk.faststream.applications import (
    BEGINNING,
    Order,
    done_count,
    numbers,
    one_of,
    running,
    send,
)
from tests.waiting import until

from rockgate.sdk import InvalidMessage
from rockgate.sdk.faststream import RocketBroker, RocketMessage, RocketRouter, RocketSubscriber


@pytest.mark.row("FS-4")
async def test_handlers_of_a_router_consume_and_publish_under_its_prefix(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    name = topic.removeprefix("orders-")
    router = RocketRouter("orders-")
    seen: list[Order] = []

    @router.subscriber(name, "new")
    @router.publisher(name, tag="bill")
    async def handle(order: Order) -> str:
        seen.append(order)
        return "paid"

    broker.include_router(router)
    async with running(broker):
        await broker.publish(Order(number=7), topic, tag="new")
        await until(lambda: seen, "the handler is called")
        bill = await one_of(name_server, topic, "bill")
    assert seen == [Order(number=7)]
    assert bill.body == b"paid"


@pytest.mark.row("FS-4")
async def test_routers_are_nested_and_prefixes_add_up(name_server: str, topic: str) -> None:
    name = topic.removeprefix("orders-")
    inner, outer = RocketRouter("ers-"), RocketRouter("rd")
    seen: list[str] = []

    @inner.subscriber(name, "new")
    async def handle(text: str) -> None:
        seen.append(text)

    publisher = inner.publisher(name, tag="new")
    outer.include_router(inner)
    broker = RocketBroker(name_server, group=f"shop-{next(numbers)}", settings=BEGINNING)
    broker.include_router(outer, prefix="o")
    assert publisher.topic == topic
    async with running(broker):
        await publisher.publish("one tea")
        await until(lambda: seen, "the handler is called")
    assert seen == ["one tea"]


@pytest.mark.row("FS-4")
def test_the_group_is_that_of_the_subscriber_the_nearest_router_or_the_broker() -> None:
    inner, middle, outer = RocketRouter(), RocketRouter(group="middle"), RocketRouter(group="outer")
    plain = RocketRouter()
    subscribers: dict[str, RocketSubscriber] = {
        "own": inner.subscriber("a", group="own"),
        "middle": inner.subscriber("b"),
        "outer": outer.subscriber("c"),
        "shop": plain.subscriber("d"),
    }
    middle.include_router(inner)
    outer.include_router(middle)
    broker = RocketBroker("127.0.0.1:9876", group="shop", routers=[outer])
    broker.include_router(plain)
    assert {group: each.config.group for group, each in subscribers.items()} == {
        group: group for group in subscribers
    }


@pytest.mark.row("FS-4")
async def test_middlewares_and_dependencies_of_a_router_are_for_its_handlers(
    broker: RocketBroker, topic: str
) -> None:
    seen: list[str] = []

    class Note(BaseMiddleware):
        async def consume_scope(self, call_next: Callable[[Any], Awaitable[Any]], msg: Any) -> Any:
            seen.append("middleware")
            return await call_next(msg)

    async def depends() -> None:
        seen.append("dependency")

    router = RocketRouter(middlewares=[Note], dependencies=[Depends(depends)])

    @router.subscriber(topic, "routed", group=f"{broker.group}-routed")
    async def routed(text: str) -> None:
        seen.append(text)

    @broker.subscriber(topic, "plain")
    async def plain(text: str) -> None:
        seen.append(text)

    broker.include_router(router)
    async with running(broker):
        await broker.publish("plain", topic, tag="plain")
        await until(lambda: "plain" in seen, "the broker's handler is called")
        assert seen == ["plain"]
        await broker.publish("routed", topic, tag="routed")
        await until(lambda: "routed" in seen, "the router's handler is called")
    assert seen == ["plain", "middleware", "dependency", "routed"]


@pytest.mark.row("FS-4")
@pytest.mark.parametrize(
    ("of_broker", "of_router", "comes_again"),
    [
        (AckPolicy.ACK, None, False),
        (AckPolicy.ACK, AckPolicy.NACK_ON_ERROR, True),
        (AckPolicy.MANUAL, None, True),
        (AckPolicy.NACK_ON_ERROR, AckPolicy.ACK, False),
    ],
)
async def test_the_policy_is_the_routers_or_the_brokers(
    of_broker: AckPolicy,
    of_router: AckPolicy | None,
    comes_again: bool,
    name_server: str,
    topic: str,
) -> None:
    router = RocketRouter() if of_router is None else RocketRouter(ack_policy=of_router)
    tries: list[int] = []
    subscriber = router.subscriber(topic, "new")

    @subscriber
    async def handle(text: str, message: Annotated[RocketMessage, Context()]) -> None:
        tries.append(message.raw_message.tries)
        if message.raw_message.tries == 1:
            if of_broker is AckPolicy.MANUAL:
                return  # without a decision
            raise ConnectionError("the bank does not answer")
        await message.ack()

    broker = RocketBroker(
        name_server, group=f"shop-{next(numbers)}", settings=BEGINNING, ack_policy=of_broker
    )
    broker.include_router(router)
    async with running(broker):
        await broker.publish("one tea", topic, tag="new")
        await until(lambda: done_count(subscriber) == 1, "it is acknowledged", 60)
    assert tries == ([1, 2] if comes_again else [1])


@pytest.mark.row("FS-4")
async def test_a_router_and_its_broker_may_not_both_subscribe_to_a_topic_in_a_group(
    broker: RocketBroker, name_server: str, topic: str
) -> None:
    router = RocketRouter()
    for each in (broker, router):

        @each.subscriber(topic)
        async def handle(text: str) -> None: ...

    broker.include_router(router)
    await send(name_server, topic, b"unseen")
    with pytest.raises(SetupError, match="two subscribers of topic"):
        await broker.start()


@pytest.mark.row("FS-4")
def test_a_router_of_another_broker_is_refused() -> None:
    class OtherRouter(BrokerRouter[Any, Any]):
        def __init__(self) -> None:
            super().__init__(config=BrokerConfig(), handlers=(), routers=())

        def subscriber(self, *args: Any, **more: Any) -> Any: ...

        def publisher(self, *args: Any, **more: Any) -> Any: ...

    with pytest.raises(SetupError, match="includes RocketRouter, not OtherRouter"):
        RocketBroker("127.0.0.1:9876", group="shop").include_router(OtherRouter())


@pytest.mark.row("FS-4")
def test_the_group_of_a_router_is_checked() -> None:
    with pytest.raises(InvalidMessage, match="group"):
        RocketRouter(group="not a group")


@pytest.mark.row("FS-4")
def test_the_document_has_the_topics_of_routers_unless_they_are_left_out() -> None:
    broker = RocketBroker("127.0.0.1:9876", group="shop")
    shown, hidden = RocketRouter("eu."), RocketRouter(include_in_schema=False)

    @shown.subscriber("orders")
    @shown.publisher("invoices")
    async def bill(order: Order) -> Order:
        return order

    @hidden.subscriber("secrets")
    async def hide(order: Order) -> None: ...

    broker.include_routers(shown, hidden)
    document = json.loads(AsyncAPI(broker, title="shop").to_specification().to_json())
    addresses = {each["address"] for each in document["channels"].values()}
    assert addresses == {"eu.orders", "eu.invoices"}
