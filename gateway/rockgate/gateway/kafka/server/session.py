"""One Kafka connection: the only asyncio code between a socket and a handler.

Bytes go to a sans-IO ServerConnection, which cuts them into requests; each is handed to dispatch,
which answers at once or later; answers leave in the order of the requests. There is no task per
request and none per connection: everything happens in the transport's callbacks, in those of the
futures that handlers return, and in one timer.

Invariants, besides those of a Stream
- A request is started only while the client reads its answers, and is not throttled;
  many that came together are started over several turns of the loop.
- No handler's future is left waiting when the connection is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from rockgate.gateway.kafka.request.handler import Answer, Peer
from rockgate.gateway.kafka.server.throttle_pause import ThrottlePause
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.clock import Clock
from rockgate.gateway.net.connection_log import Lines
from rockgate.gateway.net.hangup import has_hung_up
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.net.receive_buffer import ReceiveBuffer
from rockgate.gateway.net.stream import LENGTH_SIZE, WRITE_SIZE, Disconnect, Stream
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.connection import Exchange, ServerConnection
from rockgate.protocol.kafka.errors import ProtocolError
from rockgate.protocol.kafka.keys import ApiKey

log = logging.getLogger(__name__)
_LINES = Lines(log, "the Kafka listener")

SURE_COUNT: Final = 4
"""This many requests that arrived together are started without reading the clock."""
TURN_SECONDS: Final = 0.005
"""How long requests of one connection are started before others get their turn."""


class Promise(Protocol):
    """A pending response."""

    @property
    def future(self) -> asyncio.Future[Any]:
        """Done when the response is ready."""
        ...

    def answer(self) -> Answer:
        """The response, once `future` is done; raises what closes the connection."""
        ...


class Dispatch(Protocol):
    """Responds to requests."""

    def dispatch(self, exchange: Exchange, peer: Peer, /) -> Answer | Promise:
        """The response, or a pending one."""
        ...


class Sessions(Protocol):
    """Holds the sessions of a listener."""

    def opened(self, session: Session, /) -> bool:
        """Register a new session; False rejects it."""
        ...

    def lost(self, session: Session, /) -> None:
        """Remove a session whose connection is closed."""
        ...

    def entered(self, session: Session, user: str, /) -> bool:
        """Count a session for the user that it has authenticated as; False if it has too many."""
        ...

    def identify(self, certificate: Mapping[str, Any], host: str, listener: str, /) -> Principal:
        """The principal of a client's certificate; ValueError if it has none."""
        ...


