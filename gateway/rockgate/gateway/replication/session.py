"""A replica's connection to its primary: greeting, HELLO and START, then whatever it is sent."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, Final, Protocol

from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.frames import FrameReader
from rockgate.protocol.replication import frames
from rockgate.protocol.replication.frames import (
    FRAME_BYTES_MAX,
    Data,
    FilePart,
    Greeting,
    Hello,
    Refuse,
    Report,
    Start,
)
from rockgate.protocol.replication.proof import PRIMARY, REPLICA, is_proven, proof

CONNECT_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 5.0
"""After this time without a frame the connection is closed: a primary sends two a second."""


class ReplicaRefused(Exception):  # what happened, not what is wrong
    """The primary does not feed this replica."""

    def __init__(self, reason: int, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class Disconnected(Exception):  # what happened, not what is wrong
    """The connection ended."""


class Sink(Protocol):
    """Takes what the primary sends. What it raises ends the connection."""

    def hello(self, nonce: bytes) -> Hello:
        """Return what this replica has, without its proof."""

    def started(self, start: Start) -> None:
        """The primary feeds this replica."""

    def data(self, frame: Data) -> None:
        """Take bytes of the log."""

    def file(self, part: FilePart) -> None:
        """Take part of a snapshot."""


class ReplicaSession(asyncio.Protocol):
    """One connection. `ended` has the reason when it is over."""

    def __init__(self, sink: Sink, secret: bytes) -> None:
        self._sink = sink
        self._secret = secret
        self._frames = FrameReader(FRAME_BYTES_MAX)
        self._nonce = secrets.token_bytes(frames.NONCE_SIZE)
        self._primary_nonce: bytes | None = None
        self._is_started = False
        self._transport: Any = None
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(SILENCE_SECONDS, self._look)
        self.ended: asyncio.Future[Exception] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the greeting."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take frames."""
        self._heard_at = self._loop.time()
        try:
            for body in self._frames.feed(data):
                self._take(frames.decode(body, of_replica=False))
                if self.ended.done():
                    return
            if self._frames.error is not None:
                raise self._frames.error
        except Exception as error:  # noqa: BLE001  # the owner of the connection decides by type
            self.end(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.end(Disconnected(str(exc or "The primary closed the connection.")))

    def end(self, reason: Exception) -> None:
        """Close the connection; the first reason counts."""
        self._timer.cancel()
        if not self.ended.done():
            self.ended.set_result(reason)
        if self._transport is not None:
            self._transport.close()

    def report(self, report: Report) -> None:
        """Say how far this replica is."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frames.encode(report))

    def pause(self, is_paused: bool) -> None:
        """Stop reading, or continue: what was received is applied first."""
        if self._transport is None or self._transport.is_closing():
            return
        if is_paused:
            self._transport.pause_reading()
        else:
            self._heard_at = self._loop.time()
            self._transport.resume_reading()

    def _look(self) -> None:
        silent = self._loop.time() - self._heard_at
        is_reading = self._transport is None or self._transport.is_reading()
        if silent >= SILENCE_SECONDS and is_reading:
            self.end(Disconnected("The primary says nothing."))
        else:
            self._timer = self._loop.call_later(SILENCE_SECONDS / 4, self._look)

    def _take(self, frame: frames.Frame) -> None:
        if isinstance(frame, Greeting):
            self._greeted(frame)
        elif isinstance(frame, Refuse):
            raise ReplicaRefused(frame.reason, frame.why)
        elif isinstance(frame, Start):
            self._started(frame)
        elif not self._is_started:
            raise ProtocolError("The primary sends something before START.")
        elif isinstance(frame, Data):
            self._sink.data(frame)
        elif isinstance(frame, FilePart):
            self._sink.file(frame)

    def _greeted(self, greeting: Greeting) -> None:
        if self._primary_nonce is not None:
            raise ProtocolError("A second GREETING.")
        self._primary_nonce = greeting.nonce
        ours = proof(self._secret, REPLICA, greeting.nonce, self._nonce)
        self._transport.write(frames.encode(self._sink.hello(self._nonce)._replace(proof=ours)))

    def _started(self, start: Start) -> None:
        if self._is_started or self._primary_nonce is None:
            raise ProtocolError("START is not due.")
        expected = proof(self._secret, PRIMARY, self._primary_nonce, self._nonce)
        if not is_proven(start.proof, expected):
            raise ReplicaRefused(frames.UNPROVEN, "The primary does not know the secret.")
        self._is_started = True
        self._sink.started(start)


async def connect(host: str, port: int, make: Callable[[], ReplicaSession]) -> ReplicaSession:
    """Connect to a primary; OSError or TimeoutError if that is impossible."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(CONNECT_SECONDS):
        _, session = await loop.create_connection(make, host, port)
    return session
