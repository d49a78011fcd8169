import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until

from rockgate.gateway.http.config import HttpConfig
from rockgate.gateway.http.pages import pages
from rockgate.gateway.http.session import Answer, HttpDoor
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listener import Listener


def broken() -> Answer:
    raise RuntimeError("a bug")


class Door:
    """An HTTP door on a free port, with a phase that a test can change."""

    def __init__(self, config: HttpConfig) -> None:
        self.phase = "ready"
        self.metrics: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        made = pages(lambda: self.phase, lambda: self.metrics)
        self.door = HttpDoor(config, {**made, "/broken": broken})
        self.listener = Listener.bind("http", Address("127.0.0.1", 0))

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.listener.address.port)

    async def ask(self, data: bytes, *, then_eof: bool = False) -> bytes:
        reader, writer = await self.connect()
        try:
            writer.write(data)
            if then_eof:
                writer.write_eof()
            return await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()

    async def emptied(self) -> None:
        """Wait until the door holds no connection."""
        await until(lambda: not self.door.sessions, "no connection is held")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    opened = Door(HttpConfig(connections_max=4, exchange_ms_max=2000))
    await opened.listener.listen(opened.door.session, backlog=16)
    yield opened
    opened.listener.close()
    opened.door.close()
    await opened.emptied()


async def test_health_and_ready_answer_and_close(door: Door) -> None:
    answer = await door.ask(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 3\r\n" in answer and b"Connection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nok\n")
    assert (await door.ask(b"GET /ready HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\nready\n")
    await door.emptied()


@pytest.mark.parametrize("phase", ["starting", "stopping"])
async def test_ready_is_503_while_the_server_starts_or_stops(door: Door, phase: str) -> None:
    door.phase = phase
    answer = await door.ask(b"GET /ready HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert answer.endswith(phase.encode() + b"\n")
    assert b" 200 " in await door.ask(b"GET /health HTTP/1.1\r\n\r\n")


async def test_head_gives_the_length_and_no_body(door: Door) -> None:
    answer = await door.ask(b"HEAD /health HTTP/1.1\r\n\r\n")
    assert b"Content-Length: 3\r\n" in answer and answer.endswith(b"\r\n\r\n")


async def test_other_methods_get_405_with_those_allowed(door: Door) -> None:
    answer = await door.ask(b"DELETE /health HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    assert b"Allow: GET, HEAD\r\n" in answer


async def test_an_unknown_page_is_404(door: Door) -> None:
    assert (await door.ask(b"GET /../etc/passwd HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")


async def test_a_pages_bug_costs_one_answer(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    assert (await door.ask(b"GET /broken HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 500 ")
    assert "page failed path=/broken" in caplog.text and "a bug" in caplog.text
    assert b" 200 " in await door.ask(b"GET /health HTTP/1.1\r\n\r\n")


async def test_a_half_closed_client_still_gets_its_answer(door: Door) -> None:
    answer = await door.ask(b"GET /health HTTP/1.1\r\n\r\n", then_eof=True)
    assert answer.endswith(b"ok\n")


async def test_a_client_that_goes_on_sending_still_gets_its_refusal(door: Door) -> None:
    answer = await door.ask(b"POST /health HTTP/1.1\r\nA: " + b"b" * 60_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_client_that_never_finishes_its_head_is_closed_in_time() -> None:
    slow = Door(HttpConfig(exchange_ms_max=50))
    await slow.listener.listen(slow.door.session, backlog=16)
    reader, writer = await slow.connect()
    writer.write(b"GET /health HT")
    assert await asyncio.wait_for(_rest(reader), 60) == b""
    writer.close()
    await slow.emptied()
    slow.listener.close()


async def test_one_connection_too_many_is_closed_and_the_others_live(door: Door) -> None:
    held = [await door.connect() for _ in range(4)]
    await until(lambda: len(door.door.sessions) == 4, "four connections are held")
    reader, writer = await door.connect()
    assert await asyncio.wait_for(_rest(reader), 60) == b""
    writer.close()
    reader, writer = held[0]
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 60)).endswith(b"ok\n")
    for _, writer in held:
        writer.close()
    await door.emptied()
    assert b" 200 " in await door.ask(b"GET /health HTTP/1.1\r\n\r\n")


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the end; a reset is an end."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_a_page_may_take_its_time(door: Door) -> None:
    asked = asyncio.ensure_future(door.ask(b"GET /metrics HTTP/1.1\r\n\r\n"))
    await until(lambda: len(door.door.sessions) == 1, "the connection is held")
    assert b"ok" in await door.ask(b"GET /health HTTP/1.1\r\n\r\n")
    door.metrics.set_result("rockgate_lag 5\n")
    answer = await asked
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in answer
    assert answer.endswith(b"\r\n\r\nrockgate_lag 5\n")


async def test_a_half_closed_client_gets_a_page_that_takes_its_time(door: Door) -> None:
    asked = asyncio.ensure_future(door.ask(b"GET /metrics HTTP/1.1\r\n\r\n", then_eof=True))
    await until(lambda: len(door.door.sessions) == 1, "the connection is held")
    door.metrics.set_result("rockgate_lag 5\n")
    assert (await asked).endswith(b"rockgate_lag 5\n")


async def test_a_late_page_s_bug_costs_one_answer(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    door.metrics.set_exception(RuntimeError("a late bug"))
    assert (await door.ask(b"GET /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 500 ")
    assert "page failed path=/metrics" in caplog.text and "a late bug" in caplog.text


async def test_a_client_that_goes_away_ends_its_page(door: Door) -> None:
    _, writer = await door.connect()
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    await until(lambda: len(door.door.sessions) == 1, "the connection is held")
    writer.transport.abort()
    await door.emptied()
    await until(door.metrics.cancelled, "nobody waits for the page")
