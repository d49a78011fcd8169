import logging
import socket
from typing import Any, cast

import pytest
from tests.gateway.kafka.fakes import Line


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


# Back-pressure


async def test_reading_stops_at_the_most_requests_in_flight_and_goes_on_after(line: Line) -> None:
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
    line.session._mute.begin(line.session.peer)


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
    line.session.unmute()
    assert line.answers() == [b"hello"]
