"""One connection to one address, for as long as its owner wants: docs/sdk.md draws its states.

    request(code, …)    asks and waits for the answer; dials first where nothing is open
    oneway(code, …)     asks for no answer
    respond(…)          answers a request of the peer's
    close()             for good

The sans-IO connection of `rockgate.protocol.remoting` does the wire; this adds the socket, the
waiting and the bounds. Time is the loop's; the transport comes from `dial`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting.codes import RESPONSE_FLAG, request_name
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.protocol.remoting.connection import Connection
from rockgate.sdk.errors import Closed, TimedOut, Unreachable

Dial: TypeAlias = Callable[
    [Callable[[], asyncio.Protocol], str, int], Awaitable[tuple[asyncio.BaseTransport, object]]
]
"""Connects a protocol to host and port, as `loop.create_connection` does."""

WRITE_BYTES_MAX: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """The bounds of one connection."""

    in_flight_max: int = 1024
    """Requests that may wait for their answers; a further one waits for its turn."""
    dial_timeout_s: float = 3.0
    backoff_s: float = 0.1
    """How long after a failed dial the next may come; doubled each time."""
    backoff_max_s: float = 1.0


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 host may stand in brackets."""
    host, separator, port = address.strip().rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"address {address!r} is not host:port")
    return host.strip("[]"), int(port)


async def dial_tcp(
    factory: Callable[[], asyncio.Protocol], host: str, port: int
) -> tuple[asyncio.BaseTransport, object]:
    """Connect over TCP."""
    return await asyncio.get_running_loop().create_connection(factory, host, port)


class Link:
    """The connection to one address. `on_open` runs after each dial, before anything is asked."""

    def __init__(
        self,
        address: str,
        *,
        dial: Dial = dial_tcp,
        settings: LinkSettings | None = None,
        on_request: Callable[[Link, Command], None] | None = None,
        on_open: Callable[[Link], None] | None = None,
    ) -> None:
        self.address = address
        self._host, self._port = split_address(address)
        self._dial = dial
        self._settings = settings or LinkSettings()
        self._on_request = on_request
        self._on_open = on_open
        self._wire: _Wire | None = None
        self._dialling: asyncio.Task[_Wire] | None = None
        self._turns = asyncio.Semaphore(self._settings.in_flight_max)
        self._failure_count = 0
        self._not_before = 0.0
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether requests can leave at once."""
        return self._wire is not None and not self._wire.is_lost

    @property
    def retry_in_s(self) -> float:
        """How long it will not be dialled, because that has just failed."""
        if self.is_open or not self._failure_count:
            return 0.0
        return max(0.0, self._not_before - asyncio.get_running_loop().time())

    async def request(
        self, code: int, fields: Fields | None = None, body: Buffer = b"", *, timeout_s: float
    ) -> Command:
        """The answer, whatever its code; waiting for a turn and dialling count as waiting."""
        try:
            async with asyncio.timeout(timeout_s), self._turns:
                wire = await self._opened()
                await wire.writable.wait()
                return await wire.request(code, fields, body)
        except TimeoutError as late:
            if isinstance(late, TimedOut):
                raise
            raise TimedOut(
                f"{request_name(code)} to {self.address}: no answer in {timeout_s:.3g} s"
            ) from None

    async def oneway(
        self, code: int, fields: Fields | None = None, body: Buffer = b"", *, timeout_s: float
    ) -> None:
        """Ask for no answer; returns when it was handed to the transport."""
        try:
            async with asyncio.timeout(timeout_s):
                wire = await self._opened()
                await wire.writable.wait()
        except TimeoutError:
            raise TimedOut(f"{request_name(code)} to {self.address} could not leave") from None
        wire.send_oneway(code, fields, body)

    def notify(self, code: int, fields: Fields | None = None, body: Buffer = b"") -> None:
        """A one-way request now, if there is a connection; nothing if there is none."""
        if self._wire is not None and not self._wire.is_lost:
            self._wire.send_oneway(code, fields, body)

    def respond(self, request: Command, answer: Command) -> None:
        """Answer a request of the peer's; nothing if the connection is gone meanwhile."""
        if self._wire is not None and not self._wire.is_lost:
            self._wire.respond(request, answer)

    async def close(self) -> None:
        """Close for good: what waits for answers is told, and what is queued is written first."""
        self._is_closed = True
        dialling, wire = self._dialling, self._wire
        if dialling is not None:
            dialling.cancel()
            await asyncio.gather(dialling, return_exceptions=True)
        if wire is not None:
            wire.close(Closed(f"the connection to {self.address} was closed"))
            await wire.gone.wait()

    # Private

    async def _opened(self) -> _Wire:
        if self._is_closed:
            raise Closed(f"the connection to {self.address} is closed")
        if self._wire is not None and not self._wire.is_lost:
            return self._wire
        if self._dialling is None:
            left = self.retry_in_s
            if left > 0:
                raise Unreachable(f"{self.address} could not be reached just now", left)
            self._dialling = asyncio.get_running_loop().create_task(self._connect())
            self._dialling.add_done_callback(self._dialled)
        dialling = self._dialling
        try:
            # Others wait for the same dial: one that gives up must not end it.
            return await asyncio.shield(dialling)
        except asyncio.CancelledError:
            if not dialling.cancelled():
                raise
            raise Closed(f"the connection to {self.address} was closed") from None

    async def _connect(self) -> _Wire:
        wire = _Wire(self)
        try:
            async with asyncio.timeout(self._settings.dial_timeout_s):
                await self._dial(lambda: wire, self._host, self._port)
        except OSError as failed:  # TimeoutError is one
            self._failure_count += 1
            wait = self._settings.backoff_s * 2 ** min(self._failure_count - 1, 16)
            wait = min(wait, self._settings.backoff_max_s)
            self._not_before = asyncio.get_running_loop().time() + wait
            reason = str(failed) or type(failed).__name__
            raise Unreachable(f"{self.address}: {reason}", wait) from None
        self._failure_count = 0
        self._wire = wire
        if self._on_open is not None:
            self._on_open(self)
        return wire

    def _dialled(self, task: asyncio.Task[_Wire]) -> None:
        self._dialling = None
        if not task.cancelled():
            # Looked at here, for all who waited may have given up.
            task.exception()

    def asked(self, command: Command) -> None:
        """The peer sent a request."""
        if self._on_request is not None:
            self._on_request(self, command)


