"""One remoting connection: the only asyncio code between a socket and a processor.

Bytes go to a sans-IO Connection, which cuts them into commands. A request is handed to dispatch,
which answers at once or later; an answer belongs to a request of ours. Answers leave in any order.
Whatever is ready after one read, or in one turn of the loop, is one write.

Invariants, besides those of a Stream
- A request is started only while the client reads its answers, and many that came together are
  started over several turns of the loop.
- No future is left waiting when the connection is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from rockgate.gateway.net.address import Address
from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.net.connection_log import Lines
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.net.receive_buffer import ReceiveBuffer
from rockgate.gateway.net.stream import LENGTH_SIZE, WRITE_SIZE, Disconnect, Stream
from rockgate.gateway.remoting.server.caller import Caller, Peer
from rockgate.gateway.remoting.server.handle import Frame
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting.codes import RESPONSE_FLAG, request_name
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.protocol.remoting.connection import Connection

log = logging.getLogger(__name__)
_LINES = Lines(log, "a RocketMQ listener")

TURN_SECONDS: Final = 0.01
"""How long requests of one connection are started before others run."""
OVERDUE_MS_MIN: Final = 100
"""Requests that were received more recently are not looked at."""


class Dispatch(Protocol):
    """Responds to requests."""

    def dispatch(self, command: Command, caller: Caller, /) -> Frame | asyncio.Future[Frame]:
        """The response's frame, or a future of it."""

    def overdue(self, command: Command, age_ms: int, behind_count: int, /) -> Frame | None:
        """The refusal of a request that has waited too long since it was received, if it has."""


class Sessions(Protocol):
    """Holds the sessions of a listener."""

    seconds_max: float
    """Time in which a client must send a request with a valid signature, where it takes one."""

    def identify(self, certificate: Mapping[str, Any], host: str, listener: str, /) -> Principal:
        """The principal of a client's certificate; ValueError if it has none."""

    def entered(self, session: Session, user: str, /) -> bool:
        """Count a session for the user that it has authenticated as; False if it has too many."""

    def opened(self, session: Session, /) -> bool:
        """Register a new session; False rejects it."""

    def lost(self, session: Session, /) -> None:
        """Remove a session whose connection is closed."""


