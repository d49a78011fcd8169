"""What a delayed message says of its delay, as rockgate and as Apache's brokers deliver it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from tests.gateway.server import RunningServer

from rockgate.protocol import entry
from rockgate.protocol.entry import pack_host, pack_properties
from rockgate.protocol.remoting.message import encode
from rockgate.sdk import Consumer, ConsumerSettings, Message, Outcome, Producer, Received, Start
from rockgate.sdk.received import read_one

BORN = datetime(2026, 1, 1, tzinfo=UTC)
ENQUEUED = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
HERE = pack_host(bytes(4), 0)
DEAD = "%DLQ%patient"


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def received(properties: Mapping[str, str], reconsume_times: int = 0) -> Received:
    raw = encode(
        topic=b"orders",
        body=b"x",
        properties=pack_properties(properties.items()),
        flag=0,
        queue_id=0,
        queue_offset=0,
        position=0,
        born_ms=ms(BORN),
        born_host=HERE,
        store_ms=ms(BORN) + 60_000,
        store_host=HERE,
        reconsume_times=reconsume_times,
    )
    assert entry.read(raw, 0).reconsume_times == reconsume_times
    return read_one(raw, "a")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"DELAY": "0"}, None),
        ({"TIMER_DELIVER_MS": "1"}, None),  # 4.9.7 knows no times, and delivers at once
        ({"REAL_TOPIC": "orders"}, None),  # what a half message has been, too
        ({"__ORIGIN": "00:0:0"}, BORN),  # rockgate
        ({"DELAY": "3", "REAL_TOPIC": "orders"}, BORN),  # a level, on Apache's brokers
        ({"TIMER_ENQUEUE_MS": str(ms(ENQUEUED)), "TIMER_OUT_MS": "1"}, ENQUEUED),  # a time, on 5.x
        ({"DELAY": "soon"}, None),  # no level: brokers deliver such a message at once
        ({"DELAY": "-1"}, None),
        ({"DELAY": "00"}, None),
        ({"__ORIGIN": "00:0:0", "PGROUP": "shop"}, None),  # waits from a commit that is not told
        ({"TIMER_ENQUEUE_MS": "soon"}, None),
        ({"TIMER_ENQUEUE_MS": "9" * 40}, None),
        ({"TIMER_ENQUEUE_MS": "9" * 40, "DELAY": "3"}, BORN),
    ],
)
def test_when_a_message_began_to_wait_is_read_from_what_brokers_leave_on_it(
    properties: Mapping[str, str], expected: datetime | None
) -> None:
    assert received(properties).delayed_from == expected


def test_the_wait_of_a_retry_is_not_the_messages_own() -> None:
    assert received({"DELAY": "3", "__ORIGIN": "00:0:0"}, reconsume_times=1).delayed_from is None


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = ["remoting.delay_levels=1s 1s 1s 1s 1s"]
    with RunningServer(
        tmp_path_factory.mktemp("delayed"), settings=settings, rocketmq=True
    ) as running:
        yield "{}:{}".format(*running.address("namesrv"))


async def committed(_: Received) -> Outcome:
    return Outcome.COMMIT


async def test_a_delayed_message_says_since_when_and_others_do_not(name_server: str) -> None:
    began = datetime.now(UTC)
    async with Producer(name_server, group="shop", checker=committed) as producer:
        await producer.send(Message("waits", b"now"))
        async with producer.transaction(Message("waits", b"paid", delay=1)):
            pass  # its wait begins with the commit, which no property tells
        await producer.send(Message("waits", b"level", delay=1))
        await producer.send(Message("waits", b"time", delay=timedelta(seconds=1)))
    sent = datetime.now(UTC)
    found: dict[tuple[bytes, int], Received] = {}
    settings = ConsumerSettings(start=Start.BEGINNING, rebalance_s=0.5)
    async with (
        asyncio.timeout(30),
        Consumer(name_server, group="patient", topics=["waits"], settings=settings) as consumer,
    ):
        async for message in consumer:
            found[message.body, message.tries] = message
            if message.body == b"level" and message.tries == 1:
                await message.retry()
            if message.body == b"time":
                await message.dead_letter()
            if len(found) == 5:
                break
        letters = Consumer(name_server, group="undertaker", topics=[DEAD], settings=settings)
        async with letters:
            letter = await anext(letters)
    assert (letter.body, letter.delayed_from) == (b"time", None)
    assert found[b"paid", 1].delayed_from is None
    assert found[b"now", 1].delayed_from is None
    assert found[b"level", 2].delayed_from is None
    slack = timedelta(milliseconds=1)
    for body in (b"level", b"time"):
        message = found[body, 1]
        assert message.delayed_from is not None
        assert began - slack <= message.delayed_from <= sent
        assert message.stored_at - message.delayed_from >= timedelta(seconds=1) - slack
