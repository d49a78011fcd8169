import asyncio
import logging

import pytest
from tests.gateway.fakes import HandClock, MemoryTransport
from tests.gateway.kafka.fakes import Line, Script

from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.server.listener import KafkaConnections


class Room:
    """A listener and any number of clients, all in memory."""

    def __init__(self, config: KafkaConfig) -> None:
        self.script = Script()
        self.clock = HandClock()
        self.listener = KafkaConnections(config, self.script, self.clock)

    def connect(self) -> Line:
        line = Line()
        line.script = self.script
        line.transport = MemoryTransport()
        line.session = line.transport.session = self.listener.session()
        return line.open()


async def test_connections_have_their_own_numbers() -> None:
    room = Room(KafkaConfig())
    assert [room.connect().session.connection_id for _ in range(3)] == [1, 2, 3]


async def test_one_too_many_is_turned_away_with_one_line_for_all_of_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(KafkaConfig(connections_max=10))
    lines = [room.connect() for _ in range(30)]
    assert [line.transport.is_lost for line in lines] == [False] * 10 + [True] * 20
    assert room.listener.session_count == 10
    assert [record.message for record in caplog.records] == [
        "connection limit reached, rejecting connections max=10"
    ]
    with caplog.at_level(logging.INFO):
        for line in lines[:2]:
            line.transport.lose()
    assert "accepting connections again connections=9" in caplog.text
    line = room.connect()
    line.send(b"hello")
    assert line.answers() == [b"hello"]


async def test_the_connection_that_holds_most_goes_when_memory_is_overdrawn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(KafkaConfig(total_bytes_max=1 << 20, frame_bytes_max=2 << 20))
    small, large, other = room.connect(), room.connect(), room.connect()
    large.script.is_waiting = small.script.is_waiting = other.script.is_waiting = True
    large.send(b"x" * (3 << 19))
    small.send(b"y" * (1 << 15))
    assert not large.transport.is_closed
    # Beyond its allowance no connection is read from, so it takes many to come that far.
    others = [room.connect() for _ in range(8)]
    for line in others:
        line.receive(line.frames(b"z" * (1 << 19))[: 1 << 16])
    assert large.transport.is_lost
    assert not small.transport.is_closed and not other.transport.is_closed
    assert "memory limit exceeded, largest connection" in caplog.text


BODY = b"x" * ((1 << 18) - 100)


async def test_the_largest_request_under_way_is_broken_off_and_small_ones_continue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(KafkaConfig(total_bytes_max=1 << 20, frame_bytes_max=1 << 18))
    halves = [room.connect() for _ in range(6)]
    for number, line in enumerate(halves):
        line.receive(line.frames(BODY)[: (200 + number) << 10])
    left = [(number, line) for number, line in enumerate(halves) if not line.transport.is_lost]
    assert 2 <= len(left) <= 3
    assert "memory limit exceeded by incomplete requests" in caplog.text
    assert room.listener.held_bytes == sum((200 + number) << 10 for number, _ in left)
    bystander = room.connect()
    for _ in range(3):
        bystander.send(b"hello")
        assert bystander.answers() == [b"hello"]
    # Those that were left are read to their ends.
    for number, line in left:
        line.receive(line.frames(BODY)[(200 + number) << 10 :])
        assert line.answers() == [BODY]
    assert room.listener.held_bytes == 0


async def test_the_connection_that_overdraws_may_be_the_one_that_goes() -> None:
    room = Room(KafkaConfig(total_bytes_max=1 << 20, frame_bytes_max=5 << 20))
    line = room.connect()
    data = line.frames(b"x" * (4 << 20))
    line.receive(data[: 2 << 20])
    line.receive(data[2 << 20 : -1])
    assert line.transport.is_lost
    assert room.listener.held_bytes == 0


async def test_draining_waits_for_requests_in_flight() -> None:
    room = Room(KafkaConfig())
    idle, busy = room.connect(), room.connect()
    busy.send(b"wait")
    draining = asyncio.ensure_future(room.listener.drain(60))
    await asyncio.sleep(0)
    assert idle.transport.is_lost and not busy.transport.is_closed
    late = room.connect()
    assert late.transport.is_lost
    await busy.resolve(b"wait")
    assert busy.answers() == [b"wait"]
    await draining
    assert room.listener.session_count == 0


async def test_draining_cuts_off_what_takes_too_long(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(KafkaConfig())
    busy = room.connect()
    busy.send(b"wait")
    await room.listener.drain(0.001)
    assert busy.transport.is_lost
    assert room.script.futures[b"wait"].cancelled()
    assert "closing connections that did not drain in time count=1" in caplog.text


async def test_an_empty_listener_drains_at_once() -> None:
    await Room(KafkaConfig()).listener.drain(60)
