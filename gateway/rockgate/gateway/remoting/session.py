"""One remoting connection: the only asyncio code between a socket and a processor.

Bytes go to a sans-IO Connection, which cuts them into commands. A request is handed to dispatch,
which answers at once or later; an answer belongs to a request of ours. Answers leave in any order.
Whatever is ready after one read, or in one turn of the loop, is one write.

Invariants
- Reading stops while too much is in flight, unread by the client, or held by all connections
  together, so a connection's memory is bounded by its limits.
- A request is started only while the client reads its answers.
- The bytes counted in the budget are those received and not yet answered; none stay behind when
  the connection is lost, and no future is left waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

from rockgate.gateway.address import socket_address
from rockgate.gateway.budget import Budget
from rockgate.gateway.clock import Clock, Timer
from rockgate.gateway.limits import Limits
from rockgate.gateway.receiving import Receiving
from rockgate.gateway.remoting import lines
from rockgate.gateway.remoting.caller import Peer
from rockgate.gateway.remoting.dispatch import Frame
from rockgate.gateway.remoting.ends import Dispatch, Sessions
from rockgate.gateway.remoting.errors import Disconnect
from rockgate.gateway.watch import Verdict, Watch
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.protocol.remoting.connection import Connection

LENGTH_SIZE = 4
WRITE_SIZE = 256 * 1024  # answers are written at least this often while more are started


class Session(asyncio.BufferedProtocol):
    """One connection from accept to loss. The door owns it; the transport drives it."""

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
        self._connection = Connection(
            frame_bytes_max=limits.frame_bytes_max, spares=receiving.spares
        )
        self._receiving = receiving
        self._room: memoryview | None = None
        self._watch = Watch(limits, clock.time())
        self._timer: Timer | None = None
        # Received and not started yet; started and not answered yet; requests of ours, by number.
        self._backlog: deque[Command] = deque()
        self._waiting: dict[asyncio.Future[Frame], Command] = {}
        self._asked: dict[int, asyncio.Future[Command]] = {}
        self._partial_bytes = 0
        self._written_bytes = 0
        self._first_bytes = b""
        self._is_reading = True
        self._is_unread = False
        self._is_draining = False
        self._is_closing = False
        self._is_writing_soon = False
        self._debug = lines.is_debugging()

    # A connection, for processors

    @property
    def is_open(self) -> bool:
        """Whether anything can still be sent."""
        return not self._is_closing

    def tell(self, code: int, fields: Fields, body: Buffer = b"") -> None:
        """Send a request that has no answer; to a connection that ends it is not sent."""
        if not self._is_closing:
            self._connection.request(code, fields, body, oneway=True)
            self._write_soon()

    def ask(
        self, code: int, fields: Fields, body: Buffer, seconds_max: float
    ) -> asyncio.Future[Command]:
        """Send a request; the future has its answer, or TimeoutError, or ConnectionError."""
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        if self._is_closing:
            future.set_exception(ConnectionError("the connection is gone"))
            return future
        opaque = self._connection.request(code, fields, body)
        self._asked[opaque] = future

        def give_up() -> None:
            self._connection.give_up(opaque)
            if self._asked.pop(opaque, None) is not None and not future.done():
                future.set_exception(TimeoutError(f"no answer in {seconds_max} s"))

        timer = self._clock.call_later(seconds_max, give_up)
        future.add_done_callback(lambda _: timer.cancel())
        self._write_soon()
        return future

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or be turned away by the door."""
        self._transport = transport = cast(asyncio.Transport, transport)
        self.peer = Peer(
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
            lines.connected(self.peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where the next bytes go: into the large frame under way, or anywhere."""
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
        """The client sends no more, which means that it is gone."""
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
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            future.cancel()
        asked, self._asked = self._asked, {}
        for answer in asked.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the connection is gone"))
                answer.exception()
        self._backlog.clear()
        self._budget.forget(self._go_on)
        self._budget.give(self.held_bytes)
        self.held_bytes = 0
        self._sessions.lost(self)
        if self._debug:
            lines.disconnected(self.peer)

    # Called by the door

    def drain(self) -> None:
        """Read nothing more, answer what was received, then close."""
        self._is_draining = True
        self._go_on()

    def abort(self, reason: str | None = None) -> None:
        """Close at once, with one line in the log if there is a reason to tell."""
        if reason is not None and not self._is_closing:
            lines.cut_off(reason, self.peer)
        self._is_closing = True
        self._transport.abort()

    # Commands

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
            if self._connection.is_broken and not self._backlog:
                self._connection.raise_broken()
        except (ProtocolError, Disconnect) as error:
            self._break_off(error)
        else:
            self._steer()

    def _accept(self, commands: list[Command]) -> None:
        if dropped := self._connection.dropped_bytes:
            # Answers that came too late: nobody else counts their bytes back.
            self._connection.dropped_bytes = 0
            self._partial_bytes -= dropped
            self.held_bytes -= dropped
            self._budget.give(dropped)
        if commands:
            for command in commands:
                self._partial_bytes -= command.size + LENGTH_SIZE
            self._backlog.extend(commands)
            self._watch.frame_at = self._watch.read_at

    def _start_all(self) -> None:
        """Start requests while the client reads; many small answers become one write."""
        backlog, write_size = self._backlog, min(WRITE_SIZE, self._limits.unread_bytes_max)
        unwritten = 0
        while backlog and not self._is_closing and not self._is_unread:
            unwritten += self._start(backlog.popleft())
            if unwritten >= write_size:
                self._write()
                unwritten = 0
        self._write()

    def _start(self, command: Command) -> int:
        """Hand a request to its processor; returns how many bytes now wait to be written."""
        if command.flag & RESPONSE_FLAG:
            self._free(command)
            future = self._asked.pop(command.opaque, None)
            if future is not None and not future.done():
                future.set_result(command)
            return 0
        if self._debug:
            lines.request(command, self.peer)
        outcome = self._dispatch.dispatch(command, self)
        if isinstance(outcome, list):
            return self._answer(command, outcome)
        self._waiting[outcome] = command
        outcome.add_done_callback(self._answered)
        return 0

    def _answered(self, future: asyncio.Future[Frame]) -> None:
        """A processor's future is done."""
        command = self._waiting.pop(future, None)
        if command is None or self._is_closing or future.cancelled():
            # Nobody is left to tell; looking at the error keeps asyncio from reporting it.
            _ = future.cancelled() or future.exception()
            return
        try:
            self._answer(command, future.result())
        except (ProtocolError, Disconnect) as error:
            self._break_off(error)
            return
        self._write_soon()

    def _answer(self, command: Command, frame: Frame) -> int:
        self._free(command)
        if not frame:
            return 0
        self._connection.send_encoded(frame)
        size = len(frame[0]) if len(frame) == 1 else sum(map(len, frame))
        if self._debug:
            lines.answer(command, self.peer, size)
        return size

    def _free(self, command: Command) -> None:
        freed = command.size + LENGTH_SIZE
        self.held_bytes -= freed
        self._budget.give(freed)

    # Writing

    def _write(self) -> None:
        buffers = self._connection.data_to_send()
        if buffers and not self._is_closing:
            if self._is_unread:
                self._written_bytes += sum(map(len, buffers))
            self._transport.writelines(buffers)

    def _write_soon(self) -> None:
        """Write at the end of this turn, together with what else becomes ready in it."""
        if not self._is_writing_soon:
            self._is_writing_soon = True
            asyncio.get_running_loop().call_soon(self._write_now)

    def _write_now(self) -> None:
        self._is_writing_soon = False
        if not self._is_closing:
            self._write()
            self._steer()

    # Reading on and off

    def _steer(self) -> None:
        """Read exactly while there is room for what would be read."""
        if self._is_closing:
            return
        if self._is_draining:
            self._pause_reading()
            if not self._backlog and not self._waiting:
                self._write()
                self._close()
        elif not self._has_room():
            self._pause_reading()
        elif not self._is_reading:
            self._watch.read_at = self._watch.frame_at = self._clock.time()
            self._is_reading = True
            self._transport.resume_reading()

    def _has_room(self) -> bool:
        if self._is_unread or self._backlog:
            return False
        if self._waiting and (
            len(self._waiting) >= self._limits.in_flight_max
            or self.held_bytes >= self._limits.in_flight_bytes_max
        ):
            return False
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
            is_busy=bool(self._waiting),
        )
        if verdict is None:
            self._timer = self._clock.call_later(seconds, self._look)
        elif verdict is Verdict.IDLE:
            if self._debug:
                lines.idle(self.peer)
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
        lines.broken(error, self.peer, self._first_bytes)
        self._write()
        self._close()

    def _close(self) -> None:
        """Close when all is written, or when the client has not taken it in time."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(self._limits.unread_seconds_max, self._transport.abort)
        self._transport.close()