class Session(Stream[Command, Peer]):
    """One connection from accept to loss. The listener owns it; the transport drives it."""

    __slots__ = (
        "_asked",
        "_commands",
        "_deadline",
        "_dispatch",
        "_is_behind",
        "_is_writing_soon",
        "_listener",
        "_sessions",
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
    ) -> None:
        self._commands = Connection(frame_bytes_max=limits.frame_bytes_max, spares=receiving.spares)
        super().__init__(
            self._commands,
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
        self._waiting: dict[asyncio.Future[Frame], Command] = {}
        # Requests of the server, by opaque.
        self._asked: dict[int, asyncio.Future[Command]] = {}
        self._is_writing_soon = False
        # Whether requests were left over: only those can have become too old.
        self._is_behind = False
        self._deadline: Timer | None = None

    # A connection, for processors

    @property
    def is_open(self) -> bool:
        """Whether anything can still be sent."""
        return not self._is_closing

    def send_oneway(self, code: int, fields: Fields, body: Buffer = b"") -> None:
        """Send a one-way request; to a closing connection it is not sent."""
        if not self._is_closing:
            self._commands.request(code, fields, body, oneway=True)
            self._write_soon()

    def ask(
        self, code: int, fields: Fields, body: Buffer, seconds_max: float
    ) -> asyncio.Future[Command]:
        """Send a request; the future has its response, or TimeoutError, or ConnectionError."""
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        if self._is_closing:
            future.set_exception(ConnectionError("connection closed"))
            return future
        opaque = self._commands.request(code, fields, body)
        self._asked[opaque] = future

        def give_up() -> None:
            self._commands.give_up(opaque)
            if self._asked.pop(opaque, None) is not None and not future.done():
                future.set_exception(TimeoutError(f"no response within {seconds_max} s"))

        timer = self._clock.call_later(seconds_max, give_up)
        future.add_done_callback(lambda _: timer.cancel())
        self._write_soon()
        return future

    # Beginning and ending

    def _begin(self, local: Address, remote: Address) -> bool:
        self.peer = Peer(
            connection_id=self.connection_id,
            local=local,
            remote=remote,
            listener=self._listener,
        )
        if not self._sessions.opened(self):
            return False
        certificate = self._transport.get_extra_info("peercert")
        if certificate:
            return self._certify(certificate)
        if self._listener.authentication == "signature":
            seconds = self._sessions.seconds_max
            self._deadline = self._clock.call_later(seconds, self._check_signed)
        return True

    def _certify(self, certificate: Mapping[str, Any]) -> bool:
        """Ask whom the client's certificate names; False, with a line, if it is refused."""
        peer = self.peer
        try:
            found = self._sessions.identify(certificate, peer.remote.host, self._listener.label)
        except ValueError as error:
            _LINES.cut_off(f"certificate refused, {error}", peer)
            return False
        if not self.enter(found):
            _LINES.cut_off("connection limit of the user reached", peer)
            return False
        peer.certified = found
        return True

    def enter(self, principal: Principal) -> bool:
        """Count the connection for a user; False if the user has too many."""
        return self._sessions.entered(self, principal.name)

    def _check_signed(self) -> None:
        """The time for a request with a valid signature is over."""
        self._deadline = None
        if self.peer.principal == ANONYMOUS:
            self.abort("client did not authenticate in time")

    @property
    def remote_host(self) -> str:
        """The address that the connection comes from."""
        return self.peer.remote.host

    def _end_requests(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            future.cancel()
        asked, self._asked = self._asked, {}
        for answer in asked.values():
            if not answer.done():
                answer.set_exception(ConnectionError("connection closed"))
                answer.exception()

    def _lost(self) -> None:
        self._sessions.lost(self)

    # Commands

    def _accept(self, commands: list[Command]) -> None:
        if dropped := self._commands.dropped_bytes:
            # Late responses: their bytes are released only here.
            self._commands.dropped_bytes = 0
            _log_dropped(dropped, self.peer)
            self._partial_bytes -= dropped
            self._budget.incomplete -= dropped
            self.held_bytes -= dropped
            self._budget.give(dropped)
        if commands:
            whole = 0
            for command in commands:
                whole += command.size + LENGTH_SIZE
            self._partial_bytes -= whole
            self._budget.incomplete -= whole
            self._backlog.extend(commands)
            self._watch.frame_at = self._watch.read_at

    def _start_all(self) -> None:
        """Start requests while the client reads; many small responses become one write."""
        backlog, write_size = self._backlog, min(WRITE_SIZE, self._limits.unread_bytes_max)
        unwritten = self._refuse_overdue() if self._is_behind else 0
        turn: TimeSlice | None = None
        while backlog and not self._is_closing and not self._is_unread:
            unwritten += self._start(backlog.popleft())
            if unwritten >= write_size:
                self._write()
                unwritten = 0
            if backlog:
                turn = turn or TimeSlice(TURN_SECONDS)
                if turn.is_over():
                    self._advance_soon()
                    break
        self._is_behind = bool(backlog)
        self._write()
        if self._commands.is_broken and not backlog:
            self._commands.raise_broken()

    def _refuse_overdue(self) -> int:
        """Refuse what was received too long ago; returns how many bytes now wait to be written.

        Nothing is read while requests are left over, so all of them came with the last bytes.
        """
        age_ms = int((self._clock.time() - self._watch.read_at) * 1000)
        if age_ms < OVERDUE_MS_MIN or self._is_unread:
            return 0
        backlog, unwritten = self._backlog, 0
        for _ in range(len(backlog)):
            command = backlog.popleft()
            frame = None
            if not command.flag & RESPONSE_FLAG:
                frame = self._dispatch.overdue(command, age_ms, len(backlog))
            if frame is None:
                backlog.append(command)
            else:
                unwritten += self._answer(command, frame)
        return unwritten

    def _start(self, command: Command) -> int:
        """Pass a request to its processor; returns how many bytes now wait to be written."""
        if command.flag & RESPONSE_FLAG:
            self._free(command)
            future = self._asked.pop(command.opaque, None)
            if future is not None and not future.done():
                future.set_result(command)
            return 0
        if self._debug:
            _log_request(command, self.peer)
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
            # The connection is closed; retrieving the error keeps asyncio from reporting it.
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
        self._commands.send_encoded(frame)
        size = len(frame[0]) if len(frame) == 1 else sum(map(len, frame))
        if self._debug:
            _log_answer(command, self.peer, size)
        return size

    def _free(self, command: Command) -> None:
        freed = command.size + LENGTH_SIZE
        self.held_bytes -= freed
        self._budget.give(freed)

    # Writing

    def _write(self) -> None:
        buffers = self._commands.data_to_send()
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

    def _in_flight_count(self) -> int:
        return len(self._waiting)


def _log_request(command: Command, peer: Peer) -> None:
    """A request was received."""
    log.debug(
        "< %s code=%s opaque=%d size=%d",
        peer,
        request_name(command.code),
        command.opaque,
        command.size,
    )


def _log_answer(command: Command, peer: Peer, size: int) -> None:
    """Its response is ready."""
    log.debug("> %s code=%s opaque=%d size=%d", peer, command.code, command.opaque, size)


def _log_dropped(size: int, peer: Peer) -> None:
    """Responses that no caller waits for any longer."""
    log.info("discarded responses without a waiting request size=%d %s", size, peer)
