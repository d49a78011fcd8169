import asyncio
import logging
import socket
from dataclasses import replace
from time import thread_time
from typing import Any, cast

import pytest
from tests.gateway.fakes import LIMITS, turns
from tests.gateway.kafka.fakes import Line

from rockgate.gateway.kafka.server import session


@pytest.fixture
async def line() -> Line:
    return Line().open()


# Requests and answers


async def test_an_answer_waits_for_those_of_earlier_requests(line: Line) -> None:
    line.send(b"wait", b"two")
    assert line.script.started == [b"wait", b"two"]
    assert line.answers() == []
    await line.resolve(b"wait")
    assert line.answers() == [b"wait", b"two"]
    assert line.budget.used == 0


async def test_a_request_without_an_answer_sends_nothing_and_holds_nothing_up(line: Line) -> None:
    line.script.answer = lambda body: None if body == b"silent" else body
    line.send(b"silent", b"two")
    assert len(line.transport.unread) == len(b"two") + 8
    assert line.budget.used == 0


# Many at once

HUNDREDS = [b"%d" % number for number in range(300)]


async def test_many_requests_that_came_together_are_started_over_several_turns() -> None:
    line = Line(limits=replace(LIMITS, unread_bytes_max=1 << 20)).open()

    def answer(body: bytes) -> bytes:
        until = thread_time() + 0.001
        while thread_time() < until:
            pass
        return body

    line.script.answer = answer
    line.send(*HUNDREDS)
    started = [len(line.script.started)]
    assert not line.transport.reads
    while len(line.script.started) < len(HUNDREDS):
        await asyncio.sleep(0)
        started.append(len(line.script.started))
    most = max(after - before for before, after in zip([0, *started], started, strict=False))
    assert most <= session.SURE_COUNT + 6, "then five milliseconds' worth"
    assert line.script.started == HUNDREDS
    assert line.answers() == HUNDREDS
    assert line.budget.used == 0
    assert line.transport.reads


