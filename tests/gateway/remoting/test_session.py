"""One remoting connection, over a transport in memory: what it reads, holds, and lets go."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest
from tests.gateway.kafka.fakes import LIMITS, HandClock
from tests.gateway.remoting.fakes import Line, turns

from rockgate.gateway.budget import Budget
from rockgate.gateway.stream import Disconnect
from rockgate.protocol.errors import MalformedFrame
from rockgate.protocol.remoting.command import Command


@pytest.fixture
async def line() -> Line:
    return Line().open()


# Requests and answers


async def test_a_request_is_answered_in_the_call_that_brings_it(line: Line) -> None:
    line.send(b"one")
    assert line.answers() == [b"one"]
    assert line.budget.used == 0


async def test_requests_of_one_read_share_one_write(line: Line) -> None:
    line.send(b"one", b"two", b"three")
    assert line.transport.writes == 1
    assert line.answers() == [b"one", b"two", b"three"]


async def test_a_request_may_come_byte_by_byte(line: Line) -> None:
    for byte in line.frames(b"one", b"two"):
        line.receive(bytes([byte]))
    assert line.answers() == [b"one", b"two"]
    assert line.budget.used == 0


async def test_a_large_request_is_received_where_it_belongs(line: Line) -> None:
    body = bytes(range(256)) * 2_000
    line.script.answer = lambda body: b"thanks"
    line.send(body, b"small")
    assert line.script.started == [body, b"small"]
    assert line.budget.used == 0


async def test_answers_leave_in_the_order_in_which_they_are_known(line: Line) -> None:
    line.send(b"wait 1", b"two", b"wait 3")
    assert line.answers() == [b"two"]
    await line.resolve(b"wait 3")
    await line.resolve(b"wait 1")
    assert line.answers() == [b"wait 3", b"wait 1"]
    assert line.budget.used == 0


async def test_answers_that_become_known_in_one_turn_share_one_write(line: Line) -> None:
    line.send(b"wait 1", b"wait 2", b"wait 3")
    for body in (b"wait 1", b"wait 2", b"wait 3"):
        line.script.futures[body].set_result([b""])
    writes = line.transport.writes
    await turns()
    assert line.transport.writes == writes + 1


async def test_a_one_way_request_is_started_and_never_answered(line: Line) -> None:
    line.send(b"one", b"wait", oneway=True)
    assert line.script.started == [b"one", b"wait"]
    await line.resolve(b"wait")
    assert line.transport.writes == 0 and line.budget.used == 0


# Requests of the server's own


async def test_the_server_asks_and_gets_the_answer(line: Line) -> None:
    answer = line.session.ask(220, {"a": "b"}, b"body", 3.0)
    line.session.tell(40, {"consumerGroup": "g"})
    await turns()
    line.answers()
    asked, told = line.told
    assert (asked.code, asked.fields, bytes(asked.body)) == (220, {"a": "b"}, b"body")
    assert (told.code, told.is_oneway) == (40, True)
    line.client.respond(asked, Command(0, body=b"said"))
    line.receive(b"".join(line.client.data_to_send()))
    assert bytes((await answer).body) == b"said"
    assert line.budget.used == 0 and line.script.started == []


async def test_an_answer_that_comes_too_late_is_dropped_and_its_bytes_are_given_back(
    line: Line,
) -> None:
    answer = line.session.ask(220, {}, b"", 3.0)
    await turns()
    line.answers()
    line.clock.advance(3.1)
    with pytest.raises(TimeoutError):
        await answer
    line.client.respond(line.told[0], Command(0, body=b"late"))
    line.receive(b"".join(line.client.data_to_send()))
    assert line.budget.used == 0
    line.send(b"one")
    assert line.answers() == [b"one"]


async def test_whoever_waits_for_an_answer_hears_that_the_connection_is_lost(line: Line) -> None:
    answer = line.session.ask(220, {}, b"", 3.0)
    line.transport.lose()
    with pytest.raises(ConnectionError):
        await answer
    with pytest.raises(ConnectionError):
        await line.session.ask(220, {}, b"", 3.0)
    line.session.tell(40, {})
    await turns()
    assert not line.session.is_open
    assert [timer for timer in line.clock.timers if timer.at] == []


# Back-pressure


async def test_reading_stops_at_the_most_requests_in_flight_and_goes_on_after(line: Line) -> None:
    line.script.is_waiting = True
    line.send(b"1", b"2", b"3")
    assert line.transport.reads
    line.send(b"4")
    assert not line.transport.reads
    await line.resolve(b"2")
    assert line.transport.reads
    assert line.answers() == [b"2"]


async def test_reading_stops_at_the_most_bytes_in_flight() -> None:
    line = Line(limits=replace(LIMITS, in_flight_bytes_max=100)).open()
    line.script.is_waiting = True
    line.send(b"x" * 120)
    assert not line.transport.reads
    await line.resolve(b"x" * 120)
    assert line.transport.reads


async def test_one_request_larger_than_the_room_for_many_is_still_read() -> None:
    line = Line(limits=replace(LIMITS, in_flight_bytes_max=100)).open()
    data = line.frames(b"x" * 5000)
    for at in range(0, len(data), 50):
        line.receive(data[at : at + 50])
    assert line.script.started == [b"x" * 5000]


async def test_a_client_that_does_not_read_gets_nothing_more_started(line: Line) -> None:
    line.script.answer = lambda body: body * 1_100
    line.send(b"1", b"2", b"3")
    assert line.script.started == [b"1"]
    assert not line.transport.reads
    assert [answer[:1] for answer in line.answers()] == [b"1"]
    assert line.script.started == [b"1", b"2"]
    assert [answer[:1] for answer in line.answers()] == [b"2"]
    assert [answer[:1] for answer in line.answers()] == [b"3"]
    assert line.transport.reads


async def test_an_answer_that_was_waited_for_is_given_to_a_client_that_does_not_read(
    line: Line,
) -> None:
    """It was started while the client still read, and is bounded as all in flight is."""
    line.send(b"wait")
    line.script.answer = lambda body: body * 1_100
    line.send(b"1")
    assert not line.transport.reads
    await line.resolve(b"wait")
    assert [answer[:4] for answer in line.answers()] == [b"1111", b"wait"]
    assert line.transport.reads


# All connections together


async def test_a_spent_budget_keeps_connections_from_reading_another_request() -> None:
    clock, budget = HandClock(), Budget(200, lambda: None)
    busy = Line(budget=budget, clock=clock).open()
    other = Line(budget=budget, clock=clock).open()
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    assert not busy.transport.reads
    other.send(b"one")
    assert other.answers() == [b"one"]
    assert not other.transport.reads
    await busy.resolve(b"x" * 210)
    assert busy.transport.reads and other.transport.reads
    assert budget.used == 0


async def test_a_request_that_has_begun_is_read_to_its_end_whatever_the_budget() -> None:
    clock, budget = HandClock(), Budget(200, lambda: None)
    busy = Line(budget=budget, clock=clock).open()
    other = Line(budget=budget, clock=clock).open()
    data = other.frames(b"half a request")
    other.receive(data[:10])
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    other.receive(data[10:12])
    assert other.transport.reads
    other.receive(data[12:])
    assert other.answers() == [b"half a request"]
    assert not other.transport.reads


async def test_a_lost_connection_gives_back_what_it_held() -> None:
    budget = Budget(1000, lambda: None)
    line = Line(budget=budget).open()
    line.send(b"wait" * 10)
    line.receive(line.frames(b"partial")[:9])
    assert budget.used > 0
    line.transport.lose()
    assert budget.used == 0


async def test_a_waiting_connection_that_is_lost_is_not_woken() -> None:
    clock, budget = HandClock(), Budget(200, lambda: None)
    busy = Line(budget=budget, clock=clock).open()
    other = Line(budget=budget, clock=clock).open()
    busy.script.is_waiting = True
    busy.send(b"x" * 210)
    other.send(b"one")
    other.transport.lose()
    await busy.resolve(b"x" * 210)
    assert not other.transport.reads


# The end of a connection


async def test_a_closed_connection_cancels_what_it_waited_for(line: Line) -> None:
    line.send(b"wait", b"wait more")
    line.transport.lose()
    assert all(future.cancelled() for future in line.script.futures.values())
    await turns()
    assert line.registry.sessions == set() and line.clock.timers == []


async def test_an_answer_or_error_that_comes_after_the_end_is_dropped(line: Line) -> None:
    line.send(b"wait", b"wait more")
    line.script.futures[b"wait"].set_result([b"late"])
    line.script.futures[b"wait more"].set_exception(RuntimeError("too late"))
    line.transport.lose()
    await turns()
    assert line.transport.writes == 0
    # filterwarnings and asyncio's exception handler would tell if nobody had looked at it.
    line.script.futures.clear()


async def test_bytes_behind_the_end_start_nothing(line: Line) -> None:
    line.session.abort("it must go")
    line.session.buffer_updated(10)
    assert line.script.started == [] and line.budget.used == 0


async def test_what_breaks_the_protocol_closes_with_one_line_after_earlier_answers(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        line.receive(line.frames(b"one") + b"\xff\xff\xff\xff")
    assert line.transport.is_closed
    assert line.answers() == [b"one"]
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "connection=7 peer=10.0.0.1:50000" in record.message
    assert line.budget.used == 0 and line.clock.timers == []


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "looks like TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (b"POST /topics HTTP/1.1\r\n\r\n", "looks like HTTP"),
    ],
)
async def test_the_line_says_what_the_bytes_look_like(
    line: Line, caplog: pytest.LogCaptureFixture, data: bytes, hint: str
) -> None:
    with caplog.at_level(logging.INFO):
        line.receive(data)
    assert line.transport.is_lost
    (record,) = caplog.records
    assert hint in record.message


@pytest.mark.parametrize("error", [Disconnect("enough"), MalformedFrame("no such thing")])
async def test_a_processor_may_end_the_connection_at_once_or_later(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def raising(body: bytes) -> bytes:
        raise error

    at_once, later = Line().open(), Line().open()
    at_once.script.answer = raising
    with caplog.at_level(logging.INFO):
        at_once.send(b"x")
        later.send(b"wait")
        later.script.futures[b"wait"].set_exception(error)
        await turns()
    assert at_once.transport.is_lost and later.transport.is_lost
    assert len(caplog.records) == 2


async def test_a_door_that_is_full_turns_a_connection_away() -> None:
    line = Line()
    line.registry.has_room = False
    line.open()
    assert line.transport.is_lost and line.clock.timers == []


# Time


async def test_a_connection_without_a_byte_is_closed_when_its_time_is_up(line: Line) -> None:
    line.clock.advance(599)
    line.send(b"still here")
    line.answers()
    line.clock.advance(599)
    assert not line.transport.is_closed
    line.clock.advance(1.1)
    assert line.transport.is_lost and line.clock.timers == []


async def test_a_connection_with_a_request_in_flight_is_not_idle(line: Line) -> None:
    line.send(b"wait")
    line.clock.advance(10_000)
    assert not line.transport.is_closed
    await line.resolve(b"wait")
    assert line.answers() == [b"wait"]


async def test_a_request_that_arrives_a_byte_at_a_time_is_cut_off(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    data = line.frames(b"x" * 100)
    line.clock.advance(500)
    for at in range(70):
        if line.transport.is_closed:
            break
        line.receive(data[at : at + 1])
        line.clock.advance(1)
    assert at == 60
    assert "a request did not arrive in time connection=7" in caplog.text


async def test_a_client_that_takes_nothing_is_cut_off_and_one_that_is_slow_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dead, slow = Line().open(), Line().open()
    for line in (dead, slow):
        line.script.answer = lambda body: body * 2000
        line.send(b"1")
    dead.clock.advance(29)
    assert not dead.transport.is_closed
    dead.clock.advance(1.1)
    assert dead.transport.is_lost
    assert "the client does not read its answers connection=7" in caplog.text
    for _ in range(20):
        slow.transport.read(50)
        slow.clock.advance(25)
    assert not slow.transport.is_closed


async def test_time_that_we_did_not_read_is_not_the_clients(line: Line) -> None:
    line.script.is_waiting = True
    line.send(b"1", b"2", b"3", b"4")
    line.clock.advance(5000)
    for body in (b"1", b"2", b"3", b"4"):
        await line.resolve(body)
    line.answers()
    line.clock.advance(599)
    assert not line.transport.is_closed


# Draining


async def test_a_drained_connection_without_requests_closes_at_once(line: Line) -> None:
    line.session.drain()
    assert line.transport.is_lost


async def test_a_drained_connection_answers_what_it_received_and_closes(line: Line) -> None:
    line.send(b"wait")
    line.session.drain()
    assert not line.transport.is_closed and not line.transport.reads
    await line.resolve(b"wait")
    assert line.transport.is_closed
    assert line.answers() == [b"wait"]
    assert line.transport.is_lost


async def test_every_request_has_its_lines_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        line = Line().open()
        line.send(b"one")
        line.transport.lose()
        await asyncio.sleep(0)
    marks = [record.message[0] for record in caplog.records if "connection=7" in record.message]
    assert marks == ["=", "<", ">", "="]
