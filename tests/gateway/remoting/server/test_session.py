"""One remoting connection, over a transport in memory: what it reads, holds, and releases."""

from __future__ import annotations

import pytest
from tests.gateway.fakes import turns
from tests.gateway.remoting.fakes import Line

from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.remoting.server import session
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.remoting.command import Command


@pytest.fixture
async def line() -> Line:
    return Line().open()


# Authentication


SIGNED = Endpoint(protocol="remoting", authentication="signature")


async def test_a_client_that_signs_nothing_in_time_is_disconnected() -> None:
    line = Line(listener=SIGNED).open()
    line.send(b"unsigned")
    line.clock.advance(9.9)
    assert not line.transport.is_lost
    line.clock.advance(0.2)
    assert line.transport.is_lost


async def test_a_client_that_has_signed_a_request_has_time() -> None:
    line = Line(listener=SIGNED).open()
    line.session.peer.principal = Principal.user("alice")
    line.clock.advance(20)
    assert not line.transport.is_lost
    line.transport.lose()
    assert line.clock.timers == []


async def test_a_client_that_leaves_before_leaves_no_timer() -> None:
    line = Line(listener=SIGNED).open()
    line.transport.lose()
    assert line.clock.timers == []


async def test_a_certificate_names_the_client() -> None:
    line = Line(listener=SIGNED)
    line.transport.certificate = {"subject": ()}
    line.registry.principal = Principal.user("alice")
    line.open()
    assert line.session.peer.certified == Principal.user("alice")
    assert line.registry.users == ["alice"]
    line.clock.advance(20)
    assert not line.transport.is_lost


async def test_a_certificate_that_names_no_user_is_refused() -> None:
    line = Line()
    line.transport.certificate = {"subject": ()}
    line.open()
    assert line.transport.is_lost


# Requests and answers


async def test_a_large_request_is_received_where_it_belongs(line: Line) -> None:
    body = bytes(range(256)) * 2_000
    line.script.answer = lambda body: b"thanks"
    line.send(body, b"small")
    assert line.script.started == [body, b"small"]
    assert line.budget.used == 0


@pytest.mark.row("M-05")
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


async def test_many_requests_that_came_together_are_started_over_several_turns(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TURN_SECONDS", 0.0)
    bodies = [b"%d" % number for number in range(4)]
    line.send(*bodies)
    assert line.script.started == bodies[:1], "the first, and then others get their turn"
    await turns()
    assert line.script.started == bodies
    assert line.answers() == bodies
    assert line.budget.used == 0
    assert line.session._is_reading


async def test_a_connection_that_is_lost_starts_nothing_more(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TURN_SECONDS", 0.0)
    line.send(b"1", b"2", b"3")
    line.session.connection_lost(None)
    await turns()
    assert line.script.started == [b"1"]
    assert line.budget.used == 0


@pytest.mark.row("F-04")
async def test_requests_that_waited_too_long_since_they_were_received_are_not_started(
    line: Line,
) -> None:
    """A client that read nothing for a while has given up on what it sent meanwhile."""
    line.script.answer = lambda body: body * 1_100
    line.send(b"1", b"2", b"3")
    line.script.overdue_ms = 200
    line.clock.advance(0.2)
    assert [answer[:1] for answer in line.answers()] == [b"1"]
    assert line.answers() == [b"200 ms, 1 behind", b"200 ms, 0 behind"]
    assert line.script.started == [b"1"]
    assert line.budget.used == 0
    line.send(b"4")
    assert [answer[:1] for answer in line.answers()] == [b"4"]


@pytest.mark.row("F-04")
async def test_requests_that_waited_less_are_started_in_their_order(line: Line) -> None:
    line.script.answer = lambda body: body * 1_100
    line.send(b"1", b"2", b"3")
    line.script.overdue_ms = 200
    line.clock.advance(0.199)
    assert [line.answers()[0][:1] for _ in range(3)] == [b"1", b"2", b"3"]


# Requests of the server's own


@pytest.mark.row("M-01")
async def test_the_server_asks_and_gets_the_answer(line: Line) -> None:
    answer = line.session.ask(220, {"a": "b"}, b"body", 3.0)
    line.session.send_oneway(40, {"consumerGroup": "g"})
    await turns()
    line.answers()
    asked, told = line.told
    assert (asked.code, asked.fields, bytes(asked.body)) == (220, {"a": "b"}, b"body")
    assert (told.code, told.is_oneway) == (40, True)
    line.client.respond(asked, Command(0, body=b"said"))
    line.receive(b"".join(line.client.data_to_send()))
    assert bytes((await answer).body) == b"said"
    assert line.budget.used == 0 and line.script.started == []


@pytest.mark.row("M-09")
@pytest.mark.row("M-05")
async def test_an_answer_that_comes_too_late_is_dropped_and_its_bytes_are_given_back(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    answer = line.session.ask(220, {}, b"", 3.0)
    await turns()
    line.answers()
    line.clock.advance(3.1)
    with pytest.raises(TimeoutError):
        await answer
    line.client.respond(line.told[0], Command(0, body=b"late"))
    line.receive(b"".join(line.client.data_to_send()))
    assert line.budget.used == 0
    assert "discarded responses without a waiting request" in caplog.text
    line.send(b"one")
    assert line.answers() == [b"one"]


async def test_whoever_waits_for_an_answer_hears_that_the_connection_is_lost(line: Line) -> None:
    answer = line.session.ask(220, {}, b"", 3.0)
    line.transport.lose()
    with pytest.raises(ConnectionError):
        await answer
    with pytest.raises(ConnectionError):
        await line.session.ask(220, {}, b"", 3.0)
    line.session.send_oneway(40, {})
    await turns()
    assert not line.session.is_open
    assert [timer for timer in line.clock.timers if timer.at] == []


# Back-pressure


async def test_reading_stops_at_the_most_requests_in_flight_and_continues_after(line: Line) -> None:
    line.script.is_waiting = True
    line.send(b"1", b"2", b"3")
    assert line.transport.reads
    line.send(b"4")
    assert not line.transport.reads
    await line.resolve(b"2")
    assert line.transport.reads
    assert line.answers() == [b"2"]


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
