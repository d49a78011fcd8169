"""How much is received in one turn of the loop, and that memory goes back in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.gateway import fakes
from tests.gateway.fakes import LIMITS, HandClock
from tests.gateway.kafka.fakes import Line as KafkaLine
from tests.gateway.remoting.fakes import Line as RemotingLine

from rockgate.gateway.net.receive_buffer import LEAST_BYTES, RESUMED_MAX, TURN_BYTES, ReceiveBuffer
from rockgate.protocol.frames import MAPPED_SIZE

New = Callable[..., fakes.Line[Any]]
LARGE = replace(LIMITS, frame_bytes_max=8 * MAPPED_SIZE, in_flight_bytes_max=8 * MAPPED_SIZE)


@pytest.fixture(params=[KafkaLine, RemotingLine], ids=["kafka", "remoting"])
def new(request: pytest.FixtureRequest) -> New:
    """A new line to one of the listeners."""
    made: New = request.param
    return made


def test_large_requests_together_receive_so_much_in_a_turn_and_no_more() -> None:
    clock, receiving = HandClock(), ReceiveBuffer()
    room = memoryview(bytearray(4 * TURN_BYTES))
    assert len(receiving.share(room)) == TURN_BYTES
    assert not receiving.spend(TURN_BYTES - 1, clock)
    assert len(receiving.share(room)) == LEAST_BYTES
    assert receiving.spend(LEAST_BYTES, clock)
    clock.advance(0)
    assert len(receiving.share(room)) == TURN_BYTES
    assert clock.timers == []


def test_those_who_wait_read_on_in_the_order_of_coming_some_in_each_turn() -> None:
    clock, receiving = HandClock(), ReceiveBuffer()
    went: list[int] = []
    count = RESUMED_MAX + 2
    for number in range(count):
        assert receiving.spend(TURN_BYTES, clock)
        receiving.wait(lambda number=number: went.append(number))  # type: ignore[misc]
    (timer,) = clock.timers
    clock.timers.clear()
    timer.callback()
    assert went == list(range(RESUMED_MAX))
    clock.advance(0)
    assert went == list(range(count))
    assert clock.timers == []


async def test_a_large_request_is_received_over_several_turns_and_answered(new: New) -> None:
    line = new(limits=LARGE).open()
    body = b"x" * (2 * TURN_BYTES + 2 * LEAST_BYTES)
    data, turns = line.frames(body), 0
    while data:
        piece, data = data[:LEAST_BYTES], data[LEAST_BYTES:]
        if not line.transport.reads:
            line.clock.advance(0)
            turns += 1
        line.receive(piece)
    assert turns == 2
    assert line.answers() == [body]


async def test_a_connection_that_waits_for_its_turn_may_be_stopped_and_started(new: New) -> None:
    """Each of the two reasons not to read holds by itself."""
    line = new(limits=LARGE).open()
    line.script.is_waiting = True
    data = line.frames(b"x" * (TURN_BYTES + LEAST_BYTES))
    while line.transport.reads:
        piece, data = data[:LEAST_BYTES], data[LEAST_BYTES:]
        line.receive(piece)
    line.session.pause_writing()
    line.clock.advance(0)
    assert not line.transport.reads
    line.session.resume_writing()
    assert line.transport.reads


async def test_a_connection_lost_while_it_waits_for_its_turn_is_not_read_again(new: New) -> None:
    line = new(limits=LARGE).open()
    data = line.frames(b"x" * (2 * TURN_BYTES))
    while line.transport.reads:
        piece, data = data[:LEAST_BYTES], data[LEAST_BYTES:]
        line.receive(piece)
    line.transport.lose()
    line.clock.advance(0)
    assert not line.transport.reads
    assert line.budget.used == 0 and line.clock.timers == []


async def test_memory_of_large_requests_that_break_off_goes_back_one_in_a_turn(new: New) -> None:
    first, second = new(limits=LARGE).open(), new(limits=LARGE).open()
    receiving = first.session._receiving
    second.session._receiving = receiving
    second.session._connection._reader._spares = receiving.spares
    for line in (first, second):
        data = line.frames(b"x" * MAPPED_SIZE)
        for at in range(0, 1 << 20, LEAST_BYTES):
            line.receive(data[at : at + LEAST_BYTES])
    first.transport.lose()
    second.transport.lose()
    assert len(receiving.spares.retired) == 2
    clock = first.clock
    (timer,) = clock.timers
    clock.timers.clear()
    timer.callback()
    assert len(receiving.spares.retired) == 1
    clock.advance(0)
    assert receiving.spares.retired == [] and clock.timers == []
