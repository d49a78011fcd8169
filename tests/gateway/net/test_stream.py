"""What a connection reads, holds, and releases, whichever protocol is spoken on it."""

import gc
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.gateway import fakes
from tests.gateway.fakes import LIMITS, HandClock, turns
from tests.gateway.kafka.fakes import Line as KafkaLine
from tests.gateway.remoting.fakes import Line as RemotingLine

from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.stream import Disconnect
from rockgate.protocol.errors import MalformedFrame

AnyLine = fakes.Line[Any]
New = Callable[..., AnyLine]


@pytest.fixture(params=[KafkaLine, RemotingLine], ids=["kafka", "remoting"])
def new(request: pytest.FixtureRequest) -> New:
    """A new line to one of the listeners."""
    made: New = request.param
    return made


@pytest.fixture
async def line(new: New) -> AnyLine:
    return new().open()


# Requests and answers


async def test_a_request_is_answered_in_the_call_that_brings_it(line: AnyLine) -> None:
    line.send(b"one")
    assert line.answers() == [b"one"]
    assert line.budget.used == 0


async def test_requests_of_one_read_share_one_write(line: AnyLine) -> None:
    line.send(b"one", b"two", b"three")
    assert line.transport.writes == 1
    assert line.answers() == [b"one", b"two", b"three"]


async def test_a_request_may_come_byte_by_byte(line: AnyLine) -> None:
    for byte in line.frames(b"one", b"two"):
        line.receive(bytes([byte]))
    assert line.answers() == [b"one", b"two"]
    assert line.budget.used == 0


# Back-pressure


async def test_reading_stops_at_the_most_bytes_in_flight(new: New) -> None:
    line = new(limits=replace(LIMITS, in_flight_bytes_max=100)).open()
    line.script.is_waiting = True
    line.send(b"x" * 120)
    assert not line.transport.reads
    await line.resolve(b"x" * 120)
    assert line.transport.reads


async def test_one_request_larger_than_the_room_for_many_is_still_read(new: New) -> None:
    line = new(limits=replace(LIMITS, in_flight_bytes_max=100)).open()
    data = line.frames(b"x" * 5000)
    for at in range(0, len(data), 50):
        line.receive(data[at : at + 50])
    assert line.script.started == [b"x" * 5000]


# All connections together


async def test_a_spent_budget_keeps_connections_from_reading_beyond_their_allowance(
    new: New,
) -> None:
    clock, budget = HandClock(), Budget(200, lambda: None, allowance=40)
    busy = new(budget=budget, clock=clock).open()
    other = new(budget=budget, clock=clock).open()
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    assert not busy.transport.reads
    other.receive(other.frames(b"y" * 60)[:50])
    assert not other.transport.reads
    await busy.resolve(b"x" * 210)
    assert busy.transport.reads and other.transport.reads
    other.receive(other.frames(b"y" * 60)[50:])
    assert other.answers() == [b"y" * 60]
    assert (budget.used, budget.incomplete) == (0, 0)


async def test_small_requests_get_through_however_much_others_hold(new: New) -> None:
    clock, budget = HandClock(), Budget(200, lambda: None)
    busy = new(budget=budget, clock=clock).open()
    other = new(budget=budget, clock=clock).open()
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    for _ in range(3):
        other.send(b"one")
        assert other.answers() == [b"one"]
        assert other.transport.reads


async def test_a_small_request_that_has_begun_is_read_to_its_end_whatever_the_budget(
    new: New,
) -> None:
    clock, budget = HandClock(), Budget(200, lambda: None)
    busy = new(budget=budget, clock=clock).open()
    other = new(budget=budget, clock=clock).open()
    data = other.frames(b"half a request")
    other.receive(data[:10])
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    other.receive(data[10:12])
    assert other.transport.reads
    other.receive(data[12:])
    assert other.answers() == [b"half a request"]


async def test_a_lost_connection_gives_back_what_it_held(new: New) -> None:
    budget = Budget(1000, lambda: None)
    line = new(budget=budget).open()
    line.send(b"wait" * 10)
    line.receive(line.frames(b"partial")[:9])
    assert budget.used > 0
    line.transport.lose()
    assert budget.used == 0


