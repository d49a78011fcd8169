"""The byte stream of a connection, for any protocol.

A session of either listener is a Stream that knows its protocol. It passes received bytes to its
sans-IO connection, starts the resulting requests, and writes; this module decides when it reads,
how much it may hold, and how it ends.

Invariants
- Reading stops while too much is in flight, unread by the client, or held by all connections
  together, so a connection's memory is bounded by its limits.
- However large requests are, they receive a few megabytes in a turn of the loop, so that other
  connections do not wait for them.
- The bytes counted in the budget are those received and not yet answered; none remain counted when
  the connection is lost, and it leaves no reference cycle.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from typing import Any, Generic, Protocol, TypeVar, cast

from rockgate.gateway.net.address import Address, socket_address
from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.net.connection_log import Lines
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.receive_buffer import ReceiveBuffer
from rockgate.gateway.net.watch import Verdict, Watch
from rockgate.protocol.errors import ProtocolError

LENGTH_SIZE = 4
WRITE_SIZE = 256 * 1024
"""Responses are passed to the transport at least this often while more requests are started."""

T = TypeVar("T")
P = TypeVar("P")


class Disconnect(Exception):
    """A request whose only response is to close the connection."""


class Framed(Protocol[T]):
    """The receiving side of a sans-IO connection."""

    def receive_data(self, data: bytes, /) -> list[T]:
        """What the received bytes complete."""

    def room(self) -> memoryview | None:
        """The buffer for the next bytes of a large frame, if they can be received in place."""

    def filled(self, count: int, /) -> list[T]:
        """Process `count` bytes that were received in place."""

    def forget(self) -> None:
        """Release all received bytes: the connection is closed."""


class Stream(asyncio.BufferedProtocol, Generic[T, P]):
    """One connection from accept to loss. The listener owns it; the transport drives it."""

    __slots__ = (
        "_backlog",
        "_budget",
        "_clock",
        "_connection",
        "_debug",
        "_first_bytes",
        "_is_advance_scheduled",
        "_is_closing",
        "_is_draining",
        "_is_paced",
        "_is_reading",
        "_is_unread",
        "_limits",
        "_lines",
        "_partial_bytes",
        "_receiving",
        "_room",
        "_timer",
        "_transport",
        "_waiting",
        "_watch",
        "_written_bytes",
        "connection_id",
        "counted_user",
        "held_bytes",
        "peer",
    )

    peer: P
    """The peer; set by `_begin`."""

    def __init__(
        self,
        connection: Framed[T],
        *,
        connection_id: int,
        limits: Limits,
        budget: Budget,
        clock: Clock,
        receiving: ReceiveBuffer,
        lines: Lines,
    ) -> None:
        self.connection_id = connection_id
        self.counted_user = ""
        """The user that the connection counts for; empty before it has one."""
        self.held_bytes = 0
        """Request bytes received and not yet answered."""
        self._connection = connection
        self._limits = limits
        self._budget = budget
        self._clock = clock
        self._receiving = receiving
        self._lines = lines
        # The frame memory that the next bytes are received into, if any.
        self._room: memoryview | None = None
        self._watch = Watch(limits, clock.time())
        self._timer: Timer | None = None
        # Requests not yet started, and started but not yet answered.
        self._backlog: deque[T] = deque()
        self._waiting: dict[Any, Any] = {}
        # Bytes received of incomplete requests.
        self._partial_bytes = 0
        # Written while the client left too much unread.
        self._written_bytes = 0
        self._first_bytes = b""
        # Whether the transport should read, and whether it only does so in a later turn.
        self._is_reading = True
        self._is_paced = False
        self._is_unread = False
        self._is_draining = False
        self._is_closing = False
        self._is_advance_scheduled = False
        self._debug = lines.is_debugging()

    # Implemented by a session

    @abstractmethod
    def _begin(self, local: Address, remote: Address) -> bool:
        """Set the peer and register the session with the listener; False rejects the connection."""

    @abstractmethod
    def _accept(self, came: list[T]) -> None:
        """Queue what the connection returned."""

    @abstractmethod
    def _start_all(self) -> None:
        """Start requests and write responses within the limits; raises what ends the connection."""

    @abstractmethod
    def _write(self) -> None:
        """Write the responses that may be sent."""

    @abstractmethod
    def _in_flight_count(self) -> int:
        """Requests that were started and whose responses were not yet sent."""

    @abstractmethod
    def _end_requests(self) -> None:
        """Cancel everything that is waiting: the connection is closed."""

    @abstractmethod
    def _lost(self) -> None:
        """Have the listener remove this session."""

    @property
    def partial_bytes(self) -> int:
        """Bytes received of incomplete requests."""
        return self._partial_bytes

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register with the listener, or close if it rejects the connection."""
        # uvloop's transports have the interface without the base class.
        self._transport = transport = cast(asyncio.Transport, transport)
        local = socket_address(transport.get_extra_info("sockname"))
        if not self._begin(local, socket_address(transport.get_extra_info("peername"))):
            self._is_closing = True
            transport.abort()
            return
        transport.set_write_buffer_limits(high=self._limits.unread_bytes_max)
        self._timer = self._clock.call_later(self._limits.look_seconds, self._look)
        if self._debug:
            self._lines.connected(self.peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer for the next bytes: a large frame's own memory, or the shared buffer."""
        self._room = room = self._connection.room() if self._partial_bytes else None
        if room is None:
            return self._receiving.chunk
        return self._receiving.share(room)

    def buffer_updated(self, nbytes: int) -> None:
        """Process received bytes and start the requests that they complete."""
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
        is_spent = self._room is not None and self._receiving.spend(nbytes, self._clock)
        self._advance(nbytes)
        if is_spent and self._is_reading and not self._is_closing:
            self._is_paced = True
            self._transport.pause_reading()
            self._receiving.wait(self._read_on)

    def eof_received(self) -> bool:
        """The client has shut down its side; for all clients that we know, it has left."""
        return False

    def pause_writing(self) -> None:
        """The client does not read its responses: start nothing more for it."""
        self._is_unread = True
        self._watch.taken_at = self._clock.time()
        self._watch.taken_bytes = self._taken_bytes()
        self._steer()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._is_unread = False
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that this connection held or waited for."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._end_requests()
        self._backlog.clear()
        self._release()
        self._room = None
        self._connection.forget()
        self._receiving.clear(self._clock)
        self._lost()
        if self._debug:
            self._lines.disconnected(self.peer)

    # Called by the listener

    def drain(self) -> None:
        """Read nothing more, answer what was received, then close."""
        self._is_draining = True
        self._advance()

    def abort(self, reason: str | None = None) -> None:
        """Close immediately, with a log line if there is a reason."""
        if reason is not None and not self._is_closing:
            self._lines.cut_off(reason, self.peer)
        self._is_closing = True
        self._transport.abort()

    def break_off(self, reason: str) -> None:
        """Close immediately and release what is held: other connections need it."""
        self.abort(reason)
        self._release()

    def _release(self) -> None:
        """Return everything that is held to the budget."""
        budget, held, self.held_bytes = self._budget, self.held_bytes, 0
        budget.incomplete -= self._partial_bytes
        self._partial_bytes = 0
        budget.forget(self._advance)
        budget.give(held)

    # Progress

    def _advance(self, came: int = 0) -> None:
        """Process what was received, start requests, write responses, read within the limits."""
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

    def _advance_soon(self) -> None:
        """Start the rest in the next turn, after other connections."""
        if not self._is_advance_scheduled:
            self._is_advance_scheduled = True
            asyncio.get_running_loop().call_soon(self._advance_now)

    def _advance_now(self) -> None:
        self._is_advance_scheduled = False
        self._advance()

    # Reading on and off

    def _steer(self) -> None:
        """Read only while the limits allow it."""
        if self._is_closing:
            return
        if self._is_draining:
            self._pause_reading()
            if not self._backlog and not self._in_flight_count():
                self._write()
                self._close()
        elif not self._has_room():
            self._pause_reading()
        elif not self._is_reading:
            self._watch.read_at = self._watch.frame_at = self._clock.time()
            self._is_reading = True
            if not self._is_paced:
                self._transport.resume_reading()

    def _has_room(self) -> bool:
        if self._is_unread or self._backlog:
            return False
        # With none in flight one is always accepted: a single request may exceed the limit for
        # several.
        if self._waiting and (
            self._in_flight_count() >= self._limits.in_flight_max
            or self.held_bytes >= self._limits.in_flight_bytes_max
        ):
            return False
        budget = self._budget
        if (
            budget.is_spent
            and self.held_bytes >= budget.allowance
            and (budget.used > budget.incomplete or not self._partial_bytes)
        ):
            budget.wait(self._advance)
            return False
        return True

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            if not self._is_paced:
                self._transport.pause_reading()

    def _read_on(self) -> None:
        """Receive again: it is this connection's turn."""
        self._is_paced = False
        if self._is_reading and not self._is_closing:
            self._transport.resume_reading()

    # Time

    def _look(self) -> None:
        """Close a connection that is idle, or too slow to send or to read; otherwise reschedule."""
        if self._is_closing:
            return
        verdict, seconds = self._watch.look(
            self._clock.time(),
            unread_taken=self._taken_bytes() if self._is_unread else None,
            is_reading=self._is_reading,
            has_partial=self._partial_bytes > 0,
            is_busy=self._in_flight_count() > 0,
        )
        if verdict is None:
            self._timer = self._clock.call_later(seconds, self._look)
        elif verdict is Verdict.IDLE:
            if self._debug:
                self._lines.idle(self.peer)
            self._close()
        else:
            self.abort(verdict.value)

    def _taken_bytes(self) -> int:
        return self._written_bytes - self._transport.get_write_buffer_size()

    # Endings

    def _break_off(self, error: Exception) -> None:
        """Close with a log line, after the responses that can be sent."""
        if self._is_closing:
            return
        self._lines.broken(error, self.peer, self._first_bytes)
        self._write()
        self._close()

    def _close(self) -> None:
        """Close when everything is written, or when the client has not read it in time."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(self._limits.unread_seconds_max, self._transport.abort)
        self._transport.close()
