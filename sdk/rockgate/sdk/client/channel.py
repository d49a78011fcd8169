"""One socket of one connection, from its dial to its end.

Each request returns a future of its response. All futures share one timer, set for the earliest
deadline: pending requests are scanned only when that is reached, once per time-out.

A silent peer is disconnected even if its socket is open: when a request times out, and nothing was
received for `silence_max_s` since it was sent, or since an earlier one that timed out likewise.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol, TypeAlias, cast

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.connection import FRAME_BYTES_MAX, Connection, Write
from rockgate.sdk.client.peer_errors import FIRST_BYTES, closed_because, not_a_port
from rockgate.sdk.errors import NotRocketMQ, Unreachable

WRITE_BYTES_MAX: Final = 4 << 20
FLUSH_COUNT: Final = 16
FLUSH_BYTES: Final = 256 << 10
"""This many requests, or bytes, are written before the turn of the loop ends: the peer can start on
them, and the transport slows down a caller that never awaits an answer."""
FRAME_S_MAX: Final = 30.0
"""How long a frame may take to arrive; after that its bytes do not count as a sign of life."""
_SLACK_S: Final = 0.0005
"""A timer may come this much early: loops round."""
_log: Final = logging.getLogger(__name__)

_NEVER: Final = float("inf")

Answer: TypeAlias = "asyncio.Future[Command]"


class DeadlineExceeded(Exception):
    """No answer came before the deadline."""


class Owner(Protocol):
    """What a channel reports to its owner."""

    address: str

    def asked(self, command: Command) -> None:
        """The peer sent a request."""

    def lost(self, reason: Exception) -> None:
        """The channel is closed, and why."""


class Channel(asyncio.Protocol):
    """One socket. `is_ready` says that a request may leave at once."""

    def __init__(
        self,
        owner: Owner,
        *,
        silence_max_s: float = 3.0,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self._owner = owner
        self._silence_max_s = silence_max_s
        self._loop = asyncio.get_running_loop()
        self._connection = Connection(frame_bytes_max=frame_bytes_max)
        self._transport: asyncio.WriteTransport | None = None
        self._answers: dict[int, tuple[Answer, float, float]] = {}
        """Unanswered requests by number: the answer to come, the deadline, and when it was sent."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = _NEVER
        self._is_flushing = False
        self._queued_count = 0
        self._queued_bytes = 0
        self._reason: Exception | None = None
        self._first_bytes = b""
        """The first bytes of the peer, in case it never responds."""
        self._heard_at = 0.0
        self._silent_since = _NEVER
        """Since when a request that timed out has waited, if nothing came since."""
        self._frame_since = _NEVER
        self._stuck_since = _NEVER
        self.version: int | None = None
        """The peer's version and language, from its first response."""
        self.language = ""
        self.is_lost = False
        self.is_ready = False
        self.writable = asyncio.Event()
        self.gone = asyncio.Event()

    # Requests and responses

    async def ask(
        self, code: int, write: Write, body: Buffer, began: float, deadline: float
    ) -> Command:
        """The answer; DeadlineExceeded if none comes before `deadline`, both times of the loop."""
        if self.is_lost:
            raise self.lost()
        opaque = self._connection.request_written(code, write, body)
        answer: Answer = self._loop.create_future()
        self._answers[opaque] = (answer, deadline, began)
        if deadline < self._timer_at:
            self._set_timer(deadline)
        self._queue(len(body))
        try:
            return await answer
        except asyncio.CancelledError:
            self._give_up(opaque)
            raise

    def send_oneway(self, code: int, write: Write, body: Buffer) -> None:
        """A one-way request."""
        if self.is_lost:
            raise self.lost()
        self._connection.request_written(code, write, body, oneway=True)
        self._queue(len(body))

    def respond(self, request: Command, answer: Command) -> None:
        """Answer a request of the peer's, unless it reads no answers."""
        if not self.is_ready:
            return
        self._connection.respond(request, answer)
        self._queue(len(answer.body))

    def close(self, reason: Exception) -> None:
        """Write what is queued, and close."""
        self._flush()
        self._end(reason)
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: Exception) -> None:
        """Close at once, whatever is queued."""
        self._end(reason)
        if self._transport is not None and not self.gone.is_set():
            self._transport.abort()

    def leave_stuck(self) -> None:
        """Disconnect a peer that has read nothing for too long."""
        stuck_s = self._loop.time() - self._stuck_since
        if stuck_s >= self._silence_max_s - _SLACK_S:
            reason = f"{self._owner.address} has read nothing for {stuck_s:.3g} s."
            self.abort(Unreachable(reason))

    def lost(self) -> Exception:
        """Why the channel is unusable: a new error each time, as each has its own traceback."""
        reason = self._reason
        if reason is None:
            return Unreachable(f"The connection to {self._owner.address} was lost.")
        return type(reason)(*reason.args)

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        # No isinstance check: uvloop's transports have another class.
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Bytes of the peer's."""
        if self.version is None and len(self._first_bytes) < FIRST_BYTES:
            self._first_bytes = (self._first_bytes + data)[:FIRST_BYTES]
        try:
            dropped_bytes = self._connection.dropped_bytes
            commands = self._connection.receive_data(data)
            # A late answer is dropped, but it is a sign of life, too.
            is_whole = bool(commands) or self._connection.dropped_bytes > dropped_bytes
            self._note_activity(is_whole=is_whole)
            for command in commands:
                if command.flag & RESPONSE_FLAG:
                    found = self._answers.pop(command.opaque, None)
                    if found is not None and not found[0].done():
                        found[0].set_result(command)
                    if self.version is None:
                        self.version, self.language = command.version, command.language
                else:
                    self._owner.asked(command)
            if dropped := self._connection.dropped_bytes:
                self._connection.dropped_bytes = 0
                address = self._owner.address
                _log.info("%s: dropped %d bytes of late responses", address, dropped)
            self._connection.raise_broken()
        except ProtocolError as broken:
            self.close(self._broken(broken))

    def pause_writing(self) -> None:
        """The peer reads more slowly than we write."""
        self.is_ready = False
        self.writable.clear()
        self._stuck_since = self._loop.time()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._stuck_since = _NEVER
        self.is_ready = not self.is_lost
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is lost."""
        address = self._owner.address
        why = closed_because(error)
        if self.version is None and self._answers:
            why = not_a_port(address, "RocketMQ", self._first_bytes, why)
            self._end(NotRocketMQ(f"{why}."))
        else:
            self._end(Unreachable(f"{address} {why}."))
        self.gone.set()

    # Private

    def _broken(self, error: ProtocolError) -> Unreachable:
        """What the peer sent cannot be decoded: it may never have been a RocketMQ port."""
        address = self._owner.address
        if self.version is None:
            why = str(error).rstrip(".")
            return NotRocketMQ(f"{not_a_port(address, 'RocketMQ', self._first_bytes, why)}.")
        return Unreachable(f"{address} does not speak the RocketMQ protocol: {error}")

    def _note_activity(self, *, is_whole: bool) -> None:
        """Bytes were received. A frame that never ends is no sign of life."""
        now = self._loop.time()
        if is_whole:
            self._frame_since = _NEVER
        elif self._frame_since is _NEVER:
            self._frame_since = now
        elif now - self._frame_since > FRAME_S_MAX:
            return
        self._heard_at = now
        self._silent_since = _NEVER

    def _give_up(self, opaque: int) -> None:
        self._answers.pop(opaque, None)
        self._connection.give_up(opaque)

    def _queue(self, size: int) -> None:
        """Schedule a write: what is queued in one turn of the loop is written together."""
        self._queued_count += 1
        self._queued_bytes += size
        if self._queued_count >= FLUSH_COUNT or self._queued_bytes >= FLUSH_BYTES:
            self._flush()
        elif not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush_queued)

    def _flush_queued(self) -> None:
        self._is_flushing = False
        self._flush()

    def _flush(self) -> None:
        self._queued_count = self._queued_bytes = 0
        buffers = self._connection.data_to_send()
        if buffers and self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(buffers)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._expire)

    def _expire(self) -> None:
        """The earliest deadline is reached: fail what is late, and set the next."""
        self._timer, self._timer_at = None, _NEVER
        until = self._loop.time() + _SLACK_S
        next_at = _NEVER
        for opaque, (answer, deadline, began) in list(self._answers.items()):
            if deadline > until:
                next_at = min(next_at, deadline)
                continue
            self._give_up(opaque)
            if not answer.done():
                answer.set_exception(DeadlineExceeded())
            self._silent_since = min(self._silent_since, max(began, self._heard_at))
        silent_s = until - self._silent_since
        if silent_s >= self._silence_max_s:
            reason = f"{self._owner.address} has been silent for {silent_s:.3g} s."
            self.abort(Unreachable(reason))
        elif self._answers:
            self._set_timer(next_at)

    def _end(self, reason: Exception) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self.is_ready = False
        self._reason = reason
        self.writable.set()
        if self._timer is not None:
            self._timer.cancel()
        for answer, _, _ in self._answers.values():
            if not answer.done():
                answer.set_exception(self.lost())
        self._answers.clear()
        if self._transport is not None:
            self._owner.lost(reason)