async def test_a_lost_connection_leaves_nothing_to_the_collector(new: New) -> None:
    kind = type(new().session)
    gc.collect()
    before = sum(type(each) is kind for each in gc.get_objects())
    gc.disable()
    try:
        line = new().open()
        line.send(b"one", b"wait")
        line.receive(line.frames(b"x" * (1 << 19))[: 1 << 18])
        line.transport.lose()
        line.session = line.transport.session = cast(Any, None)
        line.script.futures.clear()
        await turns()
        assert sum(type(each) is kind for each in gc.get_objects()) == before
    finally:
        gc.enable()


async def test_a_waiting_connection_that_is_lost_is_not_woken(new: New) -> None:
    clock, budget = HandClock(), Budget(200, lambda: None, allowance=0)
    busy = new(budget=budget, clock=clock).open()
    other = new(budget=budget, clock=clock).open()
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    other.send(b"one")
    other.transport.lose()
    await busy.resolve(b"x" * 210)
    assert not other.transport.reads


# The end of a connection


async def test_a_closed_connection_cancels_what_it_waited_for(line: AnyLine) -> None:
    line.send(b"wait", b"wait more")
    line.transport.lose()
    assert all(future.cancelled() for future in line.script.futures.values())
    await turns()
    assert line.registry.sessions == set() and line.clock.timers == []


async def test_an_answer_that_comes_after_the_end_is_dropped(line: AnyLine) -> None:
    line.send(b"wait")
    line.script.futures[b"wait"].set_result([b"late"])
    line.transport.lose()
    await turns()
    assert line.transport.writes == 0


async def test_an_error_that_comes_after_the_end_is_not_reported_as_lost(line: AnyLine) -> None:
    line.send(b"wait")
    line.script.futures[b"wait"].set_exception(RuntimeError("too late"))
    line.transport.lose()
    await turns()
    # filterwarnings and asyncio's exception handler would report an error that was never retrieved.
    line.script.futures.clear()


async def test_what_breaks_the_protocol_closes_with_one_line_after_earlier_answers(
    line: AnyLine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        line.receive(line.frames(b"one") + b"\xff\xff\xff\xff")
    assert line.transport.is_closed
    assert line.answers() == [b"one"]
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "connection=7 peer=10.0.0.1:50000" in record.message
    assert line.budget.used == 0 and line.clock.timers == []


async def test_bytes_behind_the_end_start_nothing(line: AnyLine) -> None:
    line.session.abort("it must go")
    line.session.buffer_updated(10)
    assert line.script.started == [] and line.budget.used == 0


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "looks like TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (b"POST /topics HTTP/1.1\r\n\r\n", "looks like HTTP"),
    ],
)
async def test_the_line_says_what_the_bytes_look_like(
    line: AnyLine, caplog: pytest.LogCaptureFixture, data: bytes, hint: str
) -> None:
    with caplog.at_level(logging.INFO):
        line.receive(data)
    assert line.transport.is_lost
    (record,) = caplog.records
    assert hint in record.message


