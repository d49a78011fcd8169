"""The SDK among peers that mean harm: every call ends in its time, and closing leaves nothing.

Name server and broker answer right, wrong, twice, in part or not at all, with absurd values and
with bytes that are none; they ask back nonsense, stop reading, and go away. Time is the virtual
loop's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

from tests.budget import budget
from tests.sdk.client.test_client import cluster, route
from tests.sdk.memorynet import MemoryNet, Peer, now, pass_time, run, settle
from tests.sdk.producer.test_producer import SENT
from tests.sdk.producer.test_transaction import CHECK, half
from tests.seeds import seeded

from rockgate.protocol.remoting.command import Command, encode
from rockgate.sdk import (
    Client,
    Message,
    Outcome,
    Producer,
    Received,
    Rollback,
    SdkError,
)
from rockgate.sdk.client import checks

CALL_S = 3.0
CLOSE_S = 2.0
NUMBERS = ["-1", "0", "1", str(2**31), str(2**63), str(-(2**63)), "x", "", "1e9", "\uff19"]
CODES = [0, 1, 2, 10, 14, 17, 200, 205, -1, 2**31 - 1]


class Hostile:
    """What one peer does with what it is asked."""

    def __init__(self, rng: Random, peer: Peer, right: Callable[[Command], Command]) -> None:
        self._rng = rng
        self._peer = peer
        self._right = right
        for code in (34, 35, 37, 105, 106, 310, 320, 370):
            peer.script[code] = self.answer

    def answer(self, request: Command) -> Command | None:
        rng = self._rng
        kind = rng.randrange(14)
        if kind < 5:
            return self._right(request)
        if kind == 5:
            return None
        if kind == 6:
            return Command(rng.choice(CODES), remark="no\x1b[2J\n" * rng.choice([1, 10_000]))
        if kind == 7:
            absurd = {name: rng.choice(NUMBERS) for name in SENT if rng.random() < 0.8}
            return Command(0, absurd, body=self._junk())
        if kind == 8:
            return Command(0, body=rng.choice([self._junk(), self._absurd_route()]))
        self._misbehave(kind, request)
        return None

    def _misbehave(self, kind: int, request: Command) -> None:
        transport, rng = self._peer.transport, self._rng
        answer = self._right(request)
        answer.opaque, answer.flag = request.opaque, 1
        whole = encode(answer) + bytes(answer.body)
        if kind == 9:
            transport.tell(whole[: rng.randrange(len(whole))])
        elif kind == 10:
            answer.opaque = rng.randrange(-(2**31), 2**31)
            transport.tell((encode(answer) + bytes(answer.body)) * 2 + whole * 2)
        elif kind == 11:
            transport.tell(self._junk())
        elif kind == 12:
            transport.lose(rng.choice([None, ConnectionResetError("reset")]))
        else:
            self._ask()

    def _ask(self) -> None:
        rng = self._rng
        code = rng.choice([39, 326, 220, 307, 40, 12345])
        fields = {name: rng.choice([value, *NUMBERS]) for name, value in CHECK.items()}
        body = rng.choice([half(), half("strangers"), half()[:50], self._junk(), b""])
        self._peer.ask(code, fields, body)

    def _junk(self) -> bytes:
        return self._rng.randbytes(self._rng.choice([1, 3, 4, 40, 4000]))

    def _absurd_route(self) -> bytes:
        rng = self._rng
        addresses = ["b:1", "", "b", "b:70000", "\x00:1", "x" * 300 + ":1", "[::1]:1"]
        brokers = {f"b{number}": rng.choice(addresses) for number in range(rng.randrange(20))}
        queues = rng.choice([0, 1, -1, 65_536, 2**63])
        return route(brokers, queues=queues, perm=rng.choice([6, 0, -1]))


def right_names(request: Command) -> Command:
    known = {"t": route({"a": "b:1", "b": "b:2"})}
    return Command(0, body=known["t"] if request.code == 105 else cluster(known))


def right_broker(request: Command) -> Command:
    return Command(0, SENT)


async def check(message: Received) -> Outcome:
    return Outcome.COMMIT


async def in_transaction(producer: Producer, rng: Random) -> None:
    work_s = rng.choice([0, 0, 5])
    async with producer.transaction(Message("t", b"x"), timeout_s=CALL_S) as tx:
        await pass_time(work_s)
        if rng.random() < 0.3:
            raise Rollback
    assert tx.is_confirmed is (tx.failure is None)


def calls(producer: Producer, rng: Random) -> list[Callable[[], Awaitable[Any]]]:
    message = Message("t", b"x" * rng.choice([1, 5000]))
    later = Message("t", b"x", delay=timedelta(seconds=9))
    return [
        lambda: producer.send(message, timeout_s=CALL_S),
        lambda: producer.send(later, timeout_s=CALL_S),
        lambda: producer.send(message, key="k", timeout_s=CALL_S),
        lambda: producer.send_oneway(message, timeout_s=CALL_S),
        lambda: producer.send_batch([message] * 3, timeout_s=CALL_S),
        lambda: producer.request(message, timeout_s=CALL_S),
    ]


async def ends(call: Callable[[], Awaitable[Any]]) -> None:
    began = now()
    try:
        await call()
    except SdkError as failed:
        assert str(failed).isprintable(), failed
        assert len(str(failed)) < 20_000
    assert now() - began <= CALL_S + 0.01


async def round_of(rng: Random) -> None:
    net = MemoryNet()
    names = net.listen("n:1"), net.listen("n:2")
    brokers = net.listen("b:1"), net.listen("b:2")
    for peer in names:
        Hostile(rng, peer, right_names)
    for peer in brokers:
        Hostile(rng, peer, right_broker)
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    async with Client("n:1;n:2", dial=net.dial) as client:
        producer = Producer(client=client, group="shop", checker=check, trace=rng.random() < 0.3)
        await producer.open()
        for _ in range(6):
            some = rng.sample(calls(producer, rng), 3)
            blocks = [in_transaction(producer, rng) for _ in range(2)]
            for result in await asyncio.gather(*map(ends, some), *blocks, return_exceptions=True):
                if result is not None and not isinstance(result, SdkError):
                    raise result
            rng.choice(brokers + names).is_down = rng.random() < 0.3
            rng.choice(brokers).reads = rng.random() < 0.8
            await pass_time(rng.choice([0, 1, 35]))
        upkeep = client._upkeep._task
        assert upkeep is not None and not upkeep.done()
        began = now()
        await producer.close(timeout_s=CLOSE_S)
        assert now() - began <= CLOSE_S + 0.01
        began = now()
    assert now() - began <= 5
    await settle()
    assert complaints == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert all(each.is_closing() for peer in net.peers.values() for each in peer.transports)
    assert set(checks.running_blocks()) == set()


def test_every_call_ends_in_its_time_and_closing_leaves_nothing() -> None:
    rng = seeded()
    for _ in range(budget("sdk_hostile_rounds")):
        run(round_of(rng))
