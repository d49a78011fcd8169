"""Accepts connections of listeners with TLS: examines the first bytes, then runs the handshake.

| state | what happens | next |
|---|---|---|
| accepted | too many are on their way | the oldest one of these is closed |
| accepted | the first bytes begin a TLS record | handshaking, when it is its turn |
| accepted | they are something else, and the listener is permissive | open, without TLS |
| accepted | they are something else | closed, with a log line |
| handshaking | it succeeds | open; the session asks for the principal of the certificate |
| handshaking | it fails | closed, with a log line |
| accepted, handshaking | the time is over, the client leaves, the server stops | closed |

A session is connected only in the state open. The bytes are peeked at, not taken, so the
loop's own TLS begins with them. The costly step of a handshake follows its start at once, so only a
few are started in each turn of the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, TypeAlias

from rockgate.gateway.net.address import Address, socket_address
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.security.tls.contexts import TlsContexts

HANDSHAKES_MAX: Final = 512
"""Connections on their way; beyond it, the one that has taken longest makes room."""
STARTED_MAX: Final = 4
"""Handshakes that are started in a turn of the loop: each takes about half a millisecond."""
ACCEPTED_MAX: Final = 16
TLS_RECORD: Final = b"\x16\x03"
SHUTDOWN_SECONDS: Final = 5.0
ABOUT_CERTIFICATES: Final = frozenset(
    {"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE"}
)
"""OpenSSL's reasons for which a client's certificate is refused."""
OnRefused: TypeAlias = Callable[[str, str, str], None]
"""Called with host, listener and reason."""
log = logging.getLogger(__name__)


class TlsAcceptor:
    """The way in for one protocol's listeners with TLS."""

    def __init__(
        self,
        contexts: TlsContexts,
        *,
        seconds_max: float,
        session: Callable[[Endpoint], asyncio.BaseProtocol],
        on_refused: OnRefused | None = None,
    ) -> None:
        """`on_refused` is called for clients without a valid certificate, where one is needed."""
        self._on_refused = on_refused
        self._contexts = contexts
        self._seconds_max = seconds_max
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._turn_left = STARTED_MAX
        self._is_turn_due = False
        self._starting: list[asyncio.Future[None]] = []
        self._sockets: list[socket.socket] = []

    @property
    def pending_count(self) -> int:
        """Connections that are not yet open."""
        return len(self._tasks)

    def listen(self, bound: socket.socket, endpoint: Endpoint, *, backlog: int) -> None:
        """Start accepting connections of a bound socket."""
        bound.listen(backlog)
        bound.setblocking(False)
        self._sockets.append(bound)
        self._loop.add_reader(bound.fileno(), self._accept, bound, endpoint)

    def close(self) -> None:
        """Accept nothing more, and close what is on its way."""
        sockets, self._sockets = self._sockets, []
        for bound in sockets:
            if bound.fileno() >= 0:
                self._loop.remove_reader(bound.fileno())
                bound.close()
        for task in list(self._tasks):
            task.cancel()

    def _accept(self, bound: socket.socket, endpoint: Endpoint) -> None:
        for _ in range(ACCEPTED_MAX):
            try:
                accepted, name = bound.accept()
            except OSError:
                return
            accepted.setblocking(False)
            if len(self._tasks) >= HANDSHAKES_MAX:
                next(iter(self._tasks)).cancel()
            task = self._loop.create_task(self._admit(accepted, socket_address(name), endpoint))
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _admit(self, accepted: socket.socket, remote: Address, endpoint: Endpoint) -> None:
        """Bring one connection from accept to open, or close it."""
        is_handed_over = False
        try:
            async with asyncio.timeout(self._seconds_max):
                first = await self._first_bytes(accepted)
                is_tls = first[:1] == TLS_RECORD[:1]
                if not first:
                    return
                if not is_tls and endpoint.tls == "enforcing":
                    _log_closed(remote, endpoint, "looks like plaintext, but the listener has TLS")
                    return
                if is_tls:
                    await self._turn()
                is_handed_over = True
                await self._open(accepted, endpoint, is_tls=is_tls)
        except TimeoutError:
            _log_closed(remote, endpoint, "TLS handshake did not complete in time")
        except OSError as error:
            reason = str(getattr(error, "reason", None) or error)
            _log_closed(remote, endpoint, f"TLS handshake failed, {reason}")
            if self._on_refused is not None and reason in ABOUT_CERTIFICATES:
                self._on_refused(remote.host, endpoint.label, reason)
        finally:
            if not is_handed_over:
                accepted.close()

    async def _first_bytes(self, accepted: socket.socket) -> bytes:
        """Wait for the first bytes, and leave them where they are; none if the client left."""
        readable: asyncio.Future[None] = self._loop.create_future()

        def ready() -> None:
            if not readable.done():
                readable.set_result(None)

        self._loop.add_reader(accepted.fileno(), ready)
        try:
            await readable
        finally:
            self._loop.remove_reader(accepted.fileno())
        return accepted.recv(len(TLS_RECORD), socket.MSG_PEEK)

    async def _turn(self) -> None:
        """Wait for a turn of the loop in which another handshake may be started."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_later(0, self._next_turn)
        if self._turn_left > 0:
            self._turn_left -= 1
            return
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._starting.append(waiting)
        await waiting

    def _next_turn(self) -> None:
        self._is_turn_due = False
        self._turn_left = STARTED_MAX
        while self._starting and self._turn_left:
            waiting = self._starting.pop(0)
            if not waiting.done():
                self._turn_left -= 1
                waiting.set_result(None)
        if self._starting or self._turn_left < STARTED_MAX:
            self._is_turn_due = True
            self._loop.call_later(0, self._next_turn)

    async def _open(self, accepted: socket.socket, endpoint: Endpoint, *, is_tls: bool) -> None:
        session = self._session(endpoint)
        if not is_tls:
            await self._loop.connect_accepted_socket(lambda: session, accepted)
            return
        contexts, asks = self._contexts, asks_for_certificates(endpoint)
        context = contexts.with_certificates if asks else contexts.without_certificates
        await self._loop.connect_accepted_socket(
            lambda: session,
            accepted,
            ssl=context,
            ssl_handshake_timeout=self._seconds_max,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )


def asks_for_certificates(endpoint: Endpoint) -> bool:
    """Whether a certificate may be the principal of a listener's client."""
    is_encrypted = endpoint.tls != "disabled"
    return is_encrypted and endpoint.authentication != "sasl" and endpoint.protocol != "http"


def _log_closed(remote: Address, endpoint: Endpoint, reason: str) -> None:
    log.info("closed, %s peer=%s listener=%s", reason, remote, endpoint.label)