@pytest.mark.parametrize("error", [Disconnect("enough"), MalformedFrame("no such thing")])
async def test_an_answer_may_be_the_end_of_the_connection_at_once_or_later(
    new: New, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def raising(body: bytes) -> bytes:
        raise error

    at_once, later = new().open(), new().open()
    at_once.script.answer = raising
    with caplog.at_level(logging.INFO):
        at_once.send(b"x")
        later.send(b"wait")
        later.script.futures[b"wait"].set_exception(error)
        await turns()
    assert at_once.transport.is_lost and later.transport.is_lost
    assert len(caplog.records) == 2


async def test_a_listener_that_is_full_turns_a_connection_away(new: New) -> None:
    line = new()
    line.registry.has_room = False
    line.open()
    assert line.transport.is_lost and line.clock.timers == []


# Time


async def test_a_connection_without_a_byte_is_closed_when_its_time_is_up(line: AnyLine) -> None:
    line.clock.advance(599)
    line.send(b"still here")
    line.answers()
    line.clock.advance(599)
    assert not line.transport.is_closed
    line.clock.advance(1.1)
    assert line.transport.is_lost and line.clock.timers == []


async def test_a_connection_with_a_request_in_flight_is_not_idle(line: AnyLine) -> None:
    line.send(b"wait")
    line.clock.advance(10_000)
    assert not line.transport.is_closed
    await line.resolve(b"wait")
    assert line.answers() == [b"wait"]


async def test_a_request_that_arrives_a_byte_at_a_time_is_cut_off(
    line: AnyLine, caplog: pytest.LogCaptureFixture
) -> None:
    data = line.frames(b"x" * 100)
    line.clock.advance(500)
    for at in range(70):
        if line.transport.is_closed:
            break
        line.receive(data[at : at + 1])
        line.clock.advance(1)
    assert at == 60
    assert "request did not arrive in time connection=7" in caplog.text


async def test_each_request_has_its_own_time_to_arrive(line: AnyLine) -> None:
    data = line.frames(*(b"x" * 50 for _ in range(20)))
    for at in range(0, len(data), 30):
        line.receive(data[at : at + 30])
        line.answers()
        line.clock.advance(5)
    assert not line.transport.is_closed


async def test_a_client_that_takes_nothing_is_cut_off(
    line: AnyLine, caplog: pytest.LogCaptureFixture
) -> None:
    line.script.answer = lambda body: body * 2000
    line.send(b"1")
    line.clock.advance(29)
    assert not line.transport.is_closed
    line.clock.advance(1.1)
    assert line.transport.is_lost
    assert "client does not read its responses connection=7" in caplog.text


async def test_a_client_that_reads_slowly_is_kept(line: AnyLine) -> None:
    line.script.answer = lambda body: body * 2000
    line.send(b"1")
    for _ in range(20):
        line.transport.read(50)
        line.clock.advance(25)
    assert not line.transport.is_closed


async def test_time_that_we_did_not_read_is_not_the_clients(line: AnyLine) -> None:
    line.script.is_waiting = True
    line.send(b"1", b"2", b"3", b"4")
    line.clock.advance(5000)
    for body in (b"1", b"2", b"3", b"4"):
        await line.resolve(body)
    line.answers()
    line.clock.advance(599)
    assert not line.transport.is_closed


async def test_a_closing_connection_does_not_wait_forever_for_its_client(line: AnyLine) -> None:
    line.script.answer = lambda body: body * 500
    line.send(b"1")
    line.receive(b"\xff\xff\xff\xff")
    assert line.transport.is_closed and not line.transport.is_lost
    line.clock.advance(31)
    assert line.transport.is_lost


# Draining


async def test_a_drained_connection_without_requests_closes_at_once(line: AnyLine) -> None:
    line.session.drain()
    assert line.transport.is_lost


async def test_a_drained_connection_answers_what_it_received_and_closes(line: AnyLine) -> None:
    line.script.is_waiting = True
    line.send(b"1", b"2", b"3", b"4", b"5")
    line.session.drain()
    assert not line.transport.is_closed and not line.transport.reads
    for body in (b"1", b"2", b"3", b"4", b"5"):
        await line.resolve(body)
    assert line.transport.is_closed
    assert line.answers() == [b"1", b"2", b"3", b"4", b"5"]
    assert line.transport.is_lost


async def test_draining_drops_a_request_that_is_not_whole(line: AnyLine) -> None:
    line.receive(line.frames(b"partial")[:-1])
    line.session.drain()
    assert line.transport.is_lost and line.budget.used == 0


# Log lines


async def test_every_request_has_its_lines_at_debug(
    new: New, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        line = new().open()
        line.send(b"one")
        line.transport.lose()
    marks = [record.message.split()[0] for record in caplog.records]
    assert marks == ["=", "<", ">", "="]
    assert all("connection=7" in record.message for record in caplog.records)
