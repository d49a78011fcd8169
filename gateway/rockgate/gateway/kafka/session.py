"""One Kafka connection: the only asyncio code between a socket and a handler.

Bytes go to a sans-IO ServerConnection, which cuts them into requests; each is handed to dispatch,
which answers at once or later; answers leave in the order of the requests. There is no task per
request and none per connection: everything happens in the transport's callbacks, in those of the
futures that handlers return, and in one timer.

Invariants
- Reading stops while too much is in flight, unread by the client, or held by all connections
  together, so a connection's memory is bounded by its limits.
- A request is started only while the client reads its answers, and has not been told to wait.
- The bytes counted in the budget are those received and not yet answered; none stay behind when
  the connection is lost, and no handler's future is left waiting.
"""

import asyncio
from collections import deque
from typing import Any, cast

from rockgate.gateway.address import socket_address
from rockgate.gateway.budget import Budget
from rockgate.gateway.clock import Clock, Timer
from rockgate.gateway.kafka import lines
from rockgate.gateway.kafka.ends import Dispatch, Promise, Sessions
from rockgate.gateway.kafka.errors import Disconnect
from rockgate.gateway.kafka.handler import Answer
from rockgate.gateway.kafka.mute import Mute
from rockgate.gateway.kafka.peer import Peer
from rockgate.gateway.limits import Limits
from rockgate.gateway.receiving import Receiving
from rockgate.gateway.watch import Verdict, Watch
from rockgate.protocol.kafka.connection import Exchange, ServerConnection
from rockgate.protocol.kafka.errors import ProtocolError

LENGTH_SIZE = 4
WRITE_SIZE = 256 * 1024
"""Answers are given to the transport at least this often while more requests are started."""


