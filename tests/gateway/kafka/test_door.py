import asyncio
import logging

import pytest
from tests.gateway.fakes import HandClock, MemoryTransport
from tests.gateway.kafka.fakes import Line, Script

from rockgate.gateway.kafka.config import KafkaConfig
from rockgate.gateway.kafka.door import KafkaDoor


class Room:
    """A door and any number of clients, all in memory."""

    def __init__(self, config: KafkaConfig) -> None:
        self.script = Script()
        self.clock = HandClock()
        self.door = KafkaDoor(config, self.script, self.clock)

    def connect(self) -> Line:
        line = Line()
        line.script = self.script
        line.transport = MemoryTransport()
        line.session = line.transport.session = self.door.session()
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
    assert room.door.session_count == 10
    assert [record.message for record in caplog.records] == [
        "refusing connections, limit reached max=10"
    ]
    with caplog.at_level(logging.INFO):
        for line in lines[:2]:
            line.transport.lose()
    assert "taking connections again connections=9" in caplog.text
    line = room.connect()
    line.send(b"hello")
    assert line.answers() == [b"hello"]


async def test_the_connection_that_holds_most_goes_when_memory_is_overdrawn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(KafkaConfig(total_bytes_max=1 << 20))
    small, large, other = room.connect(), room.connect(), room.connect()
    data = large.frames(b"x" * (2 << 20))
    large.receive(data[: 3 << 19])
    small.receive(small.frames(b"y" * (1 << 18))[: 1 << 18])
    assert not large.transport.is_closed
    other.receive(other.frames(b"z" * (1 << 19))[: 1 << 19])
    assert large.transport.is_lost
    assert not small.transport.is_closed and not other.transport.is_closed
    assert "holds most of too much memory" in caplog.text
    assert room.door.held_bytes == (1 << 18) + (1 << 19)


async def test_the_connection_that_overdraws_may_be_the_one_that_goes() -> None:
    room = Room(KafkaConfig(total_bytes_max=1 << 20))
    line = room.connect()
    data = line.frames(b"x" * (4 << 20))
    line.receive(data[: 2 << 20])
    line.receive(data[2 << 20 : -1])
    assert line.transport.is_lost
    assert room.door.held_bytes == 0


async def test_draining_waits_for_requests_in_flight() -> None:
    room = Room(KafkaConfig())
    idle, busy = room.connect(), room.connect()
    busy.send(b"wait")
    draining = asyncio.ensure_future(room.door.drain(60))
    await asyncio.sleep(0)
    assert idle.transport.is_lost and not busy.transport.is_closed
    late = room.connect()
    assert late.transport.is_lost
    await busy.resolve(b"wait")
    assert busy.answers() == [b"wait"]
    await draining
    assert room.door.session_count == 0


async def test_draining_cuts_off_what_takes_too_long(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(KafkaConfig())
    busy = room.connect()
    busy.send(b"wait")
    await room.door.drain(0.001)
    assert busy.transport.is_lost
    assert room.script.futures[b"wait"].cancelled()
    assert "cutting off connections that did not finish count=1" in caplog.text


async def test_an_empty_door_drains_at_once() -> None:
    await Room(KafkaConfig()).door.drain(60)
