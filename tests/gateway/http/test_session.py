import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until

from rockgate.gateway.http.access import PageRefusal
from rockgate.gateway.http.config import HttpConfig
from rockgate.gateway.http.head import Request
from rockgate.gateway.http.pages import pages
from rockgate.gateway.http.session import Answer, HttpConnections, Starting
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.net.listening.listener import Listener


def broken() -> Answer:
    raise RuntimeError("a bug")


class Everybody:
    """Lets everyone read everything."""

    async def refusal(self, request: Request, host: str, endpoint: Endpoint) -> PageRefusal | None:
        return None


class Served:
    """An HTTP listener on a free port, with a phase that a test can change."""

    def __init__(self, config: HttpConfig) -> None:
        self.phase = "ready"
        self.metrics: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        made = pages(lambda: self.phase, lambda: self.metrics)
        self.served = HttpConnections(config, {**made, "/broken": broken})
        self.served.access = Everybody()
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
        """Wait until the listener holds no connection."""
        await until(lambda: not self.served.sessions, "no connection is held")


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    opened = Served(HttpConfig(connections_max=4, exchange_ms_max=2000))
    await opened.listener.listen(opened.served.session, backlog=16)
    yield opened
    opened.listener.close()
    opened.served.close()
    await opened.emptied()


async def test_health_and_ready_answer_and_close(served: Served) -> None:
    answer = await served.ask(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 3\r\n" in answer and b"Connection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nok\n")
    assert (await served.ask(b"GET /ready HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\nready\n")
    await served.emptied()


@pytest.mark.parametrize("phase", ["starting", "stopping"])
async def test_ready_is_503_while_the_server_starts_or_stops(served: Served, phase: str) -> None:
    served.phase = phase
    answer = await served.ask(b"GET /ready HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert answer.endswith(phase.encode() + b"\n")
    assert b" 200 " in await served.ask(b"GET /health HTTP/1.1\r\n\r\n")


async def test_head_gives_the_length_and_no_body(served: Served) -> None:
    answer = await served.ask(b"HEAD /health HTTP/1.1\r\n\r\n")
    assert b"Content-Length: 3\r\n" in answer and answer.endswith(b"\r\n\r\n")


async def test_pages_are_kept_back_until_it_is_known_who_may_read_them() -> None:
    early = Served(HttpConfig())
    early.served.access = Starting()
    await early.listener.listen(early.served.session, backlog=16)
    assert (await early.ask(b"GET /metrics HTTP/1.1\r\n\r\n")).endswith(b"starting\n")
    assert b" 200 " in await early.ask(b"GET /health HTTP/1.1\r\n\r\n")
    early.listener.close()


async def test_other_methods_get_405_with_those_allowed(served: Served) -> None:
    answer = await served.ask(b"DELETE /health HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    assert b"Allow: GET, HEAD\r\n" in answer


async def test_an_unknown_page_is_404(served: Served) -> None:
    assert (await served.ask(b"GET /../etc/passwd HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")


async def test_a_pages_bug_costs_one_answer(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await served.ask(b"GET /broken HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 500 ")
    assert "page failed path=/broken" in caplog.text and "a bug" in caplog.text
    assert b" 200 " in await served.ask(b"GET /health HTTP/1.1\r\n\r\n")


async def test_a_half_closed_client_still_gets_its_answer(served: Served) -> None:
    answer = await served.ask(b"GET /health HTTP/1.1\r\n\r\n", then_eof=True)
    assert answer.endswith(b"ok\n")


async def test_a_client_that_continues_sending_still_gets_its_refusal(served: Served) -> None:
    answer = await served.ask(b"POST /health HTTP/1.1\r\nA: " + b"b" * 60_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_client_that_never_finishes_its_head_is_closed_in_time() -> None:
    slow = Served(HttpConfig(exchange_ms_max=50))
    await slow.listener.listen(slow.served.session, backlog=16)
    reader, writer = await slow.connect()
    writer.write(b"GET /health HT")
    assert await asyncio.wait_for(_rest(reader), 60) == b""
    writer.close()
    await slow.emptied()
    slow.listener.close()


async def test_one_connection_too_many_is_closed_and_the_others_live(served: Served) -> None:
    held = [await served.connect() for _ in range(4)]
    await until(lambda: len(served.served.sessions) == 4, "four connections are held")
    reader, writer = await served.connect()
    assert await asyncio.wait_for(_rest(reader), 60) == b""
    writer.close()
    reader, writer = held[0]
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 60)).endswith(b"ok\n")
    for _, writer in held:
        writer.close()
    await served.emptied()
    assert b" 200 " in await served.ask(b"GET /health HTTP/1.1\r\n\r\n")


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the end; a reset is an end."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_a_page_may_take_its_time(served: Served) -> None:
    asked = asyncio.ensure_future(served.ask(b"GET /metrics HTTP/1.1\r\n\r\n"))
    await until(lambda: len(served.served.sessions) == 1, "the connection is held")
    assert b"ok" in await served.ask(b"GET /health HTTP/1.1\r\n\r\n")
    served.metrics.set_result("rockgate_lag 5\n")
    answer = await asked
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in answer
    assert answer.endswith(b"\r\n\r\nrockgate_lag 5\n")


async def test_a_half_closed_client_gets_a_page_that_takes_its_time(served: Served) -> None:
    asked = asyncio.ensure_future(served.ask(b"GET /metrics HTTP/1.1\r\n\r\n", then_eof=True))
    await until(lambda: len(served.served.sessions) == 1, "the connection is held")
    served.metrics.set_result("rockgate_lag 5\n")
    assert (await asked).endswith(b"rockgate_lag 5\n")


async def test_a_late_page_s_bug_costs_one_answer(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.metrics.set_exception(RuntimeError("a late bug"))
    assert (await served.ask(b"GET /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 500 ")
    assert "page failed path=/metrics" in caplog.text and "a late bug" in caplog.text


async def test_a_client_that_goes_away_ends_its_page(served: Served) -> None:
    _, writer = await served.connect()
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    await until(lambda: len(served.served.sessions) == 1, "the connection is held")
    writer.transport.abort()
    await served.emptied()
    await until(served.metrics.cancelled, "nobody waits for the page")