class Session(asyncio.BufferedProtocol):
    """One connection from accept to loss. The door owns it; the transport drives it."""

    __slots__ = (
        "_backlog",
        "_budget",
        "_clock",
        "_connection",
        "_debug",
        "_dispatch",
        "_first_bytes",
        "_is_closing",
        "_is_draining",
        "_is_reading",
        "_is_unread",
        "_limits",
        "_mute",
        "_partial_bytes",
        "_peer",
        "_receiving",
        "_room",
        "_sessions",
        "_timer",
        "_transport",
        "_unsent_bytes",
        "_waiting",
        "_watch",
        "_written_bytes",
        "connection_id",
        "held_bytes",
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
        receiving: Receiving,
    ) -> None:
        self.connection_id = connection_id
        self.held_bytes = 0
        """Request bytes received and not answered yet."""
        self._limits = limits
        self._budget = budget
        self._dispatch = dispatch
        self._sessions = sessions
        self._clock = clock
        self._connection = ServerConnection(
            frame_bytes_max=limits.frame_bytes_max,
            in_flight_max=limits.in_flight_max,
            spares=receiving.spares,
        )
        self._receiving = receiving
        # Where the next bytes come, if that is where they belong.
        self._room: memoryview | None = None
        self._watch = Watch(limits, clock.time())
        self._timer: Timer | None = None
        # Handed out by the connection and not started yet.
        self._backlog: deque[Exchange] = deque()
        # Started and not answered yet.
        self._waiting: dict[Exchange, Promise] = {}
        # Answered, but perhaps behind an earlier request that is not.
        self._unsent_bytes = 0
        # Received, but of no request that the connection has handed out.
        self._partial_bytes = 0
        # Written while the client left too much unread.
        self._written_bytes = 0
        self._first_bytes = b""
        self._is_reading = True
        self._is_unread = False
        self._is_draining = False
        self._is_closing = False
        self._mute = Mute(clock, self._go_on)
        self._debug = lines.is_debugging()

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or be turned away by the door."""
        # uvloop's transports have the interface without the base class.
        self._transport = transport = cast(asyncio.Transport, transport)
        self._peer = Peer(
            connection_id=self.connection_id,
            local=socket_address(transport.get_extra_info("sockname")),
            remote=socket_address(transport.get_extra_info("peername")),
        )
        if not self._sessions.opened(self):
            self._is_closing = True
            transport.abort()
            return
        transport.set_write_buffer_limits(high=self._limits.unread_bytes_max)
        self._timer = self._clock.call_later(self._limits.look_seconds, self._look)
        if self._debug:
            lines.connected(self._peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where the next bytes go: into the large request under way, or anywhere."""
        self._room = room = self._connection.room() if self._partial_bytes else None
        return self._receiving.chunk if room is None else room

    def buffer_updated(self, nbytes: int) -> None:
        """Take the client's bytes and start the requests that they complete."""
        if self._is_closing:
            return
        watch = self._watch
        watch.read_at = now = self._clock.time()
        if not self._partial_bytes:
            watch.frame_at = now
            if not self._first_bytes:
                self._first_bytes = bytes(self._receiving.chunk[: min(nbytes, LENGTH_SIZE)])
        self.held_bytes += nbytes
        self._partial_bytes += nbytes
        self._budget.take(nbytes)
        self._go_on(nbytes)

    def eof_received(self) -> bool:
        """The client sends no more, which for Kafka's clients means that it is gone."""
        return False

    def pause_writing(self) -> None:
        """The client leaves its answers unread: start nothing more for it."""
        self._is_unread = True
        self._watch.taken_at = self._clock.time()
        self._watch.taken_bytes = self._taken_bytes()
        self._steer()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._is_unread = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything that this connection held or waited for."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._mute.end()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.future.cancel()
        self._backlog.clear()
        self._budget.forget(self._go_on)
        self._budget.give(self.held_bytes)
        self.held_bytes = 0
        self._sessions.lost(self)
        if self._debug:
            lines.disconnected(self._peer)

    # Called by the door

    @property
    def remote_host(self) -> str:
        """Where the connection comes from."""
        return self._peer.remote.host

    def drain(self) -> None:
        """Read nothing more, answer what was received, then close."""
        self._is_draining = True
        self._mute.end()
        self._go_on()

    def abort(self, reason: str | None = None) -> None:
        """Close at once, with one line in the log if there is a reason to tell."""
        if reason is not None and not self._is_closing:
            lines.cut_off(reason, self._peer)
        self._is_closing = True
        self._transport.abort()

    # Requests

    def _go_on(self, came: int = 0) -> None:
        """Take what came, start what may start, write what may leave, read if there is room."""
        if self._is_closing:
            return
        try:
            if came and self._room is None:
                chunk = bytes(self._receiving.chunk[:came])
                self._accept(self._connection.receive_data(chunk))
            elif came:
                self._room = None
                self._accept(self._connection.filled(came))
            self._start_all()
        except (ProtocolError, Disconnect) as error:
            self._break_off(error)
        else:
            self._steer()

    def _accept(self, exchanges: list[Exchange]) -> None:
        if exchanges:
            for exchange in exchanges:
                self._partial_bytes -= exchange.size + LENGTH_SIZE
            self._backlog.extend(exchanges)
            # What is left over has begun with the last bytes, at the earliest.
            self._watch.frame_at = self._watch.read_at

    def _start_all(self) -> None:
        """Start requests while the client reads; many small answers become one write."""
        backlog, unread_bytes_max = self._backlog, self._limits.unread_bytes_max
        write_size = min(WRITE_SIZE, unread_bytes_max)
        unwritten = 0
        while not self._is_closing:
            if not backlog:
                self._write()
                unwritten = 0
                # Without a byte left over there is nothing more that could be a request.
                if not self._partial_bytes:
                    return
                self._accept(self._connection.next_exchanges())
                if not backlog:
                    return
            if unwritten >= write_size or self._unsent_bytes >= unread_bytes_max:
                self._write()
                unwritten = 0
            if self._is_unread or self._mute.is_on or self._unsent_bytes >= unread_bytes_max:
                self._write()
                return
            unwritten += self._start(backlog.popleft())

    def _start(self, exchange: Exchange) -> int:
        """Hand a request to its handler; returns how many bytes now wait to be written."""
        if self._debug:
            lines.request(exchange, self._peer)
        outcome = self._dispatch.dispatch(exchange, self._peer)
        if isinstance(outcome, list):
            return self._answer(exchange, outcome)
        self._waiting[exchange] = outcome
        outcome.future.add_done_callback(lambda future: self._answered(exchange, future))
        return 0

    def _answered(self, exchange: Exchange, future: "asyncio.Future[Any]") -> None:
        """A handler's future is done."""
        waiting = self._waiting.pop(exchange, None)
        if waiting is None or self._is_closing:
            # Nobody is left to tell; looking at the error keeps asyncio from reporting it as lost.
            _ = future.cancelled() or future.exception()
            return
        try:
            if future.cancelled():
                raise Disconnect("a request was cancelled")
            self._answer(exchange, waiting.answer())
        except (ProtocolError, Disconnect) as error:
            self._break_off(error)
        else:
            self._go_on()

    def _answer(self, exchange: Exchange, answer: Answer) -> int:
        self._connection.respond(exchange, answer)
        freed = exchange.size + LENGTH_SIZE
        self.held_bytes -= freed
        self._budget.give(freed)
        if self._peer.throttle_ms:
            self._mute.begin(self._peer)
        if self._debug:
            lines.answer(exchange, self._peer, sum(map(len, answer)))
        if not self._waiting and not self._backlog:
            return 0
        size = sum(map(len, answer))
        if self._waiting:
            self._unsent_bytes += size
        return size

    def _write(self) -> None:
        buffers = self._connection.data_to_send()
        if not buffers:
            return
        if self._unsent_bytes or self._is_unread:
            size = sum(map(len, buffers))
            self._written_bytes += size
            # Each answer got a few bytes of header on its way, which count for the client here.
            self._unsent_bytes = max(0, self._unsent_bytes - size) if self._waiting else 0
        self._transport.writelines(buffers)

    # Reading on and off

    def _steer(self) -> None:
        """Read exactly while there is room for what would be read."""
        if self._is_closing:
            return
        if self._is_draining:
            self._pause_reading()
            if not self._backlog and not self._connection.in_flight_count:
                self._close()
        elif not self._has_room():
            self._pause_reading()
        elif not self._is_reading:
            self._watch.read_at = self._watch.frame_at = self._clock.time()
            self._is_reading = True
            self._transport.resume_reading()

    def _has_room(self) -> bool:
        if self._is_unread or self._backlog or self._mute.is_on:
            return False
        if self._waiting:
            # Without one in flight there is always room: one may be larger than the room for many.
            in_flight = self._connection.in_flight_count
            if (
                in_flight >= self._limits.in_flight_max
                or self.held_bytes >= self._limits.in_flight_bytes_max
            ):
                return False
        # In the middle of a request the budget does not stop us: Budget says why.
        if self._budget.is_spent and not self._partial_bytes:
            self._budget.wait(self._go_on)
            return False
        return True

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    # Time

    def _look(self) -> None:
        """End a connection that is idle, too slow to send or too slow to read; else look again."""
        if self._is_closing:
            return
        verdict, seconds = self._watch.look(
            self._clock.time(),
            unread_taken=self._taken_bytes() if self._is_unread else None,
            is_reading=self._is_reading,
            has_partial=self._partial_bytes > 0,
            is_busy=self._connection.in_flight_count > 0,
        )
        if verdict is None:
            self._timer = self._clock.call_later(seconds, self._look)
        elif verdict is Verdict.IDLE:
            if self._debug:
                lines.idle(self._peer)
            self._close()
        else:
            self.abort(verdict.value)

    def _taken_bytes(self) -> int:
        return self._written_bytes - self._transport.get_write_buffer_size()

    # Endings

    def _break_off(self, error: Exception) -> None:
        """Close with one line; answers that may leave still do."""
        if self._is_closing:
            return
        lines.broken(error, self._peer, self._first_bytes)
        self._write()
        self._close()

    def _close(self) -> None:
        """Close when all is written, or when the client has not taken it in time."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(self._limits.unread_seconds_max, self._transport.abort)
        self._transport.close()