class _Wire(asyncio.Protocol):
    """One socket, from its dial to its end."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._connection = Connection()
        self._transport: asyncio.WriteTransport | None = None
        self._answers: dict[int, asyncio.Future[Command]] = {}
        self._is_flushing = False
        self._reason: Exception | None = None
        self.is_lost = False
        self.writable = asyncio.Event()
        self.gone = asyncio.Event()

    # What is asked and answered

    async def request(self, code: int, fields: Fields | None, body: Buffer) -> Command:
        if self.is_lost:
            raise self._lost()
        opaque = self._connection.request(code, fields, body)
        answer: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self._answers[opaque] = answer
        self._flush_soon()
        try:
            return await answer
        finally:
            self._answers.pop(opaque, None)
            self._connection.give_up(opaque)

    def send_oneway(self, code: int, fields: Fields | None, body: Buffer) -> None:
        if self.is_lost:
            raise self._lost()
        self._connection.request(code, fields, body, oneway=True)
        self._flush_soon()

    def respond(self, request: Command, answer: Command) -> None:
        self._connection.respond(request, answer)
        self._flush_soon()

    def close(self, reason: Exception) -> None:
        self._flush()
        self._end(reason)
        if self._transport is not None:
            self._transport.close()

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asked for its class: uvloop's transports have another.
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            commands = self._connection.receive_data(data)
            for command in commands:
                self._received(command)
            self._connection.raise_broken()
        except ProtocolError as broken:
            self.close(Unreachable(f"{self._link.address} broke the protocol: {broken}"))

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        why = str(error) if error else "closed by the peer"
        self._end(Unreachable(f"the connection to {self._link.address} was lost: {why}"))
        self.gone.set()

    # Private

    def _received(self, command: Command) -> None:
        if not command.flag & RESPONSE_FLAG:
            self._link.asked(command)
            return
        answer = self._answers.get(command.opaque)
        if answer is not None and not answer.done():
            answer.set_result(command)

    def _flush_soon(self) -> None:
        # Everything that is asked for in one turn of the loop leaves in one write.
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        buffers = self._connection.data_to_send()
        if buffers and self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(buffers)

    def _end(self, reason: Exception) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self._reason = reason
        self.writable.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(reason)

    def _lost(self) -> Exception:
        return self._reason or Unreachable(f"the connection to {self._link.address} was lost")
