"""One HTTP connection: one request, one response, then it is closed.

The whole exchange has one deadline. After the response, what the peer still sends is read and
discarded for a while: closing with unread bytes would reset the connection, and the peer could lose
the response.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, cast

from rockgate.gateway.http.access import OPEN, PageRefusal
from rockgate.gateway.http.config import HttpConfig
from rockgate.gateway.http.head import HeadReader, HeadRefused, Request
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.runtime.quoting import quoted

DROPPED_BYTES_MAX = 256 * 1024
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response of a page."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    schemes: tuple[str, ...] = ()
    """The logins that would be taken, of a page that needs one."""


Page = Callable[[], Answer | Awaitable[Answer]]
"""Produces a response, immediately or later."""


class Readers(Protocol):
    """Decides who may read pages that are not open to all."""

    async def refusal(
        self, request: Request, host: str, endpoint: Endpoint, /
    ) -> PageRefusal | None:
        """Why the client of a request may not read its page; None if it may."""


class Starting:
    """Refuses everything: who may read a page is not known yet."""

    async def refusal(self, request: Request, host: str, endpoint: Endpoint) -> PageRefusal | None:
        """It is too early."""
        return PageRefusal(status=HTTPStatus.SERVICE_UNAVAILABLE, reason="starting")


class HttpConnections:
    """All HTTP connections: their number is limited, and a stop closes them."""

    def __init__(self, config: HttpConfig, pages: Mapping[str, Page]) -> None:
        self.config = config
        self.pages = pages
        self.access: Readers = Starting()
        """Decides who may read pages that are not open to all."""
        self.sessions: set[HttpSession] = set()

    def session(self, endpoint: Endpoint = NOWHERE) -> "HttpSession":
        """The protocol of a new connection to a listener."""
        return HttpSession(self, endpoint)

    def close(self) -> None:
        """Close every connection. Responses are short, so none is waited for."""
        for session in list(self.sessions):
            session.close()


class HttpSession(asyncio.Protocol):
    """Reads a request head, responds, and discards what follows.

    Owned by its connection until it is lost.
    """

    def __init__(self, listener: HttpConnections, endpoint: Endpoint) -> None:
        self._listener = listener
        self._endpoint = endpoint
        self._reader = HeadReader()
        self._is_answered = False
        self._dropped_bytes = 0
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._page: asyncio.Future[Answer] | None = None
        self._is_half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout, or close the connection when there are too many."""
        # uvloop's transports have the interface without the base class.
        self._transport = transport = cast(asyncio.Transport, transport)
        if len(self._listener.sessions) >= self._listener.config.connections_max:
            transport.abort()
            return
        self._listener.sessions.add(self)
        seconds = self._listener.config.exchange_ms_max / 1000
        self._deadline = asyncio.get_running_loop().call_later(seconds, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._listener.sessions.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._page is not None:
            self._page.cancel()

    def data_received(self, data: bytes) -> None:
        """Read until the head is complete."""
        if self._is_answered:
            self._drop(len(data))
            return
        try:
            request = self._reader.feed(data)
        except HeadRefused as refused:
            self._send(refusal(refused), is_head=False)
            return
        if request is not None:
            self._is_answered = True
            self._answer(request)

    def eof_received(self) -> bool:
        """The peer will send nothing more: close after everything is written."""
        self._is_half_closed = True
        return self._page is not None and not self._page.done()

    def close(self) -> None:
        """Close after everything is written."""
        if self._transport is not None:
            self._transport.close()

    def _answer(self, request: Request) -> None:
        page = self._listener.pages.get(request.path)
        if page is None:
            self._send(Answer(status=404, body=b"no such page\n"), is_head=request.is_head)
            return
        try:
            answer = page() if request.path in OPEN else self._guarded(page, request)
        except Exception:  # noqa: BLE001 # a page's bug must cost this answer and nothing else
            answer = _failed(request)
        if isinstance(answer, Answer):
            self._send(answer, is_head=request.is_head)
            return
        self._page = asyncio.ensure_future(answer)
        self._page.add_done_callback(lambda page: self._answer_late(request, page))

    async def _guarded(self, page: Page, request: Request) -> Answer:
        """A page that not everyone may read."""
        assert self._transport is not None
        name = self._transport.get_extra_info("peername")
        host = name[0] if name else ""
        refusal = await self._listener.access.refusal(request, host, self._endpoint)
        if refusal is not None:
            body = f"{refusal.reason}\n".encode()
            return Answer(status=refusal.status, body=body, schemes=refusal.schemes)
        answer = page()
        return answer if isinstance(answer, Answer) else await answer

    def _answer_late(self, request: Request, page: "asyncio.Future[Answer]") -> None:
        """The response of a slow page is ready; the connection may be closed by now."""
        if page.cancelled():
            return
        try:
            answer = page.result()
        except Exception:  # noqa: BLE001 # as above
            answer = _failed(request)
        self._send(answer, is_head=request.is_head)

    def _send(self, answer: Answer, *, is_head: bool) -> None:
        assert self._transport is not None
        self._is_answered = True
        if self._transport.is_closing():
            return
        head = [
            f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            head.append("Allow: GET, HEAD")
        head += [f'WWW-Authenticate: {scheme} realm="rockgate"' for scheme in answer.schemes]
        written = "\r\n".join([*head, "", ""]).encode("ascii")
        self._transport.write(written if is_head else written + answer.body)
        if self._transport.can_write_eof() and not self._is_half_closed:
            self._transport.write_eof()
        else:
            self._transport.close()

    def _drop(self, size: int) -> None:
        assert self._transport is not None
        self._dropped_bytes += size
        if self._dropped_bytes > DROPPED_BYTES_MAX:
            self._transport.abort()


def _failed(request: Request) -> Answer:
    log.exception("page failed path=%s", quoted(request.path))
    return Answer(status=500, body=b"this page failed; the log says why\n")


def refusal(refused: HeadRefused) -> Answer:
    """The response to bytes that are not a request."""
    return Answer(status=refused.status, body=f"{refused.reason}\n".encode())