async def test_a_few_requests_that_came_together_are_started_without_a_look_at_a_clock(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TimeSlice", None)
    line.send(*HUNDREDS[: session.SURE_COUNT])
    assert line.answers() == HUNDREDS[: session.SURE_COUNT]


async def test_what_is_answered_meanwhile_starts_nothing_before_the_next_turn(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TURN_SECONDS", 0.0)
    sure = [b"wait", *HUNDREDS[: session.SURE_COUNT - 1]]
    line = Line(limits=replace(LIMITS, in_flight_max=64)).open()
    line.send(*sure, b"one more", b"another")
    assert line.script.started == sure
    line.script.futures[b"wait"].set_result([b"wait"])
    (exchange,) = line.session._waiting
    line.session._answered(exchange, line.script.futures[b"wait"])
    assert line.script.started == sure
    assert line.answers() == sure
    await turns()
    assert line.script.started == [*sure, b"one more", b"another"]
    assert line.answers() == [b"one more", b"another"]
    assert line.transport.reads


async def test_a_client_that_has_to_wait_is_not_served_in_a_later_turn(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TURN_SECONDS", 0.0)

    def answer(body: bytes) -> bytes:
        line.session.peer.throttle_ms = 2_000 if body == b"greedy" else 0
        return body

    line.script.answer = answer
    sure = [*HUNDREDS[: session.SURE_COUNT - 1], b"greedy"]
    line.send(*sure, b"third")
    await turns()
    assert line.script.started == sure
    line.clock.advance(2.1)
    assert line.answers() == [*sure, b"third"]


async def test_a_connection_that_is_lost_starts_nothing_more(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TURN_SECONDS", 0.0)
    line.send(*HUNDREDS)
    line.session.connection_lost(None)
    await turns()
    assert line.script.started == HUNDREDS[: session.SURE_COUNT]
    assert line.budget.used == 0


async def test_a_stop_answers_all_that_came_together(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TURN_SECONDS", 0.0)
    line.send(*HUNDREDS[: 3 * session.SURE_COUNT])
    line.session.drain()
    assert not line.transport.is_closed
    await turns()
    assert line.transport.is_closed
    assert line.answers() == HUNDREDS[: 3 * session.SURE_COUNT]


# Back-pressure


async def test_reading_stops_at_the_most_requests_in_flight_and_continues_after(line: Line) -> None:
    line.script.is_waiting = True
    line.send(b"1", b"2", b"3")
    assert line.transport.reads
    line.send(b"4", b"5", b"6")
    assert line.script.started == [b"1", b"2", b"3", b"4"]
    assert not line.transport.reads
    await line.resolve(b"2")
    assert not line.transport.reads
    await line.resolve(b"1")
    assert line.script.started[4:] == [b"5", b"6"]
    for body in (b"3", b"4", b"5", b"6"):
        await line.resolve(body)
    assert line.transport.reads
    assert line.answers() == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert line.budget.used == 0


async def test_a_client_that_does_not_read_gets_nothing_more_started(line: Line) -> None:
    line.script.answer = lambda body: body * 600
    line.send(b"1", b"2", b"3", b"4")
    assert line.script.started == [b"1", b"2"]
    assert not line.transport.reads
    assert [answer[:1] for answer in line.answers()] == [b"1", b"2"]
    assert line.script.started == [b"1", b"2", b"3", b"4"]
    assert [answer[:1] for answer in line.answers()] == [b"3", b"4"]
    assert line.transport.reads


async def test_answers_behind_a_waiting_request_are_bounded_too(line: Line) -> None:
    line.script.answer = lambda body: body * 600
    line.send(b"wait", b"2", b"3", b"4")
    assert line.script.started == [b"wait", b"2", b"3"]
    assert not line.transport.reads
    await line.resolve(b"wait")
    assert len(line.answers()) == 3
    assert line.script.started[3:] == [b"4"]
    assert len(line.answers()) == 1
    assert line.transport.reads


# Log lines


async def test_the_line_of_a_request_says_what_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        Line().open().send(b"one")
    assert "api=API_VERSIONS version=0 correlation_id=0 client_id=test" in caplog.text


# Quotas


async def test_a_client_that_has_to_wait_is_answered_and_then_not_read_from(line: Line) -> None:
    def answer(body: bytes) -> bytes:
        line.session.peer.throttle_ms = 2_000 if body == b"greedy" else 0
        return body

    line.script.answer = answer
    line.send(b"first", b"greedy", b"third")
    assert line.answers() == [b"first", b"greedy"]
    assert not line.transport.reads
    line.clock.advance(1.9)
    assert line.script.started == [b"first", b"greedy"]
    line.clock.advance(0.2)
    assert line.answers() == [b"third"]
    assert line.transport.reads


async def test_a_client_that_has_to_wait_does_not_hold_up_a_stop(line: Line) -> None:
    def answer(body: bytes) -> bytes:
        line.session.peer.throttle_ms = 60_000 if body == b"greedy" else 0
        return body

    line.script.answer = answer
    line.send(b"greedy", b"second")
    line.session.drain()
    assert line.answers() == [b"greedy", b"second"]
    assert line.transport.is_lost
    assert line.clock.timers == []


# Told to wait


def muted(line: Line, wait_ms: int) -> None:
    line.session.peer.throttle_ms = wait_ms
    line.session._throttle_pause.begin(line.session.peer)


async def test_a_client_that_hangs_up_while_it_waits_is_noticed() -> None:
    line = Line().open()
    ours, theirs = socket.socketpair()
    with ours:
        cast(Any, line.transport)._extra["socket"] = ours
        muted(line, 60_000)
        line.send(b"hello")
        line.clock.advance(5)
        assert not line.transport.is_lost and line.answers() == []
        theirs.close()
        line.clock.advance(1)
        assert line.transport.is_lost
        assert line.budget.used == 0


async def test_a_wait_ends_when_quotas_change() -> None:
    line = Line().open()
    muted(line, 60_000)
    line.send(b"hello")
    assert line.answers() == []
    line.session.end_throttle_pause()
    assert line.answers() == [b"hello"]