class Session(Stream[Exchange, Peer]):
    """One connection from accept to loss. The listener owns it; the transport drives it."""

    __slots__ = (
        "_dispatch",
        "_exchanges",
        "_listener",
        "_sessions",
        "_throttle_pause",
        "_unread_bytes_max",
        "_unsent_bytes",
        "_write_size",
    )

    def __init__(
        self,
        *,
        connection_id: int,
        limits: Limits,
        budget: Budget,
        dispatch: Dispatch,
        sessions: Sessions,
        clock: Clock,
        receiving: ReceiveBuffer,
        listener: Endpoint = NOWHERE,
        exchanges: ServerConnection | None = None,
    ) -> None:
        """`exchanges` is the connection without I/O, if not the usual one."""
        self._exchanges = exchanges or ServerConnection(
            frame_bytes_max=limits.frame_bytes_max,
            in_flight_max=limits.in_flight_max,
            spares=receiving.spares,
        )
        super().__init__(
            self._exchanges,
            connection_id=connection_id,
            limits=limits,
            budget=budget,
            clock=clock,
            receiving=receiving,
            lines=_LINES,
        )
        self._dispatch = dispatch
        self._sessions = sessions
        self._listener = listener
        self._unread_bytes_max = limits.unread_bytes_max
        self._write_size = min(WRITE_SIZE, limits.unread_bytes_max)
        self._waiting: dict[Exchange, Promise] = {}
        # Ready, but perhaps waiting for the response to an earlier request.
        self._unsent_bytes = 0
        self._throttle_pause = ThrottlePause(clock, self._advance, self._has_left)

    # Beginning and ending

    def _begin(self, local: Address, remote: Address) -> bool:
        self.peer = Peer(
            connection_id=self.connection_id,
            local=local,
            remote=remote,
            listener=self._listener,
            resume=self._advance,
            has_left=self._has_left,
        )
        certificate = self._transport.get_extra_info("peercert")
        if certificate and self._listener.authentication == "none":
            try:
                principal = self._sessions.identify(certificate, remote.host, self._listener.label)
            except ValueError as error:
                _LINES.cut_off(f"certificate refused, {error}", self.peer)
                return False
            self.peer.become(principal)
            return self._sessions.opened(self) and self._enter(principal)
        return self._sessions.opened(self)

    def _enter(self, principal: Principal) -> bool:
        """Count the connection for its user; False, with a line, if it has too many."""
        if self._sessions.entered(self, principal.name):
            return True
        _LINES.cut_off("connection limit of the user reached", self.peer)
        return False

    def _end_requests(self) -> None:
        self._throttle_pause.forget()
        self.peer.release()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.future.cancel()

    def _lost(self) -> None:
        self._sessions.lost(self)

    # Called by the listener

    @property
    def remote_host(self) -> str:
        """The address that the connection comes from."""
        return self.peer.remote.host

    def end_throttle_pause(self) -> None:
        """End the pause of a throttled client early: its quota has changed."""
        if self._throttle_pause.is_on:
            self._throttle_pause.end()
            self._advance()

    def _has_left(self) -> bool:
        """Close if the client has disconnected, which is not noticed without reading."""
        if not self._is_closing and has_hung_up(self._transport.get_extra_info("socket")):
            self.abort()
        return self._is_closing

    def drain(self) -> None:
        """Read nothing more, answer what was received, then close."""
        self._throttle_pause.end()
        super().drain()

    # Requests

    def _accept(self, exchanges: list[Exchange]) -> None:
        if exchanges:
            whole = 0
            for exchange in exchanges:
                whole += exchange.size + LENGTH_SIZE
            self._partial_bytes -= whole
            self._budget.incomplete -= whole
            self._backlog.extend(exchanges)
            # What is left over began with the last bytes, at the earliest.
            self._watch.frame_at = self._watch.read_at

    def _start_all(self) -> None:
        """Start requests while the client reads; many small responses become one write."""
        if self._is_advance_scheduled:
            # Other connections have their turn first; responses that are ready may be sent.
            self._write()
            return
        backlog, unread_bytes_max = self._backlog, self._unread_bytes_max
        write_size, unwritten, sure = self._write_size, 0, SURE_COUNT
        turn: TimeSlice | None = None
        while not self._is_closing:
            if not backlog:
                self._write()
                unwritten = 0
                # Without bytes left over there can be no further request.
                if not self._partial_bytes:
                    return
                self._accept(self._exchanges.next_exchanges())
                if not backlog:
                    return
            if unwritten >= write_size or self._unsent_bytes >= unread_bytes_max:
                self._write()
                unwritten = 0
            if (
                self._is_unread
                or self._throttle_pause.is_on
                or self.peer.reading_count
                or self._unsent_bytes >= unread_bytes_max
            ):
                self._write()
                return
            if sure:
                sure -= 1
            else:
                turn = turn or TimeSlice(TURN_SECONDS)
                if turn.is_over():
                    self._write()
                    self._advance_soon()
                    return
            unwritten += self._start(backlog.popleft())

    def _start(self, exchange: Exchange) -> int:
        """Pass a request to its handler; returns how many bytes now wait to be written."""
        if self._debug:
            _log_request(exchange, self.peer)
        outcome = self._dispatch.dispatch(exchange, self.peer)
        if isinstance(outcome, list):
            return self._answer(exchange, outcome)
        self._waiting[exchange] = outcome
        outcome.future.add_done_callback(lambda future: self._answered(exchange, future))
        return 0

    def _answered(self, exchange: Exchange, future: asyncio.Future[Any]) -> None:
        """A handler's future is done."""
        waiting = self._waiting.pop(exchange, None)
        if waiting is None or self._is_closing:
            # The connection is closed; retrieving the error keeps asyncio from reporting it.
            _ = future.cancelled() or future.exception()
            return
        try:
            if future.cancelled():
                raise Disconnect("a request was cancelled")
            self._answer(exchange, waiting.answer())
        except (ProtocolError, Disconnect) as error:
            self._break_off(error)
        else:
            self._advance()

    def _answer(self, exchange: Exchange, answer: Answer) -> int:
        self._exchanges.respond(exchange, answer)
        freed = exchange.size + LENGTH_SIZE
        self.held_bytes -= freed
        self._budget.give(freed)
        if self.peer.throttle_ms:
            self._throttle_pause.begin(self.peer)
        if self._debug:
            _log_answer(exchange, self.peer, sum(map(len, answer)))
        if not self._waiting and not self._backlog:
            return 0
        size = sum(map(len, answer))
        if self._waiting:
            self._unsent_bytes += size
        return size

    def _write(self) -> None:
        buffers = self._exchanges.data_to_send()
        if not buffers:
            return
        if self._unsent_bytes or self._is_unread:
            size = sum(map(len, buffers))
            self._written_bytes += size
            # Each response got a few bytes of header, which are counted for the client here.
            self._unsent_bytes = max(0, self._unsent_bytes - size) if self._waiting else 0
        self._transport.writelines(buffers)

    # Reading on and off

    def _in_flight_count(self) -> int:
        return self._exchanges.in_flight_count

    def _has_room(self) -> bool:
        return not self._throttle_pause.is_on and super()._has_room()


def _log_request(exchange: Exchange, peer: Peer) -> None:
    """A request was received."""
    header = exchange.header
    log.debug(
        "< %s api=%s version=%d correlation_id=%d client_id=%s size=%d",
        peer,
        ApiKey(header.api_key).name,
        header.api_version,
        header.correlation_id,
        quoted(header.client_id),
        exchange.size,
    )


def _log_answer(exchange: Exchange, peer: Peer, size: int) -> None:
    """Its response is ready."""
    header = exchange.header
    log.debug(
        "> %s api=%s version=%d correlation_id=%d size=%d",
        peer,
        ApiKey(header.api_key).name,
        header.api_version,
        header.correlation_id,
        size,
    )
