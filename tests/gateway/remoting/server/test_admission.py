"""Sends that wait for a stalled store, from dispatch to their answers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.gateway.fakes import HandClock

from rockgate.gateway.remoting.server.admission import Admission
from rockgate.gateway.remoting.server.dispatch import Dispatcher, Frame
from rockgate.gateway.remoting.server.overload import Overload
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.gateway.storage.slow_appends import SlowAppends
from rockgate.protocol.remoting.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.store.clock import ManualClock

SEND, PULL = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE
CALLER = cast(Any, None)


class Broker:
    """A dispatcher of sends and pulls, whose appends the test counts."""

    def __init__(self, **settings: object) -> None:
        self.clock = HandClock()
        self.slow_appends = SlowAppends(ManualClock())
        overload = Overload[Any](OverloadConfig(**settings))  # type: ignore[arg-type]
        self.admission = Admission(overload, self.clock, self.slow_appends)
        self.sent: list[int] = []
        self.flushed: asyncio.Future[Command] | None = None
        self.seconds = 0.0
        self.dispatcher = Dispatcher(
            {SEND: self.send, PULL: lambda command, caller: Command(0)},
            now=lambda: self.seconds,
            admission=self.admission,
        )

    def send(self, command: Command, caller: object) -> Any:
        self.sent.append(command.opaque)
        return self.flushed or Command(0, remark="stored")

    def ask(self, code: RequestCode, opaque: int = 0, flag: int = 0) -> Any:
        return self.dispatcher.dispatch(Command(code, flag=flag, opaque=opaque), CALLER)


def told(frame: Frame) -> tuple[int, str]:
    client = Connection()
    for _ in range(10):
        client.request(SEND)
    [answer] = client.receive_data(b"".join(map(bytes, frame)))
    return answer.code, answer.remark or ""


BUSY = int(ResponseCode.SYSTEM_BUSY)


@pytest.mark.row("F-02", "Q-05")
async def test_sends_wait_while_the_store_is_stalled_and_are_stored_when_it_continues() -> None:
    broker = Broker()
    broker.admission.stalled(True)
    first, second = broker.ask(SEND, 1), broker.ask(SEND, 2)
    assert told(broker.ask(PULL)) == (0, "")
    broker.clock.advance(0.1)
    assert broker.sent == []
    broker.admission.stalled(False)
    assert told(await first) == (0, "stored")
    assert told(await second) == (0, "stored")
    assert broker.sent == [1, 2]
    assert told(broker.ask(SEND, 3)) == (0, "stored"), "at once again"


@pytest.mark.row("F-02")
@pytest.mark.row("F-04")
async def test_a_send_that_waits_too_long_is_refused_and_never_stored() -> None:
    broker = Broker()
    broker.admission.stalled(True)
    old = broker.ask(SEND, 1)
    broker.clock.advance(0.21)
    code, text = told(await old)
    assert code == BUSY
    assert text.startswith("[TIMEOUT_CLEAN_QUEUE]broker busy")
    broker.clock.advance(0.78)
    young = broker.ask(SEND, 2)
    broker.clock.advance(0.02)
    assert told(await young)[1].startswith("[PCBUSY_CLEAN_QUEUE]broker busy")
    assert told(broker.ask(SEND, 3)) == (
        BUSY,
        "[REJECTREQUEST]system busy, start flow control for a while",
    )
    broker.admission.stalled(False)
    await asyncio.sleep(0)
    assert broker.sent == []
    assert not broker.clock.timers, "nothing runs while nothing waits"


@pytest.mark.row("D-10")
async def test_a_one_way_send_is_not_answered_when_it_is_refused() -> None:
    broker = Broker()
    broker.admission.stalled(True)
    held = broker.ask(SEND, 1, ONEWAY_FLAG)
    broker.clock.advance(2)
    assert await held == []
    assert broker.ask(SEND, 2, ONEWAY_FLAG) == []
    assert broker.sent == []


async def test_sends_beyond_the_bound_are_refused_while_others_wait_for_their_flush() -> None:
    broker = Broker(send_in_flight_max=2)
    broker.flushed = asyncio.get_running_loop().create_future()
    under_way = [broker.ask(SEND, 1), broker.ask(SEND, 2)]
    assert told(broker.ask(SEND, 3)) == (
        BUSY,
        "[OVERLOAD]system busy, start flow control for a while",
    )
    assert told(broker.ask(PULL)) == (0, "")
    broker.flushed.set_result(Command(0, remark="flushed"))
    for future in under_way:
        assert told(await future) == (0, "flushed")
    await asyncio.sleep(0)
    broker.flushed = None
    assert told(broker.ask(SEND, 4)) == (0, "stored")
    assert broker.sent == [1, 2, 4]


async def test_a_send_whose_connection_is_lost_leaves_its_place_and_is_not_stored() -> None:
    broker = Broker(send_in_flight_max=2)
    broker.admission.stalled(True)
    lost, other = broker.ask(SEND, 1), broker.ask(SEND, 2)
    await asyncio.sleep(0)
    lost.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    third = broker.ask(SEND, 3)
    broker.admission.stalled(False)
    await asyncio.gather(other, third)
    assert broker.sent == [2, 3]


@pytest.mark.row("S-15")
async def test_a_send_over_half_a_second_is_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker()

    def slow(command: Command, caller: object) -> Frame:
        broker.seconds += 0.6
        return [b"frame"]

    dispatcher = Dispatcher(
        {SEND: slow, PULL: slow}, now=lambda: broker.seconds, admission=broker.admission
    )
    for _ in range(3):
        dispatcher.dispatch(Command(SEND), CALLER)
        dispatcher.dispatch(Command(PULL), CALLER)
    assert broker.slow_appends.count == 3
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["slow append seconds=0.600 count=1"], "one line for many"
