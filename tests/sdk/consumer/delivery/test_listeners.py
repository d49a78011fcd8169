"""Listeners of every kind: what they are given, and what becomes of what they return and raise."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from rockgate.protocol.entry import pack_properties
from rockgate.protocol.remoting.message import encode
from rockgate.sdk.consumer.delivery.listeners import Listeners
from rockgate.sdk.consumer.delivery.observed import Observed
from rockgate.sdk.consumer.delivery.redelivery import Retry
from rockgate.sdk.hooks import ConsumeHook, ConsumeKind, Consuming
from rockgate.sdk.observe.statistics import Statistics
from rockgate.sdk.received import Received, split
from rockgate.sdk.results import Queue

HOST = bytes(8)


def messages(*topics: str, queue: str = "orders") -> list[Received]:
    """Messages of one queue, sent to these topics."""
    raw = b"".join(
        encode(
            topic=queue.encode(),
            body=b"%d" % at,
            properties=pack_properties([("RETRY_TOPIC", topic)] if topic != queue else []),
            **dict(queue_id=0, queue_offset=at, position=at, born_ms=0, store_ms=0),
            born_host=HOST,
            store_host=HOST,
        )
        for at, topic in enumerate(topics)
    )
    return split(raw, Queue(queue, "a", 0))


class Told(ConsumeHook):
    def __init__(self) -> None:
        self.before: list[int] = []
        self.after: list[tuple[ConsumeKind | None, int, int]] = []

    def before_consume(self, consuming: Consuming) -> None:
        assert (consuming.group, consuming.kind) == ("g", None)
        self.before.append(len(consuming.messages))

    def after_consume(self, consuming: Consuming) -> None:
        self.after.append((consuming.kind, consuming.done_count, len(consuming.messages)))


async def one_by_one(message: Received) -> None:
    if message.body == b"1":
        raise ZeroDivisionError


async def all_of_them(_: Sequence[Received]) -> None:
    """Nothing is returned."""


async def two(_: Sequence[Received]) -> int:
    return 2


async def too_many(_: Sequence[Received]) -> int:
    return 99


async def none(_: Sequence[Received]) -> int:
    return -1


async def nonsense(_: Sequence[Received]) -> bool:
    return True


async def fails(_: Sequence[Received]) -> int:
    raise ZeroDivisionError


async def wishes(_: Sequence[Received]) -> int:
    raise Retry(timedelta(seconds=9), done=1)


ok, failed, raised = ConsumeKind.SUCCESS, ConsumeKind.FAILED, ConsumeKind.EXCEPTION


@pytest.mark.row("CON-5")
@pytest.mark.row("CON-8")
@pytest.mark.row("C-36")
@pytest.mark.row("C-35")
@pytest.mark.row("OBS-3")
@pytest.mark.parametrize(
    ("function", "batch", "done", "after"),
    [
        pytest.param(one_by_one, None, 1, [(ok, 1, 1), (raised, 0, 1)], id="one by one"),
        pytest.param(all_of_them, 4, None, [(ok, 4, 4)], id="nothing is all"),
        pytest.param(all_of_them, 3, None, [(ok, 3, 3), (ok, 1, 1)], id="no more than asked for"),
        pytest.param(two, 4, 2, [(failed, 2, 4)], id="a part"),
        pytest.param(two, 2, None, [(ok, 2, 2), (ok, 2, 2)], id="a part that is all"),
        pytest.param(too_many, 4, None, [(ok, 4, 4)], id="more than there are"),
        pytest.param(none, 4, 0, [(failed, 0, 4)], id="less than none"),
        pytest.param(nonsense, 4, TypeError, [(raised, 0, 4)], id="not a number"),
        pytest.param(fails, 4, ZeroDivisionError, [(raised, 0, 4)], id="raised"),
        pytest.param(wishes, 4, Retry, [(failed, 1, 4)], id="a wish"),
        pytest.param(wishes, 2, Retry, [(failed, 1, 2)], id="a wish for the first part"),
    ],
)
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_what_a_listener_returns_and_raises(
    function: Any,
    batch: int | None,
    done: int | type[Exception] | None,
    after: list[tuple[ConsumeKind, int, int]],
    kind: str,
) -> None:
    listeners = Listeners(workers=2)
    in_loop = threading.get_ident()
    threads: list[int] = []

    def plain(given: Any) -> Any:
        threads.append(threading.get_ident())
        try:
            function(given).send(None)
        except StopIteration as returned:
            return returned.value

    listeners.add("orders", function if kind == "async" else plain, batch)
    told, statistics = Told(), Statistics()
    observed = Observed("g", [told], statistics)
    four = messages(*["orders"] * 4)
    try:
        if isinstance(done, type):
            with pytest.raises(done) as caught:
                await listeners.consume(four, observed)
            if isinstance(caught.value, Retry):
                assert (caught.value.done, caught.value.after) == (1, timedelta(seconds=9))
        else:
            assert await listeners.consume(four, observed) == done
    finally:
        listeners.close()
    assert told.after == after
    assert told.before == [size for _, _, size in after]
    counted = statistics.topics(0.0)["orders"]
    assert counted.ok_count == sum(count for _, count, _ in after)
    assert counted.failed_count == sum(size - count for _, count, size in after)
    assert in_loop not in threads
    assert bool(threads) is (kind == "plain")


@pytest.mark.row("CON-6")
async def test_a_listener_that_takes_too_long_is_distinguished_and_its_result_counts() -> None:
    listeners, told = Listeners(workers=1), Told()
    listeners.add("orders", one_by_one, None)
    observed = Observed("g", [told], timeout_s=0.0)
    assert await listeners.consume(messages("orders"), observed) is None
    assert told.after == [(ConsumeKind.TIME_OUT, 1, 1)]


@pytest.mark.row("CON-3")
async def test_messages_of_a_retry_topic_go_to_the_listeners_of_their_own_topics() -> None:
    seen: list[tuple[str, list[bytes]]] = []
    listeners = Listeners(workers=1)
    for topic in "ab":

        async def listen(part: Sequence[Received], name: str = topic) -> None:
            seen.append((name, [message.body for message in part]))

        listeners.add(topic, listen, 2)
    mixed = messages(*"aaabab", queue="%RETRY%g")
    assert [len(part) for part in listeners.split(mixed)] == [2, 1, 1, 1, 1]
    assert await listeners.consume(mixed, Observed("g")) is None
    assert seen == [
        ("a", [b"0", b"1"]),
        ("a", [b"2"]),
        *zip("bab", ([b"3"], [b"4"], [b"5"]), strict=True),
    ]
    with pytest.raises(LookupError, match="Topic c has no listener"):
        await listeners.consume(messages("c", queue="%RETRY%g"), Observed("g"))


async def test_a_hook_that_fails_keeps_no_message_from_its_listener(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(ConsumeHook):
        def before_consume(self, consuming: Consuming) -> None:
            raise ZeroDivisionError

        def after_consume(self, consuming: Consuming) -> None:
            raise ZeroDivisionError

    listeners, told = Listeners(workers=1), Told()
    listeners.add("orders", one_by_one, None)
    observed = Observed("g", [Broken(), told, Broken()])
    assert await listeners.consume(messages("orders"), observed) is None
    assert told.after == [(ConsumeKind.SUCCESS, 1, 1)]
    assert caplog.text.count("hook failed") == 4


def test_a_batch_and_a_wish_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="batch must be 1 to 1,024, not 0"):
        Listeners(workers=1).add("t", all_of_them, 0)
    with pytest.raises(ValueError, match="cannot be retried 0:00:01 ago"):
        Retry(timedelta(seconds=-1))
    with pytest.raises(ValueError, match="-1 messages cannot be done"):
        Retry(done=-1)
