"""One socket of one connection, from its dial to its end.

Whoever asks gets a future of the answer. All futures of a wire share one timer: it is set for the
earliest deadline, and looks through what waits only when that is reached, once in a time-out.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, TypeAlias, cast

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting.codes import RESPONSE_FLAG
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.connection import Connection, Write
from rockgate.sdk.errors import Unreachable

WRITE_BYTES_MAX: Final = 4 << 20
FLUSH_COUNT: Final = 16
FLUSH_BYTES: Final = 256 << 10
"""So many requests, or bytes, leave without waiting for the turn's end: the peer works on them
meanwhile, and who never waits for an answer is held back by the transport."""
_SLACK_S: Final = 0.0005
"""A timer may come this much early: loops round."""

Answer: TypeAlias = "asyncio.Future[Command]"


class Late(Exception):
    """No answer came before the deadline."""


class Owner(Protocol):
    """What a wire tells of."""

    address: str

    def asked(self, command: Command) -> None:
        """The peer sent a request."""


class Wire(asyncio.Protocol):
    """One socket. `is_ready` says that a request may leave at once."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._connection = Connection()
        self._transport: asyncio.WriteTransport | None = None
        self._answers: dict[int, tuple[Answer, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._is_flushing = False
        self._queued_count = 0
        self._queued_bytes = 0
        self._reason: Exception | None = None
        self.version: int | None = None
        """The peer's, as its first answer said; and what it is written in."""
        self.language = ""
        self.is_lost = False
        self.is_ready = False
        self.writable = asyncio.Event()
        self.gone = asyncio.Event()

    # What is asked and answered

    async def ask(self, code: int, write: Write, body: Buffer, deadline: float) -> Command:
        """The answer; Late if none comes before `deadline`, a time of the loop."""
        if self.is_lost:
            raise self.lost()
        opaque = self._connection.request_written(code, write, body)
        answer: Answer = self._loop.create_future()
        self._answers[opaque] = (answer, deadline)
        if deadline < self._timer_at:
            self._set_timer(deadline)
        self._queue(len(body))
        try:
            return await answer
        except asyncio.CancelledError:
            self._give_up(opaque)
            raise

    def tell(self, code: int, write: Write, body: Buffer) -> None:
        """A one-way request."""
        if self.is_lost:
            raise self.lost()
        self._connection.request_written(code, write, body, oneway=True)
        self._queue(len(body))

    def respond(self, request: Command, answer: Command) -> None:
        """Answer a request of the peer's."""
        self._connection.respond(request, answer)
        self._queue(len(answer.body))

    def close(self, reason: Exception) -> None:
        """Write what is queued, and close."""
        self._flush()
        self._end(reason)
        if self._transport is not None:
            self._transport.close()

    def lost(self) -> Exception:
        """Why nothing can be asked any more: a new error each time, for each has its own trace."""
        reason = self._reason
        if reason is None:
            return Unreachable(f"the connection to {self._owner.address} was lost")
        return type(reason)(*reason.args)

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        # Not asked for its class: uvloop's transports have another.
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Bytes of the peer's."""
        try:
            for command in self._connection.receive_data(data):
                if command.flag & RESPONSE_FLAG:
                    found = self._answers.pop(command.opaque, None)
                    if found is not None and not found[0].done():
                        found[0].set_result(command)
                    if self.version is None:
                        self.version, self.language = command.version, command.language
                else:
                    self._owner.asked(command)
            self._connection.raise_broken()
        except ProtocolError as broken:
            self.close(Unreachable(f"{self._owner.address} broke the protocol: {broken}"))

    def pause_writing(self) -> None:
        """The peer reads more slowly than we write."""
        self.is_ready = False
        self.writable.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self.is_ready = not self.is_lost
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        why = str(error) if error else "closed by the peer"
        self._end(Unreachable(f"the connection to {self._owner.address} was lost: {why}"))
        self.gone.set()

    # Private

    def _give_up(self, opaque: int) -> None:
        self._answers.pop(opaque, None)
        self._connection.give_up(opaque)

    def _queue(self, size: int) -> None:
        """Something was queued: what comes in one turn of the loop leaves together, or earlier."""
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
        """The earliest deadline there was is reached: end what is late, and find the next."""
        self._timer, self._timer_at = None, float("inf")
        until = self._loop.time() + _SLACK_S
        next_at = float("inf")
        for opaque, (answer, deadline) in list(self._answers.items()):
            if deadline > until:
                next_at = min(next_at, deadline)
                continue
            self._give_up(opaque)
            if not answer.done():
                answer.set_exception(Late())
        if self._answers:
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
        for answer, _ in self._answers.values():
            if not answer.done():
                answer.set_exception(self.lost())
        self._answers.clear()
